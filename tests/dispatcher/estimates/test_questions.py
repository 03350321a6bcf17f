"""What estimators are asked about a binding, and what their answers mean."""

import json
from dataclasses import replace

import msgspec
import pytest

from queue_dispatcher.bindings.binding import Binding, WorkloadReference
from queue_dispatcher.cycle.snapshot import Verdict
from queue_dispatcher.estimates.cluster_room import ClusterRoom
from queue_dispatcher.estimates.questions import (
    Question,
    StatedBinding,
    growth_question_of,
    is_readable,
    question_of,
    verdict_of,
)
from queue_dispatcher.workloads.demand import Component, Demand, Placed
from queue_dispatcher.workloads.placement import Division, Placement
from tests.dispatcher.scenarios import objects

BOTH = frozenset({"m1", "m2"})
DIVIDED, DUPLICATED, ONE = Placement(), Placement(division=Division.DUPLICATED), Placement(max_clusters=1)


def bound(placement: Placement, replicas: int = 4) -> Binding:
    return Binding(
        uid="u",
        namespace="team",
        name="train-job",
        resource_version="1",
        generation=1,
        created_ms=0,
        workload=WorkloadReference("batch/v1", "Job", "team", "train"),
        demand=Demand((Component("", replicas, (("nvidia.com/gpu", 2),)),)),
        is_workload=True,
        placement=placement,
    )


def template(pods: int = 4) -> bytes:
    job = objects.job("train", gpus=2, pods=pods, nodeSelector={"pool": "gpu"})
    return json.dumps({"apiVersion": "batch/v1", "kind": "Job"} | job).encode()


def stated() -> StatedBinding:
    made = objects.binding("train", gpus=2, replicas=4)
    made["spec"]["replicaRequirements"]["nodeClaim"] = {
        "nodeSelector": {"pool": "gpu"},
        "tolerations": [{"key": "gpu", "operator": "Exists"}],
        "hardNodeAffinity": {
            "nodeSelectorTerms": [{"matchExpressions": [{"key": "a", "operator": "Exists"}]}]
        },
    }
    return msgspec.json.decode(msgspec.json.encode(made), type=StatedBinding)


@pytest.mark.parametrize("source", [template(), stated()], ids=["template", "binding"])
def test_what_is_divided_is_asked_about_pod_by_pod(source: bytes | StatedBinding) -> None:
    question = question_of(bound(DIVIDED), BOTH, 1, source)
    assert question is not None
    assert (question.clusters, question.needed, question.adds_up) == (("m1", "m2"), 4, True)
    (pods,) = question.gang.pod_sets
    assert (pods.count, question.gang.copies) == (1, 4)
    spec = json.loads(pods.template_json)["spec"]
    assert spec["nodeSelector"] == {"pool": "gpu"}


def test_what_goes_to_one_cluster_is_asked_about_whole() -> None:
    question = question_of(bound(ONE), BOTH, 1, template())
    assert question is not None
    assert not question.adds_up
    assert json.loads(question.gang.workload_json)["metadata"]["name"] == "train"
    told = question_of(bound(ONE), BOTH, 1, stated())
    assert told is not None
    (pods,) = told.gang.pod_sets
    assert pods.count == 4
    spec = json.loads(pods.template_json)["spec"]
    assert spec["tolerations"][0]["key"] == "gpu"
    terms = spec["affinity"]["nodeAffinity"]["requiredDuringSchedulingIgnoredDuringExecution"]
    assert terms["nodeSelectorTerms"][0]["matchExpressions"][0]["key"] == "a"


def test_copies_are_needed_on_so_many_clusters() -> None:
    question = question_of(bound(DUPLICATED), BOTH, 2, template())
    assert question is not None
    assert question.clusters_needed == 2


@pytest.mark.parametrize(
    "nothing",
    [
        question_of(bound(DIVIDED), frozenset(), 1, template()),
        question_of(bound(DIVIDED, 0), BOTH, 1, template()),
        question_of(replace(bound(DIVIDED), placement=None), BOTH, 1, template()),
        question_of(bound(DIVIDED), BOTH, 1, b"no template"),
    ],
)
def test_there_may_be_nothing_to_ask(nothing: Question | None) -> None:
    assert nothing is None


def test_kinds_that_are_known_are_asked_about_by_their_template() -> None:
    assert is_readable(bound(DIVIDED))
    other = WorkloadReference("example.com/v1", "Job", "team", "train")
    assert not is_readable(replace(bound(DIVIDED), workload=other))


def q(needed: int, *, adds_up: bool = False, clusters_needed: int = 1) -> Question:
    question = question_of(bound(DIVIDED), BOTH, 1, template())
    assert question is not None
    return replace(question, needed=needed, adds_up=adds_up, clusters_needed=clusters_needed)


@pytest.mark.parametrize(
    ("question", "rooms", "fits", "clusters"),
    [
        (q(4, adds_up=True), (3, 1), 1, {"m1", "m2"}),
        (q(4, adds_up=True), (9, 0), 2, {"m1"}),
        (q(4, adds_up=True), (3, 0), 0, set()),
        (q(2), (1, 1), 0, set()),
        (q(2), (5, 2), 3, {"m1", "m2"}),
        (q(1, clusters_needed=2), (5, 3), 3, {"m1", "m2"}),
        (q(1, clusters_needed=2), (5, 0), 0, set()),
        (q(1, clusters_needed=3), (5, 5), 0, set()),
    ],
)
def test_what_answers_mean(question: Question, rooms: tuple[int, int], fits: int, clusters: set[str]) -> None:
    verdict, unknown = verdict_of(question, [ClusterRoom("m1", rooms[0]), ClusterRoom("m2", rooms[1])])
    assert verdict is not None
    assert verdict.fits == fits
    assert verdict.clusters == clusters
    assert unknown == ()


