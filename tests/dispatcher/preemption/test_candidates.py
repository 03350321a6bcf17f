"""Up to which priority anything of a queue may be displaced: no more than that, and no less."""

from itertools import product

import pytest

from queue_dispatcher.api.cluster_queue import Preemption, ReclaimWithinCohort, WithinClusterQueue
from queue_dispatcher.preemption.candidates import Candidate, Preemptor, highest_of, may_displace

POLICIES = list(product(("own", "other"), WithinClusterQueue, ReclaimWithinCohort))


@pytest.mark.parametrize(
    ("queue", "within", "reclaim"),
    # Else nobody of the queue is a candidate.
    [one for one in POLICIES if one[:2] != ("own", WithinClusterQueue.NEVER)],
)
def test_whoever_is_above_it_may_not_go_and_somebody_at_it_may(
    queue: str, within: WithinClusterQueue, reclaim: ReclaimWithinCohort
) -> None:
    charge = ((0, 1),)
    preemptor = Preemptor("new", "own", Preemption(within, reclaim), 5, 100, charge)
    allowed = {
        priority
        for priority in range(10)
        if may_displace(preemptor, Candidate("x", queue, charge, priority, 200, 0, ("x",)), {0})
    }
    highest = highest_of(preemptor, queue)
    assert allowed == set(range(10 if highest is None else highest + 1))
