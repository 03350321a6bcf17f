"""Laws of the ledger: its balances are those worked out from scratch, and what fits is what a flow serves.

Random trees of depth 4 at most, random charges and give-backs, quotas that change under what is charged.
"""

from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from queue_dispatcher.ledger.ledger import Ledger
from queue_dispatcher.ledger.tree import UNLIMITED, CellQuota, QuotaNode, QuotaTree
from tests.dispatcher.ledger.balances import balances, is_served, overdrawn
from tests.dispatcher.ledger.builders import TABLE
from tests.dispatcher.ledger.builders import cell as cell_of

CELLS = (cell_of("gpu"), cell_of("h100_gpu"))
DEPTH = 4

limits = st.none() | st.integers(0, 6)
quotas = st.builds(CellQuota, st.integers(0, 8), limits, limits)


@st.composite
def trees(draw: st.DrawFn, names: int = 8) -> QuotaTree:
    """One to three roots, every other node below one of those before it."""
    nodes: list[QuotaNode] = []
    depths: dict[str, int] = {}
    for number in range(draw(st.integers(1, names))):
        above = [name for name, depth in depths.items() if depth < DEPTH]
        parent = (
            draw(st.sampled_from(["", *above])) if number > 2 else draw(st.sampled_from([*above[:1], ""]))
        )
        depths[f"q{number}"] = depths[parent] + 1 if parent else 1
        own = draw(st.dictionaries(st.sampled_from(CELLS), quotas))
        nodes.append(QuotaNode(f"q{number}", parent, draw(st.sampled_from((0, 500, 1000, 3000))), own))
    return QuotaTree(nodes, TABLE)


class Bookkeeping(RuleBasedStateMachine):
    """Charges to whatever queue, in a tree that administrators change under way."""

    @initialize(tree=trees())
    def begin(self, tree: QuotaTree) -> None:
        self.ledger = Ledger(tree)
        self.charged: dict[str, dict[int, int]] = {}

    def used(self, cell: int) -> dict[str, int]:
        """What is charged to the queues of the tree."""
        paths = self.ledger.tree.paths
        return {name: used[cell] for name, used in self.charged.items() if used.get(cell) and name in paths}

    def record(self, name: str, cell: int, amount: int) -> None:
        own = self.charged.setdefault(name, {})
        own[cell] = own.get(cell, 0) + amount

    @rule(data=st.data(), cell=st.sampled_from(CELLS), amount=st.integers(1, 9))
    def charge_what_fits(self, data: st.DataObject, cell: int, amount: int) -> None:
        name = data.draw(st.sampled_from(sorted(self.ledger.tree.paths)))
        short = self.ledger.fits(name, ((cell, amount),))
        was_legal = not overdrawn(self.ledger.tree, self.used(cell), cell)
        after = dict(self.used(cell))
        after[name] = after.get(name, 0) + amount
        if was_legal:
            assert (short is None) == is_served(self.ledger.tree, after, cell)
            assert (short is None) == (not overdrawn(self.ledger.tree, after, cell))
        if short is not None:
            assert short.missing == amount - self.ledger.available(name, cell) > 0
            assert short.node in self.ledger.tree.paths
            return
        worse = set(overdrawn(self.ledger.tree, after, cell))
        assert worse <= set(overdrawn(self.ledger.tree, self.used(cell), cell))
        self.ledger.charge(name, ((cell, amount),))
        self.record(name, cell, amount)

    @rule(cell=st.sampled_from(CELLS), amount=st.integers(1, 5), number=st.integers(0, 9))
    def adopt(self, cell: int, amount: int, number: int) -> None:
        """Work that runs already is charged whether it fits or not; q8 and q9 are in no tree."""
        self.ledger.charge(f"q{number}", ((cell, amount),))
        self.record(f"q{number}", cell, amount)

    @rule(data=st.data())
    def give_back(self, data: st.DataObject) -> None:
        running = [(n, c, a) for n, used in self.charged.items() for c, a in used.items() if a]
        if running:
            name, cell, most = data.draw(st.sampled_from(running))
            amount = data.draw(st.integers(1, most))
            self.ledger.give_back(name, ((cell, amount),))
            self.record(name, cell, -amount)

    @rule(tree=trees())
    def change_quotas(self, tree: QuotaTree) -> None:
        self.ledger = self.ledger.moved_to(tree)

    @rule(cell=st.sampled_from(CELLS))
    def fork_and_forget(self, cell: int) -> None:
        fork = self.ledger.fork()
        for name in fork.tree.paths:
            fork.charge(name, ((cell, 3),))

    @invariant()
    def balances_are_those_worked_out_from_scratch(self) -> None:
        for cell in CELLS:
            for name, balance in balances(self.ledger.tree, self.used(cell), cell).items():
                assert self.ledger.balance(name, cell) == balance
            assert self.ledger.totals.get(cell, 0) == sum(u.get(cell, 0) for u in self.charged.values())

    @invariant()
    def charges_are_what_was_charged(self) -> None:
        expected = {
            name: tuple(sorted((cell, amount) for cell, amount in used.items() if amount))
            for name, used in self.charged.items()
        }
        assert self.ledger.charges() == {name: charge for name, charge in expected.items() if charge}

    @invariant()
    def what_is_not_lent_is_always_there(self) -> None:
        for cell in CELLS:
            for node in self.ledger.tree.nodes:
                quota = node.quotas.get(cell, CellQuota())
                lent = UNLIMITED if quota.lending_limit is None else quota.lending_limit
                if node.parent and not any(other.parent == node.name for other in self.ledger.tree.nodes):
                    kept = quota.nominal - lent - self.ledger.used(node.name, cell)
                    assert self.ledger.available(node.name, cell) >= kept

    @invariant()
    def what_is_left_is_the_least_of_its_bounds_and_of_that_what_makes_nobody_borrow_is_known(self) -> None:
        ledger = self.ledger
        for cell in CELLS:
            for name in ledger.tree.paths:
                available, own = ledger.available(name, cell), ledger.unborrowed(name, cell)
                assert available == ledger.availability(name, cell).amount == min(ledger.bounds(name, cell))
                assert own == 0 or not ledger.borrows_after(name, ((cell, own),))
                assert own == UNLIMITED or ledger.borrows_after(name, ((cell, own + 1),))

    @invariant()
    def shares_are_zero_only_within_quota(self) -> None:
        for name, path in self.ledger.tree.paths.items():
            shares = self.ledger.share(name, ())
            assert len(shares) == len(path) - 1
            for node, share in zip(path, shares, strict=False):
                balances = [self.ledger.balance(self.ledger.tree.nodes[node].name, cell) for cell in CELLS]
                assert share >= 0
                assert not share or min(balances) < 0


TestBookkeeping = Bookkeeping.TestCase
TestBookkeeping.settings = settings(
    max_examples=40,
    stateful_step_count=20,
    derandomize=True,
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow],
)
