"""Troubles: whose a failure is, the server's or one object's.

A server that is away or sheds load fails at whatever it is asked, and is left alone for a while. But where a
webhook does not answer for one namespace, or its storage cannot read one value, it fails at one object for as
long as that lasts, while others get through: those do not wait for it.
"""

from collections import OrderedDict
from typing import Final, NamedTuple

TRIES: Final = 3
"""So many failures in a row, and others have their turn before the object is tried again."""
REMEMBERED: Final = 10_000


class _Failed(NamedTuple):
    """``times``: in a row; ``successes``: how many there had been in all when it failed last."""

    times: int
    successes: int


class Troubles:
    """Objects at which the server has failed last, by uid."""

    def __init__(self) -> None:
        self._successes = 0
        self._failed: OrderedDict[str, _Failed] = OrderedDict()

    def failed(self, uid: str) -> bool:
        """The server failed at the object; whether that says nothing about others: they have got through
        since it did so before, or it has done so too often to tell.
        """
        before = self._failed.pop(uid, _Failed(0, self._successes))
        self._failed[uid] = _Failed(before.times + 1, self._successes)
        if len(self._failed) > REMEMBERED:
            self._failed.popitem(last=False)
        return before.successes < self._successes or before.times >= TRIES

    def is_hopeless(self, uid: str) -> bool:
        """Whether the server has failed at it so often in a row that others are to have their turn."""
        found = self._failed.get(uid)
        return found is not None and found.times >= TRIES

    def got_through(self, uid: str) -> None:
        """The server has answered about the object as it should."""
        self._successes += 1
        self._failed.pop(uid, None)
