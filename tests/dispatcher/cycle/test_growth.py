"""Growth of elastic workloads: who gets how many pods of what a cycle leaves."""

from collections.abc import Mapping
from dataclasses import replace

import pytest

from queue_dispatcher.cycle.actions import Admit, Decision
from queue_dispatcher.cycle.decide import decide
from queue_dispatcher.cycle.growth import MAX_GROWING, MAX_PROBES
from queue_dispatcher.cycle.items import Item, probe_of
from queue_dispatcher.cycle.snapshot import Verdict
from queue_dispatcher.ledger.tree import QuotaNode
from tests.dispatcher.cycle.builders import Fleet, bound, preplaced, probed, shape
from tests.dispatcher.ledger.builders import charge, owns, queue, root

POD = (((("gpu", 1),), 1),)
ROOMY = {"x": 99}


class Parts(Fleet):
    """A fleet in which elastic workloads run with a part of their pods, of one GPU each."""

    def __init__(self, *nodes: QuotaNode) -> None:
        super().__init__(*nodes)
        self.growing: list[Item] = []
        self.verdicts: dict[str, Verdict] = {}
        self.over_budget: frozenset[str] = frozenset()

    def run(
        self,
        name: str,
        at: str = "q",
        *,
        runs: int = 2,
        most: int = 6,
        rooms: Mapping[str, int] | None = ROOMY,
        in_one: bool = False,
        due: int = 0,
        priority: int = 0,
        cell: str = "gpu",
    ) -> str:
        """It runs with ``runs`` pods and wants ``most`` more. ``rooms``: for how many each cluster has room;
        None while nobody has been asked.
        """
        self.ledger.charge(at, charge(**{cell: runs}))
        way = preplaced((bound("xy", **{cell: 1}),), probe=name)
        item = Item(name, name, (name,), at, at, way, priority, 0, due)
        item = replace(item, is_growth=True, pods=1, most=most, runs=runs, in_one=in_one)
        self.growing.append(item)
        if rooms is not None:
            told = tuple(rooms.items())
            fits = sum(rooms.values())
            verdict = Verdict(fits, frozenset(rooms), pods=POD, rooms=told if fits else None)
            self.verdicts[probe_of(way, way.alternatives[0])] = verdict
        return name

    def grow(self, tokens: int = 1_000) -> Decision:
        stated = self.snapshot(verdicts=self.verdicts, preplaced_tokens=tokens)
        stated = replace(stated, growing=tuple(self.growing), over_budget=self.over_budget)
        return decide(stated, self.now_ms)


def grown(decision: Decision) -> dict[str, int]:
    """By name, how many pods it gets."""
    return {
        one.item.name: one.item.pods + one.more
        for one in decision.actions
        if isinstance(one, Admit) and one.item.is_growth
    }


def test_it_gets_what_it_asks_for_and_no_more() -> None:
    fleet = Parts(root("q", gpu=16))
    fleet.run("a", most=6)
    assert grown(fleet.grow()) == {"a": 6}


@pytest.mark.parametrize(
    ("most", "each"),
    [
        # 12 are free; each is brought to the same part of what it asks for.
        ({"a": 18, "b": 18}, {"a": 6, "b": 6}),
        ({"a": 30, "b": 14}, {"a": 8, "b": 4}),
        # One has two of five, the other not even a seventh with all of it.
        ({"a": 3, "b": 99}, {"b": 12}),
    ],
)
def test_those_of_one_queue_grow_evenly(most: dict[str, int], each: dict[str, int]) -> None:
    fleet = Parts(root("q", gpu=16))
    for name, count in most.items():
        fleet.run(name, most=count)
    found = grown(fleet.grow())
    assert sum(found.values()) == 12
    assert all(abs(found[name] - count) <= 1 for name, count in each.items()), found


def test_the_lowest_share_goes_first() -> None:
    fleet = Parts(root("org", gpu=16), queue("rich", "org", gpu=0), queue("poor", "org", gpu=0))
    fleet.run("a", "rich", runs=6, most=20)
    fleet.run("b", "poor", runs=2, most=20)
    # 8 are free: once both use as much, they take turns.
    assert grown(fleet.grow()) == {"a": 2, "b": 6}


@pytest.mark.parametrize(
    ("over", "most", "expected"),
    [
        ("", 20, {"a": 2, "b": 6}),
        ("b", 20, {"a": 8}),
        ("b", 5, {"a": 5, "b": 3}),
        ("ab", 20, {"a": 2, "b": 6}),
    ],
)
def test_who_is_over_a_soft_budget_grows_behind_all_others(
    over: str, most: int, expected: dict[str, int]
) -> None:
    fleet = Parts(root("org", gpu=16), queue("a", "org", gpu=0), queue("b", "org", gpu=0))
    fleet.over_budget = frozenset(over)
    fleet.run("a", "a", runs=6, most=most)
    fleet.run("b", "b", runs=2, most=20)
    assert grown(fleet.grow()) == expected


def test_a_queue_with_many_that_grow_has_no_more_turns() -> None:
    fleet = Parts(root("org", gpu=20), queue("rich", "org", gpu=0), queue("poor", "org", gpu=0))
    for number in range(4):
        fleet.run(f"a{number}", "rich", runs=1, most=40)
    fleet.run("b", "poor", runs=4, most=40)
    found = grown(fleet.grow())
    # 12 are free, and both queues use as much before.
    assert (found.pop("b"), sum(found.values())) == (6, 6)


