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
    """What the operator chose: no opinion always, zero always, or by what is asked for."""

    AUTO = "auto"
    ZERO = "zero"
    SKIP = "skip"

    def value_for(self, names_device: bool) -> int:
        """0 or -1; by itself, 0 for requests that name a device and -1 for others."""
        if self is OnDoubt.AUTO:
            return 0 if names_device else NO_OPINION
        return 0 if self is OnDoubt.ZERO else NO_OPINION


def doubtful(policy: OnDoubt, doubt: Reason, names_device: bool | None) -> Answer:
    """The answer to a question whose true answer is not known.

    ``names_device`` tells whether it asks for devices, None that it is about unschedulable replicas. About
    those there is never an opinion: 0 would say that all is well.
    """
    value = NO_OPINION if names_device is None else policy.value_for(names_device)
    return Answer(value, UNBOUNDED, False, (doubt,))
