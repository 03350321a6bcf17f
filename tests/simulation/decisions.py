"""Admission cycles decide what an oracle decides, and what they would if they knew of none before."""

from dataclasses import dataclass, field

from queue_dispatcher.api.cluster_queue import QueueingStrategy
from queue_dispatcher.cycle.actions import Admit, Decision, Probe, class_key
from queue_dispatcher.cycle.decide import decide
from queue_dispatcher.cycle.snapshot import Snapshot
from sandbox.simulation.objects import at
from sandbox.simulation.templates import GPU
from sandbox.simulation.world import FLAVOR
from tests.simulation.cycle_oracle import Oracle
from tests.simulation.numbers import Numbers

_KEPT = "what is kept from cycle to cycle changes no decision"
_RIGHT = "cycles decide what is right"
_LOOKED_AT_MS = 10_000


@dataclass
class Decisions(Numbers):
    """The laws about decisions, beside all others."""

    _judged: dict[int, tuple[object, ...]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        for replica in self.world.replicas.values():
            replica.decided = self._decided

    def _decided(self, snapshot: Snapshot, decision: Decision, now_ms: int) -> None:
        if not self._is_news(snapshot, decision, now_ms):
            return
        anew = decide(snapshot, now_ms)
        for what in ("actions", "next_due_ms", "window_full", "turns", "reservations"):
            kept, new = getattr(decision, what), getattr(anew, what)
            if kept != new:
                self._break(_KEPT, what, f"{kept}, and anew {new}"[:400])
        if dict(decision.waits) != dict(anew.waits):
            self._break(_KEPT, "waits", "other reasons than anew")
        if snapshot.elsewhere is None:
            self._judge(snapshot, decision, now_ms)

    def _is_news(self, snapshot: Snapshot, decision: Decision, now_ms: int) -> bool:
        """Whether this is another decision than the last one by the same ledger, or from something else."""
        ledger, due_ms = snapshot.ledger, decision.next_due_ms
        pending = tuple((name, one.pending.version, one.stopped) for name, one in snapshot.queues.items())
        known = (
            pending,
            dict(ledger.charged),
            dict(ledger.returned),
            dict(snapshot.envelope),
            dict(snapshot.verdicts),
            (snapshot.tokens > 0, snapshot.preplaced_tokens > 0),
            snapshot.elsewhere,
            snapshot.turns,
            snapshot.reservations,
            dict(snapshot.earliest),
            snapshot.claims,
            # What is kept for somebody is to change in its time.
            now_ms // _LOOKED_AT_MS if decision.reservations.made else 0,
            decision.actions,
            due_ms,
        )
        before = self._judged.get(id(ledger))
        # With the ledger itself, whose id is nobody else's as long as it is kept.
        self._judged[id(ledger)] = (known, ledger)
        return before is None or before[0] != known or (due_ms is not None and now_ms >= due_ms)

    def _judge(self, snapshot: Snapshot, decision: Decision, now_ms: int) -> None:
        later = [
            item.due_ms
            for state in snapshot.queues.values()
            for item in state.pending
            if item.due_ms > now_ms
        ]
        later += [item.due_ms for item in snapshot.growing if item.due_ms > now_ms]
        due_ms, right_ms = decision.next_due_ms, min(later, default=None)
        is_timed = self._reserves(snapshot) or self._ages(snapshot)
        if is_timed and due_ms is not None and due_ms > now_ms:
            # Reservations are made, drain and are given up in their time, and waiting raises priorities.
            right_ms = min(due_ms, right_ms or due_ms)
        if due_ms != right_ms:
            self._break(_RIGHT, "backoff", f"due at {due_ms}, and it is {right_ms}")
        if not self._has_heard(snapshot):
            return
        oracle = Oracle(snapshot, now_ms, self._trees, self._weights(), self._cell(snapshot))
        # For whom others were displaced has a reservation also where it starts at once.
        claimed = any(state.pending.get(one) for state in snapshot.queues.values() for one in snapshot.claims)
        if claimed or snapshot.reservations.made or decision.reservations.made:
            # Which is a matter of its own.
            self._judge_reserved(oracle, decision)
            return
        self._ledger(oracle)
        oracle.run()
        growing = {item.id for item in snapshot.growing}
        admitted = [action.item.id for action in decision.actions if isinstance(action, Admit)]
        # What grows does so behind all that waits.
        admitted = admitted[: len(admitted) - sum(one in growing for one in admitted)]
        if not oracle.is_sure:
            admitted = admitted[: len(oracle.admitted)]
        if admitted != oracle.admitted:
            self._break(_RIGHT, "admissions", f"{admitted}, and right is {oracle.admitted}")
        asked = [action.item.id for action in decision.actions if isinstance(action, Probe)]
        probes = asked[: len(asked) - sum(one in growing for one in asked)]
        if oracle.is_sure and probes != oracle.chosen():
            self._break(_RIGHT, "questions", f"{probes}, and right is {oracle.chosen()}")
        debts = [(priority, dict(of)) for priority, of in decision.turns.debts]
        if oracle.is_sure and debts != oracle.debts():
            self._break(_RIGHT, "turns", f"debts {debts}, and right is {oracle.debts()}")
        oracle.block()
        self._reasons(oracle, decision)

    def _judge_reserved(self, oracle: Oracle, decision: Decision) -> None:
        """Where room is kept for somebody."""

    def _reserves(self, snapshot: Snapshot) -> bool:
        """Whether anybody may be kept room for, by what the decision was made from."""
        backfill = QueueingStrategy.BACKFILL_FIFO
        waits = any(one.strategy is backfill and len(one.pending) for one in snapshot.queues.values())
        return waits or bool(snapshot.reservations.given_up or snapshot.claims)

    def _ages(self, snapshot: Snapshot) -> bool:
        """Whether the order of what waits may change by time alone."""
        return any(
            len(state.pending) and name in self._trees.quotas and self._trees.quotas[name].ages_ms
            for name, state in snapshot.queues.items()
        )

    @staticmethod
    def _cell(snapshot: Snapshot) -> int:
        return snapshot.ledger.tree.table.cell(FLAVOR, GPU)

    def _has_heard(self, snapshot: Snapshot) -> bool:
        """Whether the decision was made from the queues as they are; `Numbers` knows when it has to be."""
        tree, cell, weights = snapshot.ledger.tree, self._cell(snapshot), self._weights()
        quotas = {name: one for name, one in self._trees.quotas.items() if self._trees.is_placed(name)}
        if quotas.keys() != self._trees.quotas.keys() or {node.name for node in tree.nodes} != quotas.keys():
            return False
        for node in tree.nodes:
            quota, told = quotas[node.name], node.quotas.get(cell)
            known = [quota.parent, weights[node.name], quota.nominal, quota.lends, quota.borrows]
            found = [told.nominal, told.lending_limit, told.borrowing_limit] if told is not None else []
            if [node.parent, node.weight_milli, *found] != known:
                return False
        return True

    def _ledger(self, oracle: Oracle) -> None:
        """Whether what cycles ask the ledger and the lines beforehand is so."""
        if not oracle.is_sure:
            return
        for name, state in oracle.snapshot.queues.items():
            for amount in (1, 2, 4) if name in self._trees.quotas else ():
                told = oracle.snapshot.ledger.borrowing_distance(name, ((oracle.cell, amount),))
                if told != (right := oracle.distance(name, amount)):
                    self._break(_RIGHT, "distances", f"{amount} of {name}: {told}, and right is {right}")
            least = state.pending.least(oracle.now_ms)
            if least and (right_least := oracle.least(state)) and least != right_least:
                self._break(_RIGHT, "least", f"{name}: {least}, and right is {right_least}")

    def _reasons(self, oracle: Oracle, decision: Decision) -> None:
        """Whether all that was due and not admitted waits for what it lacks."""
        for state in oracle.snapshot.queues.values():
            for item in state.pending:
                if item.due_ms > oracle.now_ms or item.id in oracle.admitted:
                    continue
                told, right = decision.waits.get(class_key(item)), oracle.waits_for(item)
                if right and (told is None or told.kind != right):
                    self._break(_RIGHT, "reasons", f"{item.name}: {told and told.kind}, and right is {right}")

    def _weights(self) -> dict[str, int]:
        objects = self.world.api.collection("clusterqueues").objects.values()
        # None is 1, and so is 0, which is refused.
        return {one["metadata"]["name"]: 1000 * (int(at(one, "spec", "weight") or 0) or 1) for one in objects}
