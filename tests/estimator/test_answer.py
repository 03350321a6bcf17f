import pytest

from estimator.capacity.answer import NO_LIMIT, UNBOUNDED, Answer, exactly
from estimator.capacity.doubt import NO_OPINION, OnDoubt, doubtful
from estimator.capacity.request import (
    Component,
    Question,
    ReplicasQuestion,
    SetsQuestion,
    UnschedulableQuestion,
    WorkloadReference,
)
from estimator.reasons import (
    NO_NODES,
    Reason,
    cordoned,
    gang_limit,
    gang_short,
    held_for_assumed,
    in_doubt,
    insufficient,
    mismatched,
    never_fits,
    quota_limit,
    untolerated,
)
from fairway.taints import Taint
from tests.builders import cluster, component, node, pod, replicas_of, sets_of, shape, term

LONG = "example.com/" + "x" * 1_000_000

SAID: dict[str, tuple[Reason, str]] = {
    "no_nodes": (NO_NODES, "the cluster has no nodes"),
    "insufficient": (insufficient("nvidia.com/gpu", 12), "insufficient nvidia.com/gpu on 12 nodes"),
    "never_fits": (
        never_fits("nvidia.com/gpu", 16, 8),
        "never fits: needs 16 nvidia.com/gpu, the largest eligible node has 8",
    ),
    "taint": (untolerated(Taint("spot", "yes", "NoExecute"), 3), "taint spot=yes:NoExecute on 3 nodes"),
    "cordoned": (cordoned(1), "1 node cordoned"),
    "node_selector": (mismatched(2), "node selector or affinity matches none of 2 nodes"),
    "assumed": (held_for_assumed(7, 2), "room held for 7 pods of 2 workloads on their way"),
    "quota": (
        quota_limit("q", "memory", 3 << 20, 2 << 20),
        "ResourceQuota q leaves 3Mi memory, each needs 2Mi",
    ),
    "component": (gang_limit("worker", 4, 3), "component worker needs 4 pods a set, 3 fit at all"),
    "doubt": (in_doubt("stale", "no contact for 130 s"), "in doubt (stale): no contact for 130 s"),
}


ONE: list[tuple[Reason, str]] = [
    (never_fits("pods", 1, 0), "never fits: needs 1 pod, the largest eligible node has 0"),
    (never_fits("pods", 2, 1), "never fits: needs 2 pods, the largest eligible node has 1"),
    (held_for_assumed(1, 1), "room held for 1 pod of 1 workload on its way"),
    (gang_limit("head", 1, 1), "component head needs 1 pod a set, 1 fits at all"),
    (gang_short(1, 0), "the gang needs 1 pod at once, 0 fit"),
    (gang_short(2, 1), "the gang needs 2 pods at once, 1 fits"),
]


@pytest.mark.parametrize(("reason", "text"), ONE)
def test_one_is_said_in_the_singular(reason: Reason, text: str) -> None:
    assert str(reason) == text


@pytest.mark.parametrize(("kind", "said"), SAID.items(), ids=SAID)
def test_reasons_are_typed_and_read_as_sentences(kind: str, said: tuple[Reason, str]) -> None:
    reason, text = said
    assert (reason.kind, str(reason)) == (kind, text)


@pytest.mark.parametrize(
    "reason",
    [
        insufficient(LONG, 1),
        never_fits(LONG, 1, 0),
        quota_limit("q", LONG, 0, 1),
        gang_limit(LONG, 1, 0),
    ],
)
def test_long_names_are_cut_in_sentences(reason: Reason) -> None:
    assert len(str(reason)) < 200


def test_an_exact_answer_is_proven_and_bounded() -> None:
    assert exactly(7) == Answer(7, 7, True)
    assert exactly(2**40) == NO_LIMIT == Answer(UNBOUNDED, UNBOUNDED, True)


def test_reasons_for_a_device_that_is_short_here_and_absent_there() -> None:
    mirror = cluster(
        node("full").has(cpu=8, gpu=8),
        pod("p").on("full").requests(gpu=8),
        node("plain").cpu(8),
        node("spot").has(cpu=8, gpu=8).taint("spot:NoSchedule"),
        node("closed").has(cpu=8, gpu=8).taint("spot:NoSchedule").cordoned(),
        node("other").has(cpu=8, gpu=8).label(zone="b"),
    )
    answer = replicas_of(mirror, shape(cpu=1, gpu=1, affinity=[term(("zone", "NotIn", ["b"]))]))
    assert answer.value == 0
    assert answer.reasons == (
        insufficient("nvidia.com/gpu", 2),
        cordoned(1),
        untolerated(Taint("spot", "", "NoSchedule"), 1),
        mismatched(1),
    )
    never = replicas_of(mirror, shape(cpu=1, gpu=16))
    assert never.reasons[0] == never_fits("nvidia.com/gpu", 16, 8)


def test_sets_name_the_component_that_limits_them() -> None:
    mirror = cluster(node("a").has(cpu=64, gpu=4), node("b").has(cpu=64, gpu=4))
    answer = sets_of(mirror, (component("launcher", 1, cpu=1), component("worker", 3, gpu=4))).answer
    assert (answer.value, answer.upper_bound) == (0, 0)
    assert answer.reasons[0] == gang_limit("worker", 3, 2)


SELF = WorkloadReference("Deployment", "default", "web")
PLAIN = ReplicasQuestion("m", shape(cpu=1), "default")
DEVICES = ReplicasQuestion("m", shape(cpu=1, gpu=1), "default")
NO_DEVICES = ReplicasQuestion("m", shape(cpu=1, gpu=0), "default")
PLAIN_SETS = SetsQuestion("m", (Component("a", 1, shape(cpu=1)),), "default")
DEVICE_SETS = SetsQuestion("m", (Component("a", 1, shape(cpu=1)), Component("b", 1, shape(gpu=1))), "default")
STUCK = UnschedulableQuestion("m", SELF, 60.0)


@pytest.mark.parametrize(
    ("question", "auto", "zero", "skip"),
    [
        (PLAIN, -1, 0, -1),
        (DEVICES, 0, 0, -1),
        (NO_DEVICES, -1, 0, -1),
        (PLAIN_SETS, -1, 0, -1),
        (DEVICE_SETS, 0, 0, -1),
        (SetsQuestion("m", (), "default"), -1, 0, -1),
        # 0 would say that all is well
        (STUCK, -1, -1, -1),
    ],
)
def test_doubt_is_answered_as_the_operator_chose(question: Question, auto: int, zero: int, skip: int) -> None:
    doubt = in_doubt("stale", "no contact for 130 s")
    policies = (OnDoubt.AUTO, OnDoubt.ZERO, OnDoubt.SKIP)
    answers = [doubtful(policy, doubt, question.names_device) for policy in policies]
    assert [answer.value for answer in answers] == [auto, zero, skip]
    for answer in answers:
        assert answer.value in (0, NO_OPINION)
        assert (answer.upper_bound, answer.proven, answer.reasons) == (UNBOUNDED, False, (doubt,))
