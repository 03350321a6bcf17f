"""Who goes so that a queue uses no more than it may: as few as do, and nobody of what is owned."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from queue_dispatcher.ledger.ledger import Ledger
from queue_dispatcher.ledger.tree import QuotaTree
from queue_dispatcher.preemption.candidates import Candidate
from queue_dispatcher.preemption.reduction import too_many
from tests.dispatcher.ledger.builders import TABLE, charge, owns, queue, root

LEAVES = ("a", "b", "c")


@st.composite
def lowered(draw: st.DrawFn) -> tuple[Ledger, list[Candidate], str]:
    """What runs in three queues of a tree, whatever they own, and one of the tree."""
    limits = st.one_of(st.none(), st.integers(0, 4))
    nodes = [
        root("org", gpu=draw(st.integers(0, 6))),
        queue("mid", "org", gpu=owns(draw(st.integers(0, 4)), borrows=draw(limits), lends=draw(limits))),
        *(
            queue(
                name,
                "org" if name == "c" else "mid",
                gpu=owns(draw(st.integers(0, 4)), borrows=draw(limits), lends=draw(limits)),
            )
            for name in LEAVES
        ),
    ]
    made, running = Ledger(QuotaTree(nodes, TABLE)), []
    for number in range(draw(st.integers(0, 8))):
        of = charge(gpu=draw(st.integers(1, 4)))
        one = Candidate(
            f"w{number}", draw(st.sampled_from(LEAVES)), of, draw(st.integers(0, 2)), 0, number, ()
        )
        made.charge(one.queue, of)
        running.append(one)
    return made, running, draw(st.sampled_from(("org", "mid", *LEAVES)))


@settings(max_examples=200)
@given(lowered())
def test_as_many_go_as_have_to_and_of_those_that_go_none_could_stay(
    case: tuple[Ledger, list[Candidate], str],
) -> None:
    ledger, running, name = case
    over = ledger.beyond(name)
    below = {ledger.tree.nodes[node].name for node in ledger.tree.subtree(ledger.tree.paths[name][0])}
    may_go = [one for one in running if one.queue in below]
    gone = too_many(ledger, name, [cell for cell, _ in over], may_go)
    assert {one.id for one in gone} <= {one.id for one in may_go}
    assert bool(gone) == bool(over)
    # All of it may go, so nothing is over in the end.
    assert not over or not ledger.beyond(name)
    for one in gone:
        ledger.charge(one.queue, one.charge)
        assert ledger.beyond(name)
        ledger.give_back(one.queue, one.charge)


@settings(max_examples=200)
@given(lowered())
def test_a_queue_that_is_over_may_be_charged_nothing_and_one_that_may_is_not_over(
    case: tuple[Ledger, list[Candidate], str],
) -> None:
    ledger, _, name = case
    over = dict(ledger.beyond(name))
    for cell in over:
        assert ledger.balance(name, cell) < 0
        assert not ledger.available(name, cell)


@settings(max_examples=200)
@given(lowered())
def test_who_uses_no_more_than_it_owns_keeps_it(case: tuple[Ledger, list[Candidate], str]) -> None:
    ledger, running, name = case
    before = ledger.fork()
    gone = too_many(ledger, name, [cell for cell, _ in ledger.beyond(name)], running)
    for one in gone:
        assert any(before.balance(one.queue, cell) < 0 for cell, _ in one.charge)


def test_of_the_lowest_priority_but_owned_it_is_not_the_first_to_go() -> None:
    ledger = Ledger(QuotaTree([root("org"), queue("a", "org", gpu=2), queue("b", "org", gpu=2)], TABLE))
    borrows = Candidate("borrows", "a", charge(gpu=4), 1, 0, 0, ())
    owned = Candidate("owned", "b", charge(gpu=2), 0, 0, 1, ())
    for one in (borrows, owned):
        ledger.charge(one.queue, one.charge)
    cells = [cell for cell, _ in ledger.beyond("org")]
    assert [one.id for one in too_many(ledger, "org", cells, [owned, borrows])] == ["borrows"]


@pytest.mark.parametrize(
    ("owns", "lent", "gone"), [(2, 1, ["small"]), (2, 0, ["mixed"]), (0, 0, ["mixed", "small"])]
)
def test_what_takes_of_what_is_owned_as_well_goes_where_nothing_else_does(
    owns: int, lent: int, gone: list[str]
) -> None:
    tree = QuotaTree([root("org", gpu=lent), queue("a", "org", gpu=owns), queue("b", "org")], TABLE)
    ledger = Ledger(tree)
    mixed = Candidate("mixed", "a", charge(gpu=3), 0, 0, 1, ())
    small = Candidate("small", "b", charge(gpu=1), 1, 0, 0, ())
    for one in (mixed, small):
        ledger.charge(one.queue, one.charge)
    cells = [cell for cell, _ in ledger.beyond("org")]
    assert [one.id for one in too_many(ledger, "org", cells, [mixed, small])] == gone
