"""PendingQueue: the items that wait in one ClusterQueue.

Items of one shape, priority, ageing, time to run and to wait, and line form a class and stand in it in the
order in which they came, so a cycle looks at the first of each class, however many stand behind it; classes
stand in the order of their first items. What is backing off is held apart until its time has come. The same
items give the same classes in whatever order they were added.
"""

import heapq
from bisect import bisect_left, bisect_right, insort
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet

from queue_dispatcher.api.ageing import Ageing
from queue_dispatcher.cycle.actions import ClassKey, class_key
from queue_dispatcher.cycle.items import Alternative, Item, Shape
from queue_dispatcher.cycle.order import NOT_SHARED, Rank, rank
from queue_dispatcher.ledger.cells import Cell, Charge, added


class PendingClass:
    """The items of a queue that differ only in when they came, the first first; only its queue changes it.

    ``rank``: that of its first item, ageing and shares left out.
    """

    __slots__ = ("items", "key", "rank")

    def __init__(self, key: ClassKey, first: Item) -> None:
        self.key = key
        self.items = [first]
        self.rank: Rank = (-first.priority, 0, *_came(first))


class PendingQueue:
    """What waits in the ClusterQueue ``name``; one writer. Adding and removing cost O(log n) and a move."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.version = object()
        """Another with every change of what waits, and of what of it is due; no two queues ever share one."""
        self._items: dict[str, Item] = {}
        self._classes: list[PendingClass] = []
        # Whether somebody may still read `_classes`, which then is left as it is and changed in a copy.
        self._is_shared = False
        self._by_class: dict[ClassKey, PendingClass] = {}
        # How many of the classes are released to places that the release states, and how many are not.
        self._kinds: Counter[bool] = Counter()
        self._later: list[Item] = []
        self._advanced_ms = 0
        self._least: tuple[Charge, ...] | None = None
        self.shares: Mapping[str, int] = NOT_SHARED
        """By line, what it has used, as of the last cycle: of effect on what is told of the order alone."""
        self.lines: Counter[str] = Counter()
        """By line, how many classes are in it."""
        self.backlog: dict[Cell, int] = {}
        """What all items could be charged of each cell, whichever way each is admitted."""

    def __len__(self) -> int:
        return len(self._items)

    def __iter__(self) -> Iterator[Item]:
        """All items, in no order that means anything."""
        return iter(self._items.values())

    def shapes(self) -> Iterator[Shape]:
        """The shapes of all items, some more than once."""
        yield from (key.shape for key in self._by_class)
        yield from (item.shape for item in self._later)

    def kinds(self, now_ms: int) -> Collection[bool]:
        """Whether releases of what is due say where to: one answer, or both where some do, or may."""
        return (False, True) if self._due_by(now_ms) else self._kinds.keys()

    def get(self, item_id: str) -> Item | None:
        """The item of that id."""
        return self._items.get(item_id)

    def has_any(self, item_ids: AbstractSet[str]) -> bool:
        """Whether any of these items wait here."""
        return not self._items.keys().isdisjoint(item_ids)

    def add(self, item: Item) -> None:
        """Put an item in its place in the line; it replaces one of the same id."""
        self.remove(item.id)
        self.version = object()
        self._items[item.id] = item
        self._count(item.shape, 1)
        if item.due_ms > self._advanced_ms:
            insort(self._later, item, key=_due)
        else:
            self._line_up(item)

    def remove(self, item_id: str) -> Item | None:
        """Take an item out; None if it does not wait here."""
        item = self._items.pop(item_id, None)
        if item is None:
            return None
        self.version = object()
        self._count(item.shape, -1)
        if item.due_ms > self._advanced_ms:
            del self._later[bisect_left(self._later, _due(item), key=_due)]
            return item
        found = self._by_class[class_key(item)]
        place = bisect_left(found.items, _came(item), key=_came)
        if place:
            del found.items[place]
            return item
        self._take_out(found)
        del found.items[0]
        if found.items:
            self._put(found)
        else:
            del self._by_class[class_key(item)]
            self._least = None
            self._kinds[item.shape.is_preplaced] -= 1
            if not self._kinds[item.shape.is_preplaced]:
                del self._kinds[item.shape.is_preplaced]
            self.lines[item.line] -= 1
            if not self.lines[item.line]:
                del self.lines[item.line]
        return item

    def advance(self, now_ms: int) -> None:
        """Let those stand in line whose time has come. Only saves work: `classes` counts them in anyway."""
        if now_ms <= self._advanced_ms:
            return
        self._advanced_ms = now_ms
        due = self._due_by(now_ms) if self._later else 0
        if not due:
            return
        self.version = object()
        for item in self._later[:due]:
            self._line_up(item)
        del self._later[:due]

    def classes(self, now_ms: int) -> Sequence[PendingClass]:
        """The classes of what is due, in the order of their first items without ageing; never changed."""
        self._is_shared = True
        if not self._later or not self._due_by(now_ms):
            return self._classes
        advanced = PendingQueue(self.name)
        for item in self._items.values():
            advanced.add(item)
        advanced.advance(now_ms)
        return advanced._classes

    def least(self, now_ms: int) -> tuple[Charge, ...]:
        """What `classes` are charged at least if each is admitted in the first way, in the second, and so on:
        of what may land on several flavors, each of these is a way.

        Empty where it is not known. Where no part of it has room, nothing in the queue has.
        """
        if self._later and self._due_by(now_ms):
            return ()
        if self._least is None:
            self._least = least_of(
                # Some flavors may be left out, but not all of them.
                dict.fromkeys(
                    place.charge for way in one.key.shape.alternatives for place in way.places or (way,)
                )
                for one in self._classes
                # What never fits needs no room to be refused.
                if one.key.shape.never is None
            )
        return self._least

    def later(self, now_ms: int) -> Sequence[Item]:
        """What is not due yet, the next first."""
        return self._later[self._due_by(now_ms) :]

    def next_due_ms(self, now_ms: int) -> int | None:
        """When the first of them is; None if there are none."""
        if not self._later:
            return None
        due = self._due_by(now_ms)
        return self._later[due].due_ms if due < len(self._later) else None

    def ordered(self, now_ms: int, ageing: Ageing) -> Iterator[Item]:
        """All items, whose turn is next first; what is not due comes last, by when it is."""
        lines = [found.items for found in self.classes(now_ms)]
        yield from heapq.merge(*lines, key=lambda item: rank(item, ageing, now_ms, self.shares))
        yield from self.later(now_ms)

    def position(self, item_id: str, now_ms: int, ageing: Ageing) -> int:
        """The item's place in `ordered`, from 1; 0 if it does not wait here. O(classes x log n)."""
        item = self._items.get(item_id)
        if item is None:
            return 0
        if item.due_ms > max(now_ms, self._advanced_ms):
            return len(self._items) - len(self._later) + bisect_left(self._later, _due(item), key=_due) + 1
        own = rank(item, ageing, now_ms, self.shares)
        return 1 + sum(
            bisect_left(found.items, own, key=lambda other: rank(other, ageing, now_ms, self.shares))
            for found in self.classes(now_ms)
        )

    def _count(self, shape: Shape, sign: int) -> None:
        for cell, amount in most_of(shape):
            left = self.backlog.get(cell, 0) + sign * amount
            if left:
                self.backlog[cell] = left
            else:
                del self.backlog[cell]

    def _due_by(self, now_ms: int) -> int:
        """How many of those held apart are due."""
        if not self._later or self._later[0].due_ms > now_ms:
            return 0
        return bisect_right(self._later, now_ms, key=lambda item: item.due_ms)

    def _line_up(self, item: Item) -> None:
        found = self._by_class.get(class_key(item))
        if found is None:
            found = PendingClass(class_key(item), item)
            self._by_class[class_key(item)] = found
            self._put(found)
            self._least = None
            self._kinds[item.shape.is_preplaced] += 1
            self.lines[item.line] += 1
        elif _came(item) < _came(found.items[0]):
            self._take_out(found)
            found.items.insert(0, item)
            self._put(found)
        else:
            insort(found.items, item, key=_came)

    def _put(self, found: PendingClass) -> None:
        """Put a class where its first item stands."""
        found.rank = (found.rank[0], 0, *_came(found.items[0]))
        insort(self._changeable(), found, key=_rank)

    def _take_out(self, found: PendingClass) -> None:
        classes = self._changeable()
        del classes[bisect_left(classes, found.rank, key=_rank)]

    def _changeable(self) -> list[PendingClass]:
        if self._is_shared:
            self._classes = self._classes.copy()
            self._is_shared = False
        return self._classes


