"""Workloads whose release states where to: each flavor is a way of its own, with clusters and a question."""

from collections.abc import Mapping

import pytest

from queue_dispatcher.api.cluster_queue import QueueingStrategy
from queue_dispatcher.cycle.actions import Admit, Decision, Probe
from queue_dispatcher.cycle.items import Alternative, Shape, probe_of
from queue_dispatcher.cycle.snapshot import Verdict
from tests.dispatcher.cycle.builders import (
    BEST_EFFORT,
    STRICT,
    Fleet,
    admitted,
    bound,
    preplaced,
    wherever,
)
from tests.dispatcher.ledger.builders import TABLE, charge, queue, root

YES = Verdict(9, frozenset("ab"), rooms=(("a", 9), ("b", 9)))
NO = Verdict(0, reasons=("full",))
NEVER = Verdict(0, reasons=("no such node",), never=True)
BLIND = Verdict(1, frozenset("ab"))
"""Nobody knows, and it has waited for long enough."""
ALL_BLIND, ALL_NEVER = (dict.fromkeys(("a", "b", "ab"), one) for one in (BLIND, NEVER))
EITHER = {"one_gpu": 8, "two_gpu": 8}
TWO_IS_FULL = {"two_gpu": 6}
LACKS_TWO = "WaitingForQuota: queue q is short of 2 gpu of flavor two"


def flavors(amount: int) -> tuple[Alternative, ...]:
    """Flavor one in cluster a, flavor two in cluster b, and both."""
    one, two = bound("a", one_gpu=amount), bound("b", two_gpu=amount)
    return one, two, wherever(one, two)


def questions(way: Shape) -> dict[str, str]:
    """The shape's questions by clusters, ``ab`` for both."""
    ways = {"".join(sorted(one.clusters or "ab")): one for options in way.parts for one in options}
    return {clusters: probe_of(way, one) for clusters, one in ways.items()}


def said(way: Shape, answers: Mapping[str, Verdict]) -> dict[str, Verdict]:
    """The answers by clusters, as answers to the shape's questions."""
    return {questions(way)[clusters]: answer for clusters, answer in answers.items()}


def charged(decision: Decision) -> list[dict[str, int]]:
    """What each admission is charged, by flavor."""
    return [
        {TABLE.name(cell).flavor: amount for cell, amount in action.alternative.charge}
        for action in decision.actions
        if isinstance(action, Admit)
    ]


def asked(way: Shape, decision: Decision) -> list[str]:
    """Where the estimators are to look."""
    probes = {one.probe for one in decision.actions if isinstance(one, Probe)}
    return [clusters for clusters, probe in questions(way).items() if probe in probes]


SINGLE = preplaced(flavors(4))
GPU_AND_CPU = preplaced(flavors(4), flavors(1))
MANY_PARTS = preplaced(*[flavors(1)] * 20)

CASES = [
    # What it is, what the estimators said by clusters, what is in use; then what is charged, asked, or why.
    ("the first that is known to have room", SINGLE, {"a": YES, "b": YES}, {}, {"one": 4}),
    ("an open question makes it try no other", SINGLE, {"b": YES}, {}, "a"),
    ("refused in the first", SINGLE, {"a": NO, "b": YES}, {}, {"two": 4}),
    (
        "nobody can tell, so it is Karmada's",
        SINGLE,
        {"a": BLIND, "b": BLIND, "ab": BLIND},
        {},
        {"one": 4, "two": 4},
    ),
    (
        "of two parts too",
        GPU_AND_CPU,
        {"a": BLIND, "b": BLIND, "ab": BLIND},
        {},
        {"one": 5, "two": 5},
    ),
    ("no part of it makes it stay where nobody can tell", GPU_AND_CPU, {"a": BLIND}, {}, "b"),
    ("however many parts it has", MANY_PARTS, {"a": NO}, {}, "b"),
    ("and it goes on", MANY_PARTS, {"a": NO, "b": NO}, {}, "ab"),
    # Why it waits.
    ("refused, and full", SINGLE, {"a": NO}, TWO_IS_FULL, "WaitingForCapacity: full"),
    ("where nobody can tell, nobody has said no", SINGLE, {"a": BLIND}, TWO_IS_FULL, LACKS_TWO),
    ("nor in parts", GPU_AND_CPU, {"a": BLIND}, TWO_IS_FULL, LACKS_TWO),
    ("what never fits in one flavor waits for the other", SINGLE, {"a": NEVER}, TWO_IS_FULL, LACKS_TWO),
    ("in parts too", GPU_AND_CPU, {"a": NEVER}, TWO_IS_FULL, LACKS_TWO.replace("of 2", "of 3")),
    ("it fits in neither", SINGLE, ALL_NEVER, {}, "NeverFits: no such node"),
    ("nor do its parts", GPU_AND_CPU, ALL_NEVER, {}, "NeverFits: no such node"),
    (
        "one part is in the second flavor alone, which is full",
        preplaced(flavors(4)[:2], [bound("b", two_cpu=1)]),
        {},
        TWO_IS_FULL,
        LACKS_TWO,
    ),
    (
        "its parts have no cluster in common",
        preplaced([bound("a", one_gpu=1)], [bound("b", two_gpu=1)]),
        {},
        {},
        "NeverFits: no cluster has flavors of queue q that could ever take all of it",
    ),
]


