"""What one admission cycle ought to decide, worked out the long way: everything anew for each release.

Written from what the documents of the API and of the cycle promise, for work that asks for one resource of
one flavor; it shares no code with what it judges but how questions are named, and reads values only. Where it
would have to guess, it says no more: `Oracle.is_sure` is False from then on.
"""

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final, NamedTuple

from queue_dispatcher.cycle.items import Item, probe_of
from queue_dispatcher.cycle.snapshot import QueueState, Snapshot, Verdict
from tests.simulation.accounts import NEVER_FULL, Trees

_TURN: Final = 1 << 40
_ONE: Final = 1_000_000_000
_PRIORITIES: Final = 16
"""Of so many it is known from one cycle to the next who has had turns: those that were served last."""


class _Entry(NamedTuple):
    """A queue as it competes: the least goes next."""

    tier: int
    share: int
    priority: int
    tag: int
    came_ms: int
    item_id: str
    queue: str


@dataclass
class Oracle:
    """One cycle. ``trees``: what the queues allow. ``weights``: of queues, in thousandths."""

    snapshot: Snapshot
    now_ms: int
    trees: Trees
    weights: Mapping[str, int]
    cell: int
    admitted: list[str] = field(default_factory=list)
    asked: list[str] = field(default_factory=list)
    blocked: dict[str, Item] = field(default_factory=dict)
    is_sure: bool = True
    _waiting: dict[str, list[Item]] = field(default_factory=dict)
    _scarce: set[str] = field(default_factory=set)
    _kept: Counter[str] = field(default_factory=Counter)
    _on_word: Counter[str] = field(default_factory=Counter)
    _done: Counter[str] = field(default_factory=Counter)
    _inquired: list[Item] = field(default_factory=list)
    _held_back: list[Item] = field(default_factory=list)
    _heads: dict[str, Item] = field(default_factory=dict)
    _gone: Counter[str] = field(default_factory=Counter)
    _begun: dict[int, dict[str, int]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        ledger = self.snapshot.ledger
        self.used = Counter(
            {queue: dict(charge).get(self.cell, 0) for queue, charge in ledger.charges().items()}
        )
        self.free = self.snapshot.envelope.get(self.cell, NEVER_FULL)
        self.capacity = self.free + self.used.total()
        self.tags = {priority: dict(debts) for priority, debts in reversed(self.snapshot.turns.debts)}
        self._questions: dict[str, dict[str, Item]] = {}
        for name, state in self.snapshot.queues.items():
            if state.stopped is None and name in self.trees.quotas:
                self._waiting[name] = self._line(state)
        for name in list(self._waiting):
            self._head(name)

    def _line(self, state: QueueState) -> list[Item]:
        items = [item for item in state.pending if item.due_ms <= self.now_ms]
        items = [item for item in items if item.shape.never is None]
        ways = [options for item in items for options in item.shape.parts]
        if any(
            len(options) != 1 or {cell for cell, _ in options[0].charge} != {self.cell} for options in ways
        ):
            self.is_sure = False
            return []
        return sorted(items, key=lambda item: (-self._priority(item), item.enqueued_ms, item.id))

    def _priority(self, item: Item) -> int:
        """As the ageing of its queue makes it."""
        return self.trees.priority(item.queue, item.priority, self.now_ms - item.enqueued_ms)

    def run(self) -> None:
        """Give turns until the release window is full, or nothing has room."""
        self._tokens = {False: self.snapshot.tokens, True: self.snapshot.preplaced_tokens}
        roots = sorted({self.trees.root(name) for name in self._waiting}, key=self._number)
        due = {root: entry for root in roots if (entry := self._winner(root)) is not None}
        self._kinds = {
            item.shape.is_preplaced
            for name in self._waiting
            if self._head(name) is not None
            for item in self.snapshot.queues[name].pending
            if item.due_ms <= self.now_ms
        }
        if True in self._kinds and any(
            one.fits > 0 and not _tells_where(one) for one in self.snapshot.verdicts.values()
        ):
            self._kinds.add(False)
        while due and any(self._tokens[kind] > 0 for kind in self._kinds):
            if not self.is_sure:
                break
            root = min(due, key=lambda one: (self._among_trees(one, due[one]), self._number(one)))
            now = self._winner(root)
            if now is None:
                del due[root]
                continue
            if self._among_trees(root, now) != self._among_trees(root, due[root]):
                due[root] = now
                continue
            item = self._head(now.queue)
            if item is None:
                raise AssertionError("a winner has a head")
            self._tokens[self._says_where(item)] -= self._play(root, now.queue, item)
            due[root] = now

    def block(self) -> None:
        """Once all have had their turns: find the heads that the others of strict queues stand behind."""
        for queue in self._waiting:
            if self.trees.quotas[queue].is_strict and self._waiting[queue]:
                self._head(queue)

    def _number(self, name: str) -> int:
        return self.snapshot.ledger.tree.paths[name][0]

    def _among_trees(self, root: str, entry: _Entry) -> tuple[int, int, int, str]:
        return (entry.priority, self._tag(-entry.priority, root), entry.came_ms, entry.item_id)

    def _play(self, root: str, queue: str, item: Item) -> int:
        """The turn of the queue's head; how many bindings it releases."""
        if not self.is_sure:
            return 0
        amount, probe = _amount(item), _probe(item)
        verdict = self._verdict(item)
        if probe and (verdict is None or verdict.fits <= self._on_word[probe]):
            questions = self._questions.setdefault(root, {})
            if probe not in self.asked and len(questions) >= self.snapshot.max_probes:
                self._waiting[queue] = []
                return 0
            if probe not in self.asked:
                self.asked.append(probe)
            questions.setdefault(probe, item)
            self._set_aside(root, queue, item)
            self._inquired.append(item)
            return 0
        if self._tokens[self._says_where(item)] <= 0:
            self._set_aside(root, queue, item)
            self._held_back.append(item)
            return 0
        if probe:
            if any(other != probe for other in self._on_word):
                # Whether they are in each other's way is the estimators' to say.
                self.is_sure = False
                return 0
            self._on_word[probe] += 1
        self.admitted.append(item.id)
        self.used[queue] += amount
        self.free -= amount
        self._done[queue] += amount
        self._waiting[queue].remove(item)
        self._gone[queue] += 1
        # Who had the last turns comes last.
        priority = self._priority(item)
        tags = self.tags[priority] = self.tags.pop(priority, {})
        begun = self._begun.setdefault(priority, {})
        for name in self.trees.path(queue):
            above = self.trees.quotas[name].parent
            begun[above] = max(begun.get(above, 0), tags.get(name, 0))
            tags[name] = tags.get(name, 0) + len(item.members) * _TURN * 1000 // max(1, self.weights[name])
        return len(item.members)

    def _verdict(self, item: Item) -> Verdict | None:
        """What the estimators said of it."""
        return self.snapshot.verdicts.get(_probe(item))

    def _says_where(self, item: Item) -> bool:
        """Whether its release says where to: where nobody has told where there is room, it cannot."""
        verdict = self._verdict(item)
        return item.shape.is_preplaced and (verdict is None or _tells_where(verdict))

    def _set_aside(self, root: str, queue: str, item: Item) -> None:
        """It keeps its place: all others have to leave what it would be charged, or those in its queue."""
        if root in self._scarce:
            self.used[queue] += _amount(item)
            self.free -= _amount(item)
        else:
            self._kept[queue] += _amount(item)
        self._drop(queue, item)
        if self.trees.quotas[queue].is_strict:
            self.blocked[queue] = item
            self._waiting[queue] = []

    def _drop(self, queue: str, item: Item) -> None:
        """All alike wait with it."""
        self._waiting[queue] = [one for one in self._waiting[queue] if not _is_alike(one, item)]

    def _head(self, queue: str) -> Item | None:
        """The first that has room; of a strict queue the very first that could ever start."""
        quota = self.trees.quotas[queue]
        for item in list(self._waiting[queue]):
            if self._has_room(queue, item):
                return item
            if quota.is_strict and self._could_ever(queue, item):
                if quota.parent:
                    # What is kept for it from borrowers is a matter of its own.
                    self.is_sure = False
                self.blocked[queue] = item
                self._waiting[queue] = []
                return None
            self._drop(queue, item)
        return None

    def _has_room(self, queue: str, item: Item) -> bool:
        verdict = self._verdict(item)
        if verdict is not None and verdict.fits <= 0:
            return False
        return _amount(item) + self._kept[queue] <= min(self.free, self.left(queue))

    def _could_ever(self, queue: str, item: Item) -> bool:
        if item.shape.never is not None:
            return False
        verdict = self._verdict(item)
        if verdict is not None and verdict.never:
            return False
        return _amount(item) <= min(self.capacity, self.trees.most(queue))

    def waits_for(self, item: Item) -> str:
        """Once all have had their turns, the kind of reason for which the item waits; empty if unsure."""
        queue, shape = item.queue, item.shape
        state = self.snapshot.queues[queue]
        if state.stopped is not None:
            return "QueueStopped"
        if len(shape.parts) > 1 or queue not in self.trees.quotas or not self.is_sure:
            return ""
        if any(_is_alike(item, one) for one in self._inquired):
            return "WaitingForEstimate"
        if any(_is_alike(item, one) for one in self._held_back):
            return "ReleaseWindowFull"
        head = self.blocked.get(queue)
        if head is not None and not _is_alike(item, head) and self._could_ever(queue, item):
            return "BehindHead"
        if not shape.alternatives or not self._has_room(queue, item):
            return self._lacks(queue, item)
        is_full = self._tokens[self._says_where(item)] <= 0
        return "ReleaseWindowFull" if is_full else "WaitingForEstimate"

    def _lacks(self, queue: str, item: Item) -> str:
        amount, bounds = _amount(item) + self._kept[queue], self.bounds(queue)
        if item.shape.never is not None:
            return item.shape.never.kind
        if _amount(item) > min(self.capacity, self.trees.most(queue)):
            return "NeverFits"
        verdict = self._verdict(item)
        has = amount <= min(self.free, *bounds)
        if verdict is not None and (has or verdict.never):
            if verdict.unanswered:
                return "WaitingForEstimate"
            return "NeverFits" if verdict.never else "WaitingForCapacity"
        if amount <= min(bounds):
            return "WaitingForCapacity"
        path = self.trees.path(queue)
        short = path[bounds.index(min(bounds))]
        quota = self.trees.quotas[short]
        if quota.parent:
            # Its limit is reached; or it may borrow nothing, and what it owns is in use.
            return "WaitingForQuota" if quota.borrows == 0 else "WaitingForBorrowing"
        own = self.trees.balance(queue, self.used)
        return "WaitingForBorrowing" if short != queue and own < amount else "WaitingForQuota"

    # Quota.

    def bounds(self, queue: str) -> list[int]:
        """By node of the queue's path: how much more it may take as far as that goes."""
        return self.trees.bounds(queue, self.used)

    def left(self, queue: str) -> int:
        """How much more the queue may take."""
        return min(self.bounds(queue))

    def distance(self, queue: str, amount: int) -> int:
        """How many levels above the queue what it would borrow comes from."""
        path, level = self.trees.path(queue), 0
        while level + 1 < len(path):
            seen = self._seen_above(queue, amount, level)
            if seen <= self.trees.balance(path[level], self.used):
                break
            level += 1
        return level

    def least(self, state: QueueState) -> tuple[tuple[tuple[int, int], ...], ...]:
        """The least that any workload which is due and could ever start is charged for its first part.

        Nothing where one asks for something else, or may be charged in several ways.
        """
        due = [one.shape for one in state.pending if one.due_ms <= self.now_ms and one.shape.never is None]
        if any(len(shape.alternatives) > 1 or shape.alternatives[0].places for shape in due):
            return ()
        charges = [dict(shape.alternatives[0].charge).get(self.cell) for shape in due]
        known = [amount for amount in charges if amount is not None]
        return (((self.cell, min(known)),),) if known and len(known) == len(charges) else ()

    def _seen_above(self, queue: str, amount: int, level: int) -> int:
        """What of the amount the node so high above sees: not what those below had for themselves alone."""
        for name in self.trees.path(queue)[:level]:
            lends = self.trees.quotas[name].lends
            if lends is not None:
                amount -= min(amount, max(0, self.trees.balance(name, self.used) - lends))
        return amount

    def _borrows(self, queue: str, amount: int) -> bool:
        return self.trees.borrows(queue, self.used, amount)

    def _share(self, queue: str, amount: int, level: int) -> int:
        """What the node so high above takes beyond what it owns, by what there is, and by its weight."""
        path = self.trees.path(queue)
        if level + 1 == len(path):
            return 0
        above = self._seen_above(queue, amount, level) - self.trees.balance(path[level], self.used)
        there = self.trees.most(path[level + 1])
        if above <= 0 or there <= 0:
            return 0
        return -(-above * _ONE * 1000 // (there * self.weights[path[level]]))

    # Turns.

    def _tag(self, priority: int, name: str) -> int:
        return self.tags.get(priority, {}).get(name, 0)

    def _backlog(self, name: str) -> int:
        """What waits below the node and could ever start."""
        total = 0
        for queue in self.trees.below(name):
            state = self.snapshot.queues.get(queue)
            if state is not None and state.stopped is None:
                waits = sum(_amount(item) for item in state.pending if item.shape.never is None)
                total += min(waits, self.trees.most(queue)) - self._done[queue]
        return total

    def _may_lack(self, queue: str) -> bool:
        path = self.trees.path(queue)
        if len(path) == 1:
            return False
        pairs = zip(path[1:], self.bounds(queue)[1:], strict=True)
        return self._backlog(path[-1]) > self.free or any(self._backlog(name) > most for name, most in pairs)

    def _winner(self, root: str) -> _Entry | None:
        best = self._best(root)
        if best is not None and root not in self._scarce and self._may_lack(best.queue):
            self._scarce.add(root)
            best = self._best(root)
        return best

    def _best(self, node: str) -> _Entry | None:
        """Who wins below the node."""
        found = []
        children = [one.name for one in self.trees.quotas.values() if one.parent == node]
        if not self.trees.quotas[node].parent and (entry := self._own(node)) is not None:
            found.append((entry, node))
        for child in children:
            if (entry := self._own(child)) is not None:
                found.append((entry, child))
            if (below := self._best(child)) is not None:
                level = self.trees.path(below.queue).index(child)
                amount = _amount(self._known(below))
                share = self._share(below.queue, amount, level) if self._root_is_scarce(node) else 0
                tag = self._tag(-below.priority, child)
                found.append((below._replace(share=share, tag=tag), child))
        if not found:
            return None
        return min(found, key=lambda pair: (pair[0][:-1], self._number(pair[1])))[0]

    def _root_is_scarce(self, name: str) -> bool:
        return self.trees.root(name) in self._scarce

    def _known(self, entry: _Entry) -> Item:
        return next(item for item in self._waiting[entry.queue] if item.id == entry.item_id)

    def _own(self, queue: str) -> _Entry | None:
        item = self._head(queue) if queue in self._waiting else None
        self._stand(queue, item)
        if item is None:
            return None
        tier = share = 0
        if self._root_is_scarce(queue):
            tier, share = int(self._borrows(queue, _amount(item))), self._share(queue, _amount(item), 0)
        priority = self._priority(item)
        tag = self._tag(priority, queue)
        return _Entry(tier, share, -priority, tag, item.enqueued_ms, item.id, queue)

    def _stand(self, queue: str, item: Item | None) -> None:
        """A head that borrowed and has lost its room hides its neighbours until it is looked at, and so does
        the next of its queue, which stands where it stood."""
        before = self._heads.pop(queue, None)
        if item is not None:
            self._heads[queue] = item
        if before is None or (item and _is_alike(before, item)) or before in self._inquired + self._held_back:
            return
        if before.id not in self.admitted and self._root_is_scarce(queue):
            amount = _amount(before)
            levels = range(len(self.trees.path(queue)))
            if self._borrows(queue, amount) or any(self._share(queue, amount, one) for one in levels):
                self.is_sure = False

    def debts(self) -> list[tuple[int, dict[str, int]]]:
        """By priority, the last served first: who has had more turns than those that wait beside it."""
        found = []
        for priority, tags in list(reversed(self.tags.items()))[:_PRIORITIES]:
            begun = self._begun.get(priority, {})
            owed = {}
            for name in tags.keys() & self.trees.quotas.keys():
                above = self.trees.quotas[name].parent
                debt = tags[name] - begun.get(above, 0)
                if debt > 0 and self._waits_below(above) > self._waits_below(name):
                    owed[name] = debt
            if owed:
                found.append((priority, owed))
        return found

    def _waits_below(self, name: str) -> int:
        """How many wait below the node, with an empty name in all queues."""
        return sum(
            len(state.pending) - self._gone[queue]
            for queue, state in self.snapshot.queues.items()
            if state.stopped is None and queue in self.trees.quotas and name in ("", *self.trees.path(queue))
        )

    def chosen(self) -> list[str]:
        """Ids of the items that are to be asked about: one question of each tree, and so on."""
        chosen: dict[str, str] = {}
        waiting = [list(one.items()) for one in self._questions.values()]
        for turn in range(max(map(len, waiting), default=0)):
            for questions in waiting:
                if turn < len(questions) and len(chosen) < self.snapshot.max_probes:
                    chosen.setdefault(questions[turn][0], questions[turn][1].id)
        return list(chosen.values())


def _is_alike(one: Item, other: Item) -> bool:
    """Whether they differ in nothing but when they came."""
    of = [(item.queue, item.shape, item.priority, item.ageing, item.runtime_ms) for item in (one, other)]
    return of[0] == of[1]


def _tells_where(verdict: Verdict) -> bool:
    return verdict.rooms is not None or bool(verdict.members)


def _probe(item: Item) -> str:
    """What they are asked about it, which is where it may go: to its flavor, though it may run elsewhere."""
    ways = item.shape.alternatives
    return probe_of(item.shape, ways[0]) if ways else item.shape.probe


def _amount(item: Item) -> int:
    """GPUs of all its parts."""
    return sum(amount for options in item.shape.parts for _, amount in options[0].charge)
