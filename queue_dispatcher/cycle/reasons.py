"""Why a workload waits: typed, so that programs can count them and people can act on them.

The kinds are those of the visibility API, of Events and of the metric label ``reason``.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import ClassVar


@dataclass(frozen=True, slots=True)
class QueueNotFound:
    """No queue can be told for the workload."""

    kind: ClassVar[str] = "QueueNotFound"
    problem: str

    @property
    def text(self) -> str:
        """The sentence for people."""
        return self.problem

    @property
    def unblock(self) -> str:
        """What would end the wait."""
        return "label the workload with an existing LocalQueue of its namespace, or create that queue"


@dataclass(frozen=True, slots=True)
class QueueStopped:
    """The queue, or one above it, admits nothing at present; ``why`` says which and by what."""

    kind: ClassVar[str] = "QueueStopped"
    queue: str
    why: str

    @property
    def text(self) -> str:
        """The sentence for people."""
        return f"queue {self.queue} admits nothing: {self.why}"

    @property
    def unblock(self) -> str:
        """What would end the wait."""
        return f"an administrator mends or resumes queue {self.queue}"


@dataclass(frozen=True, slots=True)
class NamespaceNotAllowed:
    """The ClusterQueue's namespaceSelector does not select the namespace."""

    kind: ClassVar[str] = "NamespaceNotAllowed"
    queue: str
    namespace: str

    @property
    def text(self) -> str:
        """The sentence for people."""
        return f"ClusterQueue {self.queue} takes no workloads of namespace {self.namespace}"

    @property
    def unblock(self) -> str:
        """What would end the wait."""
        return f"name another queue, or let {self.queue}'s namespaceSelector select the namespace"


@dataclass(frozen=True, slots=True)
class Unreadable:
    """The binding, its template or its class says what cannot be understood; ``problem`` by field."""

    kind: ClassVar[str] = "Unreadable"
    problem: str

    @property
    def text(self) -> str:
        """The sentence for people."""
        return self.problem

    @property
    def unblock(self) -> str:
        """What would end the wait."""
        return "correct the field; the workload is looked at again as soon as it changes"


@dataclass(frozen=True, slots=True)
class NeverFits:
    """More than the queue may ever use, or than there is, even if nothing else ran.

    ``ends``: what would end the wait.
    """

    kind: ClassVar[str] = "NeverFits"
    problem: str
    ends: str = "ask for less, or have the quota or the capacity raised"

    @property
    def text(self) -> str:
        """The sentence for people."""
        return self.problem

    @property
    def unblock(self) -> str:
        """What would end the wait."""
        return self.ends


@dataclass(frozen=True, slots=True)
class WaitingForQuota:
    """The quota of ``node`` (the queue, or one above it) is in use."""

    kind: ClassVar[str] = "WaitingForQuota"
    node: str
    flavor: str
    resource: str
    missing: str

    @property
    def text(self) -> str:
        """The sentence for people."""
        return f"{self.missing} {self.resource} of flavor {self.flavor} too few are left in queue {self.node}"

    @property
    def unblock(self) -> str:
        """What would end the wait."""
        return f"workloads that use {self.resource} in queue {self.node} finish, or its quota is raised"


@dataclass(frozen=True, slots=True)
class WaitingForBorrowing:
    """The queue's own quota is used up, and its borrowing limit or its lenders give no more."""

    kind: ClassVar[str] = "WaitingForBorrowing"
    node: str
    flavor: str
    resource: str
    missing: str

    @property
    def text(self) -> str:
        """The sentence for people."""
        return (
            f"beyond the quota of queue {self.node}, {self.missing} {self.resource} of flavor {self.flavor} "
            "cannot be borrowed now"
        )

    @property
    def unblock(self) -> str:
        """What would end the wait."""
        return f"queues beside {self.node} use less of what they lend, or its borrowingLimit is raised"


@dataclass(frozen=True, slots=True)
class WaitingForCapacity:
    """Quota there is, but no room on the clusters."""

    kind: ClassVar[str] = "WaitingForCapacity"
    problem: str

    @property
    def text(self) -> str:
        """The sentence for people."""
        return self.problem

    @property
    def unblock(self) -> str:
        """What would end the wait."""
        return "workloads on those clusters finish, or nodes are added"


