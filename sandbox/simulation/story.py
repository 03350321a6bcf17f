"""A story: what there is, what people do, and what goes wrong, each at its second. A value.

A story reads as it was told, ``Story(7).cluster("a", gpus=8).queue("main", gpus=8).submit("x", at_s=3)``,
and a line of it prints as the call that tells it, so that a story found by chance can be kept as a test.
"""

from collections.abc import Callable
from dataclasses import dataclass, field, fields, replace
from typing import ClassVar, Concatenate, Literal, ParamSpec, TypeVar

from sandbox.simulation.karmada.policies import Way

NAMESPACE = "team"
P = ParamSpec("P")

Displaces = Literal["Never", "LowerPriority", "LowerOrNewerEqualPriority"]
Reclaims = Literal["Never", "LowerPriority", "Any"]
Preemptible = Literal["Always", "BorrowedOnly", "Never"]
FaultKind = Literal[
    "watch_lag",
    "watch_split",
    "watch_silent",
    "watch_compacted",
    "conflict",
    "too_many",
    "server_error",
    "timeout_before",
    "timeout_after",
    "slow_writes",
    "kill",
    "kill_before_write",
    "kill_after_write",
    "pause",
    "clock_apart",
    "clock_jump",
    "api_away",
    "cluster_lost",
    "karmada_slow",
    "karmada_away",
    "estimator_slow",
    "estimator_wrong",
    "estimator_gone",
    "estimator_frozen",
    "node_failed",
    "node_deleted",
    "node_cordoned",
]


@dataclass(frozen=True, slots=True)
class Line:
    """One line of a story. ``at_s``: when, in seconds from its beginning."""

    call: ClassVar[str]
    at_s: int = field(default=0, kw_only=True)

    def told(self) -> str:
        """The call that adds this line to a story."""
        of = {one.name: getattr(self, one.name) for one in fields(self) if one.name != "at_s"}
        first = next(iter(of))
        default = {one.name: one.default for one in fields(self)}
        said = [repr(of.pop(first))]
        said += [f"{name}={value!r}" for name, value in of.items() if value != default[name]]
        said += [f"at_s={self.at_s}"] if self.at_s else []
        return f".{self.call}({', '.join(said)})"


L = TypeVar("L", bound=Line)


@dataclass(frozen=True, slots=True)
class ClusterLine(Line):
    """A member cluster: ``nodes`` of ``gpus`` each."""

    call: ClassVar[str] = "cluster"
    name: str
    gpus: int = 8
    nodes: int = 1


@dataclass(frozen=True, slots=True)
class QueueLine(Line):
    """A ClusterQueue with so many GPUs, and the LocalQueue of its name that leads to it.

    ``share``: if not 0, so many percent of all GPUs instead.
    ``lends``: at most so many of its own go to others; ``borrows``: at most so many of others come to it.
    ``spreads``: its work goes to the emptiest cluster, not the fullest. ``strict``: nothing passes what waits
    there. ``backfill``: what does not delay it does: it has a reservation after ``reserves_s``, which nothing
    passes after ``drains_s`` and which is given up ``holds_s`` after it was made; ``depth`` have one at once.
    ``displaces``, ``reclaims``: as withinClusterQueue and reclaimWithinCohort of its preemption.
    ``evicts_s``: what it uses beyond a quota that was lowered is taken back after so long; None for never.
    ``ages_s``: so long a wait there raises a priority by one, by ``ages_by`` at the most; 0 for never.
    """

    call: ClassVar[str] = "queue"
    name: str
    gpus: int = 8
    parent: str = ""
    strict: bool = False
    weight: int = 1
    lends: int | None = None
    borrows: int | None = None
    share: int = 0
    spreads: bool = False
    backfill: bool = False
    reserves_s: int = 60
    drains_s: int = 600
    holds_s: int = 86_400
    depth: int = 1
    displaces: Displaces = "Never"
    reclaims: Reclaims = "Never"
    evicts_s: int | None = None
    ages_s: int = 0
    ages_by: int = 20


@dataclass(frozen=True, slots=True)
class SubmitLine(Line):
    """A Job of ``pods`` with ``gpus`` each that runs for ``runs_s``, or a JobSet of such a one, or with kind
    Deployment until deleted.

    ``gang``: all in one cluster. ``clusters``: where its placement permits it. ``way``: how Karmada divides
    it. ``scheduler``: that its policy names. ``selector``: of nodes that there are none of. ``skip``: it opts
    out. ``group_size``: with whom it starts. ``hangs``: its pods never become ready. ``tries``:
    as its ServiceClass limits them; ``ready``: whether that gives its pods a time to run in. ``takes``: the
    scheduler that its pods name. ``may_run_s``: for how long its ServiceClass lets it run, and ``says_s`` it
    itself; 0 for without end. ``preemptible``, ``min_run_s``: how far its ServiceClass keeps it from being
    displaced. ``stays``: its pods stay where they are whatever becomes of its binding. ``stops_s``: how long
    its pods take to end once they are asked to. ``least``: with how many pods it
    may start, 0 for all. ``completions``: of a Job, how many of its pods have to succeed, 0 for as many as
    run at a time.
    """

    call: ClassVar[str] = "submit"
    name: str
    queue: str = "main"
    gpus: int = 1
    pods: int = 1
    runs_s: int = 20
    kind: Literal["Job", "JobSet", "Deployment"] = "Job"
    priority: int = 0
    gang: bool = False
    clusters: tuple[str, ...] = ()
    way: Way = "aggregated"
    group: str = ""
    group_size: int = 0
    scheduler: str = ""
    impossible: bool = False
    skip: bool = False
    hangs: bool = False
    tries: int | None = None
    ready: bool = False
    takes: str = ""
    may_run_s: int = 0
    says_s: int = 0
    preemptible: Preemptible = "Always"
    min_run_s: int = 0
    stays: bool = False
    stops_s: int = 0
    least: int = 0
    completions: int = 0

    @property
    def to_succeed(self) -> int:
        """How many of its pods have to succeed."""
        return self.completions or self.pods

    @property
    def is_bound_together(self) -> bool:
        """Whether its pods are nothing one without the other."""
        return self.gang and self.pods > 1


