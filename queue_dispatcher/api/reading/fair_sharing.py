"""Reads how LocalQueues share a ClusterQueue, and its budgets.

Of a budget whose amount cannot be read nothing is left, and one whose policy cannot be read is soft: that
lets everybody start, and who wrote it can see that it is wrong. A period that cannot be read is a month.
"""

from collections.abc import Sequence

from fairway.kube.objects import RawQuantity
from queue_dispatcher.api.budget import HOUR_MS, MAX_BUDGETS, Budget, BudgetPolicy, Period, PreemptionBudget
from queue_dispatcher.api.fair_sharing import HALF_LIFE_MS, FairSharing
from queue_dispatcher.api.objects import BudgetSpec, FairSharingSpec, PreemptionBudgetSpec
from queue_dispatcher.api.reading.fields import Problems, choice, duration_ms, milli


def read_fair_sharing(stated: FairSharingSpec | None, field: str, problems: Problems) -> FairSharing | None:
    """How the queue is shared; None where it is not."""
    if stated is None:
        return None
    return FairSharing(duration_ms(stated.half_life, HALF_LIFE_MS, f"{field}.halfLife", problems))


def read_budgets(stated: Sequence[BudgetSpec], field: str, problems: Problems) -> tuple[Budget, ...]:
    """The budgets; of those of one name the first counts, and no more than `MAX_BUDGETS` do."""
    read: dict[str, Budget] = {}
    for index, one in enumerate(stated):
        path = f"{field}[{index}]"
        if not one.name or one.name in read:
            told = "comes twice" if one.name else "nothing: expected a name"
            problems.add(f"{path}.name", f"{told}; left out")
        elif len(read) == MAX_BUDGETS:
            problems.add(path, f"more than {MAX_BUDGETS}: left out")
        else:
            read[one.name] = _budget(one, path, problems)
    return tuple(read.values())


def read_preemption_budget(
    stated: PreemptionBudgetSpec | None, field: str, problems: Problems
) -> PreemptionBudget | None:
    """What may be lost as others are displaced; None for any amount."""
    if stated is None:
        return None
    return PreemptionBudget(
        _device_ms(stated.device_hours, field, problems),
        choice(stated.period, Period.DAY, Period.DAY, f"{field}.period", problems),
    )


def _device_ms(stated: RawQuantity, field: str, problems: Problems) -> int:
    if stated is None:
        problems.add(f"{field}.deviceHours", "nothing: expected a number; read as 0")
    return milli(stated, 0, f"{field}.deviceHours", problems) * HOUR_MS // 1000


def _budget(stated: BudgetSpec, path: str, problems: Problems) -> Budget:
    return Budget(
        stated.name,
        _device_ms(stated.device_hours, path, problems),
        choice(stated.period, Period.MONTH, Period.MONTH, f"{path}.period", problems),
        choice(stated.policy, BudgetPolicy.SOFT, BudgetPolicy.SOFT, f"{path}.policy", problems),
    )