@dataclass(frozen=True, slots=True)
class WaitingForEstimate:
    """The estimators are being asked whether it fits, or do not answer.

    ``ends``: what would end the wait, where it is more than an answer to what is being asked.
    """

    kind: ClassVar[str] = "WaitingForEstimate"
    problem: str = "the estimators are being asked whether it fits"
    ends: str = ""

    @property
    def text(self) -> str:
        """The sentence for people."""
        return self.problem

    @property
    def unblock(self) -> str:
        """What would end the wait."""
        return self.ends or "the estimators answer"


@dataclass(frozen=True, slots=True)
class BehindHead:
    """The queue is StrictFIFO, and the workload at its head waits; ``namespace`` is that one's."""

    kind: ClassVar[str] = "BehindHead"
    head: str
    because: str
    namespace: str = ""

    @property
    def text(self) -> str:
        """The sentence for people."""
        return f"{self.head} is at the head of the StrictFIFO queue and waits: {self.because}"

    @property
    def unblock(self) -> str:
        """What would end the wait."""
        return f"{self.head} starts or is deleted"


@dataclass(frozen=True, slots=True)
class BehindStranger:
    """`BehindHead` as those are told who may not know who the head is, nor what it asks for."""

    kind: ClassVar[str] = BehindHead.kind

    @property
    def text(self) -> str:
        """The sentence for people."""
        return "a workload of another namespace is at the head of the StrictFIFO queue and waits"

    @property
    def unblock(self) -> str:
        """What would end the wait."""
        return "that workload starts or is deleted"


@dataclass(frozen=True, slots=True)
class WaitingForGangMembers:
    """Workloads of its group have not been created yet."""

    kind: ClassVar[str] = "WaitingForGangMembers"
    group: str
    present: int
    wanted: int

    @property
    def text(self) -> str:
        """The sentence for people."""
        return f"{self.present} of the {self.wanted} workloads of group {self.group} are there"

    @property
    def unblock(self) -> str:
        """What would end the wait."""
        return f"the other workloads of group {self.group} are created"


@dataclass(frozen=True, slots=True)
class BackingOff:
    """It was released, did not start in time and was taken back."""

    kind: ClassVar[str] = "BackingOff"
    until: str
    times: int
    because: str

    @property
    def text(self) -> str:
        """The sentence for people."""
        return f"did not start ({self.because}), {self.times} times so far; tried again at {self.until}"

    @property
    def unblock(self) -> str:
        """What would end the wait."""
        return "time passes; see why Karmada could not place it"


@dataclass(frozen=True, slots=True)
class ReleaseWindowFull:
    """Karmada is still placing what was released before."""

    kind: ClassVar[str] = "ReleaseWindowFull"
    in_flight: int

    @property
    def text(self) -> str:
        """The sentence for people."""
        return f"Karmada is still placing {self.in_flight} workloads that were released before"

    @property
    def unblock(self) -> str:
        """What would end the wait."""
        return "Karmada places them"


Reason = (
    QueueNotFound
    | QueueStopped
    | NamespaceNotAllowed
    | Unreadable
    | NeverFits
    | WaitingForQuota
    | WaitingForBorrowing
    | WaitingForCapacity
    | WaitingForEstimate
    | BehindHead
    | BehindStranger
    | WaitingForGangMembers
    | BackingOff
    | ReleaseWindowFull
)
KINDS: tuple[str, ...] = tuple(
    reason.kind
    for reason in (
        QueueNotFound,
        QueueStopped,
        NamespaceNotAllowed,
        Unreadable,
        NeverFits,
        WaitingForQuota,
        WaitingForBorrowing,
        WaitingForCapacity,
        WaitingForEstimate,
        BehindHead,
        WaitingForGangMembers,
        BackingOff,
        ReleaseWindowFull,
    )
)


def told_to(sees: Callable[[str], bool], reason: Reason) -> Reason:
    """The reason, without names of other namespaces than those that the reader ``sees``.

    Only that of a StrictFIFO queue speaks of another workload; all others name queues, flavors, resources and
    clusters, and what the workload says itself.
    """
    return BehindStranger() if isinstance(reason, BehindHead) and not sees(reason.namespace) else reason
