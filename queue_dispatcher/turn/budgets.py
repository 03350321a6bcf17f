"""Budgets: what a queue that has used up one of its own waits for."""

from collections.abc import Iterable

from queue_dispatcher.api.budget import Budget, BudgetPolicy
from queue_dispatcher.bindings.timestamp import format_ms
from queue_dispatcher.cycle.reasons import Reason, budget_exhausted


def out_of_budget(queue: str, exhausted: Iterable[Budget], now_ms: int) -> Reason | None:
    """Why the queue admits nothing at that time, epoch milliseconds; None where no hard budget is used up.

    Of several the one that is new again last.
    """
    hard = [budget for budget in exhausted if budget.policy is BudgetPolicy.HARD]
    if not hard:
        return None
    last = max(hard, key=lambda budget: (budget.period.renews_ms(now_ms), budget.name))
    return budget_exhausted(queue, last.name, format_ms(last.period.renews_ms(now_ms)))