def test_a_cluster_that_nobody_knows_matters_only_where_the_others_have_no_room() -> None:
    away = ClusterRoom("m2", 0, unknown="unavailable")
    assert verdict_of(q(1), [ClusterRoom("m1", 1), away]) == (
        Verdict(1, frozenset({"m1"}), rooms=(("m1", 1),)),
        (),
    )
    assert verdict_of(q(1), [ClusterRoom("m1", 0), away]) == (None, ("unavailable",))


def test_a_refusal_says_why_cluster_by_cluster() -> None:
    verdict, _ = verdict_of(q(2), [ClusterRoom("m1", 1, why="too few GPUs"), ClusterRoom("m2", 0)])
    assert verdict is not None
    assert verdict.reasons == ("m1: 1 of 2 fit: too few GPUs", "m2: no room")


def test_clusters_that_refuse_alike_are_told_together() -> None:
    rooms = [ClusterRoom(f"m{number}", 0, why="0 of 6 nodes match") for number in range(7)]
    verdict, _ = verdict_of(q(1), [*rooms, ClusterRoom("z", 0, why="full")])
    assert verdict is not None
    assert verdict.reasons == ("m0, m1, m2, m3 and 3 more: 0 of 6 nodes match", "z: full")


@pytest.mark.parametrize(
    ("question", "rooms", "never"),
    [
        (q(2), ((0, 1), (0, 0)), True),
        (q(2), ((0, 1), (0, 2)), False),
        (q(2), ((0, 1), (0, None)), False),
        (q(4, adds_up=True), ((1, 2), (1, 2)), False),
        (q(5, adds_up=True), ((1, 2), (1, 2)), True),
        (q(1, clusters_needed=2), ((1, None), (0, 0)), True),
        (q(1, clusters_needed=2), ((1, None), (0, 3)), False),
    ],
)
def test_what_would_not_fit_if_nothing_ran_is_told_as_never(
    question: Question, rooms: tuple[tuple[int, int | None], ...], never: bool
) -> None:
    made = [ClusterRoom(f"m{n}", fits, most=most) for n, (fits, most) in enumerate(rooms)]
    verdict, _ = verdict_of(question, made)
    assert verdict is not None
    assert (verdict.fits, verdict.never) == (0, never)


def grown(placement: Placement, replicas: int, **placed: int) -> Binding:
    """A binding that wants ``replicas`` and has so many in each cluster."""
    shares = tuple(Placed(cluster, count) for cluster, count in placed.items())
    return replace(bound(placement, replicas), placed=shares)


@pytest.mark.parametrize("source", [template(6), stated()], ids=["template", "binding"])
@pytest.mark.parametrize(
    ("binding", "clusters", "needed", "adds_up", "clusters_needed"),
    [
        (grown(DIVIDED, 6, m1=4), ("m1", "m2"), 2, True, 1),
        (grown(DIVIDED, 6, m1=2, m2=1), ("m1", "m2"), 3, True, 1),
        (grown(ONE, 6, m1=4), ("m1",), 2, True, 1),
        (grown(Placement(max_clusters=2), 6, m1=4), ("m1", "m2"), 2, True, 1),
        (grown(DUPLICATED, 6, m1=4, m2=5), ("m1", "m2"), 2, False, 2),
        (grown(DUPLICATED, 6, m1=4), ("m1",), 2, False, 1),
    ],
)
def test_of_growth_only_the_difference_is_asked_about(
    source: bytes | StatedBinding,
    binding: Binding,
    clusters: tuple[str, ...],
    needed: int,
    adds_up: bool,
    clusters_needed: int,
) -> None:
    question = growth_question_of(binding, BOTH, 1, source)
    assert question is not None
    assert (question.clusters, question.needed) == (clusters, needed)
    assert (question.adds_up, question.clusters_needed) == (adds_up, clusters_needed)
    (pods,) = question.gang.pod_sets
    assert (pods.count, question.gang.copies) == (1, needed)


@pytest.mark.parametrize(
    "binding",
    [
        grown(DIVIDED, 4, m1=4),
        grown(DIVIDED, 4, m1=5),
        grown(DUPLICATED, 4, m1=4, m2=4),
        replace(grown(DIVIDED, 4, m1=0), demand=Demand((Component("a", 4),), is_set=True)),
        replace(grown(DIVIDED, 6, m1=4), placement=None),
    ],
    ids=["nothing", "less", "nothing in any", "a set", "no placement"],
)
def test_growth_that_is_there_already_is_no_question(binding: Binding) -> None:
    assert growth_question_of(binding, BOTH, 1, template()) is None


def test_growth_of_replicas_of_several_pods_each_is_no_question() -> None:
    made = {
        "apiVersion": "leaderworkerset.x-k8s.io/v1",
        "kind": "LeaderWorkerSet",
        "metadata": {"name": "serve"},
        "spec": {
            "replicas": 3,
            "leaderWorkerTemplate": {
                "size": 2,
                "leaderTemplate": {"spec": {"containers": [{"name": "l"}]}},
                "workerTemplate": {"spec": {"containers": [{"name": "w"}]}},
            },
        },
    }
    assert growth_question_of(grown(DIVIDED, 6, m1=4), BOTH, 1, json.dumps(made).encode()) is None


def test_growth_before_anything_is_placed_is_asked_about_whole() -> None:
    whole = question_of(bound(DIVIDED), BOTH, 1, template())
    assert growth_question_of(bound(DIVIDED), BOTH, 1, template()) == whole
