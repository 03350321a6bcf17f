"""Who goes next: as turns played by hand, and how far apart those end who compete for quota or window."""

from dataclasses import replace
from fractions import Fraction

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from queue_dispatcher.cycle.items import Item
from queue_dispatcher.cycle.turns import MAX_PRIORITIES, NO_TURNS, TURN
from queue_dispatcher.ledger.cells import Charge
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
    """A tree of three levels with work in its leaves, all StrictFIFO, and none holding what it waits for."""
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
        fleet.configure(leaf, priority=draw(st.sampled_from([0, 0, 0, 1])), reclaims=True)
        fleet.ledger.charge(
            leaf, charge(gpu=draw(st.sampled_from([0, 0, 2])), h100_gpu=draw(st.integers(0, 1)))
        )
        for number, (gpus, h100s) in enumerate(draw(st.lists(sizes, max_size=5))):
            priority = draw(st.integers(0, 1))
            fleet.submit(leaf, f"{leaf}w{number}", priority=priority, at=number, gpu=gpus, h100_gpu=h100s)
    return fleet


class ByHand:
    """At every turn, every node compares all of its children afresh."""

    def __init__(self, fleet: Fleet) -> None:
        self.fleet = fleet
        self.ledger = fleet.ledger.fork()
        self.waiting = {
            name: sorted(state.pending, key=lambda item: (-item.priority, item.enqueued_ms, item.id))
            for name, state in fleet.queues.items()
        }
        self.ready = {name: list(items) for name, items in self.waiting.items()}
        self.had: dict[tuple[str, int], Fraction] = {}
        self.is_scarce = False

    def play(self) -> list[str]:
        went: list[str] = []
        while True:
            for name, items in self.ready.items():
                while items and any(amount > self.ledger.tree.most(name, c) for c, amount in paid(items[0])):
                    items.pop(0)
                if items and self.ledger.fits(name, paid(items[0])) is not None:
                    items.clear()
            winner = self.best_below("org")
            if winner is not None and not self.is_scarce and self.others_may_lack(winner):
                self.is_scarce = True
                winner = self.best_below("org")
            if winner is None:
                return went
            item = self.ready[winner].pop(0)
            self.waiting[winner].remove(item)
            self.ledger.charge(winner, paid(item))
            for node in self.path(winner):
                key = (node.name, item.priority)
                self.had[key] = self.had.get(key, Fraction(0)) + Fraction(1000, node.weight_milli or 1)
            went.append(item.id)

    def best_below(self, node: str) -> str | None:
        if node in self.ready:
            return node if self.ready[node] else None
        found = []
        for child in self.ledger.tree.nodes:
            if child.parent == node and (leaf := self.best_below(child.name)):
                item = self.ready[leaf][0]
                level = [one.name for one in self.path(leaf)].index(child.name)
                found.append(
                    (
                        self.is_scarce and self.ledger.borrows_after(leaf, paid(item)),
                        -self.fleet.queues[leaf].priority,
                        self.ledger.share(leaf, paid(item))[level] if self.is_scarce else 0,
                        -item.priority,
                        self.had.get((child.name, item.priority), Fraction(0)),
                        (item.enqueued_ms, item.id),
                        leaf,
                    )
                )
        return min(found)[-1] if found else None

    def others_may_lack(self, leaf: str) -> bool:
        for c, _ in paid(self.ready[leaf][0]):
            bounds = self.ledger.bounds(leaf, c)
            for node, bound in list(zip(self.path(leaf), bounds, strict=True))[1:]:
                if self.backlog(node.name, c) > bound:
                    return True
        return False

    def backlog(self, node: str, c: int) -> int:
        """What could yet be charged of what was there in the beginning, by what its queues could ever use."""
        total = 0
        for name, items in self.waiting.items():
            if node in [one.name for one in self.path(name)]:
                all_of = sum(dict(paid(item)).get(c, 0) for item in self.fleet.queues[name].pending)
                left = sum(dict(paid(item)).get(c, 0) for item in items)
                total += min(all_of, self.ledger.tree.most(name, c)) - (all_of - left)
        return total

    def path(self, leaf: str) -> list[QuotaNode]:
        tree = self.ledger.tree
        return [tree.nodes[number] for number in tree.paths[leaf]]


