"""What to answer when the true number is not known.

karmada-scheduler takes the smallest number it hears for a cluster, its own coarse estimate among them. -1
leaves only that, usually the largest number in the field, which draws the whole workload to the doubtful
cluster; 0 keeps the cluster out of this attempt. An error is never answered: it voids every other answer.
"""

from enum import Enum

from estimator.capacity.answer import UNBOUNDED, Answer, Doubt
from estimator.capacity.request import Question, UnschedulableQuestion

NO_OPINION = -1
"""Karmada's UnauthenticReplica."""


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


def doubtful(policy: OnDoubt, question: Question, doubt: Doubt) -> Answer:
    """The answer to a question whose true answer is not known.

    About unschedulable replicas there is never an opinion: 0 would say that all is well.
    """
    if isinstance(question, UnschedulableQuestion):
        return Answer(NO_OPINION, UNBOUNDED, False, (doubt,))
    return Answer(policy.value_for(question.names_device), UNBOUNDED, False, (doubt,))
