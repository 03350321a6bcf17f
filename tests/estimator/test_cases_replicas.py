"""What the stock estimator answers to MaxAvailableReplicas, case by case, numbered A1 to A26.

Where the stock answer falls short of the truth, the better number is asserted and a comment says so.
"""

from dataclasses import dataclass, field

import pytest

from estimator.capacity.answer import Answer
from estimator.cluster.mirror import ClusterMirror
from estimator.fit.pod_shape import PodShape
from estimator.reasons import NO_NODES, cordoned, insufficient, never_fits, untolerated
from fairway.taints import Taint
from tests.builders import NodeBuilder, cluster, node, pod, replicas_of, shape, term


def machine(number: int, pods: int = 11) -> NodeBuilder:
    return node(f"machine{number}").has(cpu=8, memory="16Gi", storage="16Gi", pods=pods)


def fleet(*changed: NodeBuilder) -> ClusterMirror:
    """Three machines with 2, 3 and 8 cores, 6, 5 and 16 Gi and 8, 9 and 11 pods left; some changed."""
    nodes = {built.name: built for built in (machine(1), machine(2), machine(3), *changed)}
    pods = [
        pod("a").on("machine1").requests(cpu=1, memory="3Gi"),
        pod("b").on("machine1").requests(cpu=3, memory="3Gi"),
        pod("c").on("machine1").requests(cpu=2, memory="4Gi", storage="2Gi"),
        pod("d").on("machine2").requests(cpu=4, memory="8Gi", storage="2Gi"),
        pod("e").on("machine2").requests(cpu=1, memory="3Gi", storage="2Gi"),
    ]
    return cluster(*nodes.values(), *pods)


ONE = shape(cpu=1, memory="2Gi", storage="0")
A3_LABELS = (machine(1).label(a="1"), machine(2).label(a="3", b="2"))


@dataclass(frozen=True)
class Case:
    expected: int
    mirror: ClusterMirror = field(default_factory=fleet)
    asked: PodShape = ONE


SLOTS = (node("a").pods(8), node("b").pods(9), node("c").pods(11))
SMALL = node("n").has(cpu=4, memory="4Gi")
CASES = {
    "A1": Case(12),
    "A2": Case(10, fleet(machine(1, pods=4), machine(2, pods=3))),
    "A3": Case(2, fleet(*A3_LABELS), shape(cpu=1, memory="2Gi", selector={"a": "3"})),
    "A7": Case(0, cluster()),
    "A8": Case(28, cluster(*SLOTS), shape()),
    "A9": Case(20, cluster(SLOTS[0].taint("x:NoSchedule"), *SLOTS[1:]), shape()),
    "A10": Case(
        2, cluster(node("n").has(cpu=8, memory="16Gi", storage="14Gi", pods=11)), shape(cpu=1, storage="5Gi")
    ),
    "A11": Case(0, asked=shape(cpu=1, gpu=1)),
    "A12": Case(12, asked=shape(cpu=1, memory="2Gi", foo=5)),
    "A13": Case(4, fleet(machine(3).cordoned())),
    "A14": Case(
        12,
        fleet(machine(3).cordoned()),
        shape(cpu=1, memory="2Gi", tolerations=["node.kubernetes.io/unschedulable"]),
    ),
    "A15": Case(12, fleet(machine(3).taint("x:PreferNoSchedule"))),
    "A16": Case(12, fleet(machine(3).taint("x=y:NoExecute")), shape(cpu=1, memory="2Gi", tolerations=["*"])),
    "A16 without the toleration": Case(4, fleet(machine(3).taint("x=y:NoExecute"))),
    "A18": Case(
        4,
        cluster(
            SMALL,
            pod("done").on("n").requests(cpu=3).phase("Succeeded"),
            pod("lost").on("n").requests(cpu=3).phase("Failed"),
        ),
        shape(cpu=1),
    ),
    "A19": Case(4, cluster(SMALL, pod("waiting").requests(cpu=100).phase("Pending")), shape(cpu=1)),
    "A20": Case(
        4,
        cluster(
            SMALL,
            node("full").cpu(4),
            pod("greedy").on("full").requests(cpu=3),
            pod("x").on("full").requests(cpu=3),
        ),
        shape(cpu=1),
    ),
    "A22": Case(0, asked=shape(cpu=1, memory="2Gi", affinity=[term()])),
    "A23": Case(
        8, asked=shape(cpu=1, memory="2Gi", affinity=[term(fields=[("metadata.name", "In", ["machine3"])])])
    ),
    "A23 all but that one": Case(
        4,
        asked=shape(cpu=1, memory="2Gi", affinity=[term(fields=[("metadata.name", "NotIn", ["machine3"])])]),
    ),
    "A23 or another": Case(
        10,
        asked=shape(
            cpu=1,
            memory="2Gi",
            affinity=[
                term(fields=[("metadata.name", "In", [name])]) for name in ("machine3", "machine1", "ghost")
            ],
        ),
    ),
    "A24 cpu to milli": Case(10, cluster(node("n").cpu(1)), shape(cpu="99.1m")),
    "A24 memory to bytes": Case(1, cluster(node("n").memory(5)), shape(memory="2.5")),
    "A24 binary fractions": Case(2, cluster(node("n").memory("3Gi")), shape(memory="1.5Gi")),
    "A25": Case(
        0,
        cluster(
            node("n").cpu("3.25"),
            pod("p").on("n").init(cpu=3).requests(cpu=1).requests(cpu=1).overhead(cpu="250m"),
        ),
        shape(cpu="1m"),
    ),
    "A25 with a little more": Case(
        1,
        cluster(
            node("n").cpu("3.251"),
            pod("p").on("n").init(cpu=3).requests(cpu=1).requests(cpu=1).overhead(cpu="250m"),
        ),
        shape(cpu="1m"),
    ),
    # The stock estimator takes the larger of sidecar and container, 1 core, where kube-scheduler counts 2.
    "A26": Case(2, cluster(SMALL, pod("p").on("n").sidecar(cpu=1).requests(cpu=1)), shape(cpu=1)),
}


@pytest.mark.parametrize("case", CASES.values(), ids=CASES)
def test_replicas(case: Case) -> None:
    answer = replicas_of(case.mirror, case.asked)
    assert answer.value == case.expected
    assert (answer.upper_bound, answer.proven) == (case.expected, True)


REASONS = {
    "no nodes": (Case(0, cluster()), {NO_NODES}),
    "no device": (CASES["A11"], {never_fits("nvidia.com/gpu", 1, 0)}),
    "cordoned": (CASES["A13"], {cordoned(1)}),
    "tainted": (CASES["A16 without the toleration"], {untolerated(Taint("x", "y", "NoExecute"), 1)}),
    "full": (CASES["A25"], {insufficient("cpu", 1)}),
}


@pytest.mark.parametrize(("case", "reasons"), REASONS.values(), ids=REASONS)
def test_an_answer_says_why_it_is_not_larger(case: Case, reasons: set[object]) -> None:
    answer: Answer = replicas_of(case.mirror, case.asked)
    assert set(answer.reasons) == reasons
    assert all(str(reason) for reason in answer.reasons)
