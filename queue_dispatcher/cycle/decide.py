"""The admission cycle: which waiting workloads start now, and why the others do not.

Queues of one tree compete (`contest`); each turn starts the first item of one queue that has room (`head`),
which leaves less room for all others (`headroom`). The trees share the release window and, where they name
the same flavors, its capacity, so they compete too: of what they would start next, the higher priority goes
first, then they take turns (`turns`).

A workload whose estimate is not known takes no token while the estimators are asked: it is passed over in
this cycle, and as that costs it no turn, it is the next as soon as its answer is there, within seconds. So
long it keeps its place: what stands behind it in its queue may only use what it leaves; and where quota is
scarce, so may those whom it has beaten in the tournament, or whoever has its answer already would win each
time. The questions of a cycle are shared out over the trees.

Pure: equal snapshots give equal decisions, and nothing of a snapshot is changed. `decide` works everything
out; `AdmissionCycles` keeps what still holds from one cycle to the next, and can be run in slices, with the
same decisions.
"""

import heapq
from collections import Counter
from collections.abc import Collection, Generator, Iterator, Mapping, Sequence

from queue_dispatcher.cycle.actions import Action, Admit, Decision, Probe, class_key
from queue_dispatcher.cycle.backlog import Backlog
from queue_dispatcher.cycle.bounds import Bounds
from queue_dispatcher.cycle.clusters import ClusterSets
from queue_dispatcher.cycle.contest import Contest
from queue_dispatcher.cycle.flows import Flows
from queue_dispatcher.cycle.growth import Growth, has_room, waiting_for
from queue_dispatcher.cycle.head import QueueHead
from queue_dispatcher.cycle.headroom import Headroom
from queue_dispatcher.cycle.items import Alternative, Item, probe_of
from queue_dispatcher.cycle.lines import Lines
from queue_dispatcher.cycle.pending import PendingClass, most_of
from queue_dispatcher.cycle.reasons import (
    Reason,
    queue_stopped,
    release_window_full,
    releases_being_written,
    waiting_for_estimate,
)
from queue_dispatcher.cycle.reservation import Reservations
from queue_dispatcher.cycle.reserving import Reserving
from queue_dispatcher.cycle.snapshot import Snapshot
from queue_dispatcher.cycle.steps import to_the_end
from queue_dispatcher.cycle.turns import TakenTurns
from queue_dispatcher.cycle.waiter import InOrder, Line, RankedLine, Waiter, rank_of
from queue_dispatcher.cycle.waits import Outcome, Waits
from queue_dispatcher.ledger.cells import Charge
from queue_dispatcher.ledger.ledger import Ledger

# A tree in the order of the release window, the least first: the effective priority of its next item,
# negated; its turn; when that item came, and its id; the number of its root, which no other has.
_Due = tuple[int, int, int, str, int]


def decide(snapshot: Snapshot, now_ms: int) -> Decision:
    """Decide at a time, epoch milliseconds, what to do about all that is pending.

    A group of bindings starts whole if any token is left, even one that needs more than are.
    """
    return AdmissionCycles().decide(snapshot, now_ms)


