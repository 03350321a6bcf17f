"""What has come of each plan, judged by where pods are and by who had more right to the room, not by what the
dispatcher tells of it.

All is counted in GPUs, of which a workload takes so many of one cluster and of the quota of the tree.
"""

from collections import Counter
from collections.abc import Callable, Collection, Iterator
from dataclasses import dataclass, field
from typing import Final, NamedTuple

from queue_dispatcher.cache.claims import CLAIMED_MS

Rank = tuple[int, str]
"""Priority, negated, and when it came: the least goes first in its queue."""

PLANS: Final = "plans"
STARTED: Final = "started"
HANDED: Final = "room taken by more right"
CALLED_OFF: Final = "called off before anybody had gone"
WITHDRAWN: Final = "its workload was deleted"
STAYED: Final = "pods stayed"
LOST: Final = "lost"
UNDER_WAY: Final = "under way in the end"


@dataclass
class Counted:
    """What came of the plans. ``returned``: displaced for somebody that had been displaced for it, whatever
    had come or ended meanwhile; ``ping_pong``: where nothing had; ``late``: displaced though nothing came or
    ended for long. ``faults``: what must not be.
    """

    fleets: int = 0
    displaced: int = 0
    returned: int = 0
    ping_pong: int = 0
    late: int = 0
    outcomes: Counter[str] = field(default_factory=Counter)
    faults: list[str] = field(default_factory=list)

    def add(self, other: "Counted") -> None:
        """Both together."""
        self.fleets += other.fleets
        self.displaced += other.displaced
        self.returned += other.returned
        self.ping_pong += other.ping_pong
        self.late += other.late
        self.outcomes += other.outcomes
        self.faults += other.faults