def paid(item: Item) -> Charge:
    return item.shape.alternatives[0].charge


@CI
@given(fleets())
def test_turns_are_those_played_by_hand(fleet: Fleet) -> None:
    assert admitted(fleet.decide()) == ByHand(fleet).play()


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
    # By weight and use alone, whatever the ledger takes for a share.
    by_parent: dict[str, list[tuple[Fraction, int]]] = {}
    for node in tree.nodes:
        if node.parent:
            share = Fraction(ledger.used(node.name, GPU), node.weight_milli)
            by_parent.setdefault(node.parent, []).append((share, node.weight_milli))
    for siblings in by_parent.values():
        head = max(Fraction(size, weight) for _, weight in siblings)
        assert max(siblings)[0] - min(siblings)[0] <= head


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
    assert set(less) <= set(admitted(fleet.decide(free={"gpu": capacity + more})))


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


class TestAFullWindow:
    """One release a cycle, or a few: what is scarce is the release window, not quota."""

    @pytest.mark.parametrize(
        "nodes",
        [
            pytest.param((root("a", gpu=10**6), root("b", gpu=10**6)), id="two trees"),
            pytest.param(
                (root("org"), queue("a", "org", gpu=10**6), queue("b", "org", gpu=10**6)), id="owners"
            ),
            pytest.param(
                (root("org", gpu=10**6), queue("a", "org", gpu=2000), queue("b", "org")), id="borrower"
            ),
        ],
    )
    @pytest.mark.parametrize("priority", [0, 1000])
    def test_a_backlog_of_one_queue_does_not_keep_another_waiting(
        self, nodes: tuple[QuotaNode, ...], priority: int
    ) -> None:
        fleet = Fleet(*nodes)
        for number in range(1000):
            fleet.submit("a", f"a{number:04}", gpu=1, at=number)
        assert fleet.cycle(tokens=1) == ["a0000"]
        fleet.submit("b", "b", gpu=1, at=60_000, priority=priority)
        started = [fleet.cycle(tokens=1) for _ in range(2)]
        assert started[0 if priority else 1] == ["b"]

    @pytest.mark.parametrize("tokens", [1, 7])
    @pytest.mark.parametrize("members", [(1, 1), (1, 20), (3, 2)])
    @pytest.mark.parametrize(
        "nodes",
        [
            pytest.param((queue("a", "", weight=3000), root("b")), id="trees"),
            pytest.param(
                (root("org", gpu=10**9), queue("a", "org", weight=3000), queue("b", "org")), id="cohort"
            ),
            pytest.param(
                (
                    root("org", gpu=10**9),
                    queue("x", "org", weight=1500),
                    queue("y", "org", weight=500),
                    queue("a", "x", weight=500),
                    queue("b", "y", weight=9000),
                    queue("idle", "y", weight=9000),
                ),
                id="departments",
            ),
        ],
    )
    def test_equals_share_releases_by_weight(
        self, nodes: tuple[QuotaNode, ...], members: tuple[int, int], tokens: int
    ) -> None:
        fleet = Fleet(
            *(replace(node, quotas={GPU: CellQuota(10**9)}) if not node.parent else node for node in nodes)
        )
        bindings = dict(zip("ab", members, strict=True))
        for name, each in bindings.items():
            for number in range(1000):
                fleet.submit(name, f"{name}{number:04}", gpu=1 + number % 3, at=number, members=each)
        released = dict.fromkeys("ab", 0)
        while sum(released.values()) < 1000:
            for item in fleet.cycle(tokens=tokens):
                released[item[0]] += bindings[item[0]]
        assert released["a"] == pytest.approx(3 * released["b"], rel=0.05, abs=4 * max(members))

    def test_who_was_idle_has_saved_nothing_and_who_had_more_owes_it(self) -> None:
        fleet = Fleet(root("a", gpu=10**6), root("b", gpu=10**6))
        for number in range(200):
            fleet.submit("a", f"a{number:03}", gpu=1, at=number)
        for _ in range(100):
            fleet.cycle(tokens=1)
        assert fleet.turns == NO_TURNS, "nobody else waited"
        for number in range(5):
            fleet.submit("b", f"b{number}", gpu=1, at=1000 + number, members=4)
        order = [name[0] for _ in range(12) for name in fleet.cycle(tokens=1)]
        assert "".join(order) == "abaaaabaaaab"

    def test_one_that_asks_again_and_again_does_not_pass_a_backlog(self) -> None:
        fleet = Fleet(root("a", gpu=10**6), root("b", gpu=10**6))
        for number in range(50):
            fleet.submit("a", f"a{number:03}", gpu=1, at=100 + number)
        order = ""
        for number in range(40):
            if not fleet.queues.get("b") or not len(fleet.queues["b"].pending):
                fleet.submit("b", f"b{number}", gpu=1, at=0)
            order += fleet.cycle(tokens=1)[0][0]
        assert order == "ba" * 20

    def test_debts_do_not_grow(self) -> None:
        fleet = Fleet(root("org", gpu=10**6), *(queue(name, "org") for name in "abc"))
        for number in range(300):
            for name in "abc":
                fleet.submit(
                    name, f"{name}{number}", gpu=1, at=number, priority=number % 40, members=number % 5 or 1
                )
        while fleet.cycle(tokens=3):
            assert len(fleet.turns.debts) <= MAX_PRIORITIES
            assert all(0 < debt <= 4 * TURN for _, debts in fleet.turns.debts for debt in debts.values())
        assert fleet.turns == NO_TURNS

    def test_urgent_work_leaves_no_debt_to_work_that_is_not(self) -> None:
        fleet = Fleet(root("a", gpu=10**6), root("b", gpu=10**6))
        for number in range(20):
            fleet.submit("a", f"urgent{number:02}", gpu=1, at=number, priority=9)
            fleet.submit("a", f"a{number:02}", gpu=1, at=number)
            fleet.submit("b", f"b{number:02}", gpu=1, at=number)
        order = [fleet.cycle(tokens=1)[0] for _ in range(24)]
        assert order[:20] == [f"urgent{number:02}" for number in range(20)]
        assert order[20:] == ["a00", "b00", "b01", "a01"] or order[20:] == ["a00", "b00", "a01", "b01"]

    def test_capacity_that_is_scarce_in_a_tree_goes_by_its_tournament_too(self) -> None:
        fleet = Fleet(root("org", gpu=100), queue("owner", "org", gpu=50), queue("borrower", "org"))
        for number in range(3):
            fleet.submit("owner", f"own{number}", gpu=1, at=10 + number)
        fleet.submit("borrower", "urgent", gpu=2, at=0, priority=1000)
        assert fleet.cycle(tokens=1, free={"gpu": 4}) == ["own0"]
        assert fleet.cycle(tokens=1, free={"gpu": 4}) == ["urgent"]

    def test_scarce_quota_is_not_the_windows_to_give(self) -> None:
        """The tree holds its tournament: whoever is within quota goes before an urgent one that borrows."""
        fleet = Fleet(root("org"), queue("owner", "org", gpu=3), queue("borrower", "org", gpu=1))
        for number in range(3):
            fleet.submit("owner", f"own{number}", gpu=1, at=10 + number)
        fleet.submit("borrower", "urgent", gpu=2, at=0, priority=1000)
        started = [name for _ in range(4) for name in fleet.cycle(tokens=1)]
        assert started == ["own0", "own1", "own2"]
        fleet.finish("own2")
        assert fleet.cycle(tokens=1) == ["urgent"]
