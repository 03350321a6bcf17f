"""Reads and writes what a queue has used, in its status.

What somebody else wrote there, or half of it, is taken for nothing: what runs then counts since its
admission.
"""

import re
from datetime import UTC, datetime, timedelta

from queue_dispatcher.api.history import History
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
    at_ms = _ms(stated.time)
    budgets = stated.budgets if isinstance(stated, ClusterQueueHistory) else ()
    spent = {one.name: one.device_milliseconds for one in budgets}
    displaced = stated.displaced_device_milliseconds if isinstance(stated, ClusterQueueHistory) else ""
    decayed = stated.decayed if isinstance(stated, LocalQueueHistory) else "0"
    amounts = (decayed, stated.device_milliseconds, stated.cost, displaced or "0")
    if at_ms is None or not all(_NUMBER.fullmatch(amount) for amount in (*amounts, *spent.values())):
        return None
    used, devices, cost, lost = map(int, amounts)
    return History(at_ms, used, devices, cost, {name: int(amount) for name, amount in spent.items()}, lost)


def read_exceeded(status: ClusterQueueStatus | None) -> int | None:
    """Since when the queue has used more than it may, epoch milliseconds; None where that is not written."""
    conditions = status.conditions if status is not None else ()
    since = (one.last_transition_time for one in conditions if one.type == WITHIN_QUOTA)
    return _ms(next(since, ""))


def cluster_queue_history(history: History, time: str) -> ClusterQueueHistory:
    """As it is written; ``time``: its moment, RFC 3339."""
    budgets = (BudgetUsage(name, _text(spent)) for name, spent in sorted(history.spent.items()))
    displaced = _text(history.displaced_ms) if history.displaced_ms else ""
    return ClusterQueueHistory(time, _text(history.device_ms), _text(history.cost), tuple(budgets), displaced)


def local_queue_history(history: History, time: str) -> LocalQueueHistory:
    """As it is written; ``time``: its moment, RFC 3339."""
    return LocalQueueHistory(time, _text(history.device_ms), _text(history.cost), _text(history.decayed))


def _text(amount: int) -> str:
    return str(max(0, min(amount, _MOST)))


def _ms(text: str) -> int | None:
    if not _TIME.fullmatch(text):
        return None
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        return None
    return max(0, (moment - _EPOCH) // timedelta(milliseconds=1))
