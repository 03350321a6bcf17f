"""Laws of whole runs, on a clock that the test moves: cycles whose admissions are charged, finish and recur.

Random trees of depth 4 at most; queues of both strategies; work of few shapes, some that has to be asked
about; quotas, capacity and queues that change under way.
"""

from collections.abc import Callable
from dataclasses import replace
from itertools import product
from random import Random

from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from queue_dispatcher.api.ageing import NO_AGEING, Ageing
from queue_dispatcher.cycle.actions import Admit, ClassKey, Decision, class_key
from queue_dispatcher.cycle.decide import AdmissionCycles, decide
from queue_dispatcher.cycle.items import Item, Shape
from queue_dispatcher.cycle.pending import PendingQueue
from queue_dispatcher.cycle.reasons import queue_stopped
from queue_dispatcher.cycle.snapshot import Snapshot, Verdict
from queue_dispatcher.ledger.cells import Cell, added
from queue_dispatcher.ledger.ledger import Ledger
from queue_dispatcher.ledger.tree import QuotaTree
from tests.dispatcher.cycle.builders import BEST_EFFORT, STRICT, Fleet, admitted, shape, shape_of_parts
from tests.dispatcher.ledger.balances import overdrawn
from tests.dispatcher.ledger.builders import charge
from tests.dispatcher.ledger.test_laws import CELLS, trees

UNLIMITED_TOKENS = 1_000_000
EITHER = (charge(h100_gpu=1), charge(gpu=1))
WAYS: tuple[Callable[[], Shape], ...] = (
    lambda: shape(charge(gpu=1)),
    lambda: shape(charge(gpu=2)),
    lambda: shape(charge(h100_gpu=1), charge(gpu=3), probe="p1"),
    lambda: shape(charge(gpu=1, h100_gpu=1), probe="p2"),
    # Of two parts; of one that looks for what is nearest; wherever Karmada puts it.
    lambda: shape_of_parts(EITHER, (charge(gpu=2), charge(h100_gpu=2)), probe="p1"),
    lambda: shape_of_parts(EITHER, avoids_borrowing=True),
    lambda: shape_of_parts((charge(gpu=2, h100_gpu=2),), EITHER, avoids_borrowing=True),
)
NEVER = -1
VERDICTS = {
    NEVER: Verdict(0, reasons=("no such node",), never=True),
    **{fits: Verdict(fits, frozenset({"m1"})) for fits in range(3)},
}
"""What the estimators can have said; None for nothing."""


