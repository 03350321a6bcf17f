"""MayGo: who may go for a workload, by queue, and looked for no farther than somebody asks. Pure.

Of a thousand that may go a plan takes one or two, and finding out whether one may takes longer than anything
that is done with it then.
"""

from collections.abc import Callable, Collection, Iterable, Iterator
from copy import copy
from itertools import chain, tee
from typing import Final, NamedTuple

from queue_dispatcher.preemption.candidates import Candidate, in_order


class Lines:
    """Candidates of these queues, each queue's in the order in which they would go. ``of``: looks for those
    of a queue.
    """

    def __init__(self, queues: Collection[str], of: Callable[[str], Iterable[Candidate]]) -> None:
        self.queues = queues
        self._of = of
        self._known: dict[str, Iterator[Candidate]] = {}

    def of(self, queue: str) -> Iterator[Candidate]:
        """Those of one queue, from the first; whoever has been found is not looked for again."""
        known = self._known.get(queue)
        if known is None:
            if queue not in self.queues:
                return iter(())
            (known,) = tee(self._of(queue), 1)
            self._known[queue] = known
        return copy(known)

    def changed(self, change: Callable[[Candidate], Candidate | None]) -> "Lines":
        """What becomes of each, without those of which nothing does."""
        return Lines(self.queues, lambda queue: filter(None, map(change, self.of(queue))))


class MayGo(NamedTuple):
    """Pods beyond minimums, and what is displaced as a whole."""

    pods: Lines
    whole: Lines

    def has_any(self) -> bool:
        """Whether anybody may."""
        lines = (line.of(queue) for line in self for queue in line.queues)
        return next(chain.from_iterable(lines), None) is not None


_NONE: Final = Lines((), lambda _: ())
NOBODY: Final = MayGo(_NONE, _NONE)


def lines_of(candidates: Iterable[Candidate]) -> Lines:
    """Those that are known all."""
    found: dict[str, list[Candidate]] = {}
    for one in candidates:
        found.setdefault(one.queue, []).append(one)
    return Lines(found.keys(), lambda queue: in_order(found[queue], queue))


def may_go_of(candidates: Collection[Candidate]) -> MayGo:
    """The same, apart."""
    return MayGo(
        lines_of(one for one in candidates if one.pods), lines_of(one for one in candidates if not one.pods)
    )
