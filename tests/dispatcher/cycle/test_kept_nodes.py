"""Flavors that are parts of the same cluster's nodes: each is a way of its own, with its own question."""

from collections.abc import Mapping
from dataclasses import replace
from itertools import product

import pytest

from queue_dispatcher.cycle.actions import Admit, Decision, Probe
from queue_dispatcher.cycle.items import Alternative, Shape, is_everywhere, joined, probe_of, workload_of
from queue_dispatcher.cycle.keeping import FlavorNodes, Keeping
from queue_dispatcher.cycle.snapshot import Verdict
from tests.dispatcher.cycle.builders import Fleet, bound, preplaced
from tests.dispatcher.ledger.builders import TABLE, charge, queue, root

YES = Verdict(9, frozenset("a"), rooms=(("a", 9),))
NO = Verdict(0, reasons=("full",))
NEVER = Verdict(0, reasons=("no such node",), never=True)
BLIND = Verdict(1, frozenset("a"))


def on(flavor: str, component: str = "", **amounts: int) -> Alternative:
    """Charged so, anywhere, and kept on the nodes of the flavor."""
    of = charge(**amounts)
    flavors = tuple((name.resource, name.flavor) for name in (TABLE.name(cell) for cell, _ in of))
    keeping = Keeping(component, (FlavorNodes(flavor, (("kind", flavor),)),))
    return Alternative(flavors, of, component=component, keeps=(keeping,))


ONE, TWO = on("one", one_gpu=4), on("two", two_gpu=4)
EITHER = preplaced([ONE, TWO])
PARTS = preplaced(
    [on("one", "head", one_gpu=1), on("two", "head", two_gpu=1)],
    [on("one", "worker", one_gpu=2), on("two", "worker", two_gpu=2)],
)
UNKEPT = preplaced([ONE, replace(TWO, keeps=())])


def questions(way: Shape) -> dict[str, str]:
    """By flavors, of each part one letter, the question about them."""
    ways = map(joined, product(*way.parts))
    return {
        "".join(flavor[0] for one in each.keeps for flavor in _flavors(one)): probe_of(way, each)
        for each in ways
    }


def _flavors(keeping: Keeping) -> list[str]:
    return [one.flavor for one in keeping.flavors]


def charged(decision: Decision) -> str:
    return "".join(
        flavor[0]
        for action in decision.actions
        if isinstance(action, Admit)
        for part in action.alternative.parts or (action.alternative,)
        for _, flavor in part.flavors
    )


def asked(way: Shape, decision: Decision) -> list[str]:
    probes = {one.probe for one in decision.actions if isinstance(one, Probe)}
    return [name for name, probe in questions(way).items() if probe in probes]


@pytest.mark.parametrize(
    ("way", "answers", "admitted", "asks", "waits"),
    [
        (EITHER, {}, "", ["o"], "WaitingForEstimate"),
        (EITHER, {"o": YES}, "o", [], ""),
        # No room on the nodes of one is no word about those of the other.
        (EITHER, {"o": NO}, "", ["t"], "WaitingForEstimate"),
        (EITHER, {"o": NO, "t": YES}, "t", [], ""),
        (EITHER, {"o": NO, "t": NO}, "", [], "WaitingForCapacity"),
        (EITHER, {"o": NEVER, "t": NEVER}, "", [], "NeverFits"),
        # Nobody knows, and it goes without: Karmada may choose the cluster, and its pods are kept there too.
        (EITHER, {"o": BLIND}, "o", [], ""),
        (UNKEPT, {"o": NO, "": YES}, "t", [], ""),
        # Of several parts every combination is a question of its own.
        (PARTS, {}, "", ["oo"], "WaitingForEstimate"),
        (PARTS, {"oo": NO}, "", ["ot"], "WaitingForEstimate"),
        (PARTS, {"oo": NO, "ot": NO}, "", ["to"], "WaitingForEstimate"),
        (PARTS, {"oo": NO, "ot": NO, "to": YES}, "to", [], ""),
        (PARTS, dict.fromkeys(("oo", "ot", "to", "tt"), NO), "", [], "WaitingForCapacity"),
    ],
)
def test_what_is_admitted_asked_and_told(
    way: Shape, answers: Mapping[str, Verdict], admitted: str, asks: list[str], waits: str
) -> None:
    fleet = Fleet(root("org"), queue("q", "org", one_gpu=8, two_gpu=8))
    fleet.submit("q", "job", way)
    decision = fleet.decide(verdicts={questions(way)[name]: answer for name, answer in answers.items()})
    reason = fleet.reason(decision, "job")
    assert (charged(decision), asked(way, decision)) == (admitted, asks)
    assert (reason.kind if reason is not None else "") == waits


@pytest.mark.parametrize(
    ("alternative", "everywhere"),
    [
        (Alternative((), ()), True),
        (ONE, True),
        (bound("a", one_gpu=4), False),
        (replace(ONE, clusters=frozenset("a")), False),
    ],
)
def test_a_question_tells_its_workload_and_whether_it_is_about_all_clusters(
    alternative: Alternative, everywhere: bool
) -> None:
    probe = probe_of(EITHER, alternative)
    assert workload_of(probe) == EITHER.probe
    assert is_everywhere(probe) is everywhere


def test_questions_differ_by_what_pods_are_told() -> None:
    same = on("one", one_gpu=1)
    renamed = replace(ONE, keeps=(Keeping("", (FlavorNodes("other", (("kind", "one"),)),)),))
    elsewhere = replace(
        ONE, keeps=(Keeping("", (FlavorNodes("one", (("kind", "one"),), (), frozenset("a")),)),)
    )
    assert len({probe_of(EITHER, one) for one in (ONE, TWO, elsewhere, replace(ONE, keeps=()))}) == 4
    assert probe_of(EITHER, same) == probe_of(EITHER, renamed) == probe_of(EITHER, ONE)
