"""The admission cycle: which waiting workloads start now, and why the others do not.

Queues of one tree compete for turns (`contest`); each turn starts the first item of one queue that has room
(`line`), which leaves less room for all others (`room`). The trees share the release window and, where they
name the same flavors, its capacity, so they take turns too: the one that has had the fewest goes first, then
the one whose next item came first.

Pure: equal snapshots give equal decisions, and nothing of a snapshot is changed. A cycle that finds no room
costs steps by class of items, never by item.
"""

import heapq

from queue_dispatcher.cycle.actions import Action, Admit, ClassKey, Decision, Probe
from queue_dispatcher.cycle.contest import Contest
from queue_dispatcher.cycle.line import Line
from queue_dispatcher.cycle.reasons import release_window_full, waiting_for_estimate
from queue_dispatcher.cycle.room import Fit, Room
from queue_dispatcher.cycle.snapshot import Snapshot
from queue_dispatcher.cycle.waits import Because, Refuser, Waits

# Trees that wait for a turn; the least is the next. How many it has had; when its next item came, and its id,
# as far as known; the number of its root, which no other has.
_Turn = tuple[int, int, str, int, Contest]


def decide(snapshot: Snapshot, now_ms: int) -> Decision:
    """Decide at a time, epoch milliseconds, what to do about all that is pending.

    A group of bindings starts whole if any token is left, even one that needs more than are. An item whose
    estimate is not known keeps its quota, its capacity and its tokens for the rest of the cycle, so that
    nobody takes them while the estimators are asked; where another process asks them, only its tokens.
    """
    cycle = _Cycle(snapshot, now_ms)
    cycle.run()
    due = [state.pending.next_due_ms(now_ms) for state in snapshot.queues.values()]
    due += [line.changes_ms for line in cycle.lines]
    next_due_ms = min((at for at in due if at is not None), default=None)
    return Decision(
        tuple(cycle.actions), Waits(cycle.refusers), next_due_ms, window_full=tuple(cycle.window_full)
    )


class _Cycle:
    """One cycle under way."""

    def __init__(self, snapshot: Snapshot, now_ms: int) -> None:
        self.actions: list[Action] = []
        self.refusers: dict[ClassKey, Refuser] = {}
        self.window_full: list[ClassKey] = []
        self._room = Room(snapshot)
        self._tokens = snapshot.tokens
        self._in_flight = snapshot.in_flight
        self._probes_left = snapshot.max_probes
        self._asked: set[str] = set()
        self._elsewhere = None if snapshot.elsewhere is None else Because(snapshot.elsewhere)
        self.lines = [
            Line(state, self._room, now_ms, self.refusers) for _, state in sorted(snapshot.queues.items())
        ]

    def run(self) -> None:
        """Give turns while there are tokens and items that have room, then tell all others why they wait."""
        trees = self._trees() if self._tokens > 0 else []
        while trees and self._tokens > 0:
            had, enqueued_ms, item_id, root, contest = trees[0]
            won = contest.winner
            if won is None:
                heapq.heappop(trees)
                continue
            line, fit = won
            head = line.head
            if item_id != head.id or enqueued_ms != head.enqueued_ms:
                heapq.heapreplace(trees, (had, head.enqueued_ms, head.id, root, contest))
                continue
            self._play(line, fit)
            contest.played()
            heapq.heapreplace(trees, (had + 1, enqueued_ms, item_id, root, contest))
        only_asking = self._asked and (self._elsewhere is not None or not self._in_flight)
        full = Because(release_window_full(self._in_flight))
        if only_asking:
            full = self._elsewhere or _ASKING_OTHERS
        for line in self.lines:
            while line.look() is not None:
                if not only_asking:
                    self.window_full.append(line.key)
                line.park(full)

    def _trees(self) -> list[_Turn]:
        lines: dict[int, list[Line]] = {}
        for line in self.lines:
            if line.is_waiting:
                lines.setdefault(line.path[-1], []).append(line)
        return [(0, -1, "", root, Contest(self._room, root, lines[root])) for root in sorted(lines)]

    def _play(self, line: Line, fit: Fit) -> None:
        """A turn of the line that has won: its head is admitted, or kept room while somebody is asked."""
        item = line.head
        if fit.is_known or self._elsewhere is None:
            self._room.take(line.name, item.shape, fit)
        self._tokens -= len(item.members)
        if fit.is_known:
            self._in_flight += len(item.members)
            self.actions.append(Admit(item, fit.alternative))
            line.move_up()
            return
        if item.shape.probe not in self._asked and self._probes_left > 0:
            self._asked.add(item.shape.probe)
            self._probes_left -= 1
            self.actions.append(Probe(item))
        line.park(self._elsewhere or _ASKING)


_ASKING = Because(waiting_for_estimate())
_ASKING_OTHERS = Because(waiting_for_estimate("the estimators are being asked about workloads ahead of it"))