@dataclass
class Pods:
    """Where pods are. ``quota``: of the tree; ``sizes``: of the clusters, by name. ``asks``: by workload, how
    many GPUs it takes. ``running``: by cluster and workload, how many; ``going``: by both and since when,
    of those that were displaced, how many are not gone yet.
    """

    quota: int
    sizes: dict[str, int]
    asks: dict[str, int] = field(default_factory=dict)
    running: dict[str, Counter[str]] = field(default_factory=dict)
    going: dict[str, Counter[tuple[str, int]]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.running = {name: Counter() for name in self.sizes}
        self.going = {name: Counter() for name in self.sizes}

    def held(self, cluster: str) -> int:
        """How many GPUs of it have pods."""
        return self.running[cluster].total() + self.going[cluster].total()

    def where(self, name: str) -> str:
        """The cluster in which it runs, empty for none."""
        return next((cluster for cluster, of in self.running.items() if of[name]), "")


@dataclass
class _Plan:
    """A plan under way, that was ``made_in`` a cluster; by now its room may be in another, ``cluster``.
    ``place``: of its workload among those that have plans, by when the first was made; ``of_quota``: the same
    where quota is short, not room. ``reckoned``: those that went before it when it was made, and in which
    clusters. ``gone``: how many have been displaced by it; ``has_claim``: or by one before it. ``passed``:
    those of more right that have started since. ``since_ms``: when it was made.
    """

    workload: str
    queue: str
    rank: Rank
    made_in: str
    cluster: str
    place: int
    of_quota: int
    reckoned: dict[str, str]
    has_claim: bool
    since_ms: int
    gone: int = 0
    passed: set[str] = field(default_factory=set)


class _Room(NamedTuple):
    """How many GPUs are left to a plan; with those that have passed it by right; and with those of pods that
    outlive its claim.
    """

    left: int
    with_passed: int
    with_stuck: int


class Judging:
    """Follows the plans of one fleet."""

    def __init__(self, pods: Pods, counted: Counted, fault: Callable[[str], None]) -> None:
        """``fault``: is told what must not be."""
        self._pods = pods
        self._counted = counted
        self._fault = fault
        self._plans: dict[str, _Plan] = {}
        # By workload, what has ended just now, and as what.
        self._ended: dict[str, tuple[_Plan, str]] = {}
        self._places = 0

    def __contains__(self, workload: str) -> bool:
        return workload in self._plans

    def __iter__(self) -> Iterator[str]:
        return iter(self._plans)

    def begun(self, workload: str, queue: str, rank: Rank, cluster: str, now_ms: int) -> None:
        """A plan is made for it, perhaps in place of another one."""
        self._counted.outcomes[PLANS] += 1
        before = self._plans.get(workload)
        if before is not None:
            self.ended(workload, now_ms)
            self._settle(workload)
        self._places += 1
        place, of_quota = (before.place, before.of_quota) if before is not None else (self._places,) * 2
        has_claim = before is not None and before.has_claim
        reckoned = {one.workload: one.cluster for one in self._plans.values() if one.place < place}
        self._plans[workload] = _Plan(
            workload, queue, rank, cluster, cluster, place, of_quota, reckoned, has_claim, now_ms
        )
        if before is None:
            # Those of its queue that stand behind it come after it, and so after those made in between.
            for one in sorted(self._plans.values(), key=lambda one: one.place):
                if one.queue == queue and rank < one.rank:
                    self._places += 1
                    one.place = one.of_quota = self._places

    def moved(self, workload: str, cluster: str) -> None:
        """Its room is made in that cluster from now on."""
        self._plans[workload].cluster = cluster

    def displaced(self, by: str) -> None:
        """Somebody was, by the plan for that workload."""
        self._plans[by].gone += 1
        self._plans[by].has_claim = True

    def started(self, workload: str, queue: str, rank: Rank, cluster: str) -> None:
        """It was released, to that cluster."""
        ended, _ = self._ended.pop(workload, (None, ""))
        own = self._plans.pop(workload, ended)
        if own is None:
            self._take_place(workload, queue, rank, cluster)
        for one in self._plans.values():
            # Also what goes before those that this one comes after: they have it back of this one.
            ahead = {of.workload: of for cluster in (one.cluster, "") for of in self._before(one, cluster)}
            if any(
                _goes_before(queue, rank, own, of, cluster)
                for of in (one, *ahead.values())
                for cluster in (of.cluster, "")
            ):
                one.passed.add(workload)
        if own is not None:
            self._counted.outcomes[STARTED] += 1

    def _take_place(self, workload: str, queue: str, rank: Rank, cluster: str) -> None:
        """Who takes as much as one with a plan, and goes before it in its queue, is in its place: others that
        have plans were reckoned with one of the two, so they come first now, where room is short only if it
        starts where that one was to.
        """
        asks = self._pods.asks
        for one in sorted(self._plans.values(), key=lambda one: one.place):
            is_alike = (one.queue, asks[one.workload]) == (queue, asks[workload])
            if is_alike and rank < one.rank:
                self._places += 1
                one.of_quota = self._places
                if one.cluster == cluster:
                    one.place = self._places
                return

    def withdrawn(self, workload: str) -> None:
        """Whoever submitted it has deleted it."""
        if self._plans.pop(workload, None) is not None:
            self._counted.outcomes[WITHDRAWN] += 1

    def ended(self, workload: str, now_ms: int) -> None:
        """It has that plan no more, and has not started; until `settled` it may at this very moment."""
        plan = self._plans.pop(workload)
        self._ended[workload] = (plan, self._outcome(plan, now_ms) if plan.gone else CALLED_OFF)

    def settled(self) -> None:
        """Nothing more comes of this moment."""
        for workload in list(self._ended):
            self._settle(workload)

    def _settle(self, workload: str) -> None:
        plan, outcome = self._ended.pop(workload)
        self._counted.outcomes[outcome] += 1
        if outcome == LOST:
            self._fault(f"{workload} did not start, though {plan.gone} had gone for it")

    def over(self) -> None:
        """Nothing happens any more."""
        self._counted.outcomes[UNDER_WAY] += len(self._plans)

    def _outcome(self, plan: _Plan, now_ms: int) -> str:
        """Who is in its way: nobody, then it was called off for nothing; or those of more right, and pods
        that outlive the claim, without which it would have room: where it is made now, or where it was to be
        first, since nobody has gone for any other.
        """
        asks, now = self._pods.asks[plan.workload], self._room(plan, plan.cluster, now_ms)
        if asks <= now.left:
            return LOST
        found = (now, self._room(plan, plan.made_in, now_ms))
        if any(asks <= one.with_passed for one in found):
            return HANDED
        return STAYED if any(asks <= one.with_stuck for one in found) else LOST

    def _room(self, plan: _Plan, cluster: str, now_ms: int) -> _Room:
        """What the plan has of the cluster and of quota, whichever is less."""
        pods = self._pods
        # What has not gone by the end of a claim has outlived it, whenever it was stopped.
        is_over = now_ms - plan.since_ms >= CLAIMED_MS
        rooms = []
        for at in (cluster, ""):
            clusters = [at] if at else list(pods.sizes)
            there = pods.sizes[at] if at else pods.quota
            running = sum((pods.running[one] for one in clusters), Counter[str]())
            # What is to go is charged no more.
            going = pods.going[at] if at else {}
            stuck = sum(gpus for (_, at_ms), gpus in going.items() if is_over or now_ms - at_ms >= CLAIMED_MS)
            claimed = [one.workload for one in self._before(plan, at) if at in ("", one.cluster)]
            left = there - running.total() - stuck - sum(pods.asks[one] for one in claimed)
            came = {*claimed, *(one for one in plan.passed if running[one])}
            passed = sum(pods.asks[one] for one in came if not self._is_reckoned(plan, one, at))
            rooms.append(_Room(left, left + passed, left + passed + stuck))
        return _Room(*map(min, zip(*rooms, strict=True)))

    def _before(self, plan: _Plan, cluster: str) -> list[_Plan]:
        """Those under way of more right to room in the cluster, or if that is empty to quota."""
        return [
            one
            for one in self._plans.values()
            if one.has_claim and _goes_before(one.queue, one.rank, one, plan, cluster)
        ]

    def _is_reckoned(self, plan: _Plan, workload: str, cluster: str) -> bool:
        """Whether the plan had been made for what that workload leaves."""
        return workload in plan.reckoned and cluster in ("", plan.reckoned[workload])


def _goes_before(queue: str, rank: Rank, own: _Plan | None, other: _Plan, cluster: str) -> bool:
    """Whether a workload with or without a plan has more right than who has the other one, to room in the
    cluster, or if that is empty to quota: in one queue who goes first there, of two queues for whom the first
    plan was made before.
    """
    if queue == other.queue:
        return rank < other.rank
    if own is None or not own.has_claim:
        return False
    return own.place < other.place if cluster else own.of_quota < other.of_quota


class Displaced:
    """Who has been displaced for whom."""

    def __init__(self) -> None:
        self._pairs: set[tuple[str, str]] = set()
        self._by: dict[str, set[str]] = {}

    def forget(self) -> None:
        """Something has come or ended: that may give rights anew."""
        self._by.clear()

    def displaced(self, name: str, by: str) -> tuple[bool, bool]:
        """It was. Whether the other one had ever been for it; whether it had, directly or through others,
        since something came or ended.
        """
        self._by.setdefault(name, set()).add(by)
        self._pairs.add((name, by))
        return (by, name) in self._pairs, name in self._reached(by)

    def _reached(self, start: str) -> Collection[str]:
        found, left = set[str](), [start]
        while left:
            one = left.pop()
            if one not in found:
                found.add(one)
                left += self._by.get(one, ())
        return found
