"""Who waits where: an item for each binding that may be admitted, in the line of its queue.

A workload of a group has an item of its own but does not stand in line with it, unless it was taken back from
a group that started; once all of the group are there, one item stands for them together.
"""

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from queue_dispatcher.bindings.decision import Decision
from queue_dispatcher.bindings.requeue import RequeueRecord
from queue_dispatcher.bindings.state import Pending
from queue_dispatcher.cache.entry import Entry, GroupKey
from queue_dispatcher.cache.groups import Member, group_state, left_out
from queue_dispatcher.cache.shapes import Shapes, Together
from queue_dispatcher.cycle.items import GROUP_PREFIX, Alternative, Item, Shape
from queue_dispatcher.cycle.pending import PendingQueue

_Named = tuple[str, str]
"""Namespace and name of groups."""

OwnLine = tuple[str, str, str]
"""ClusterQueue, namespace and name of a LocalQueue."""


@dataclass(frozen=True, slots=True)
class _GroupItem:
    item: Item
    together: Together


class PendingQueues:
    """The lines of all queues."""

    def __init__(self, shapes: Shapes, told: Callable[[Entry], None]) -> None:
        """``told``: called with each member of a group that waits for another reason than before."""
        self._told = told
        self.queues: dict[str, PendingQueue] = {}
        self.own_lines: dict[OwnLine, PendingQueue] = {}
        """The same items, by the LocalQueue that they wait in: for those who ask where theirs stand."""
        self.changes = 0
        """Grows whenever somebody comes, goes or waits otherwise than before."""
        self._shapes = shapes
        # By namespace and name, whatever queue they wait in: LocalQueues may lead elsewhere meanwhile.
        self._groups: dict[_Named, dict[str, Entry]] = {}
        self._stale: set[_Named] = set()
        self._items: dict[_Named, list[str]] = {}
        self._together: dict[str, _GroupItem] = {}

    def put(self, entry: Entry, item: Item | None, group: GroupKey | None) -> None:
        """The entry waits with ``item``, or does not wait; it belongs to ``group`` either way, if to any."""
        if item == entry.item and group == entry.group:
            if group is not None:
                self._stale.add(group[1:])
            return
        self.drop(entry)
        self.changes += 1
        entry.item = item
        if group is not None:
            entry.group = group
            self._groups.setdefault(group[1:], {})[entry.uid] = entry
            self._stale.add(group[1:])
        if item is not None and (group is None or item.is_growth):
            self._stand_alone(entry, item)

    def drop(self, entry: Entry) -> None:
        """The entry is in no line and no group any more."""
        self.changes += 1
        self._leave_line(entry)
        if entry.group is not None:
            named = entry.group[1:]
            del self._groups[named][entry.uid]
            self._stale.add(named)
            entry.group = None
        entry.item = None

    def settle(self) -> Iterator[tuple[Entry, Entry]]:
        """Bring the groups up to date; yields whom to roll forward, each with one that was released."""
        stale, self._stale = sorted(self._stale), set()
        for named in stale:
            yield from self._settle_named(named)

    def split(self, item: Item, alternative: Alternative) -> Sequence[Alternative]:
        """What each of the item's members is charged with, in their order."""
        found = self._together.get(item.id)
        if found is None:
            return (alternative,)
        return found.together.split(alternative)

    def item_of(self, entry: Entry) -> Item | None:
        """The item that stands in line for the entry: its own, or its group's."""
        if entry.line:
            return entry.item
        found = self._together.get(_item_id(entry.group)) if entry.group is not None else None
        return found.item if found is not None and entry.uid in found.item.members else None

    def mates(self, entry: Entry) -> Sequence[Entry]:
        """Those that were released with it by one decision, and have their record."""
        record = entry.binding.record
        if record is None or record.decision is None or entry.group is None:
            return ()
        members = self._groups[entry.group[1:]].values()
        return [one for one in members if one is not entry and _decision(one) == record.decision]

    def has_groups(self, queue: str) -> bool:
        """Whether groups wait in the queue."""
        return any(found.item.queue == queue for found in self._together.values())

    def shapes(self) -> Iterator[Shape]:
        """The shapes of all items, those of groups' members included; some more than once."""
        for queue in self.queues.values():
            yield from queue.shapes()
        for members in self._groups.values():
            for entry in members.values():
                if entry.item is not None:
                    yield entry.item.shape

    def _settle_named(self, named: _Named) -> Iterator[tuple[Entry, Entry]]:
        self.changes += 1
        for item_id in self._items.pop(named, ()):
            self._remove(self._together.pop(item_id).item)
        entries = self._groups.get(named, {})
        if not entries:
            self._groups.pop(named, None)
            return
        members = {uid: _member(entry, named[1]) for uid, entry in entries.items()}
        forward = left_out(members.values())
        groups: dict[GroupKey, list[Member]] = {}
        for uid, entry in entries.items():
            if entry.group is not None:
                groups.setdefault(entry.group, []).append(members[uid])
        for key in sorted(groups):
            self._settle_group(key, entries, groups[key], forward)
        for uid, released in forward.items():
            yield entries[uid], entries[released]

    def _settle_group(
        self, key: GroupKey, entries: Mapping[str, Entry], members: list[Member], forward: Collection[str]
    ) -> None:
        state = group_state(key[2], members, forward)
        for member in members:
            entry = entries[member.uid]
            if not _waits(entry):
                continue
            is_alone = member.uid in state.alone
            if is_alone and not entry.line and entry.item is not None:
                self._stand_alone(entry, entry.item)
            elif not is_alone:
                self._leave_line(entry)
            waits = None if is_alone else state.waiting
            if entry.waits != waits:
                entry.waits = waits
                self._told(entry)
        items = [item for uid in state.together if (item := entries[uid].item) is not None]
        if items:
            # The order in which they are asked about and released: what is small fits around what is large.
            items.sort(key=lambda item: (-_size(item), item.enqueued_ms, item.id))
            together = self._shapes.together([item.shape for item in items])
            item = _group_item(key, items, together.shape)
            self._together[item.id] = _GroupItem(item, together)
            self._items.setdefault(key[1:], []).append(item.id)
            self._stand(item)

    def _stand_alone(self, entry: Entry, item: Item) -> None:
        entry.line = item.queue
        self._stand(item)

    def _leave_line(self, entry: Entry) -> None:
        if entry.line and entry.item is not None:
            self._remove(entry.item)
            entry.line = ""

    def _stand(self, item: Item) -> None:
        if item.queue not in self.queues:
            self.queues[item.queue] = PendingQueue(item.queue)
        self.queues[item.queue].add(item)
        own = own_line(item)
        if own not in self.own_lines:
            self.own_lines[own] = PendingQueue(item.queue)
        self.own_lines[own].add(item)

    def _remove(self, item: Item) -> None:
        line, own = self.queues[item.queue], self.own_lines[own_line(item)]
        line.remove(item.id)
        own.remove(item.id)
        if not line:
            del self.queues[item.queue]
        if not own:
            del self.own_lines[own_line(item)]


