"""What has been given back by a time is the same as if each ending was looked at, in whatever tree."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from queue_dispatcher.cycle.endings import Ending, Endings, Timeline, after
from queue_dispatcher.ledger.cells import CellTable
from queue_dispatcher.ledger.ledger import Ledger
from queue_dispatcher.ledger.tree import CellQuota, QuotaNode, QuotaTree

PLACES = ("a", "b", "c", "root", "gone")
RUNS = st.lists(
    st.tuples(st.sampled_from(PLACES), st.integers(1, 9), st.none() | st.integers(0, 5)), max_size=12
)


def tree(lending: int | None = None) -> QuotaTree:
    """A root, a and below it b and c."""
    table = CellTable()
    cell = table.cell("flavor", "gpu")
    quota = {cell: CellQuota(8, lending_limit=lending)}
    return QuotaTree(
        [
            QuotaNode("root", quotas={cell: CellQuota(4)}),
            QuotaNode("a", "root", quotas=quota),
            QuotaNode("b", "a", quotas=quota),
            QuotaNode("c", "a", quotas=quota),
        ],
        table,
    )


@given(runs=RUNS, changed=st.sets(st.integers(0, 11)), until_ms=st.integers(0, 6))
def test_timelines_follow_what_begins_and_ends(
    runs: list[tuple[str, int, int | None]], changed: set[int], until_ms: int
) -> None:
    made, endings = tree(), Endings()
    for node in range(len(made.nodes)):
        # From now on it is kept up to date.
        assert endings.below(made, node, 0).before(after(until_ms)) == 0
    for number, (queue, amount, at_ms) in enumerate(runs):
        endings.put(f"{number}", queue, ((0, amount),), at_ms)
    for number in changed:
        endings.drop(f"{number}")
    left = [run for number, run in enumerate(runs) if number not in changed]
    ended = [(queue, amount) for queue, amount, at_ms in left if at_ms is not None and at_ms <= until_ms]
    assert endings.timeline(0).before(after(until_ms)) == sum(amount for _, amount in ended)
    for node in range(len(made.nodes)):
        below = {made.nodes[number].name for number in made.subtree(node)}
        given = sum(amount for queue, amount in ended if queue in below)
        assert endings.below(made, node, 0).before(after(until_ms)) == given


@given(amounts=st.lists(st.integers(0, 3), max_size=8), wanted=st.integers(1, 12))
def test_so_much_is_back_with_the_first_that_makes_it_so_much(amounts: list[int], wanted: int) -> None:
    endings = [Ending(number, f"{number}", "a", amount) for number, amount in enumerate(amounts)]
    timeline = Timeline(endings)
    enough = [one for one in endings if timeline.before(after(one.at_ms)) >= wanted]
    assert timeline.until(wanted) == (enough[0] if enough else None)


@given(runs=RUNS, queue=st.sampled_from(["a", "b", "root"]), amount=st.integers(1, 30), rises=st.data())
def test_what_a_path_lacks_is_what_has_to_come_back(
    runs: list[tuple[str, int, int | None]], queue: str, amount: int, rises: st.DataObject
) -> None:
    made = tree()
    ledger, path = Ledger(made), made.paths[queue]
    for place, charged, _ in runs:
        ledger.charge(place, ((0, charged),))
    risen = {node: rises.draw(st.integers(0, 40)) for node in path}
    is_there = ledger.available_after(path, 0, list(risen.values())) >= amount
    assert all(risen[node] >= lack for node, lack in ledger.lacks(path, 0, amount)) == is_there


@pytest.mark.parametrize("lending", [None, 3])
@given(runs=RUNS, queue=st.sampled_from(["a", "b", "root"]))
def test_a_path_that_has_risen_is_as_if_all_had_been_given_back(
    lending: int | None, runs: list[tuple[str, int, int | None]], queue: str
) -> None:
    made = tree(lending)
    ledger, path = Ledger(made), made.paths[queue]
    for place, amount, _ in runs:
        ledger.charge(place, ((0, amount),))
    before, later = ledger.balances(path, 0), ledger.fork()
    ended = [(place, amount) for place, amount, at_ms in runs if at_ms is not None]
    for place, amount in ended:
        later.give_back(place, ((0, amount),))
    rises = [then - now for now, then in zip(before, later.balances(path, 0), strict=True)]
    assert ledger.available_after(path, 0, rises) == later.available(queue, 0)
    assert ledger.bounds_at(path, 0, rises) == later.bounds_at(path, 0)
    assert ledger.unborrowed(queue, 0, rises) == later.unborrowed(queue, 0)
    for amount in range(1, 12):
        assert later.borrows_after(queue, ((0, amount),)) == (later.unborrowed(queue, 0) < amount)
    assert ledger.balances(path, 0) == before
