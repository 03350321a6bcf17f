"""Sequences: which of the writes that wait may be made next.

Those of one sequence are made one after the other, sequences side by side. What has to be there before a
write is seen to out of its turn, for all that wait; but for one write of a binding at a time, so that what
was decided last is what is there in the end.
"""

import asyncio
from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from queue_dispatcher.turn.writes import Companion, Fate, Purpose, Write


@dataclass(frozen=True, slots=True)
class First:
    """What became of what comes before a write. ``failed``: what becomes of the write then, and why.

    ``known_s``: when it may be taken to be known.
    """

    companion: Companion | None = None
    failed: tuple[Fate, str] | None = None
    known_s: float = 0.0


NOTHING: Final = First()


@dataclass(slots=True, eq=False)
class Queued:
    """A write in its sequence, which is another one if the same is submitted again.

    ``first``: what became of what comes before it, None while that is not known. ``is_over``: it is not to be
    made any more.
    """

    write: Write
    first: First | None = None
    is_over: bool = False


class Sequences:
    """``ready``: sequences of which the next write may be made and nobody makes it, each once at most.

    ``firsts``: writes before which something may have to be there.
    """

    def __init__(self) -> None:
        self.ready: asyncio.Queue[str] = asyncio.Queue()
        self.firsts: asyncio.Queue[Queued] = asyncio.Queue()
        self._waiting: dict[str, deque[Queued]] = {}
        # By binding, while something is seen to for one of its writes, the others.
        self._behind: dict[str, list[Queued]] = {}

    def __len__(self) -> int:
        return sum(map(len, self._waiting.values()))

    def put(self, write: Write) -> None:
        """Behind those of the same sequence."""
        queued = Queued(write, None if write.purpose is Purpose.ADMIT else NOTHING)
        if queued.first is None:
            self.firsts.put_nowait(queued)
        sequence = self._waiting.setdefault(write.sequence, deque())
        sequence.append(queued)
        if len(sequence) == 1:
            self._offer(sequence)

    def next(self, name: str) -> Queued:
        """The next write of a sequence that was ``ready``."""
        return self._waiting[name][0]

    def made(self, name: str, *, goes_on: bool) -> Iterator[Write]:
        """The next write of the sequence is over; those that are dropped with it unless it ``goes_on``."""
        sequence = self._waiting[name]
        sequence.popleft().is_over = True
        while sequence and not goes_on:
            dropped = sequence.popleft()
            if not dropped.is_over:
                dropped.is_over = True
                yield dropped.write
        if sequence:
            self._offer(sequence)
        else:
            del self._waiting[name]

    def begin(self, queued: Queued) -> bool:
        """Whether what comes before the write may be seen to now; else it comes to ``firsts`` again."""
        behind = self._behind.get(queued.write.uid)
        if behind is not None:
            behind.append(queued)
            return False
        self._behind[queued.write.uid] = []
        return True

    def begun(self, queued: Queued, first: First | None) -> None:
        """What comes before the write is there, or not; None where the write was dropped meanwhile."""
        for other in self._behind.pop(queued.write.uid):
            self.firsts.put_nowait(other)
        if first is not None:
            queued.first = first
            sequence = self._waiting[queued.write.sequence]
            if sequence[0] is queued:
                self._offer(sequence)

    def _offer(self, sequence: deque[Queued]) -> None:
        if sequence[0].first is not None:
            self.ready.put_nowait(sequence[0].write.sequence)