class AdmissionCycles:
    """Cycles one after the other. What they keep of each other is checked against what it was found by."""

    def __init__(self) -> None:
        self._ledger: Ledger | None = None
        self._sets = ClusterSets()

    def decide(self, snapshot: Snapshot, now_ms: int) -> Decision:
        """As `decide`."""
        return to_the_end(self.steps(snapshot, now_ms))

    def steps(self, snapshot: Snapshot, now_ms: int) -> Generator[None, None, Decision]:
        """As `decide`, in steps of well under a millisecond; what is in the snapshot must not change
        meanwhile.

        Steps that are not taken to their end cost the next cycle what was kept, and nothing else.
        """
        if snapshot.ledger is not self._ledger:
            self._flows: Flows | None = None
            self._heads: dict[str, QueueHead] = {}
            self._classes: dict[str, Sequence[PendingClass]] = {}
            self._backlog = Backlog(snapshot.ledger.tree)
            # By queue, when time alone adds to those that wait, or to those that get reservations.
            self._times: dict[str, Sequence[int]] = {}
            # By the root of each tree.
            self._bounds: dict[int, Bounds] = {}
            self._lines = Lines()
        # Whatever a cycle leaves behind that does not come to its end is not looked at again.
        self._ledger = None
        self._flows = Flows(snapshot, self._flows)
        headroom = Headroom(snapshot, self._flows, self._sets)
        stopped: dict[str, Reason] = {}
        candidates: list[QueueHead] = []
        blocked: list[QueueHead] = []
        yield from self._heads_of(snapshot, headroom, now_ms, stopped, candidates, blocked)
        others = snapshot.elsewhere or _ASKING_OTHERS
        outcome = Outcome(headroom, self._classes.copy(), stopped, others)
        begun: list[QueueHead] = []
        reserving = yield from _reserving(snapshot, headroom, self._heads, self._lines, now_ms)
        headroom.reserve(reserving)
        outcome.reserved, outcome.now_ms = reserving.kept, now_ms
        preemptors = yield from _preemptors(headroom, self._heads.values())
        outcome.queues = snapshot.queues
        cycle = _Cycle(snapshot, headroom, self._backlog, outcome, begun, now_ms)
        for head in blocked:
            assert head.blocked is not None
            outcome.blocked[head.name] = head.blocked
            head.hold(headroom)
        yield from cycle.run(candidates)
        if snapshot.elsewhere is None:
            yield from cycle.grow(snapshot, self._heads)
        times = (at_ms for each in self._times.values() for at_ms in each)
        due: list[int | None] = [at_ms for at_ms in times if at_ms > now_ms]
        due += [head.changes_ms for head in (*blocked, *begun)]
        due += [item.due_ms for item in snapshot.growing if item.due_ms > now_ms]
        due.append(reserving.next_due_ms)
        due += [snapshot.queues[name].pending.next_due_ms(now_ms) for name in stopped]
        for head in begun:
            head.end()
        self._ledger = snapshot.ledger
        next_due_ms = min((at for at in due if at is not None), default=None)
        reservations = reserving.reservations
        # Whoever compares finds by its identity what has not changed.
        same = reservations == snapshot.reservations
        kept = snapshot.reservations if same else reservations
        seconds = sorted(cycle.seconds, key=rank_of)
        return cycle.decision(next_due_ms, kept, InOrder(preemptors, seconds))

    def _heads_of(
        self,
        snapshot: Snapshot,
        headroom: Headroom,
        now_ms: int,
        stopped: dict[str, Reason],
        candidates: list[QueueHead],
        blocked: list[QueueHead],
    ) -> Iterator[None]:
        """Find the heads of all queues, before anything is taken."""
        heads, classes, backlog, paths = self._heads, self._classes, self._backlog, snapshot.ledger.tree.paths
        queues, bounds, lines = snapshot.queues, self._bounds, self._lines
        for one in bounds.values():
            one.begin(headroom)
        for name in [name for name in classes if name not in queues]:
            del classes[name]
            self._drop(name)
        reservations, flows = snapshot.reservations, headroom.flows
        # Before the first as well: a cycle begins with a stop.
        done = _PACE_OF_KEPT
        for name, state in queues.items():
            done += 1
            if done >= _PACE_OF_KEPT:
                done = 0
                yield
            head = heads.get(name)
            if head is None or not head.is_kept(state, headroom, flows, reservations, now_ms):
                done += _PACE
                why = state.stopped
                if why is None and name not in paths:
                    why = queue_stopped(name, "it has no place in the tree of quotas")
                if why is not None:
                    stopped[name] = why
                    classes[name] = state.pending.classes(now_ms)
                    self._drop(name)
                    continue
                if head is None:
                    within = bounds.setdefault(paths[name][-1], Bounds())
                    head = heads[name] = QueueHead(state, headroom, within)
                refused = head.refused
                if head.keep_or_find(state, headroom, reservations, now_ms):
                    classes[name] = state.pending.classes(now_ms)
                    backlog.count(name, state.pending)
                    if head.refused is not refused:
                        lines.drop(name)
                    self._times.pop(name, None)
                    if times := head.times(now_ms):
                        self._times[name] = times
            if head.found is not None:
                candidates.append(head)
            elif head.blocked is not None:
                blocked.append(head)

    def _drop(self, name: str) -> None:
        """Nothing waits in a queue any more, or it is stopped."""
        if self._heads.pop(name, None) is not None:
            self._backlog.forget(name)
            self._lines.drop(name)
            self._times.pop(name, None)


