"""Checks: whose word what waits still lacks. One writer.

They are asked before room is: what lacks a word stands in no line, holds up nobody and holds nothing, and
takes its old place once all have said Ready. How long nobody has answered is counted here, by the monotonic
clock, since a check was first seen without an answer: a clock that jumps, or a check that came to the queue
while the workload waited, makes nothing overdue.
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import Final

from queue_dispatcher.api.admission_check import AdmissionCheck
from queue_dispatcher.bindings.checks import Answer, Word
from queue_dispatcher.bindings.phase import Moment
from queue_dispatcher.bindings.state import Pending
from queue_dispatcher.bindings.timestamp import format_ms
from queue_dispatcher.cache.entry import Entry
from queue_dispatcher.cache.order import Order
from queue_dispatcher.cycle.reasons import (
    Reason,
    backing_off,
    check_rejected,
    check_timed_out,
    waiting_for_check,
)

_NONE: Final[Mapping[str, int]] = {}


class Checks:
    """``retries``: those of which a check has said Retry, which is to be written down."""

    def __init__(self) -> None:
        self.retries: set[str] = set()
        # By uid and check, since when it has not answered; and when something about it changes by itself.
        self._since: dict[str, Mapping[str, int]] = {}
        self._due = Order()

    def put(self, entry: Entry, asked: Sequence[AdmissionCheck], due_ms: int, now: Moment) -> Reason | None:
        """Why the entry, which waits and is to be tried at ``due_ms`` (epoch milliseconds), may not be
        admitted by these checks; None if it may.
        """
        uid, answers = entry.uid, {one.check: one for one in entry.binding.checks}
        lacking = [one for one in asked if not _is_ready(answers.get(one.name))]
        if not lacking:
            self.drop(uid)
            return None
        said = [answers[one.name] for one in lacking if one.name in answers]
        rejected = next((one for one in said if one.word is Word.REJECTED), None)
        left_ms = due_ms - now.day_ms
        if rejected is not None or left_ms > 0:
            self.drop(uid)
            if rejected is not None:
                return check_rejected(rejected.check, rejected.message)
            self._due.put(uid, now.elapsed_ms + left_ms)
            return _backing_off(entry, due_ms)
        retry = next((one for one in said if one.word is Word.RETRY), None)
        if retry is not None:
            self.drop(uid)
            self.retries.add(uid)
            return waiting_for_check(retry.check, why_retried(retry))
        self.retries.discard(uid)
        return self._wait(uid, lacking, answers, now)

    def drop(self, uid: str) -> None:
        """It waits for no check."""
        if uid in self._since or uid in self._due:
            self._since.pop(uid, None)
            self._due.put(uid, None)
        self.retries.discard(uid)

    def take_due(self, elapsed_ms: int) -> Iterator[str]:
        """Those about whom something has changed by time alone, each once."""
        while (uid := self._due.first(elapsed_ms, elapsed_ms)) is not None:
            self._due.put(uid, None)
            yield uid

    def _wait(
        self, uid: str, lacking: Sequence[AdmissionCheck], answers: Mapping[str, Answer], now: Moment
    ) -> Reason:
        before = self._since.get(uid, _NONE)
        since = {one.name: before.get(one.name, now.elapsed_ms) for one in lacking}
        self._since[uid] = since
        ends = [(since[one.name] + one.timeout_ms, one) for one in lacking if one.timeout_ms is not None]
        self._due.put(uid, min((at for at, _ in ends if at > now.elapsed_ms), default=None))
        over = next((one for at, one in ends if at <= now.elapsed_ms), None)
        if over is not None:
            return check_timed_out(over.name, (over.timeout_ms or 0) // 1000)
        first = lacking[0].name
        return waiting_for_check(first, answers[first].message if first in answers else "", len(lacking) - 1)


def may_start(entry: Entry, asked: Sequence[AdmissionCheck]) -> bool:
    """Whether all that is asked for has been answered with Ready."""
    answers = {one.check: one for one in entry.binding.checks} if asked else {}
    return all(_is_ready(answers.get(one.name)) for one in asked)


def why_retried(answer: Answer) -> str:
    """What a check that said Retry is told to have said."""
    return f"check {answer.check} said {Word.RETRY}" + (f": {answer.message}" if answer.message else "")


def retried(entry: Entry, asked: Sequence[AdmissionCheck]) -> list[Answer]:
    """The answers to what is asked that say Retry."""
    names = {one.name for one in asked}
    return [one for one in entry.binding.checks if one.word is Word.RETRY and one.check in names]


def _is_ready(answer: Answer | None) -> bool:
    return answer is not None and answer.word is Word.READY


def _backing_off(entry: Entry, due_ms: int) -> Reason:
    state = entry.state
    tries, because = (state.tries, state.because) if isinstance(state, Pending) else (0, "")
    return backing_off(format_ms(due_ms), max(1, tries), entry.note or because)
