"""Why topology, spreading or atomic groups keep an answer from being larger, as typed sentences.

The same pattern as the reasons in `estimator.capacity.answer`, which lists these in its union: ``kind`` is
one word for metrics, the text is for people.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import ClassVar

_SHOWN_NAMES = 8


@dataclass(frozen=True, slots=True)
class UnknownLevel:
    """The topology level asked for is none of this cluster's."""

    kind: ClassVar[str] = "unknown_level"
    level: str
    known: tuple[str, ...]

    def __str__(self) -> str:
        known = _listed(self.known) if self.known else "none"
        return (
            f"topology level {shown(self.level)!r} is unknown here: expected a label key that nodes carry, "
            f"or a short name of one of this cluster's levels ({known})"
        )


@dataclass(frozen=True, slots=True)
class AmbiguousLevel:
    """The short name asked for stands for several levels of this cluster."""

    kind: ClassVar[str] = "ambiguous_level"
    level: str
    keys: tuple[str, ...]

    def __str__(self) -> str:
        return (
            f"topology level {shown(self.level)!r} may be any of {_listed(self.keys)}: "
            "name the level by its label key"
        )


@dataclass(frozen=True, slots=True)
class OutsideLevel:
    """So many nodes are in no domain of a level, for want of its label or of a coarser one.

    On ``malformed`` of them a label is there and is no name of a domain; ``example`` is one such value.
    """

    kind: ClassVar[str] = "topology_label"
    level: str
    nodes: int
    malformed: int = 0
    example: str = ""

    def __str__(self) -> str:
        text = f"{counted(self.nodes, 'node')} in no domain of {shown(self.level)}: label missing"
        if self.malformed:
            text += f" or, on {self.malformed} of them, malformed ({shown(self.example)!r})"
        return text


@dataclass(frozen=True, slots=True)
class DomainLimit:
    """Of the domains of a level, the roomiest holds ``largest`` of the ``pods`` that must be in one."""

    kind: ClassVar[str] = "topology"
    level: str
    pods: int
    domains: int
    largest: int

    def __str__(self) -> str:
        return (
            f"{counted(self.pods, 'pod')} must be in one domain of {shown(self.level)}; "
            f"the roomiest of {self.domains} holds {self.largest}"
        )


@dataclass(frozen=True, slots=True)
class HeldDomains:
    """So many domains belong to other workloads that want them for themselves, or are not wholly free."""

    kind: ClassVar[str] = "exclusive"
    level: str
    domains: int

    def __str__(self) -> str:
        return f"{counted(self.domains, 'domain')} of {shown(self.level)} in use by others"


@dataclass(frozen=True, slots=True)
class FitsWithin:
    """One copy fits within a single domain of this level, and of no finer one that was asked for."""

    kind: ClassVar[str] = "fits_within"
    level: str

    def __str__(self) -> str:
        return f"one copy fits within one domain of {shown(self.level)}"


@dataclass(frozen=True, slots=True)
class UnevenSlices:
    """The pods of a component cannot be cut into slices of the size asked for."""

    kind: ClassVar[str] = "slice_size"
    component: str
    replicas: int
    size: int

    def __str__(self) -> str:
        return (
            f"component {shown(self.component)} has {counted(self.replicas, 'pod')}, which slices of "
            f"{self.size} do not make up: expected a positive slice size that divides it"
        )


@dataclass(frozen=True, slots=True)
class CrossedTopologies:
    """A component is tied to one level by itself and sliced over another, and neither implies the other."""

    kind: ClassVar[str] = "topology_conflict"
    component: str
    own: str
    gang: str

    def __str__(self) -> str:
        return (
            f"component {shown(self.component)} is tied to {shown(self.own)} inside a gang in slices over "
            f"{shown(self.gang)}: expected whole slices within each domain of its own"
        )


@dataclass(frozen=True, slots=True)
class Understated:
    """The value is one that surely fits; the true number may be larger, up to the bound."""

    kind: ClassVar[str] = "understated"
    detail: str

    def __str__(self) -> str:
        return f"more may fit: {self.detail}"


@dataclass(frozen=True, slots=True)
class SpreadLimit:
    """Even spreading over the domains of a label: the scarcest of them holds ``least`` pods."""

    kind: ClassVar[str] = "spread"
    key: str
    max_skew: int
    domains: int
    least: int

    def __str__(self) -> str:
        return (
            f"pods may differ by at most {self.max_skew} between {counted(self.domains, 'domain')} of "
            f"{shown(self.key)}, the scarcest of which takes {self.least}"
        )


@dataclass(frozen=True, slots=True)
class DomainCap:
    """At most so many pods in each domain of a label: anti-affinity to each other, or host ports."""

    kind: ClassVar[str] = "per_domain"
    key: str
    most: int

    def __str__(self) -> str:
        return f"at most {counted(self.most, 'pod')} in each domain of {shown(self.key)}"


@dataclass(frozen=True, slots=True)
class SlicesInUse:
    """TPU slices of one shape that are whole but not wholly free for this pod."""

    kind: ClassVar[str] = "slices_in_use"
    accelerator: str
    topology: str
    slices: int

    def __str__(self) -> str:
        name = f"{shown(self.accelerator)} {shown(self.topology)}"
        return f"{counted(self.slices, 'slice')} of {name} not wholly free"


@dataclass(frozen=True, slots=True)
class BrokenSlices:
    """TPU slices of one shape that lack hosts or health, or whose hosts contradict each other."""

    kind: ClassVar[str] = "broken_slices"
    accelerator: str
    topology: str
    slices: int
    hosts: int

    def __str__(self) -> str:
        name = f"{shown(self.accelerator)} {shown(self.topology)}"
        return f"{counted(self.slices, 'slice')} of {name} without all of {self.hosts} healthy hosts"


@dataclass(frozen=True, slots=True)
class PartOfHost:
    """A pod in a multi-host TPU slice must ask for all chips of its host, and this one does not."""

    kind: ClassVar[str] = "tpu_chips"
    asked: int
    chips: int
    nodes: int

    def __str__(self) -> str:
        return (
            f"never fits on {counted(self.nodes, 'node')} of multi-host TPU slices: asks for {self.asked} "
            f"google.com/tpu, expected all {self.chips} of a host"
        )


@dataclass(frozen=True, slots=True)
class UnreadableTpuLabels:
    """So many nodes have TPUs whose slice cannot be told from their labels, so none of it is promised."""

    kind: ClassVar[str] = "tpu_labels"
    nodes: int
    detail: str

    def __str__(self) -> str:
        return f"TPU slice of {counted(self.nodes, 'node')} unknown: {self.detail}"


TopologyReason = (
    UnknownLevel
    | AmbiguousLevel
    | OutsideLevel
    | DomainLimit
    | HeldDomains
    | FitsWithin
    | UnevenSlices
    | CrossedTopologies
    | Understated
    | SpreadLimit
    | DomainCap
    | SlicesInUse
    | BrokenSlices
    | PartOfHost
    | UnreadableTpuLabels
)


def shown(name: str) -> str:
    """A name from outside, short enough for a sentence."""
    return name if len(name) <= 63 else name[:60] + "..."


def counted(count: int, noun: str) -> str:
    """``1 node``, ``2 nodes``."""
    return f"{count} {noun}" if count == 1 else f"{count} {noun}s"


def _listed(names: Iterable[str]) -> str:
    names = tuple(names)
    more = len(names) - _SHOWN_NAMES
    text = ", ".join(shown(name) for name in names[:_SHOWN_NAMES])
    return f"{text} and {more} more" if more > 0 else text