@pytest.mark.parametrize(
    ("way", "answers", "used", "expected"), [c[1:] for c in CASES], ids=[c[0] for c in CASES]
)
@pytest.mark.parametrize("strategy", [BEST_EFFORT, STRICT])
def test_where_it_goes_what_is_asked_and_why_it_waits(
    way: Shape,
    answers: dict[str, Verdict],
    used: dict[str, int],
    expected: dict[str, int] | str,
    strategy: QueueingStrategy,
) -> None:
    amount = 40 if way is MANY_PARTS else 8
    fleet = Fleet(root("q", one_gpu=amount, two_gpu=amount, two_cpu=8), strategy=strategy)
    fleet.ledger.charge("q", charge(**used))
    fleet.submit("q", "job", way)
    decision = fleet.decide(verdicts=said(way, answers))
    if isinstance(expected, dict):
        assert charged(decision) == [expected]
    elif ":" not in expected:
        assert asked(way, decision) == [expected]
    else:
        reason = fleet.reason(decision, "job")
        assert decision.actions == ()
        assert f"{reason.kind}: {reason.text}" == expected if reason is not None else False


def test_nothing_is_held_of_a_flavor_in_which_the_head_of_a_strict_queue_never_fits() -> None:
    fleet = Fleet(root("org"), queue("a", "org", one_gpu=4, two_gpu=4), queue("b", "org"))
    fleet.configure("a", strategy=STRICT)
    way = preplaced((bound("a", one_gpu=4), bound("b", two_gpu=4)))
    fleet.submit("a", "head", way)
    fleet.ledger.charge("a", charge(one_gpu=2, two_gpu=2))
    fleet.submit("b", "borrower", one_gpu=2)
    assert admitted(fleet.decide(verdicts=said(way, {"a": NEVER}))) == ["borrower"]
    assert admitted(fleet.decide(verdicts=said(way, {"a": YES}))) == []


def test_what_nobody_can_place_takes_a_place_in_karmadas_window() -> None:
    fleet = Fleet(root("q", **EITHER))
    fleet.submit("q", "job", SINGLE)
    verdicts = said(SINGLE, ALL_BLIND)
    decision = fleet.decide(tokens=0, verdicts=verdicts)
    assert fleet.reasons(decision) == {"job": "ReleaseWindowFull"}
    assert decision.window_full == {"job"}
    assert admitted(fleet.decide(tokens=1, preplaced_tokens=0, verdicts=verdicts)) == ["job"]


@pytest.mark.parametrize(
    ("tokens", "preplaced_tokens", "expected"),
    [(1, 2, ["first", "stated"]), (0, 2, ["stated"]), (1, 0, ["first"]), (0, 0, [])],
)
def test_either_window_is_full_for_its_own_alone(
    tokens: int, preplaced_tokens: int, expected: list[str]
) -> None:
    fleet = Fleet(root("q", **EITHER))
    fleet.submit("q", "first", at=1, one_gpu=1)
    fleet.submit("q", "stated", SINGLE, at=2)
    fleet.submit("q", "later", preplaced(flavors(1), probe="later"), at=3)
    decision = fleet.decide(
        tokens=tokens, preplaced_tokens=preplaced_tokens, verdicts=said(SINGLE, {"a": YES}), max_probes=0
    )
    assert admitted(decision) == expected
    kinds = dict.fromkeys({"first", "stated"} - set(expected), "ReleaseWindowFull")
    # It waits to be asked about while there is a token for it.
    kinds["later"] = "WaitingForEstimate" if preplaced_tokens else "ReleaseWindowFull"
    assert fleet.reasons(decision) == kinds


@pytest.mark.parametrize("stated_in", ["a", "b"])
@pytest.mark.parametrize("amount", [1, 2, 4])
def test_whoever_waits_for_karmadas_window_has_each_token_that_comes(stated_in: str, amount: int) -> None:
    """However much states its places, comes after it, and takes what is free: in its queue or beside it."""
    fleet = Fleet(root("org", one_gpu=8), queue("a", "org"), queue("b", "org"))
    way, ends, started = preplaced((bound("a", one_gpu=1),)), dict[str, int](), list[str]()
    pods = (((("gpu", 1),), 1),)
    verdicts = said(way, {"a": Verdict(999, frozenset("a"), pods=pods, rooms=(("a", 999),))})
    for number in range(9):
        fleet.submit("a", f"Karmada's {number}", at=number, one_gpu=amount)
    for cycle in range(50):
        for name in [name for name, end in ends.items() if end == cycle]:
            fleet.finish(name)
        for number in range(8):
            fleet.submit(stated_in, f"{cycle}-{number}", way, at=100 + cycle)
        decision = fleet.decide(tokens=int(cycle % 7 == 6), verdicts=verdicts)
        went = fleet.carry_out(decision)
        ends |= dict.fromkeys(went, cycle + 3)
        started += [name for name in went if name.startswith("Karmada")]
    assert started == [f"Karmada's {number}" for number in range(7)]
