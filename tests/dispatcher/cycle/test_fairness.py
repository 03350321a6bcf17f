"""Whose turn it is: against a tournament played by hand, and how far apart backlogged siblings end."""

from hypothesis import given, settings
from hypothesis import strategies as st

from queue_dispatcher.cycle.items import Item
from queue_dispatcher.ledger.cells import Charge
from queue_dispatcher.ledger.ledger import SHARE_ONE, Ledger
from queue_dispatcher.ledger.tree import CellQuota, QuotaNode
from tests.dispatcher.cycle.builders import STRICT, Fleet, admitted, shape
from tests.dispatcher.ledger.builders import cell, charge, queue, root
from tests.dispatcher.ledger.test_laws import CELLS

CI = settings(max_examples=80, derandomize=True, deadline=None)
GPU = cell("gpu")

quotas = st.builds(
    CellQuota, st.integers(0, 4), st.sampled_from([None, None, 3]), st.sampled_from([None, None, 1])
)


@st.composite
def fleets(draw: st.DrawFn) -> Fleet:
    """A tree of three levels with work in its leaves, all StrictFIFO."""
    nodes = [QuotaNode("org", quotas={one: CellQuota(draw(st.integers(0, 20))) for one in CELLS})]
    leaves = []
    for dept in range(draw(st.integers(1, 3))):
        own = draw(st.dictionaries(st.sampled_from(CELLS), quotas))
        nodes.append(QuotaNode(f"d{dept}", "org", draw(st.sampled_from([500, 1000, 2000])), own))
        for number in range(draw(st.integers(1, 3))):
            own = draw(st.dictionaries(st.sampled_from(CELLS), quotas))
            leaves.append(f"d{dept}q{number}")
            weight = draw(st.sampled_from([0, 500, 1000, 2000]))
            nodes.append(QuotaNode(leaves[-1], f"d{dept}", weight, own))
    fleet = Fleet(*nodes, strategy=STRICT)
    sizes = st.tuples(st.integers(0, 4), st.integers(0, 4)).filter(any)
    for leaf in leaves:
        fleet.configure(leaf, priority=draw(st.sampled_from([0, 0, 0, 1])))
        fleet.ledger.charge(
            leaf, charge(gpu=draw(st.sampled_from([0, 0, 2])), h100_gpu=draw(st.integers(0, 1)))
        )
        for number, (gpus, h100s) in enumerate(draw(st.lists(sizes, max_size=5))):
            priority = draw(st.integers(0, 1))
            fleet.submit(leaf, f"{leaf}w{number}", priority=priority, at=number, gpu=gpus, h100_gpu=h100s)
    return fleet


def played_by_hand(fleet: Fleet) -> list[str]:
    """At every turn, every node compares all of its children afresh."""
    ledger = fleet.ledger.fork()
    lines = {
        name: sorted(state.pending, key=lambda item: (-item.priority, item.enqueued_ms, item.id))
        for name, state in fleet.queues.items()
    }
    went: list[str] = []
    while True:
        for name, line in lines.items():
            while line and any(amount > ledger.tree.most(name, c) for c, amount in paid(line[0])):
                line.pop(0)
            if line and ledger.fits(name, paid(line[0])) is not None:
                line.clear()
        winner = best_below(ledger, fleet, lines, "org")
        if winner is None:
            return went
        item = lines[winner].pop(0)
        ledger.charge(winner, paid(item))
        went.append(item.id)


def best_below(ledger: Ledger, fleet: Fleet, lines: dict[str, list[Item]], node: str) -> str | None:
    if node in lines:
        return node if lines[node] else None
    found = []
    for child in ledger.tree.nodes:
        if child.parent == node and (leaf := best_below(ledger, fleet, lines, child.name)):
            item = lines[leaf][0]
            level = ledger.tree.paths[leaf].index(ledger.tree.paths[child.name][0])
            found.append(
                (
                    ledger.borrows_after(leaf, paid(item)),
                    -fleet.queues[leaf].priority,
                    ledger.share(leaf, paid(item))[level],
                    (-item.priority, item.enqueued_ms, item.id),
                    leaf,
                )
            )
    return min(found)[-1] if found else None