@pytest.mark.parametrize(
    ("rooms", "in_one", "pods"),
    [
        ({"x": 2, "y": 3}, False, 5),
        ({"x": 2, "y": 3}, True, 3),
        ({"x": 0, "y": 0}, False, 0),
    ],
)
def test_it_takes_no_more_than_the_estimators_find(rooms: dict[str, int], in_one: bool, pods: int) -> None:
    fleet = Parts(root("q", gpu=16))
    fleet.run("a", most=9, rooms=rooms, in_one=in_one)
    assert grown(fleet.grow()) == ({"a": pods} if pods else {})


def test_what_one_takes_of_a_cluster_the_other_does_not() -> None:
    fleet = Parts(root("q", gpu=99))
    for name in "ab":
        fleet.run(name, most=9, rooms={"x": 4})
    assert sum(grown(fleet.grow()).values()) == 4


def test_few_are_asked_about_at_a_time() -> None:
    fleet = Parts(root("q", gpu=99))
    for number in range(9):
        fleet.run(f"w{number}", runs=1 + number, most=20, rooms=None)
    decision = fleet.grow()
    # Those that have least.
    assert probed(decision) == [f"w{number}" for number in range(MAX_PROBES)]
    assert grown(decision) == {}


def test_nobody_is_asked_where_there_is_no_quota() -> None:
    fleet = Parts(root("q", gpu=2))
    fleet.run("a", rooms=None)
    assert fleet.grow().actions == ()


@pytest.mark.parametrize(("tokens", "count"), [(0, 0), (1, 1), (99, MAX_GROWING)])
def test_few_grow_at_a_time(tokens: int, count: int) -> None:
    fleet = Parts(root("q", gpu=999))
    for number in range(MAX_GROWING + 4):
        fleet.run(f"w{number}")
    assert len(grown(fleet.grow(tokens))) == count


def test_it_waits_for_its_time() -> None:
    fleet = Parts(root("q", gpu=16))
    fleet.run("a", due=5_000)
    decision = fleet.grow()
    assert (decision.actions, decision.next_due_ms) == ((), 5_000)
    fleet.now_ms = 5_000
    assert grown(fleet.grow()) == {"a": 6}


def test_growth_comes_after_all_that_starts() -> None:
    fleet = Parts(root("q", gpu=16))
    fleet.run("a", most=20, priority=100)
    fleet.submit("q", "new", gpu=10)
    decision = fleet.grow()
    assert [one.item.name for one in decision.actions if isinstance(one, Admit)] == ["new", "a"]
    assert grown(decision) == {"a": 4}


@pytest.mark.parametrize(
    ("asks", "pods"),
    [
        # As much as is free, and more, is what it waits for.
        ({"gpu": 15}, 0),
        # It could not use what it waits beside.
        ({"tpu": 9}, 6),
        # It can never start.
        ({"gpu": 17}, 6),
    ],
)
def test_nothing_is_taken_from_whoever_waits(asks: dict[str, int], pods: int) -> None:
    fleet = Parts(root("q", gpu=16, tpu=8))
    fleet.run("a")
    fleet.submit("q", "waits", shape(charge(**asks)))
    assert grown(fleet.grow()) == ({"a": pods} if pods else {})


@pytest.mark.parametrize(("asks", "pods"), [(8, 6), (9, 5), (14, 0)])
def test_what_waits_for_the_window_alone_keeps_its_room(asks: int, pods: int) -> None:
    fleet = Parts(root("q", gpu=16))
    fleet.run("a")
    fleet.submit("q", "waits", gpu=asks)
    stated = fleet.snapshot(verdicts=fleet.verdicts, tokens=0)
    decision = decide(replace(stated, growing=tuple(fleet.growing)), 0)
    assert fleet.reasons(decision) == {"waits": "ReleaseWindowFull"}
    assert grown(decision) == ({"a": pods} if pods else {})


def test_nothing_is_taken_while_somebody_who_waits_is_asked_about() -> None:
    fleet = Parts(root("q", gpu=16))
    fleet.run("a")
    fleet.submit("q", "asked", gpu=2, probe="is it there?")
    decision = fleet.grow()
    assert probed(decision) == ["asked"]
    assert grown(decision) == {}


@pytest.mark.parametrize(
    ("lends", "asks", "pods"),
    [
        # Nothing of it is lent.
        (0, 4, 6),
        # What is not lent: 4 of the 8 that are free.
        (4, 6, 4),
        (8, 9, 0),
    ],
)
def test_growth_takes_of_its_own_quota_what_nobody_could_borrow(lends: int, asks: int, pods: int) -> None:
    """Queue a uses 2 of 10 GPUs that it owns; b has used up its own 8."""
    fleet = Parts(root("org"), queue("a", "org", gpu=owns(10, lends=lends)), queue("b", "org", gpu=8))
    fleet.ledger.charge("b", charge(gpu=8))
    fleet.run("elastic", "a", runs=2, most=6)
    fleet.submit("b", "waits", gpu=asks)
    decision = fleet.grow()
    assert grown(decision) == ({"elastic": pods} if pods else {})
