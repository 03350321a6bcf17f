"""An answer: the number, how sure it is, and why it is not larger.

The value is never above what the nodes can hold; ``upper_bound`` is never below it; ``proven`` says that
the value is the true maximum. Reasons are typed, so that metrics, logs and people read the same thing.
"""

from dataclasses import dataclass, replace
from typing import ClassVar

from estimator.capacity.topology_reasons import TopologyReason, counted
from fairway.resources import PODS, format_amount
from fairway.taints import Taint

_SHOWN = 5

UNBOUNDED = 2**31 - 1
"""No limit is known. Karmada's sentinel MaxInt32, so it stays inside: the wire never carries it."""


@dataclass(frozen=True, slots=True)
class NoNodes:
    """The cluster has no nodes at all."""

    kind: ClassVar[str] = "no_nodes"

    def __str__(self) -> str:
        return "the cluster has no nodes"


@dataclass(frozen=True, slots=True)
class Insufficient:
    """On so many eligible nodes not one more pod fits, for want of this resource."""

    kind: ClassVar[str] = "insufficient"
    resource: str
    nodes: int

    def __str__(self) -> str:
        return f"insufficient {_shown(self.resource)} on {_nodes(self.nodes)}"


@dataclass(frozen=True, slots=True)
class NeverFits:
    """No eligible node could hold the pod even if it were empty."""

    kind: ClassVar[str] = "never_fits"
    resource: str
    needs: int
    largest: int

    def __str__(self) -> str:
        largest = format_amount(self.resource, self.largest)
        return (
            f"never fits: needs {needed(self.resource, self.needs)}, the largest eligible node has {largest}"
        )


@dataclass(frozen=True, slots=True)
class DevicesFull:
    """On so many eligible nodes no device has room for the share that the pod asks for."""

    kind: ClassVar[str] = "devices"
    scheme: str
    nodes: int
    problems: tuple[str, ...] = ()

    def __str__(self) -> str:
        if self.problems:
            return f"the devices asked for ({self.scheme}) cannot be read: {'; '.join(self.problems)}"
        return f"no device with room for the share asked for ({self.scheme}) on {_nodes(self.nodes)}"


@dataclass(frozen=True, slots=True)
class ClaimsUnmet:
    """On so many eligible nodes no further pod gets the devices of these classes that it claims, and why."""

    kind: ClassVar[str] = "dra"
    classes: tuple[str, ...]
    nodes: int
    details: tuple[str, ...] = ()

    def __str__(self) -> str:
        named = " and ".join(_shown(name) for name in self.classes[:_SHOWN]) or "any class"
        why = f": {'; '.join(self.details[:_SHOWN])}" if self.details else ""
        return f"no device of class {named} free on {_nodes(self.nodes)}{why}"


@dataclass(frozen=True, slots=True)
class ClaimsUnknown:
    """What the pods claim of devices cannot be known or had anywhere in the cluster."""

    kind: ClassVar[str] = "dra_unknown"
    problems: tuple[str, ...]

    def __str__(self) -> str:
        return f"the devices claimed cannot be promised: {'; '.join(self.problems[:_SHOWN])}"


@dataclass(frozen=True, slots=True)
class Untolerated:
    """So many nodes carry a taint that the pod does not tolerate."""

    kind: ClassVar[str] = "taint"
    taint: Taint
    nodes: int

    def __str__(self) -> str:
        return f"taint {self.taint} on {_nodes(self.nodes)}"


@dataclass(frozen=True, slots=True)
class Cordoned:
    """So many nodes are marked unschedulable."""

    kind: ClassVar[str] = "cordoned"
    nodes: int

    def __str__(self) -> str:
        return f"{_nodes(self.nodes)} cordoned"


@dataclass(frozen=True, slots=True)
class Mismatched:
    """So many nodes do not match the node selector or the required node affinity."""

    kind: ClassVar[str] = "node_selector"
    nodes: int

    def __str__(self) -> str:
        return f"node selector or affinity matches none of {_nodes(self.nodes)}"


@dataclass(frozen=True, slots=True)
class HeldForAssumed:
    """Room held back for workloads that Karmada has placed and whose pods are not bound yet."""

    kind: ClassVar[str] = "assumed"
    pods: int
    workloads: int

    def __str__(self) -> str:
        pods, workloads = counted(self.pods, "pod"), counted(self.workloads, "workload")
        return f"room held for {pods} of {workloads} on {'its' if self.workloads == 1 else 'their'} way"


