"""Reservations: who waits too long is kept room for, who passes delays nobody, and what is kept is told.

Each decision is judged by what it was made from, by an oracle of when what is kept room for could start
(`shadows`); and who is first in line is judged by the clock of the world, whatever was declared.
"""

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import Final

from queue_dispatcher.cycle.actions import Admit, Decision, Probe
from queue_dispatcher.cycle.items import Item
from queue_dispatcher.cycle.reservation import Reservation, own_probe
from queue_dispatcher.cycle.snapshot import Snapshot
from tests.simulation.accounts import Reserves
from tests.simulation.cycle_oracle import Oracle
from tests.simulation.decisions import Decisions
from tests.simulation.shadows import NOBODY_KNOWS, Run, Running

_KEPT: Final = "reservations are kept as their queue says"
_DELAYED: Final = "who passes a reservation does not delay it"
_TRUE: Final = "what is kept for a reservation is told, and would delay it"
_SHADOW: Final = "reservations say when they can start"


@dataclass
class Reserved(Decisions):
    """The laws about reservations in decisions, beside all others. ``reserved``, ``passed``: how many were
    looked at, and how many were passed by what ended before.
    """

    reserved: int = 0
    passed: int = 0

    def look(self) -> None:
        """See `Laws.look`."""
        super().look()
        leader = self.world.leader
        if leader is None:
            return
        made = {one.item.id for one in leader.reservations() if one.cluster}
        # For whom a plan has just been made it is kept before that is decided on.
        for uid in leader.held_rooms().keys() - made - leader.displacing():
            self._break(_KEPT, uid, "the estimators keep room for who has no reservation of it")

    def _judge_reserved(self, oracle: Oracle, decision: Decision) -> None:
        super()._judge_reserved(oracle, decision)
        snapshot, now_ms = oracle.snapshot, oracle.now_ms
        self._kept_as_stated(snapshot, decision, now_ms)
        running = _running(oracle)
        if running is None:
            return
        before = {one.item.id for one in snapshot.reservations.made}
        made = decision.reservations.made
        # What is made only now may be made because of what was admitted before it.
        judged = [one.item.id for one in made if one.item.id in before]
        self.reserved += len(judged)
        admitted = [action.item for action in decision.actions if isinstance(action, Admit)]
        probes = [action for action in decision.actions if isinstance(action, Probe)]
        if not probes and not any(item.id in before for item in admitted):
            # Else it was kept for those too, in what order nobody says; or beside what is asked about.
            behind = [
                one.item.id for one in made if any(self._is_older(of, one.item, now_ms) for of in admitted)
            ]
            self._say_when(made, [one for one in judged if one not in behind], snapshot, running)
        for item in admitted:
            after = running.beside(item.queue, _gpus(item), _ends_ms(item, running))
            if item.id not in before:
                self._passes(item, made, judged, snapshot, running, after)
            running = after
        if not decision.actions:
            self._true(decision, running, oracle)

    def _kept_as_stated(self, snapshot: Snapshot, decision: Decision, now_ms: int) -> None:
        admitted = {action.item.id for action in decision.actions if isinstance(action, Admit)}
        before = {one.item.id: one for one in snapshot.reservations.made}
        in_tree: dict[str, int] = {}
        for one in decision.reservations.made:
            item = one.item
            if item.id in snapshot.claims:
                # Others were displaced for it.
                self._kept_as_claimed(one, snapshot, admitted, now_ms)
                continue
            state, reserves = snapshot.queues.get(item.queue), self._reserves_of(item.queue)
            if reserves is None or state is None or state.stopped is not None:
                self._break(_KEPT, item.name, f"queue {item.queue} keeps room for nobody")
                continue
            if state.pending.get(item.id) is None or item.id in admitted or item.due_ms > now_ms:
                self._break(_KEPT, item.name, "kept for who does not wait for it")
            waited_ms = now_ms - max(item.enqueued_ms, item.due_ms)
            if waited_ms < reserves.after_ms:
                self._break(_KEPT, item.name, f"it has waited for {waited_ms} ms only")
            root = self._trees.root(item.queue)
            if in_tree.get(root, 0) >= reserves.depth:
                self._break(_KEPT, item.name, f"it is one of more than {reserves.depth} of its tree")
            in_tree[root] = in_tree.get(root, 0) + 1
            if now_ms - one.since_ms >= reserves.holds_ms:
                self._break(_KEPT, item.name, f"for {now_ms - one.since_ms} ms")
            last = before.get(item.id)
            if last is not None and last.since_ms != one.since_ms:
                self._break(_KEPT, item.name, f"since {last.since_ms}, and then since {one.since_ms}")
            if snapshot.reservations.given_up.get(item.id, 0) > now_ms:
                self._break(_KEPT, item.name, "made anew before its time")
            if one.drains_ms != now_ms - waited_ms + reserves.drains_ms:
                self._break(_KEPT, item.name, f"drains at {one.drains_ms} of {reserves.drains_ms}")

    def _kept_as_claimed(
        self, one: Reservation, snapshot: Snapshot, admitted: Collection[str], now_ms: int
    ) -> None:
        state = snapshot.queues.get(one.item.queue)
        if state is None or state.pending.get(one.item.id) is None or one.item.id in admitted:
            self._break(_KEPT, one.item.name, "kept for who does not wait for it")
        if one.drains_ms > now_ms:
            self._break(_KEPT, one.item.name, "others were displaced for it, and it does not drain")

    def _say_when(
        self, made: Sequence[Reservation], judged: Collection[str], snapshot: Snapshot, running: Running
    ) -> None:
        held = running
        for one in made:
            right, gpus = _starts_ms(one, snapshot, held), _gpus(one.item)
            told = NOBODY_KNOWS if one.starts_ms is None else one.starts_ms
            is_judged = one.item.id in judged and right is not None and not _is_there(one, held)
            if is_judged and told != right:
                self._break(_SHADOW, one.item.name, f"at {told}, and right is {right}")
            held = held.beside(one.item.queue, gpus)

    def _passes(
        self,
        item: Item,
        made: Sequence[Reservation],
        judged: Collection[str],
        snapshot: Snapshot,
        now: Running,
        then: Running,
    ) -> None:
        """The item is admitted, and delays nobody that it has to stand behind."""
        before = now
        for one in made:
            if one.item.id in judged and self._is_held_back(item, one, before, snapshot.claims):
                self.passed += 1
                if delay := self._delay(one, snapshot, now, then):
                    self._break(_DELAYED, item.name, f"{delay} for {one.item.name}")
            now, then = (of.beside(one.item.queue, _gpus(one.item)) for of in (now, then))

    def _delay(self, one: Reservation, snapshot: Snapshot, now: Running, then: Running) -> str:
        """What the reservation loses by what makes the difference; empty for nothing."""
        queue, gpus, is_alone = one.item.queue, _gpus(one.item), bool(one.cluster)
        lacked, lacks = (of.lacks(queue, gpus, of_quota_alone=is_alone) for of in (now, then))
        reserves = self._reserves_of(queue)
        is_drained = reserves is not None and now.now_ms >= _since_ms(one.item) + reserves.drains_ms
        is_drained = is_drained or one.item.id in snapshot.claims
        before, after = (_starts_ms(one, snapshot, of) for of in (now, then))
        if is_drained or before == NOBODY_KNOWS or _is_there(one, now):
            # Also of what others are displaced for: some of them may never end by themselves.
            return f"{lacks - lacked} more is lacking" if lacks > lacked else ""
        if before is None:
            # With those before it there is no telling.
            return ""
        if after is None or after > before:
            return f"it could start at {before}, and then at {after}"
        return ""

    def _is_held_back(self, item: Item, one: Reservation, running: Running, claims: Collection[str]) -> bool:
        """Whether it has to leave to the reservation what that needs."""
        if _is_for(item, one.item, claims) or _is_for(one.item, item, claims):
            return one.item.id in claims
        if one.item.id in claims and item.queue == one.item.queue and _stands_before(one.item, item):
            # Waiting gives nobody a right to what others were displaced for.
            return True
        is_first = self._ranks_before(item, one.item, running.now_ms)
        return not is_first and not self._is_entitled(item, one, running)

    def _is_entitled(self, item: Item, one: Reservation, running: Running) -> bool:
        """Whether it takes only what its queue owns, which it need not leave to who would borrow it."""
        may_borrow = item.queue != one.item.queue and bool(self._trees.quotas[one.item.queue].parent)
        return may_borrow and not self._trees.borrows(item.queue, running.used, _gpus(item))

    def _true(self, decision: Decision, after: Running, oracle: Oracle) -> None:
        """Who is told that room is kept for another would delay that one; who has room is told that."""
        made = {one.item.name: one for one in decision.reservations.made}
        for state in oracle.snapshot.queues.values():
            for found in state.pending.classes(oracle.now_ms):
                item, reason = found.items[0], decision.waits.get(found.key)
                if reason is None or state.stopped is not None or found.key.shape.never is not None:
                    continue
                if reason.kind != "BehindReservation":
                    continue
                of = made.get(reason.text.partition(" is kept for ")[2].partition(",")[0])
                if of is None or of.item.id == item.id:
                    self._break(_TRUE, item.name, f"{reason.text}, which is so of nobody")
                elif not self._waits_behind(item, of.item, oracle.snapshot.claims, oracle.now_ms):
                    self._break(_TRUE, item.name, f"{reason.text}, behind which it does not stand")
                elif len(made) == 1 and item.queue == of.item.queue:
                    then = after.beside(item.queue, _gpus(item), _ends_ms(item, after))
                    if not self._delay(of, oracle.snapshot, after, then):
                        self._break(_TRUE, item.name, f"{reason.text}, and it would not delay that")

    def _waits_behind(self, item: Item, than: Item, claims: Collection[str], now_ms: int) -> bool:
        """Whether what is kept for the other one is not for it."""
        if not self._ranks_before(item, than, now_ms) or _is_for(than, item, claims):
            return True
        return than.id in claims and item.queue == than.queue and _stands_before(than, item)

    def _ranks_before(self, item: Item, than: Item, now_ms: int) -> bool:
        if item.queue != than.queue:
            return self._priority(item, now_ms) > self._priority(than, now_ms)
        return self._is_older(item, than, now_ms)

    def _is_older(self, item: Item, than: Item, now_ms: int) -> bool:
        """Whether it goes first in the queue of both: what is behind it has its turn after it."""
        if item.queue != than.queue:
            return False
        its, others = ((-self._priority(one, now_ms), one.enqueued_ms, one.id) for one in (item, than))
        return its < others

    def _priority(self, item: Item, now_ms: int) -> int:
        """As the ageing of its queue makes it."""
        return self._trees.priority(item.queue, item.priority, now_ms - item.enqueued_ms)

    def _reserves_of(self, queue: str) -> Reserves | None:
        quota = self._trees.quotas.get(queue)
        return quota.reserves if quota is not None else None


