import pytest

from fairway.selectors import label_requirement
from fairway.taints import Toleration
from queue_dispatcher.api.selector import NOTHING, Selector
from queue_dispatcher.workloads.fleet import Cluster
from queue_dispatcher.workloads.placement import (
    ANYWHERE,
    ClusterAffinity,
    Division,
    Placement,
    ZoneRequirement,
    by_group,
    copies,
    permitted,
)
from tests.dispatcher.workloads.builders import cluster

FLEET = (
    cluster("a", tier="prod"),
    cluster("b", tier="prod"),
    cluster("c", tier="test"),
    cluster("drained", tainted="NoSchedule"),
    cluster("evicted", tainted="NoExecute"),
    cluster("avoided", tainted="PreferNoSchedule"),
    Cluster("leaving", is_leaving=True),
    Cluster("down", is_ready=False),
    Cluster("placed", provider="aws", region="eu", zones=("eu-1", "eu-2")),
)
OPEN = {"a", "b", "c", "avoided", "down", "placed"}


def named(*names: str) -> ClusterAffinity:
    return ClusterAffinity(frozenset(names))


def labelled(key: str, operator: str, *values: str) -> ClusterAffinity:
    return ClusterAffinity(labels=Selector((label_requirement(key, operator, values),)))


def field(key: str, operator: str, *values: str) -> ClusterAffinity:
    return ClusterAffinity(fields=(label_requirement(key, operator, values),))


def zone(operator: str, *values: str) -> ClusterAffinity:
    return ClusterAffinity(zones=(ZoneRequirement(operator, frozenset(values)),))


@pytest.mark.parametrize(
    ("placement", "expected"),
    [
        # NotReady alone rules nothing out: Karmada leaves that to its taints.
        (ANYWHERE, OPEN),
        (Placement(tolerations=(Toleration("maintenance", "Exists"),)), OPEN | {"drained", "evicted"}),
        (
            Placement(tolerations=(Toleration("maintenance", "Exists", effect="NoExecute"),)),
            OPEN | {"evicted"},
        ),
        (Placement(((named("a", "gone"),),)), {"a"}),
        (Placement(((ClusterAffinity(exclude=frozenset(("a",))),),)), OPEN - {"a"}),
        (Placement(((ClusterAffinity(frozenset(("a", "b")), frozenset(("a",))),),)), {"b"}),
        (Placement(((labelled("tier", "In", "prod"),),)), {"a", "b"}),
        (Placement(((labelled("tier", "NotIn", "prod"),),)), OPEN - {"a", "b"}),
        (Placement(((ClusterAffinity(labels=NOTHING),),)), set()),
        (Placement(((field("provider", "In", "aws"),),)), {"placed"}),
        (Placement(((field("provider", "NotIn", "aws"),),)), OPEN - {"placed"}),
        (Placement(((field("region", "In", "us"),),)), set()),
        (Placement(((zone("In", "eu-2", "us-1"),),)), {"placed"}),
        (Placement(((zone("NotIn", "eu-2"),),)), OPEN - {"placed"}),
        (Placement(((zone("Exists"),),)), {"placed"}),
        (Placement(((zone("DoesNotExist"),),)), OPEN - {"placed"}),
        (Placement(((zone("Gt", "1"),),)), set()),
        # Any group may be the one that is used, and within a group the overflow.
        (Placement(((named("a"),), (named("b"), named("c")))), {"a", "b", "c"}),
        (Placement(spread_by=frozenset(("region",))), {"placed"}),
        (Placement(((named("a", "b"),),), evicting=frozenset(("a", "gone"))), {"b"}),
        (Placement(spread_by=frozenset(("cluster",))), OPEN),
    ],
)
def test_permitted_clusters(placement: Placement, expected: set[str]) -> None:
    assert permitted(placement, FLEET) == expected


@pytest.mark.parametrize(
    ("placement", "is_set", "expected"),
    [
        (Placement(), False, 1),  # divided
        (Placement(division=Division.DUPLICATED), False, 6),
        (Placement(division=Division.DUPLICATED, max_clusters=2), False, 2),
        (Placement(((named("a", "b"),),), division=Division.DUPLICATED, max_clusters=5), False, 2),
        # One group is used, so the largest counts, not all of them together.
        (Placement(((named("a", "b"),), (named("c"),)), division=Division.DUPLICATED), False, 2),
        (Placement(((named("gone"),),), division=Division.DUPLICATED), False, 1),
        # A set of components goes to every cluster chosen, divided or not.
        (Placement(), True, 6),
        (Placement(max_clusters=1), True, 1),
    ],
)
def test_copies(placement: Placement, is_set: bool, expected: int) -> None:
    assert copies(placement, is_set, by_group(placement, FLEET)) == expected
