"""What to answer when the true number is not known.

karmada-scheduler takes the smallest number it hears for a cluster, its own coarse estimate among them. -1
leaves only that, usually the largest number in the field, which draws the whole workload to the doubtful
cluster; 0 keeps the cluster out of this attempt. An error is never answered: it voids every other answer.
"""

from enum import Enum

from estimator.capacity.answer import UNBOUNDED, Answer
from estimator.reasons import Reason

NO_OPINION = -1
"""Karmada's UnauthenticReplica: only the scheduler's own general estimate counts for this cluster."""


class OnDoubt(Enum):
    """What the operator chose: no opinion always, zero always, or zero for requests that name a device."""

    AUTO = "auto"
    ZERO = "zero"
    SKIP = "skip"


def doubtful(policy: OnDoubt, doubt: Reason, names_device: bool | None) -> Answer:
    """The answer to a question whose true answer is not known.

    ``names_device`` tells whether it asks for devices, None that it is about unschedulable replicas. About
    those there is never an opinion: 0 would say that all is well.
    """
    is_zero = policy is OnDoubt.ZERO or (policy is OnDoubt.AUTO and names_device)
    value = 0 if is_zero and names_device is not None else NO_OPINION
    return Answer(value, UNBOUNDED, False, (doubt,))