def _is_for(one: Item, item: Item, claims: Collection[str]) -> bool:
    """Whether others were displaced for the one: what they leave is not for another queue then, whatever goes
    first, but for whom others were displaced as well.
    """
    return one.id in claims and item.queue != one.queue and item.id not in claims


def _running(oracle: Oracle) -> Running | None:
    """What there is when the decision is made; None where there is more than one flavor to be had."""
    if not oracle.is_sure:
        return None
    endings, cell = oracle.snapshot.endings, oracle.cell
    known = [Run(one.at_ms, one.queue, one.amount) for one in endings.known(cell)]
    unknown = [Run(NOBODY_KNOWS, queue, gpus) for queue, gpus in endings.unknown(cell).items()]
    return Running(oracle.trees, oracle.now_ms, oracle.used, oracle.free, (*known, *unknown))


def _starts_ms(one: Reservation, snapshot: Snapshot, running: Running) -> float | None:
    """When it can start: once there is quota, and room, which is for the estimators to say where they do."""
    queue, gpus, is_alone = one.item.queue, _gpus(one.item), bool(one.cluster)
    at_ms = running.starts_ms(queue, gpus, of_quota_alone=is_alone)
    if at_ms is None or not one.cluster:
        return at_ms
    told = snapshot.earliest[own_probe(one.item, one.alternative)]
    return max(at_ms, NOBODY_KNOWS if told.at_ms is None else told.at_ms)


def _is_there(one: Reservation, running: Running) -> bool:
    """Whether it has quota and room as far as anybody can tell: why it waits is not known here."""
    return not one.cluster and running.has_room(one.item.queue, _gpus(one.item))


def _stands_before(item: Item, than: Item) -> bool:
    """Whether it goes first by its priority as it is stated, and by when it came."""
    return (-item.priority, item.enqueued_ms) < (-than.priority, than.enqueued_ms)


def _ends_ms(item: Item, running: Running) -> float:
    """When it would end at the latest if it started now."""
    return NOBODY_KNOWS if item.runtime_ms is None else running.now_ms + item.runtime_ms


def _since_ms(item: Item) -> int:
    """Since when it waits for room."""
    return max(item.enqueued_ms, item.due_ms)


def _gpus(item: Item) -> int:
    return sum(amount for options in item.shape.parts for _, amount in options[0].charge)
