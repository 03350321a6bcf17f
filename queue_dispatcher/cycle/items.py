"""What waits in a queue: items, and the shapes that many items share.

Items of one shape, priority, ageing and time to run differ only in when they came, so a cycle that finds no
room for the first has found none for all of them. That is what keeps a full fleet with 100,000 waiting
workloads cheap.
"""

import hashlib
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Final

from queue_dispatcher.api.ageing import Ageing
from queue_dispatcher.cycle.keeping import Keeping
from queue_dispatcher.cycle.reasons import Reason
from queue_dispatcher.ledger.cells import Charge, added

GROUP_PREFIX = "group "
"""How the name of an item begins that stands for a group; no name of an object can."""


@dataclass(frozen=True, slots=True)
class Alternative:
    """One way to charge a workload, or a part of it: which flavor each resource comes from, and how much.

    ``flavors``: pairs of resource and flavor. What may land on several flavors is charged to each of them
    until Karmada has placed it, so a resource can be named more than once; ``places`` then says what is
    charged for each flavor that it may land on, one by one. ``component``: whose pods these are; empty for
    all. ``parts``: of a workload whose parts have flavors of their own, those, in order. ``clusters``: where
    it must go to be charged so; None for wherever its placement permits. ``keeps``: what its pods are told so
    that they stay on the nodes of what is charged; of all parts, in order. ``through``: items whose
    reservations do not hold it back, so that it may use the room that estimators keep for them.
    """

    flavors: tuple[tuple[str, str], ...]
    charge: Charge
    places: tuple["Alternative", ...] = ()
    component: str = ""
    parts: tuple["Alternative", ...] = ()
    clusters: frozenset[str] | None = None
    keeps: tuple[Keeping, ...] = ()
    through: frozenset[str] = frozenset()
    narrows: str = field(init=False, repr=False, compare=False)
    """Of what is asked about it, to which clusters and which of their nodes it goes; empty for anywhere."""

    def __post_init__(self) -> None:
        # Asked for at every look at a waiting workload, where to hash it all anew costs more than the look.
        object.__setattr__(self, "narrows", _narrowed(self.clusters, self.keeps))

    @property
    def is_anywhere(self) -> bool:
        """Whether nothing narrows down where its pods may be beyond what the workload says."""
        return self.clusters is None and not self.keeps

    @property
    def is_any(self) -> bool:
        """Whether it may land on any of several flavors, and no part is bound to the clusters of one."""
        parts = self.parts or (self,)
        return any(part.places for part in parts) and all(
            part.places or part.clusters is None for part in parts
        )

    def among(self, places: Sequence["Alternative"]) -> "Alternative":
        """With no others than these of its ``places``."""
        flavors = {pair for place in places for pair in place.flavors}
        names = {flavor for _, flavor in flavors}
        bound = [place.clusters for place in places if place.clusters is not None]
        return Alternative(
            tuple(pair for pair in self.flavors if pair in flavors),
            added(*(place.charge for place in places)),
            tuple(places),
            self.component,
            clusters=frozenset().union(*bound) if bound else None,
            keeps=tuple(keeping.among(names) for keeping in self.keeps),
        )

    def landed(self, clusters: Collection[str]) -> "Alternative":
        """With the flavors alone that it lands on in these clusters: in each, the first that has it."""
        if self.parts:
            return joined([part.landed(clusters) for part in self.parts])
        firsts = [next((one for one in self.places if one.is_in(cluster)), None) for cluster in clusters]
        left = [place for place in self.places if place in firsts]
        return self.among(left) if left else self

    def is_in(self, cluster: str) -> bool:
        """Whether it may go there."""
        return self.clusters is None or cluster in self.clusters


def joined(chosen: Sequence[Alternative]) -> Alternative:
    """The alternative of a workload from what was chosen for each of its parts."""
    if len(chosen) == 1:
        return chosen[0]
    flavors = dict.fromkeys(pair for one in chosen for pair in one.flavors)
    parts = tuple(part for one in chosen for part in one.parts or (one,))
    return Alternative(
        tuple(flavors),
        added(*(one.charge for one in chosen)),
        parts=parts,
        clusters=meeting(chosen),
        keeps=tuple(keeping for one in chosen for keeping in one.keeps),
    )


def meeting(chosen: Iterable[Alternative]) -> frozenset[str] | None:
    """Where all of them can be; None for wherever the placement permits."""
    bound = [one.clusters for one in chosen if one.clusters is not None]
    return bound[0].intersection(*bound[1:]) if bound else None