@dataclass(frozen=True, slots=True)
class QuotaLimit:
    """A ResourceQuota leaves this much of a resource."""

    kind: ClassVar[str] = "quota"
    quota: str
    resource: str
    free: int
    needs: int

    def __str__(self) -> str:
        free, needs = (format_amount(self.resource, amount) for amount in (self.free, self.needs))
        return f"ResourceQuota {self.quota} leaves {free} {_shown(self.resource)}, each needs {needs}"


@dataclass(frozen=True, slots=True)
class GangLimit:
    """Whole sets are limited by this component."""

    kind: ClassVar[str] = "component"
    component: str
    replicas: int
    fits: int

    def __str__(self) -> str:
        pods, fit = counted(self.replicas, "pod"), _fit(self.fits)
        return f"component {_shown(self.component)} needs {pods} a set, {fit} at all"


@dataclass(frozen=True, slots=True)
class GangShort:
    """A gang that starts whole or not at all needs more pods at once than fit."""

    kind: ClassVar[str] = "gang"
    needs: int
    fits: int

    def __str__(self) -> str:
        return f"the gang needs {counted(self.needs, 'pod')} at once, {_fit(self.fits)}"


@dataclass(frozen=True, slots=True)
class Misread:
    """The workload's template says things that could not be used; each problem names its field."""

    kind: ClassVar[str] = "template"
    problems: tuple[str, ...]

    def __str__(self) -> str:
        more = f" and {len(self.problems) - _SHOWN} more" if len(self.problems) > _SHOWN else ""
        return f"of the template is not heeded: {'; '.join(self.problems[:_SHOWN])}{more}"


@dataclass(frozen=True, slots=True)
class Doubt:
    """The true number is not known; ``cause`` is one word for metrics, ``detail`` says what to look at."""

    kind: ClassVar[str] = "doubt"
    cause: str
    detail: str

    def __str__(self) -> str:
        return f"in doubt ({self.cause}): {self.detail}"


Reason = (
    NoNodes
    | Insufficient
    | NeverFits
    | DevicesFull
    | ClaimsUnmet
    | ClaimsUnknown
    | Untolerated
    | Cordoned
    | Mismatched
    | HeldForAssumed
    | QuotaLimit
    | GangLimit
    | GangShort
    | Misread
    | Doubt
    | TopologyReason
)


@dataclass(frozen=True, slots=True)
class Answer:
    """A number of replicas or sets with its bound and its reasons, most decisive first."""

    value: int
    upper_bound: int
    proven: bool
    reasons: tuple[Reason, ...] = ()


def exactly(value: int, *reasons: Reason) -> Answer:
    """An answer known to be the true maximum."""
    value = min(value, UNBOUNDED)
    return Answer(value, value, True, reasons)


NO_LIMIT = exactly(UNBOUNDED)


def misread(answer: Answer, problems: tuple[str, ...]) -> Answer:
    """The answer, with what of the template was not heeded, if anything, as its last reason."""
    if not problems:
        return answer
    return replace(answer, reasons=(*answer.reasons, Misread(problems)))


def lowest(first: Answer, *others: Answer) -> Answer:
    """The answer when several limits hold at once: the lowest value, the lowest bound, all reasons.

    Mirrors how Karmada's estimator merges its plugins (framework/runtime, v1.19), where a limit that
    does not apply counts as MaxInt32. Proven when the lowest value meets the lowest bound.
    """
    answers = (first, *others)
    value = min(answer.value for answer in answers)
    bound = min(answer.upper_bound for answer in answers)
    ordered = sorted(answers, key=lambda answer: answer.value)
    return Answer(value, bound, value == bound, tuple(r for answer in ordered for r in answer.reasons))


def best(first: Answer, second: Answer) -> Answer:
    """The better of two answers to one question: the larger value, and of equal ones the lower bound."""
    larger = second if second.value > first.value else first
    bound = max(larger.value, min(first.upper_bound, second.upper_bound))
    return replace(larger, upper_bound=bound, proven=larger.value == bound)


def needed(resource: str, amount: int) -> str:
    """An amount of a resource in a sentence: ``8 nvidia.com/gpu``, and ``1 pod`` of what is named pods."""
    if resource == PODS:
        return counted(amount, "pod")
    return f"{format_amount(resource, amount)} {_shown(resource)}"


def _fit(count: int) -> str:
    return f"{count} fits" if count == 1 else f"{count} fit"


def _nodes(count: int) -> str:
    return f"{count} node" if count == 1 else f"{count} nodes"


def _shown(name: str) -> str:
    return name if len(name) <= 63 else name[:60] + "..."