class Dispatching(RuleBasedStateMachine):
    """Everything that happens to a dispatcher, in any order."""

    @initialize(tree=trees(6))
    def begin(self, tree: QuotaTree) -> None:
        self.fleet = Fleet(*tree.nodes)
        self.shapes = {(name, way): make() for name in (*tree.paths, "gone") for way, make in enumerate(WAYS)}
        self.free: dict[Cell, int] = {}
        self.fits: dict[str, int | None] = {"p1": 1, "p2": 1}
        self.cycles = AdmissionCycles()
        self.submitted = 0
        self.undue: set[str] = set()

    @rule(
        data=st.data(),
        way=st.integers(0, len(WAYS) - 1),
        priority=st.integers(0, 2),
        ago=st.integers(0, 3),
        backoff=st.sampled_from([0, 0, 0, 500]),
        members=st.integers(1, 3),
        runtime=st.sampled_from([None, None, 100, 600]),
    )
    def submit(
        self,
        data: st.DataObject,
        way: int,
        priority: int,
        ago: int,
        backoff: int,
        members: int,
        runtime: int | None,
    ) -> None:
        name = data.draw(st.sampled_from([*sorted(self.fleet.ledger.tree.paths), "gone"]))
        self.submitted += 1
        self.fleet.submit(
            name,
            f"w{self.submitted}",
            self.shapes.setdefault((name, way), WAYS[way]()),
            at=self.fleet.now_ms - ago,
            priority=priority,
            due=self.fleet.now_ms + backoff if backoff else 0,
            members=members,
            runtime=runtime,
        )

    @rule(data=st.data(), strict=st.booleans(), ageing=st.sampled_from([NO_AGEING, Ageing(100, 2)]))
    def change_a_queue(self, data: st.DataObject, strict: bool, ageing: Ageing) -> None:
        name = data.draw(st.sampled_from(sorted(self.fleet.ledger.tree.paths)))
        stopped = queue_stopped(name, "Hold") if data.draw(st.integers(0, 5)) == 5 else None
        strategy = STRICT if strict else BEST_EFFORT
        self.fleet.configure(name, strategy=strategy, ageing=ageing, stopped=stopped)

    @rule(tree=trees(6))
    def change_quotas(self, tree: QuotaTree) -> None:
        self.fleet.ledger = self.fleet.ledger.moved_to(tree)

    @rule(cell=st.sampled_from(CELLS), capacity=st.none() | st.integers(0, 9))
    def change_capacity(self, cell: Cell, capacity: int | None) -> None:
        self.free.pop(cell, None)
        if capacity is not None:
            self.free[cell] = capacity

    @rule(probe=st.sampled_from(["p1", "p2"]), fits=st.sampled_from([None, NEVER, 0, 1, 2]))
    def change_the_estimators_minds(self, probe: str, fits: int | None) -> None:
        self.fits[probe] = fits

    @precondition(lambda self: self.fleet.running)
    @rule(data=st.data())
    def finish(self, data: st.DataObject) -> None:
        self.fleet.finish(data.draw(st.sampled_from(sorted(self.fleet.running))))

    @rule(data=st.data())
    def delete_pending(self, data: st.DataObject) -> None:
        waiting = sorted(item.id for state in self.fleet.queues.values() for item in state.pending)
        if waiting:
            name = data.draw(st.sampled_from(waiting))
            for state in self.fleet.queues.values():
                state.pending.remove(name)

    @rule(ms=st.sampled_from([1, 100, 600]))
    def time_passes(self, ms: int) -> None:
        self.fleet.now_ms += ms

    @rule(tokens=st.sampled_from([0, 1, 3, UNLIMITED_TOKENS]))
    def cycle(self, tokens: int) -> None:
        """One cycle with whatever the estimators have said; what it admits is charged."""
        snapshot = self.snapshot(tokens, verdicts=self.fits)
        before = self.observed()
        decision = self.decide(snapshot)
        assert self.observed() == before, "a decision changes nothing"
        self.check(decision, snapshot)
        self.fleet.carry_out(decision)

    @rule(tokens=st.sampled_from([0, 1, UNLIMITED_TOKENS]), steps=st.integers(1, 40))
    def steps_that_nobody_takes_to_their_end(self, tokens: int, steps: int) -> None:
        begun = self.cycles.steps(self.snapshot(tokens, verdicts=self.fits), self.fleet.now_ms)
        for _ in range(steps):
            next(begun, None)

    @rule()
    def quiescence(self) -> None:
        """Cycles with an open window until none admits: then nothing that could start waits.

        The estimators have answered whatever was asked.
        """
        self.fits = {probe: 0 if fits is None else fits for probe, fits in self.fits.items()}
        for _ in range(1 + sum(len(state.pending) for state in self.fleet.queues.values())):
            decision = self.decide(self.snapshot(UNLIMITED_TOKENS, verdicts=self.fits))
            if not self.fleet.carry_out(decision):
                break
        else:
            raise AssertionError("admissions without end")
        assert decision.actions == (), "what the estimators have said is not asked again"
        for state in self.fleet.queues.values():
            if state.stopped is not None or state.name not in self.fleet.ledger.tree.paths:
                continue
            heads = [pending.items[0] for pending in state.pending.classes(self.fleet.now_ms)]
            for item in filter(self.could_start, heads):
                reason = decision.waits[key(item)]
                assert state.strategy is STRICT or "heads of StrictFIFO queues" in reason.text
                assert reason.kind in ("BehindHead", "WaitingForBorrowing")

    @rule(seed=st.randoms(use_true_random=False))
    def the_order_of_events_does_not_matter(self, seed: Random) -> None:
        """Equal snapshots from other objects, filled in another order, give equal decisions."""
        names = sorted(self.fleet.queues)
        seed.shuffle(names)
        queues = {}
        for name in names:
            pending = PendingQueue(name)
            items = sorted(self.fleet.queues[name].pending, key=lambda item: item.id)
            seed.shuffle(items)
            for item in items:
                pending.add(item)
            queues[name] = replace(self.fleet.queues[name], pending=pending)
        ledger = self.fleet.ledger.moved_to(
            QuotaTree(self.fleet.ledger.tree.nodes[::-1], self.fleet.ledger.tree.table)
        )
        for tokens in (2, UNLIMITED_TOKENS):
            own = self.snapshot(tokens, verdicts=self.fits)
            other = replace(own, queues=queues, ledger=ledger)
            first, second = decide(own, self.fleet.now_ms), decide(other, self.fleet.now_ms)
            assert told(first) == told(second)

    @invariant()
    def nobody_uses_more_than_the_tree_gives_unless_it_was_taken_away(self) -> None:
        """What admissions may do is checked in `check`; here: the books are right whatever happened."""
        expected: dict[str, dict[Cell, int]] = {}
        for name, paid in self.fleet.running.values():
            for cell, amount in paid:
                own = expected.setdefault(name, {})
                own[cell] = own.get(cell, 0) + amount
        assert self.fleet.ledger.charges() == {
            name: tuple(sorted(used.items())) for name, used in expected.items()
        }

    def snapshot(self, tokens: int, verdicts: dict[str, int | None]) -> Snapshot:
        totals = self.fleet.ledger.totals
        envelope = {cell: capacity - totals.get(cell, 0) for cell, capacity in self.free.items()}
        said = {probe: VERDICTS[fits] for probe, fits in verdicts.items() if fits is not None}
        return replace(self.fleet.snapshot(tokens=tokens), envelope=envelope, verdicts=said, max_probes=100)

    def decide(self, snapshot: Snapshot) -> Decision:
        """What is decided with all that is kept of the cycles before is what is decided from scratch."""
        kept, decision = self.cycles.decide(snapshot, self.fleet.now_ms), decide(snapshot, self.fleet.now_ms)
        assert told(kept) == told(decision)
        return kept

    def observed(self) -> object:
        """All that a decision could have touched."""
        return (
            self.fleet.ledger.charges(),
            dict(self.fleet.ledger.totals),
            [
                (name, [item.id for item in state.pending.ordered(self.fleet.now_ms, state.ageing)])
                for name, state in self.fleet.queues.items()
            ],
            dict(self.free),
            dict(self.fits),
        )

    def check(self, decision: Decision, snapshot: Snapshot) -> None:
        """What must hold of any decision."""
        self.check_quota(decision)
        self.check_order(decision)
        self.check_groups(decision)
        assert len(admitted(decision)) == len(set(admitted(decision)))
        released = [len(a.item.members) for a in decision.actions if isinstance(a, Admit)]
        assert not released or sum(released) - released[-1] < snapshot.tokens
        goes = {action.item.id for action in decision.actions if isinstance(action, Admit)}
        due = {
            item.id: item
            for state in self.fleet.queues.values()
            for pending in state.pending.classes(self.fleet.now_ms)
            for item in pending.items
        }
        assert goes <= due.keys()
        for item in due.values():
            if item.id not in goes:
                assert decision.waits[key(item)].text, f"{item.id} waits without a reason"
        kinds = {waiting: reason.kind for waiting, reason in decision.waits.items()}
        full = {waiting.queue for waiting, kind in kinds.items() if kind == "ReleaseWindowFull"}
        assert full <= {due[item].queue for item in decision.window_full}
        assert decision.next_due_ms is None or decision.next_due_ms > self.fleet.now_ms

    def check_quota(self, decision: Decision) -> None:
        """Step by step, no admission makes anybody short who was not, nor anybody shorter."""
        ledger = self.fleet.ledger.fork()
        left = {cell: total - ledger.totals.get(cell, 0) for cell, total in self.free.items()}
        for action in decision.actions:
            if isinstance(action, Admit):
                item, paid = action.item, action.alternative.charge
                chosen = action.alternative
                for part, options in zip(chosen.parts or (chosen,), item.shape.parts, strict=True):
                    assert any(set(part.charge) <= set(one.charge) for one in options)
                assert ledger.fits(item.queue, paid) is None
                before = self.shortfalls(ledger)
                ledger.charge(item.queue, paid)
                for cell, amount in paid:
                    if cell in left:
                        left[cell] -= amount
                        assert left[cell] >= 0
                after = self.shortfalls(ledger)
                assert {place: before[place] for place in after} == after

    def shortfalls(self, ledger: Ledger) -> dict[tuple[str, Cell], int]:
        """The balances that are below what they may be, worked out from the charges."""
        charges = ledger.charges()
        return {
            (name, cell): ledger.balance(name, cell)
            for cell in CELLS
            for name in overdrawn(ledger.tree, {n: dict(c).get(cell, 0) for n, c in charges.items()}, cell)
        }

    def check_order(self, decision: Decision) -> None:
        """Of one queue and shape, nobody is passed by a younger one, nor by one of lower priority."""
        goes = {action.item.id for action in decision.actions if isinstance(action, Admit)}
        for state in self.fleet.queues.values():
            if state.ageing is not NO_AGEING:
                continue
            due = [item for pending in state.pending.classes(self.fleet.now_ms) for item in pending.items]
            for went in (item for item in due if item.id in goes):
                for waits in (item for item in due if item.id not in goes and item.shape is went.shape):
                    assert waits.priority <= went.priority
                    if waits.priority == went.priority:
                        assert (waits.enqueued_ms, waits.id) > (went.enqueued_ms, went.id)

    def check_groups(self, decision: Decision) -> None:
        """A group is released whole: all of its members, in one action."""
        for action in decision.actions:
            waiting = self.fleet.queues[action.item.queue].pending.get(action.item.id)
            assert waiting is not None
            assert action.item.members == waiting.members

    def could_start(self, item: Item) -> bool:
        """Whether quota, capacity and estimators let it start, by the ledger's own word, not the cycle's."""
        totals = self.fleet.ledger.totals
        if item.shape.probe and (self.fits[item.shape.probe] or 0) <= 0:
            return False
        return any(
            self.fleet.ledger.fits(item.queue, way) is None
            and all(
                amount + totals.get(cell, 0) <= self.free.get(cell, UNLIMITED_TOKENS) for cell, amount in way
            )
            for way in (added(*(one.charge for one in ways)) for ways in product(*item.shape.parts))
        )


def told(decision: Decision) -> object:
    """All that a decision says."""
    waits = list(decision.waits.items())
    return (decision.actions, waits, decision.next_due_ms, decision.window_full, decision.turns)


def key(item: Item) -> ClassKey:
    return class_key(item)


TestDispatching = Dispatching.TestCase
TestDispatching.settings = settings(
    max_examples=50,
    stateful_step_count=25,
    derandomize=True,
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.filter_too_much],
)
