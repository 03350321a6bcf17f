"""Laws of reservations in a tree of queues: who passes delays nobody, and who delays nobody passes. Judged by
sums over who uses what, not by the ledger.
"""

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass

from hypothesis import given, settings
from hypothesis import strategies as st

from queue_dispatcher.api.reservation import ReservationPolicy
from tests.dispatcher.cycle.builders import BACKFILL, Fleet, admitted
from tests.dispatcher.ledger.builders import owns, queue, root
from tests.simulation.accounts import Quota, Trees

MIN = 60_000
AFTER, DRAINS = 5, 90
PARENTS = {"one": "org", "two": "org", "a": "one", "b": "one", "c": "two", "d": "two"}


@dataclass(frozen=True)
class Owned:
    """Of a queue, in GPUs; None for without limit."""

    nominal: int
    borrows: int | None
    lends: int | None


@dataclass(frozen=True)
class Work:
    """``minutes``: how long it may run at the most; None for without end."""

    queue: str
    gpus: int
    minutes: int | None


LIMITS = st.sampled_from((None, None, 0, 3))
QUOTAS = st.fixed_dictionaries(
    dict.fromkeys(PARENTS, st.builds(Owned, st.integers(0, 6), LIMITS, LIMITS)),
)
WALLS = st.fixed_dictionaries(
    dict.fromkeys(PARENTS, st.builds(Owned, st.integers(0, 6), LIMITS, st.sampled_from((None, 0)))),
)
WORK = st.builds(Work, st.sampled_from("abcd"), st.integers(1, 6), st.none() | st.integers(1, 60))


def fleet_of(quotas: Mapping[str, Owned], org: int) -> Fleet:
    nodes = [
        queue(name, PARENTS[name], gpu=owns(one.nominal, borrows=one.borrows, lends=one.lends))
        for name, one in quotas.items()
    ]
    fleet = Fleet(root("org", gpu=org), *nodes, strategy=BACKFILL)
    for name in "abcd":
        fleet.configure(name, reservation=ReservationPolicy(AFTER * MIN, DRAINS * MIN, 600 * MIN))
    return fleet


def trees_of(quotas: Mapping[str, Owned], org: int) -> Trees:
    stated = [
        Quota(name, PARENTS[name], one.nominal, 0, one.lends, one.borrows, is_strict=False, is_stopped=False)
        for name, one in quotas.items()
    ]
    return Trees([Quota("org", "", org, 0, None, None, is_strict=False, is_stopped=False), *stated])


@dataclass
class Case:
    """A gang of queue a has a reservation, for which others of the tree make room until a known moment; one
    more comes. ``used_then``: what of each queue is still in use at that moment.
    """

    fleet: Fleet
    trees: Trees
    comes: Work
    gang: int
    starts_ms: int
    used: Counter[str]
    used_then: Counter[str]

    @property
    def would_delay(self) -> bool:
        """Whether the gang could not start at that moment if what comes began now."""
        then, comes = Counter(self.used_then), self.comes
        if comes.minutes is None or self.fleet.now_ms + comes.minutes * MIN > self.starts_ms:
            then[comes.queue] += comes.gpus
        return bool(self.trees.excess("a", then, self.gang))

    @property
    def passes(self) -> bool:
        return admitted(self.fleet.decide()) == ["comes"]


def case_of(quotas: Mapping[str, Owned], org: int, runs: list[Work], gang: int, comes: Work) -> Case | None:
    fleet, trees = fleet_of(quotas, org), trees_of(quotas, org)
    for number, one in enumerate(runs):
        runtime = None if one.minutes is None else one.minutes * MIN
        fleet.submit(one.queue, f"r{number}", gpu=one.gpus, runtime=runtime)
    running = [runs[int(name[1:])] for name in fleet.cycle()]
    for state in fleet.queues.values():
        for item in list(state.pending):
            state.pending.remove(item.id)
    fleet.submit("a", "gang", gpu=gang)
    fleet.now_ms = AFTER * MIN
    starts_ms = next((one.starts_ms for one in fleet.decide().reservations.made), None)
    if starts_ms is None:
        return None
    used, then = Counter[str](), Counter[str]()
    for one in running:
        used[one.queue] += one.gpus
        if one.minutes is None or one.minutes * MIN > starts_ms:
            then[one.queue] += one.gpus
    assert not trees.excess("a", then, gang)
    runtime = None if comes.minutes is None else comes.minutes * MIN
    fleet.submit(comes.queue, "comes", gpu=comes.gpus, at=fleet.now_ms, runtime=runtime)
    return Case(fleet, trees, comes, gang, starts_ms, used, then)


@settings(max_examples=1_000, deadline=None, derandomize=True)
@given(QUOTAS, st.integers(0, 6), st.lists(WORK, min_size=3, max_size=8), st.integers(1, 9), WORK)
def test_who_passes_delays_nobody(
    quotas: Mapping[str, Owned], org: int, runs: list[Work], gang: int, comes: Work
) -> None:
    """Law 5, but for who takes only what its own queue owns."""
    case = case_of(quotas, org, runs, gang, comes)
    if case is None:
        return
    is_owner = comes.queue != "a" and not case.trees.borrows(comes.queue, case.used, comes.gpus)
    assert is_owner or not (case.passes and case.would_delay)


@settings(max_examples=1_000, deadline=None, derandomize=True)
@given(WALLS, st.integers(0, 6), st.lists(WORK, min_size=3, max_size=8), st.integers(1, 9), WORK)
def test_who_delays_nobody_passes(
    quotas: Mapping[str, Owned], org: int, runs: list[Work], gang: int, comes: Work
) -> None:
    """Law 3: what is held back for a reservation is so for a reason. Where part of what a queue owns is lent
    and part of it not, more may be held back: what of it is used by then is taken as what is used now.
    """
    case = case_of(quotas, org, runs, gang, comes)
    if case is None:
        return
    has_quota = not case.trees.excess(comes.queue, case.used, comes.gpus)
    assert case.passes or case.would_delay or not has_quota
