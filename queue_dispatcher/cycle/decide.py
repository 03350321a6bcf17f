"""The admission cycle: which waiting workloads start now, and why the others do not.

Queues of one tree compete (`contest`); each turn starts the first item of one queue that has room (`head`),
which leaves less room for all others (`headroom`). The trees share the release window and, where they name
the same flavors, its capacity, so they compete too: of what they would start next, the higher priority goes
first, then they take turns (`turns`).

Pure: equal snapshots give equal decisions, and nothing of a snapshot is changed. A cycle that finds no room
costs steps by class of items, never by item.
"""

import heapq

from queue_dispatcher.cycle.actions import Action, Admit, ClassKey, Decision, Probe
from queue_dispatcher.cycle.backlog import Backlog
from queue_dispatcher.cycle.contest import Contest
from queue_dispatcher.cycle.head import QueueHead
from queue_dispatcher.cycle.headroom import Fit, Headroom
from queue_dispatcher.cycle.pending import most_of
from queue_dispatcher.cycle.reasons import release_window_full, waiting_for_estimate
from queue_dispatcher.cycle.snapshot import Snapshot
from queue_dispatcher.cycle.turns import TakenTurns
from queue_dispatcher.cycle.waits import Because, Refuser, Waits

# A tree in the order of the release window, the least first: the effective priority of its next item,
# negated; its turn; when that item came, and its id; the number of its root, which no other has.
_Due = tuple[int, int, int, str, int]


def decide(snapshot: Snapshot, now_ms: int) -> Decision:
    """Decide at a time, epoch milliseconds, what to do about all that is pending.

    A group of bindings starts whole if any token is left, even one that needs more than are. An item whose
    estimate is not known keeps its quota, its capacity and its tokens for the rest of the cycle, so that
    nobody takes them while the estimators are asked; where another process asks them, only its tokens.
    """
    cycle = _Cycle(snapshot, now_ms)
    cycle.run()
    due = [state.pending.next_due_ms(now_ms) for state in snapshot.queues.values()]
    due += [queue.changes_ms for queue in cycle.queues]
    return Decision(
        tuple(cycle.actions),
        Waits(cycle.refusers),
        next_due_ms=min((at for at in due if at is not None), default=None),
        window_full=tuple(cycle.window_full),
        turns=cycle.turns.after(cycle.backlog.has_rival),
    )


class _Cycle:
    """One cycle under way."""

    def __init__(self, snapshot: Snapshot, now_ms: int) -> None:
        self.actions: list[Action] = []
        self.refusers: dict[ClassKey, Refuser] = {}
        self.window_full: list[ClassKey] = []
        self._headroom = Headroom(snapshot)
        self._tokens = snapshot.tokens
        self._in_flight = snapshot.in_flight
        self._probes_left = snapshot.max_probes
        self._asked: set[str] = set()
        self._elsewhere = None if snapshot.elsewhere is None else Because(snapshot.elsewhere)
        self.turns = TakenTurns(snapshot.turns, snapshot.ledger.tree)
        self.backlog = Backlog(snapshot.queues.values(), snapshot.ledger)
        self.queues = [
            QueueHead(state, self._headroom, now_ms, self.refusers)
            for _, state in sorted(snapshot.queues.items())
        ]

    def run(self) -> None:
        """Give turns while there are tokens and items that have room, then tell all others why they wait."""
        contests = self._contests() if self._tokens > 0 else {}
        trees: list[_Due] = [due for root, contest in contests.items() if (due := self._due(root, contest))]
        heapq.heapify(trees)
        while trees and self._tokens > 0:
            root = trees[0][-1]
            contest = contests[root]
            due = self._due(root, contest)
            if due is None:
                heapq.heappop(trees)
            elif due != trees[0]:
                heapq.heapreplace(trees, due)
            else:
                won = contest.winner
                assert won is not None
                self._play(*won)
                contest.played()
        only_asking = self._asked and (self._elsewhere is not None or not self._in_flight)
        full = Because(release_window_full(self._in_flight))
        if only_asking:
            full = self._elsewhere or _ASKING_OTHERS
        for queue in self.queues:
            while queue.look() is not None:
                if not only_asking:
                    self.window_full.append(queue.key)
                queue.park(full)

    def _contests(self) -> dict[int, Contest]:
        queues: dict[int, list[QueueHead]] = {}
        for queue in self.queues:
            if queue.is_waiting:
                queues.setdefault(queue.path[-1], []).append(queue)
        return {
            root: Contest(self._headroom, self.backlog, self.turns, root, queues[root])
            for root in sorted(queues)
        }

    def _due(self, root: int, contest: Contest) -> _Due | None:
        won = contest.winner
        if won is None:
            return None
        priority, came_ms, item_id = won[0].rank
        return (priority, self.turns.tag(-priority, root), came_ms, item_id, root)

    def _play(self, queue: QueueHead, fit: Fit) -> None:
        """A turn of the queue that has won: its head is admitted, or kept room while somebody is asked."""
        item = queue.item
        if fit.is_known or self._elsewhere is None:
            self._headroom.take(queue.name, item.shape, fit)
        self._tokens -= len(item.members)
        if fit.is_known:
            self._in_flight += len(item.members)
            self.actions.append(Admit(item, fit.alternative))
            self.backlog.admitted(queue.path, most_of(item.shape))
            self.turns.taken(-queue.rank[0], queue.path, len(item.members))
            queue.move_up()
            return
        if item.shape.probe not in self._asked and self._probes_left > 0:
            self._asked.add(item.shape.probe)
            self._probes_left -= 1
            self.actions.append(Probe(item))
        queue.park(self._elsewhere or _ASKING)


_ASKING = Because(waiting_for_estimate())
_ASKING_OTHERS = Because(waiting_for_estimate("the estimators are being asked about workloads ahead of it"))