class _Cycle:
    """One cycle under way, once the heads have been found."""

    def __init__(
        self,
        snapshot: Snapshot,
        headroom: Headroom,
        backlog: Backlog,
        outcome: Outcome,
        begun: list[QueueHead],
        now_ms: int,
    ) -> None:
        self._actions: list[Action] = []
        self._headroom = headroom
        self._backlog = backlog
        self._outcome = outcome
        self._begun = begun
        self._turns = TakenTurns(snapshot.turns, snapshot.ledger.tree)
        # By whether a release says where, and those of which anything may come up in this cycle.
        self._tokens = {False: snapshot.tokens, True: snapshot.preplaced_tokens}
        self._kinds: set[bool] = set()
        self._verdicts = snapshot.verdicts
        self._in_flight = snapshot.in_flight
        self._now_ms = now_ms
        self._max_probes = snapshot.max_probes
        self._elsewhere = snapshot.elsewhere
        # By tree, what the estimators would be asked: each question about its first item.
        self._questions: dict[int, dict[str, Probe]] = {}
        self._asked: set[str] = set()
        self._full: frozenset[str] = frozenset()
        self._held_back: set[str] = set()
        self._growing_probes: list[Probe] = []
        self.seconds: list[Waiter] = []
        """Those that start only if nobody is displaced for them in another flavor."""

    def run(self, candidates: Sequence[QueueHead]) -> Iterator[None]:
        """Give turns while there are tokens and items that have room."""
        self._backlog.begin()
        contests: dict[int, Contest] = {}
        for head in candidates:
            self._kinds.update(head.state.pending.kinds(self._now_ms))
        if True in self._kinds and any(v.fits > 0 and not v.says_where for v in self._verdicts.values()):
            # Where nobody can tell where, Karmada places what would say so.
            self._kinds.add(False)
        if self._has_tokens:
            contests = self._contests(candidates)
        trees: list[_Due] = []
        for root, contest in contests.items():
            yield from contest.find()
            if contest.winner is not None:
                trees.append(self._due(root, contest.winner))
        heapq.heapify(trees)
        while trees and self._has_tokens:
            yield
            root = trees[0][-1]
            contest = contests[root]
            yield from contest.find()
            winner = contest.winner
            if winner is None:
                heapq.heappop(trees)
                continue
            due = self._due(root, winner)
            if due != trees[0]:
                heapq.heapreplace(trees, due)
                continue
            self._play(winner, contest)
            contest.played()
        self._outcome.full = {kind: self._full_of(kind) for kind in self._kinds if self._tokens[kind] <= 0}
        if self._outcome.full:
            left = (head for one in contests.values() for head in one.candidates) if contests else candidates
            self._full = frozenset((*self._held_back, *(head.item.id for head in left)))
        for number, head in enumerate(self._begun):
            if not number % _PACE:
                yield
            if head.is_strict:
                head.look()
                if head.blocked is not None:
                    self._outcome.blocked[head.name] = head.blocked

    def grow(self, snapshot: Snapshot, heads: Mapping[str, QueueHead]) -> Iterator[None]:
        """Let elastic workloads have what is left; ``heads``: by queue."""
        started = [action for action in self._actions if isinstance(action, Admit)]
        may_grow = [action for action in started if action.item.most > action.item.pods]
        headroom = self._headroom
        due = (item for item in snapshot.growing if item.due_ms <= self._now_ms)
        running = [item for item in due if has_room(headroom, item)]
        if not (may_grow or running):
            return
        charges = [action.alternative.charge for action in may_grow]
        charges += [way.charge for item in running if (way := item.shape.preferred) is not None]
        admitted = Counter(class_key(action.item) for action in started)
        cells = {cell for charge in charges for cell, _ in charge}
        classes = {
            name: waiting
            for name, waiting in self._outcome.classes.items()
            if name not in self._outcome.stopped and cells & snapshot.queues[name].pending.backlog.keys()
        }
        wanted = yield from waiting_for(headroom, classes, heads, admitted, cells)
        asked = (probe for questions in self._questions.values() for probe in questions.values())
        barred = [cell for probe in asked for cell, _ in probe.alternative.charge]
        starting = {action.item.queue for action in may_grow}
        last = {name for name in starting if snapshot.queues[name].is_over_budget}.union(snapshot.over_budget)
        growth = Growth(headroom, wanted, barred, self._tokens[True], last)
        yield from growth.run(may_grow, running)
        grown = {action.item.id: action for action in growth.grown}
        self._actions = [grown.pop(one.item.id, one) for one in self._actions] + [*grown.values()]
        self._growing_probes = growth.probes

    def decision(self, next_due_ms: int | None, reservations: Reservations, preemptors: InOrder) -> Decision:
        """What was decided."""
        return Decision(
            (*self._actions, *self._chosen(), *self._growing_probes),
            Waits(self._outcome),
            next_due_ms,
            window_full=self._full,
            turns=self._turns.after(self._backlog.has_rival),
            reservations=reservations,
            preemptors=preemptors,
        )

    def _contests(self, candidates: Sequence[QueueHead]) -> dict[int, Contest]:
        queues: dict[int, list[QueueHead]] = {}
        for head in candidates:
            queues.setdefault(head.path[-1], []).append(head)
        return {
            root: Contest(self._headroom, self._backlog, self._turns, root, queues[root], self._begun)
            for root in sorted(queues)
        }

    def _due(self, root: int, winner: QueueHead) -> _Due:
        priority, _, came_ms, item_id = winner.rank
        return (priority, self._turns.tag(-priority, root), came_ms, item_id, root)

    @property
    def _has_tokens(self) -> bool:
        return any(self._tokens[kind] > 0 for kind in self._kinds)

    def _play(self, queue: QueueHead, contest: Contest) -> None:
        """A turn of the queue that has won: its head is admitted, or passed over while somebody is asked, or
        while the tokens of its kind are used up and others are not.
        """
        item, fit = queue.item, queue.fit
        assert fit is not None
        if not fit.is_known:
            self._pass_over(queue, item, fit.alternative, contest.is_scarce)
            return
        if self._tokens[fit.is_preplaced] <= 0:
            self._held_back.add(item.id)
            self._set_aside(queue, self._full_of(fit.is_preplaced), fit.alternative.charge, contest.is_scarce)
            return
        if fit.is_second:
            self.seconds.append(queue.second())
            self._set_aside(queue, _LOOKING, fit.alternative.charge, contest.is_scarce)
            return
        reserving, charge, passes = self._headroom.reserving, fit.alternative.charge, False
        if reserving is not None:
            passes = reserving.kept.is_passed(item, queue.rank, charge)
            reserving.admitted(item, queue.rank, item.runtime_ms, fit.alternative)
        self._headroom.take(queue.name, item.shape, fit)
        self._tokens[fit.is_preplaced] -= len(item.members)
        if not fit.is_preplaced:
            self._in_flight += len(item.members)
        self._actions.append(Admit(item, fit.alternative, passes=passes))
        self._backlog.admitted(queue.path, most_of(item.shape))
        self._turns.taken(-queue.rank[0], queue.path, len(item.members))
        key = queue.key
        if queue.move_up():
            self._outcome.whole.add(key)

    def _full_of(self, says_where: bool) -> Reason:
        """What it waits for that has room, while the tokens of its kind are used up."""
        return releases_being_written() if says_where else release_window_full(self._in_flight)

    def _pass_over(self, queue: QueueHead, item: Item, alternative: Alternative, is_scarce: bool) -> None:
        """It is asked about, if so much may be asked in one cycle; otherwise its queue waits with it."""
        questions = self._questions.setdefault(queue.path[-1], {})
        probe = probe_of(item.shape, alternative)
        if probe not in self._asked and len(questions) >= self._max_probes:
            queue.stop()
            return
        self._asked.add(probe)
        questions.setdefault(probe, Probe(item, probe, alternative))
        charge = alternative.charge if self._elsewhere is None else ()
        self._set_aside(queue, self._elsewhere or _ASKING, charge, is_scarce)

    def _set_aside(self, queue: QueueHead, why: Reason, charge: Charge, is_scarce: bool) -> None:
        """The head keeps its place, and what it would be charged: what is behind it may use what that leaves,
        and where quota is scarce, so may everybody.
        """
        self._outcome.set_aside[queue.key] = why
        reserving = self._headroom.reserving
        if charge and reserving is not None:
            reserving.kept.asked(queue.item, queue.rank, charge)
        if charge and is_scarce:
            self._headroom.keep(queue.name, charge)
            charge = ()
        if charge:
            self._outcome.kept.setdefault(queue.name, []).append(charge)
        queue.pass_over(charge)

    def _chosen(self) -> list[Probe]:
        """What is asked in this cycle: one question of each tree, then another of each, and so on."""
        chosen: dict[str, Probe] = {}
        waiting = [list(questions.values()) for questions in self._questions.values()]
        for turn in range(max(map(len, waiting), default=0)):
            for probes in waiting:
                if turn < len(probes) and len(chosen) < self._max_probes:
                    chosen.setdefault(probes[turn].probe, probes[turn])
        return list(chosen.values())