def most_of(shape: Shape) -> Charge:
    """What a workload of the shape may be charged of each cell, whichever way it is admitted."""
    if shape.never is not None:
        return ()
    if len(shape.alternatives) == 1 and not shape.further:
        return shape.alternatives[0].charge
    return added(*(_most_of_part(options) for options in shape.parts))


def _most_of_part(options: Sequence[Alternative]) -> Charge:
    most: dict[Cell, int] = {}
    for alternative in options:
        for cell, amount in alternative.charge:
            most[cell] = max(amount, most.get(cell, 0))
    return tuple(most.items())


def least_of(ways: Iterable[Iterable[Charge]]) -> tuple[Charge, ...]:
    """Of charges by the places of alternatives: in each place the cells that all have, with the least."""
    least: list[dict[Cell, int]] = []
    for charges in ways:
        for place, charge in enumerate(charges):
            if place == len(least):
                least.append(dict(charge))
                continue
            known = least[place]
            wanted = dict(charge)
            least[place] = {c: min(amount, wanted[c]) for c, amount in known.items() if c in wanted}
    return tuple(tuple(charge.items()) for charge in least)


def _came(item: Item) -> tuple[int, str]:
    return (item.enqueued_ms, item.id)


def _due(item: Item) -> tuple[int, str]:
    return (item.due_ms, item.id)


def _rank(pending: PendingClass) -> Rank:
    return pending.rank
