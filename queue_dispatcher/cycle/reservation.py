"""Reservation: a workload that finds no room is kept the room that it will have, and others may pass it only
as far as they do not delay it.

EASY backfill (Lifka, "The ANL/IBM SP Scheduling System", 1995) in stages: for a while everybody may pass, as
long runs are rare; then whoever ends by its declared and enforced runtime before the reserved workload can
start, or leaves it what it needs by then; and in the end nobody, so that the wait is bounded whatever was
declared. Where nobody knows when it could start, nobody may pass either.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum

from queue_dispatcher.cycle.items import Alternative, Item, probe_of, probe_through
from queue_dispatcher.cycle.order import Rank, standing
from queue_dispatcher.ledger.cells import Cell


class Unknown(StrEnum):
    """Why nobody knows when a reserved item can start."""

    ENDINGS = "endings"
    """What uses the quota and the amounts that it lacks may run for any time."""
    CLUSTER = "cluster"
    """What is in its way on the nodes of its cluster may run for any time."""
    NODES = "nodes"
    """Quota and amounts would do, and no estimator says when there are nodes."""


@dataclass(frozen=True, slots=True)
class Reservation:
    """What is reserved for one item. Times in epoch milliseconds.

    ``alternative``: as what it would be charged. ``since_ms``: since when it is reserved; ``drains_ms``: from
    when on nothing passes. ``starts_ms``: when it can start at the latest, by what is known now; None where
    nobody knows, and ``unknown`` says why. ``expires_ms``: when it is given up. ``short``: of which cells it
    lacks some. ``cluster``: in which the estimators keep room for it; empty where none does, and all clusters
    count. ``is_claimed``: others are displaced for it. ``borrows``: it would use more than its queue, or one
    above, owns.
    """

    item: Item
    rank: Rank
    alternative: Alternative
    since_ms: int
    drains_ms: int
    starts_ms: int | None
    expires_ms: int
    unknown: Unknown | None = None
    short: frozenset[Cell] = frozenset()
    cluster: str = ""
    is_claimed: bool = False
    borrows: bool = False

    def is_passed_by(self, runtime_ms: int | None, now_ms: int) -> bool:
        """Whether what would run for so long at the most may use what is kept."""
        return runtime_ms is not None and 0 < runtime_ms <= self.passes_ms(now_ms)

    def passes_ms(self, now_ms: int) -> int:
        """For how long at the most others may use what is kept, from now on; 0 for not at all."""
        if self.starts_ms is None or self.is_drained(now_ms):
            return 0
        return max(0, self.starts_ms - now_ms)

    def is_drained(self, now_ms: int) -> bool:
        """Whether nothing starts any more in what it lacks, whatever is declared."""
        return now_ms >= self.drains_ms

    def is_behind(self, item: Item, rank: Rank, *, has_claim: bool) -> bool:
        """Whether another item goes first by the order of queues: it is not held back at all.
        ``has_claim``: others are displaced for it.

        What others were displaced for is not for other queues, whatever the priorities there: they would use
        a right to displace that they may not have themselves, and whoever has it would use it without end.
        So whoever has a claim waits for nobody of another queue that has none. Nor is it for who goes first
        in its own queue by ageing or shares alone: that one could be displaced for it next.
        """
        if item.queue == self.item.queue:
            return rank < self.rank and not (self.is_claimed and standing(self.item) < standing(item))
        return not self.is_claimed and (has_claim or rank[0] < self.rank[0])

    def yields_to_owner(self, queue: str) -> bool:
        """Whether who takes only what a queue owns waits for it for no quota, nor for anything where it would
        borrow. What others were displaced for is as good as used, and whoever owns it takes it back in turn.
        """
        return not self.is_claimed and self.item.queue != queue

    def is_apart_from(self, other: "Reservation") -> bool:
        """Whether others are displaced for both, in different clusters: each was reckoned with what is made
        for it in its own, and whoever took what is made elsewhere would leave its own to nobody.
        """
        return self.is_claimed and other.is_claimed and self.cluster != other.cluster


@dataclass(frozen=True, slots=True)
class Reservations:
    """Those of one decision, in their order. ``given_up``: by item, until when it gets none any more."""

    made: tuple[Reservation, ...] = ()
    given_up: Mapping[str, int] = field(default_factory=dict)
    _by_queue: dict[str, list[Reservation]] = field(init=False, repr=False, compare=False)
    _passed: dict[tuple[int, int | None, int], frozenset[str]] = field(init=False, repr=False, compare=False)
    _lent: dict[str, frozenset[str]] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "_passed", {})
        object.__setattr__(self, "_lent", {})
        by_queue: dict[str, list[Reservation]] = {}
        for one in self.made:
            by_queue.setdefault(one.item.queue, []).append(one)
        object.__setattr__(self, "_by_queue", by_queue)

    def of(self, queue: str) -> Sequence[Reservation]:
        """Those of one queue."""
        return self._by_queue.get(queue, ())

    def has(self, item: str) -> bool:
        """Whether the item holds one."""
        return any(one.item.id == item for one in self.made)

    def through(self, item: Item, rank: Rank, runtime_ms: int | None, now_ms: int) -> frozenset[str]:
        """The items for which estimators keep room that this one may use.

        Of one that holds a reservation itself: also all that give way to it.
        """
        own = next((one for one in self.of(item.queue) if one.item.id == item.id), None)
        if own is not None:
            after = self.behind(item.id)
            return frozenset(
                one.item.id
                for one in self.made
                if one.cluster
                and not own.is_apart_from(one)
                and (
                    one.item.id in after
                    or one.is_behind(item, rank, has_claim=own.is_claimed)
                    or one.is_passed_by(runtime_ms, now_ms)
                )
            )
        passed, others = self.passed_by(rank[0], runtime_ms, now_ms), self.of(item.queue)
        behind = {one.item.id for one in others if one.cluster and one.is_behind(item, rank, has_claim=False)}
        return passed | behind if behind else passed

    def passed_by(self, priority: int, runtime_ms: int | None, now_ms: int) -> frozenset[str]:
        """Those of them that anything may use that runs for so long, of a priority as it stands in ranks."""
        asked = (priority, runtime_ms, now_ms)
        found = self._passed.get(asked)
        if found is None:
            found = self._passed[asked] = frozenset(
                one.item.id
                for one in self.made
                if one.cluster
                and ((priority < one.rank[0] and not one.is_claimed) or one.is_passed_by(runtime_ms, now_ms))
            )
        return found

    def lent(self, queue: str) -> frozenset[str]:
        """Those that an item of the queue may use as well if it takes only what its queue owns."""
        found = self._lent.get(queue)
        if found is None:
            found = frozenset(
                one.item.id for one in self.made if one.cluster and one.borrows and one.yields_to_owner(queue)
            )
            self._lent[queue] = found
        return found

    def behind(self, item: str) -> frozenset[str]:
        """The items whose reservations come after that of the item and give way to it, with itself."""
        place = next(number for number, one in enumerate(self.made) if one.item.id == item)
        own = self.made[place]
        return frozenset(one.item.id for one in self.made[place:] if not own.is_apart_from(one))


NO_RESERVATIONS = Reservations()


def own_probe(item: Item, alternative: Alternative) -> str:
    """What the estimators are asked about a reserved item that would be charged so, with the room that they
    keep for it; empty where they are not asked.
    """
    probe = probe_of(item.shape, alternative)
    return probe_through(probe, frozenset((item.id,))) if probe else ""