def _reserving(
    snapshot: Snapshot, headroom: Headroom, heads: Mapping[str, QueueHead], standing: Lines, now_ms: int
) -> Generator[None, None, Reserving]:
    """With the reservations of those that find no room, before anything is taken, and of those that held one
    and are asked about anew.

    ``standing``: lines of those heads that are as in the cycle before, of which only those are looked at that
    are not among them, or in which somebody has a claim by now.
    """
    claims = snapshot.claims
    reserving = Reserving(
        headroom.ledger,
        headroom.capacity,
        snapshot.endings,
        snapshot.earliest,
        snapshot.reservations,
        claims,
        now_ms,
    )
    lines: list[Line] = []
    claimed, unseen = _claimed_in(snapshot)
    known = standing.queues
    changed = [
        head
        for name, head in heads.items()
        if name not in known or name in claimed or (unseen and head.state.pending.has_any(unseen))
    ]
    for number, head in enumerate(changed):
        if not number % _SHORT_PACE:
            yield
        line = head.due_waiters(headroom, now_ms, claims.keys())
        if line is not None and line.pick is not None and head.state.sharing is None:
            if standing.get(head.name) is not line:
                standing.put(head.name, head.path[-1], line)
            continue
        standing.drop(head.name)
        if line is not None:
            lines.append(line)
    yield from reserving.reserve(lines, standing)
    return reserving