def paid(item: Item) -> Charge:
    return item.shape.alternatives[0].charge


@CI
@given(fleets())
def test_turns_are_those_of_a_tournament_played_by_hand(fleet: Fleet) -> None:
    assert admitted(fleet.decide()) == played_by_hand(fleet)


@CI
@given(
    st.lists(st.tuples(st.sampled_from([500, 1000, 2000, 3000]), st.integers(1, 4)), min_size=1, max_size=3),
    st.sampled_from([500, 1000, 2000]),
    st.integers(1, 3),
    st.integers(1, 40),
)
def test_backlogged_siblings_end_at_most_one_item_apart(
    depts: list[tuple[int, int]], weight: int, size: int, pool: int
) -> None:
    """Weighted shares of siblings that all want more of the same differ by one item's share at most."""
    nodes = [root("org", gpu=pool)]
    leaves = {}
    for dept, (dept_weight, count) in enumerate(depts):
        nodes.append(queue(f"d{dept}", "org", weight=dept_weight))
        for number in range(count):
            leaves[f"d{dept}q{number}"] = f"d{dept}"
            nodes.append(queue(f"d{dept}q{number}", f"d{dept}", weight=weight * (1 + number % 2)))
    fleet = Fleet(*nodes)
    for leaf in leaves:
        for number in range(pool + 1):
            fleet.submit(leaf, f"{leaf}w{number:02}", gpu=size)
    fleet.cycle()
    ledger, tree = fleet.ledger, fleet.ledger.tree
    assert ledger.available(next(iter(leaves)), GPU) < size
    by_parent: dict[str, list[tuple[int, int]]] = {}
    for leaf in leaves:
        shares = ledger.share(leaf, ())
        for node, share in zip(tree.paths[leaf], shares, strict=False):
            by_parent.setdefault(tree.nodes[node].parent, []).append((share, tree.nodes[node].weight_milli))
    for siblings in by_parent.values():
        head = max(-(-size * SHARE_ONE * 1000 // (pool * weight)) for _, weight in siblings)
        assert max(siblings)[0] - min(siblings)[0] <= head + 1


@CI
@given(
    st.lists(st.tuples(st.sampled_from(["a", "b", "c"]), st.integers(0, 2)), max_size=12),
    st.integers(0, 6),
    st.integers(0, 6),
)
def test_more_capacity_admits_no_less_of_equal_work(
    work: list[tuple[str, int]], capacity: int, more: int
) -> None:
    fleet = Fleet(root("org", gpu=20), queue("a", "org"), queue("b", "org", gpu=2), queue("c", "org"))
    for number, (name, priority) in enumerate(work):
        fleet.submit(name, f"w{number}", at=number, priority=priority, gpu=1)
    less = admitted(fleet.decide(free={"gpu": capacity}))
    assert admitted(fleet.decide(free={"gpu": capacity + more}))[: len(less)] == less


def test_more_quota_can_admit_other_work_and_less_of_it() -> None:
    """Monotonicity is no law for work of several sizes: the older and larger one goes instead of two."""
    for quota, goes in ((2, ["small1", "small2"]), (3, ["large"])):
        fleet = Fleet(root("a", gpu=9))
        fleet.submit("a", "large", at=1, gpu=3)
        fleet.submit("a", "small1", at=2, gpu=1)
        fleet.submit("a", "small2", at=3, gpu=1)
        fleet.ledger.charge("a", charge(gpu=9 - quota))
        assert admitted(fleet.decide()) == goes


def test_shapes_with_a_probe_of_their_own_do_not_change_the_turns() -> None:
    fleet = Fleet(root("org", gpu=4), queue("a", "org"), queue("b", "org"))
    fleet.submit("a", "a1", shape(charge(gpu=1), probe="p"), at=2)
    fleet.submit("b", "b1", shape(charge(gpu=1), probe="p"), at=1)
    decision = fleet.decide()
    assert [action.item.name for action in decision.actions] == ["b1"]
    assert set(fleet.reasons(decision).values()) == {"WaitingForEstimate"}
