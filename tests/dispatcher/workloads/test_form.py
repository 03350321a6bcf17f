import pytest

from queue_dispatcher.workloads.demand import Component, Demand
from queue_dispatcher.workloads.form import Form, form_of
from queue_dispatcher.workloads.placement import ClusterAffinity, Division, Placement

REPLICAS = Demand((Component("", 4),))
SET = Demand((Component("ps", 1), Component("worker", 4)), is_set=True)
TERMS = ((ClusterAffinity(frozenset(("a",))),), (ClusterAffinity(frozenset(("b",))),))


@pytest.mark.parametrize(
    ("placement", "demand", "why"),
    [
        (Placement(), REPLICAS, ""),
        (Placement(division=Division.DYNAMIC), REPLICAS, ""),
        (Placement(max_clusters=1), REPLICAS, ""),
        (Placement(division=Division.DYNAMIC, max_clusters=1), REPLICAS, ""),
        (Placement(TERMS[:1]), REPLICAS, ""),
        # Overflow is within a term.
        (Placement((TERMS[0] + TERMS[1],)), REPLICAS, ""),
        (Placement(spread_by=frozenset(("cluster",)), min_clusters=1), REPLICAS, ""),
        (Placement(division=Division.DUPLICATED, max_clusters=1), REPLICAS, ""),
        (Placement(max_clusters=1), SET, ""),
        (Placement(division=Division.DUPLICATED, max_clusters=1), SET, ""),
        (Placement(division=Division.STATIC), REPLICAS, "divides it by fixed weights"),
        (Placement(division=Division.STATIC), SET, "divides it by fixed weights"),
        (Placement(TERMS), REPLICAS, ""),
        (Placement(division=Division.DUPLICATED), REPLICAS, "gives all of it to every cluster"),
        (Placement(), SET, "gives all of it to every cluster"),
        (Placement(min_clusters=2), REPLICAS, "over 2 clusters at least"),
        (Placement(spread_by=frozenset(("region", "cluster"))), REPLICAS, "spreads it by region"),
        (Placement(), Demand((Component("", 0),)), "no pods yet"),
        (Placement(scheduler="theirs"), REPLICAS, "names the scheduler theirs"),
    ],
)
def test_who_chooses_the_clusters(placement: Placement, demand: Demand, why: str) -> None:
    form, told = form_of(placement, demand)
    assert form is (Form.KARMADA if why else Form.CONFIRM)
    assert why in told
