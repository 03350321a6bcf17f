"""Reads and writes what a queue has used, in its status.

What somebody else wrote there, or half of it, is taken for nothing: what runs then counts since its
admission.
"""

import re
from dataclasses import replace
from datetime import UTC, datetime, timedelta

from queue_dispatcher.api.history import History, Spent
from queue_dispatcher.api.status import (
    WITHIN_QUOTA,
    BudgetUsage,
    ClusterQueueHistory,
    ClusterQueueStatus,
    LocalQueueHistory,
)

_NUMBER = re.compile(r"[0-9]{1,30}")
_TIME = re.compile(r"[0-9]{4}(-[0-9]{2}){2}T[0-9]{2}(:[0-9]{2}){2}(\.[0-9]{1,6})?(Z|[+-][0-9]{2}:[0-9]{2})")
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MOST = 10**30 - 1


def read_history(stated: ClusterQueueHistory | LocalQueueHistory | None) -> History | None:
    """What is written; None where that is nothing, or cannot be read."""
    if stated is None:
        return None
    at_ms, decayed = _ms(stated.time), stated.decayed if isinstance(stated, LocalQueueHistory) else "0"
    amounts = (decayed, stated.device_milliseconds, stated.cost)
    if at_ms is None or not all(map(_NUMBER.fullmatch, amounts)):
        return None
    used, devices, cost = map(int, amounts)
    history = History(at_ms, used, devices, cost)
    if isinstance(stated, LocalQueueHistory):
        return history
    spent = {one.name: _spent(one.device_milliseconds, one.since, at_ms) for one in stated.budgets}
    lost = _spent(stated.displaced_device_milliseconds or "0", stated.displaced_since, at_ms)
    known = {name: one for name, one in spent.items() if one is not None}
    if lost is None or len(known) < len(spent):
        return None
    return replace(history, spent=known, displaced=lost)


def read_exceeded(status: ClusterQueueStatus | None) -> int | None:
    """Since when the queue has used more than it may, epoch milliseconds; None where that is not written."""
    conditions = status.conditions if status is not None else ()
    since = (one.last_transition_time for one in conditions if one.type == WITHIN_QUOTA)
    return _ms(next(since, ""))


def cluster_queue_history(history: History, time: str) -> ClusterQueueHistory:
    """As it is written; ``time``: its moment, RFC 3339."""
    budgets = tuple(
        BudgetUsage(name, _text(spent.device_ms), _time(spent.since_ms))
        for name, spent in sorted(history.spent.items())
    )
    lost = history.displaced
    displaced = (_text(lost.device_ms), _time(lost.since_ms)) if lost.device_ms else ("", "")
    return ClusterQueueHistory(time, _text(history.device_ms), _text(history.cost), budgets, *displaced)


def local_queue_history(history: History, time: str) -> LocalQueueHistory:
    """As it is written; ``time``: its moment, RFC 3339."""
    return LocalQueueHistory(time, _text(history.device_ms), _text(history.cost), _text(history.decayed))


def _spent(amount: str, since: str, at_ms: int) -> Spent | None:
    """``since``: empty in what older dispatchers wrote, whose periods were those that the time is in."""
    since_ms = _ms(since) if since else at_ms
    return Spent(int(amount), since_ms) if since_ms is not None and _NUMBER.fullmatch(amount) else None


def _text(amount: int) -> str:
    return str(max(0, min(amount, _MOST)))


def _time(at_ms: int) -> str:
    return (_EPOCH + timedelta(milliseconds=at_ms)).strftime("%Y-%m-%dT%H:%M:%SZ")


def _ms(text: str) -> int | None:
    if not _TIME.fullmatch(text):
        return None
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        return None
    return max(0, (moment - _EPOCH) // timedelta(milliseconds=1))