@dataclass(frozen=True, slots=True)
class DependencyLine(Line):
    """A ConfigMap that follows workloads to their clusters: Karmada gives it a binding without placement."""

    call: ClassVar[str] = "dependency"
    name: str


@dataclass(frozen=True, slots=True)
class ScaleLine(Line):
    """Somebody sets the number of pods of a workload."""

    call: ClassVar[str] = "scale"
    name: str
    pods: int


@dataclass(frozen=True, slots=True)
class DeleteLine(Line):
    """Somebody deletes ``what`` of this name: a workload, a queue, or a local_queue."""

    call: ClassVar[str] = "delete"
    name: str
    what: Literal["workload", "binding", "queue", "local_queue"] = "workload"


@dataclass(frozen=True, slots=True)
class QuotaLine(Line):
    """An administrator sets the quota of a queue."""

    call: ClassVar[str] = "quota"
    name: str
    gpus: int


@dataclass(frozen=True, slots=True)
class StopLine(Line):
    """An administrator stops a queue (policy Hold), drains it (HoldAndDrain), or lets it go on (None)."""

    call: ClassVar[str] = "stop"
    name: str
    policy: str = "Hold"


@dataclass(frozen=True, slots=True)
class RelabelLine(Line):
    """The owner of a workload names another queue; and a group, if that is not empty."""

    call: ClassVar[str] = "relabel"
    name: str
    queue: str
    group: str = ""
    group_size: int = 0


@dataclass(frozen=True, slots=True)
class SuspendLine(Line):
    """Somebody sets or clears the hold of a workload's binding by hand."""

    call: ClassVar[str] = "suspend"
    name: str
    held: bool = True


@dataclass(frozen=True, slots=True)
class ScribbleLine(Line):
    """Somebody else writes something harmless to a workload's binding."""

    call: ClassVar[str] = "scribble"
    name: str


@dataclass(frozen=True, slots=True)
class WriteLine(Line):
    """Somebody patches the object of this key: any edit that has no line of its own.

    ``kind``: its resource. ``body``: a JSON merge patch, in which ``$uid`` is the object's, ``$now`` the time
    and ``$long`` 200,000 letters.
    """

    call: ClassVar[str] = "write"
    name: str
    kind: str = "resourcebindings"
    body: str = "{}"


@dataclass(frozen=True, slots=True)
class FaultLine(Line):
    """Something goes wrong for ``for_s``. ``whom``: a dispatcher, a cluster or a resource, by kind; empty for
    whoever leads, or all. ``amount``: of milliseconds or times, by kind; or of writes, to die at the last.
    """

    call: ClassVar[str] = "fault"
    kind: FaultKind
    for_s: int = 0
    whom: str = ""
    amount: int = 1


def _tells(make: Callable[P, Line]) -> "Callable[Concatenate[Story, P], Story]":
    def tell(story: "Story", /, *args: P.args, **kwargs: P.kwargs) -> "Story":
        return replace(story, lines=(*story.lines, make(*args, **kwargs)))

    return tell


@dataclass(frozen=True, slots=True)
class Story:
    """``seed``: of what the lines leave to chance (delays). ``until_s``: when nothing more is begun.

    ``estimators``: whether the dispatcher and Karmada ask them; ``preplaces``: whether releases state where
    to then. ``failover``: whether Karmada evicts from lost clusters. ``lost_after_s``: for how long all
    classes wait for a lost cluster, 0 for without end. Each method adds the line of its type.
    """

    seed: int = 0
    until_s: int = 120
    estimators: bool = False
    failover: bool = False
    preplaces: bool = True
    lost_after_s: int = 900
    lines: tuple[Line, ...] = ()

    cluster = _tells(ClusterLine)
    queue = _tells(QueueLine)
    submit = _tells(SubmitLine)
    dependency = _tells(DependencyLine)
    scale = _tells(ScaleLine)
    delete = _tells(DeleteLine)
    quota = _tells(QuotaLine)
    stop = _tells(StopLine)
    relabel = _tells(RelabelLine)
    suspend = _tells(SuspendLine)
    scribble = _tells(ScribbleLine)
    write = _tells(WriteLine)
    fault = _tells(FaultLine)

    def told(self) -> str:
        """The story as Python."""
        head = ", ".join(
            f"{one.name}={getattr(self, one.name)}"
            for one in fields(self)
            if one.name != "lines" and getattr(self, one.name) != one.default
        )
        return f"Story({head})" + "".join(f"\n{line.told()}" for line in self.lines)

    def of(self, kind: type[L]) -> list[L]:
        """Its lines of one type."""
        return [line for line in self.lines if isinstance(line, kind)]