def own_line(item: Item) -> OwnLine:
    """Where the item waits, by its LocalQueue."""
    return (item.queue, item.namespace, item.local_queue)


def _member(entry: Entry, group: str) -> Member:
    record = entry.effective_record
    was_released = record is not None and record.group == group
    state = entry.state
    was_taken_back = isinstance(state, Pending) and isinstance(entry.binding.requeue, RequeueRecord)
    return Member(
        uid=entry.uid,
        size=entry.facts.group_size,
        enqueued_ms=entry.item.enqueued_ms if entry.item is not None else 0,
        is_pending=_waits(entry),
        # The gate marks what it holds, and the mark goes with the first release.
        is_new=not was_taken_back and entry.binding.gated_ms is not None,
        was_taken_back=was_taken_back,
        asked=record.requests if record else state.demand if isinstance(state, Pending) else (),
        admitted_ms=record.admitted_ms if record and was_released else None,
        decision=record.decision if record and was_released else None,
    )


def _decision(entry: Entry) -> Decision | None:
    return entry.binding.record.decision if entry.binding.record is not None else None


def _waits(entry: Entry) -> bool:
    """Whether the member waits with its group; one that runs and wants to grow does so by itself."""
    return entry.item is not None and not entry.item.is_growth


def _size(item: Item) -> int:
    """What it asks for of accelerators, and of whatever else nodes have few of."""
    return max((amount for name, amount in item.shape.demand if "/" in name), default=0)


def _item_id(key: GroupKey) -> str:
    return f"group {'/'.join(key)}"


def _group_item(key: GroupKey, items: Sequence[Item], shape: Shape) -> Item:
    _, namespace, name = key
    first = min(items, key=lambda item: (item.enqueued_ms, item.id))
    return Item(
        id=_item_id(key),
        name=f"{GROUP_PREFIX}{namespace}/{name}",
        members=tuple(item.id for item in items),
        queue=first.queue,
        local_queue=first.local_queue,
        shape=shape,
        # A group is as urgent as the least urgent of it, and waits since it could first have started.
        priority=min(item.priority for item in items),
        enqueued_ms=max(item.enqueued_ms for item in items),
        due_ms=max(item.due_ms for item in items),
        ageing=first.ageing,
        runtime_ms=_longest(item.runtime_ms for item in items),
        max_wait_ms=min((one.max_wait_ms for one in items if one.max_wait_ms is not None), default=None),
        line=first.line,
    )


def _longest(runtimes_ms: Iterable[int | None]) -> int | None:
    """The longest of them; None where one has no end."""
    longest_ms = 0
    for runtime_ms in runtimes_ms:
        if runtime_ms is None:
            return None
        longest_ms = max(longest_ms, runtime_ms)
    return longest_ms
