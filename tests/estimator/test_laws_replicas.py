"""What must hold of MaxAvailableReplicas on every cluster."""

import re

from hypothesis import given, settings
from hypothesis import strategies as st

from estimator.pb import estimator_pb2 as pb
from tests import oracle
from tests.builders import NodeBuilder, PodBuilder, cluster, read, replicas_of
from tests.estimator.fleets import NODE_NAMES, asks, nodes, pods

CI = settings(max_examples=100, derandomize=True, deadline=None)

FLEETS = st.tuples(*(nodes(name) for name in NODE_NAMES)).flatmap(
    lambda built: st.sampled_from([built, built, built[:2], built[:1], ()])
)
LOADS = st.integers(0, 5).flatmap(lambda count: st.tuples(*(pods(f"p{index}") for index in range(count))))


@CI
@given(FLEETS, LOADS, asks())
def test_replicas_are_the_sum_of_what_each_node_holds(
    fleet: tuple[NodeBuilder, ...], load: tuple[PodBuilder, ...], asked: pb.ComponentReplicaRequirements
) -> None:
    answer = replicas_of(cluster(*fleet, *load), read("x", 1, asked).shape)
    expected = oracle.max_replicas([n.build() for n in fleet], [p.build() for p in load], asked)
    assert (answer.value, answer.upper_bound, answer.proven) == (expected, expected, True)


@CI
@given(FLEETS, LOADS, asks())
def test_nodes_named_in_reasons_are_nodes_there_are(
    fleet: tuple[NodeBuilder, ...], load: tuple[PodBuilder, ...], asked: pb.ComponentReplicaRequirements
) -> None:
    answer = replicas_of(cluster(*fleet, *load), read("x", 1, asked).shape)
    blocked = {"taint": 0, "cordoned": 0, "node_selector": 0}
    for reason in answer.reasons:
        named = re.search(r"(\d+) nodes?\b", str(reason))
        assert named is None or 0 < int(named[1]) <= len(fleet)
        if reason.kind in blocked:
            assert named is not None
            blocked[reason.kind] += int(named[1])
    eligible = [n for n in fleet if oracle.eligible(n.build(), asked.node_claim)]
    assert sum(blocked.values()) == len(fleet) - len(eligible)
    assert answer.reasons or answer.value


@CI
@given(FLEETS, LOADS, asks(), nodes("n9"))
def test_one_more_node_never_lowers_replicas(
    fleet: tuple[NodeBuilder, ...],
    load: tuple[PodBuilder, ...],
    asked: pb.ComponentReplicaRequirements,
    more: NodeBuilder,
) -> None:
    wanted = read("x", 1, asked).shape
    before = replicas_of(cluster(*fleet, *load), wanted).value
    assert replicas_of(cluster(*fleet, *load, more), wanted).value >= before


@CI
@given(FLEETS, LOADS, asks(), st.integers(0, 4))
def test_one_pod_less_never_lowers_replicas(
    fleet: tuple[NodeBuilder, ...],
    load: tuple[PodBuilder, ...],
    asked: pb.ComponentReplicaRequirements,
    gone: int,
) -> None:
    wanted = read("x", 1, asked).shape
    before = replicas_of(cluster(*fleet, *load), wanted).value
    left = [built for index, built in enumerate(load) if index != gone]
    assert replicas_of(cluster(*fleet, *left), wanted).value >= before
