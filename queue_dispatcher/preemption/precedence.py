"""Precedence: whoever others were displaced for goes before them, and before those that were displaced for
them, until something changes from outside. So does who goes first in its queue and starts in that room.

No two workloads displace each other by the rules of `queue_dispatcher.preemption.victims`, but three may,
each by another right: by priority in its queue, by shares, and as the owner. So nobody may displace who goes
before it. Then displacing comes to an end: while nothing comes, ends or is edited, "goes before" has no
cycles. Who has nobody before it is never displaced again, so it starts once at the most, and displaces once;
who has only such before it is displaced no more often than they start; and so on down. What does change from
outside changes rights, so that all is forgotten then: an owner that has lent since may take back.
"""

from collections.abc import Iterable


class Precedence:
    """Of the workloads of one tree of queues, by id."""

    def __init__(self) -> None:
        self._by: dict[str, set[str]] = {}

    def displaced(self, one: str, by: str) -> None:
        """It was displaced for another one, or that one of its queue has the room that was made for it."""
        self._by.setdefault(one, set()).add(by)

    def before(self, one: str, going: Iterable[tuple[str, str]] = ()) -> frozenset[str]:
        """All that go before it, and itself: it may displace none of them.

        ``going``: who is being displaced, and for whom.
        """
        by: dict[str, set[str]] = {}
        for of, other in going:
            by.setdefault(of, set()).add(other)
        found, left = set[str](), [one]
        while left:
            at = left.pop()
            if at not in found:
                found.add(at)
                left += self._by.get(at, ())
                left += by.get(at, ())
        return frozenset(found)