@dataclass(frozen=True, slots=True, eq=False)
class Shape:
    """What alike workloads of one queue ask for; one object for all of them, compared by identity.

    ``key``: a digest that is the same in every process. ``alternatives``: in the queue's order of flavors;
    empty only with ``never``, which says why no admission can be possible. ``further``: where parts of the
    workload may come from different flavors, the alternatives of each part beyond the first, which are what
    ``alternatives`` are then of. ``avoids_borrowing``: a later flavor that needs no borrowing goes first.
    ``probe``: what the estimators are asked about, equal for all shapes that are the same question; empty
    where nobody needs to be asked; narrowed by `probe_of` to where an alternative has to go, and its pods.
    ``may_preplace``: Karmada would keep to the places that a release states.
    """

    key: str
    demand: tuple[tuple[str, int], ...]
    alternatives: tuple[Alternative, ...]
    never: Reason | None = None
    probe: str = ""
    further: tuple[tuple[Alternative, ...], ...] = ()
    avoids_borrowing: bool = False
    may_preplace: bool = False

    @property
    def is_preplaced(self) -> bool:
        """Whether its releases state places, those that the estimators have named; else Karmada places it."""
        return self.may_preplace and bool(self.probe)

    @property
    def parts(self) -> tuple[tuple[Alternative, ...], ...]:
        """The alternatives of each part, in order; none of what can never be admitted."""
        return (self.alternatives, *self.further) if self.alternatives else ()

    @property
    def preferred(self) -> Alternative | None:
        """The first alternative of each part, whether or not there is room; None where there is none."""
        return joined([options[0] for options in self.parts]) if self.alternatives else None


def probe_of(shape: Shape, alternative: Alternative) -> str:
    """What the estimators are asked about a workload that is charged so; empty where nobody is."""
    if not shape.probe:
        return ""
    probe = shape.probe + alternative.narrows
    return probe_through(probe, alternative.through) if alternative.through else probe


def probe_through(probe: str, uids: Collection[str]) -> str:
    """The question whether it fits if it may use the room that is held for these reservations, by uid.

    In place of those that ``probe`` is through, if any. The same question where there are none.
    """
    plain = plain_probe(probe)
    return plain + _through(frozenset(uids)) if plain and uids else plain


def earliest_probe(probe: str) -> str:
    """The question when it would fit at the earliest, where ``probe`` asks whether it fits."""
    return asked_now(probe) + _WHEN


def victims_probe(probe: str) -> str:
    """The question which workloads have to end for it, where ``probe`` asks whether it fits."""
    return asked_now(probe) + _WHO


def asked_now(probe: str) -> str:
    """The question of which this is the `earliest_probe` or the `victims_probe`; itself if it is neither."""
    return probe.partition(_WHEN)[0].partition(_WHO)[0]


def plain_probe(probe: str) -> str:
    """What is asked about, by `probe_of`: whatever room it may use; whether now, when, or who has to end."""
    return asked_now(probe).partition(_THROUGH)[0]


def workload_of(probe: str) -> str:
    """What is alike in the questions about one shape, wherever it is to go, and whatever it may use."""
    return plain_probe(probe).partition(_ON)[0].partition(_IN)[0]


def is_everywhere(probe: str) -> bool:
    """Whether it is asked about all clusters that the placement permits."""
    return _IN not in probe


_IN: Final = ":"
_ON: Final = "@"
_THROUGH: Final = "+"
_WHEN: Final = "?"
_WHO: Final = "!"


@lru_cache(maxsize=4_096)
def _narrowed(clusters: frozenset[str] | None, keeps: tuple[Keeping, ...]) -> str:
    """To which clusters, and to which of their nodes."""
    on = _ON + _digest(_told(keeping) for keeping in keeps) if keeps else ""
    return on + (_IN + _digest(sorted(clusters)) if clusters is not None else "")


@lru_cache(maxsize=4_096)
def _through(uids: frozenset[str]) -> str:
    return _THROUGH + _digest(sorted(uids))


def _told(keeping: Keeping) -> str:
    flavors = (
        (one.labels, one.tolerations, None if one.clusters is None else sorted(one.clusters))
        for one in keeping.flavors
    )
    return repr((keeping.component, *flavors))


def _digest(lines: Iterable[str]) -> str:
    return hashlib.sha256("\n".join(lines).encode()).hexdigest()[:16]


@dataclass(frozen=True, slots=True)
class Item:
    """What is admitted as one: a binding, the growth of one, or a group of bindings.

    ``id``: the binding's uid, or the group's key. ``name``: ``NAMESPACE/NAME``, of a group behind
    `GROUP_PREFIX`. ``members``: uids of the bindings that its admission releases. ``enqueued_ms``: since when
    it has its place in the line, epoch milliseconds, never renewed. ``due_ms``: not to be admitted before; 0
    for at once. ``ageing``: that of its ServiceClass; None for the queue's. ``runtime_ms``: for how long it
    runs at the latest once it has started, in the steps of `queue_dispatcher.cycle.runtime`; None where
    nothing bounds that. ``max_wait_ms``: how long it should wait at the most, by its ServiceClass; None
    where that says nothing, and of growth. ``line``: the key of its LocalQueue where those share the queue;
    else empty. ``pods``: of an elastic workload, how many pods its shape is of, and ``most`` how many it
    takes if there is room left, beside those that run (``runs``); else 0. ``in_one``: all of them go to one
    cluster.
    """

    id: str
    name: str
    members: tuple[str, ...]
    queue: str
    local_queue: str
    shape: Shape
    priority: int
    enqueued_ms: int
    due_ms: int = 0
    is_growth: bool = False
    ageing: Ageing | None = None
    runtime_ms: int | None = None
    max_wait_ms: int | None = None
    line: str = ""
    pods: int = 0
    most: int = 0
    runs: int = 0
    in_one: bool = False

    @property
    def namespace(self) -> str:
        """The namespace of its members; empty for cluster-scoped ones."""
        namespace, slash, _ = self.name.removeprefix(GROUP_PREFIX).partition("/")
        return namespace if slash else ""