def _claimed_in(snapshot: Snapshot) -> tuple[set[str], set[str]]:
    """The queues in which those with a claim wait who have a reservation, which most of them have, and the
    items of the others with a claim, who may wait anywhere.
    """
    queues, unseen = set[str](), set(snapshot.claims)
    for one in snapshot.reservations.made if unseen else ():
        state = snapshot.queues.get(one.item.queue)
        if one.item.id in unseen and state is not None and state.pending.get(one.item.id) is not None:
            unseen.remove(one.item.id)
            queues.add(one.item.queue)
    return queues, unseen


def _preemptors(headroom: Headroom, heads: Collection[QueueHead]) -> Generator[None, None, list[RankedLine]]:
    """Those of each queue that find no room and may have others displaced, before anything is taken."""
    found: list[RankedLine] = []
    for number, head in enumerate([head for head in heads if head.refused.may_displace]):
        if not number % _SHORT_PACE:
            yield
        line = head.preemptors(headroom)
        if line is not None:
            found.append(line)
    return found


_PACE, _SHORT_PACE, _PACE_OF_KEPT = 16, 4, 256
_ASKING = waiting_for_estimate()
_LOOKING = waiting_for_estimate("whom it could displace in a flavor that goes first is being looked for")
_ASKING_OTHERS = waiting_for_estimate("the estimators are being asked about workloads ahead of it")
