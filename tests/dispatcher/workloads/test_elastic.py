"""Which workloads are elastic, from what minimum up, and why others are not."""

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from queue_dispatcher.workloads.demand import Component, Demand, Placed
from queue_dispatcher.workloads.elastic import (
    VOLCANO_JOB,
    Bounds,
    Elastic,
    Minimum,
    elastic_of,
    lowered,
    sized,
)
from queue_dispatcher.workloads.placement import ClusterAffinity, Division, Placement
from queue_dispatcher.workloads.template import TemplateFacts, read_template

OURS, KUEUES = "fairway.dev/min-replicas", "kueue.x-k8s.io/job-min-parallelism"
Said = dict[str, dict[str, str]]
DEPLOYMENT, JOB, JOB_SET = ("apps", "Deployment"), ("batch", "Job"), ("jobset.x-k8s.io", "JobSet")
ANYWHERE = Placement()
NO_BOUNDS = Bounds()


def facts(meta: Said, version: str = "batch/v1", spec: dict[str, object] | None = None) -> TemplateFacts:
    stated = {"apiVersion": version, "kind": "Job", "metadata": meta, "spec": spec}
    found = read_template(msgspec.json.encode(stated))
    assert isinstance(found, TemplateFacts)
    return found


@pytest.mark.parametrize(
    ("meta", "pods", "told"),
    [
        ({}, 0, []),
        ({"labels": {OURS: "4"}}, 4, []),
        ({"annotations": {OURS: "4"}}, 4, []),
        ({"labels": {OURS: "4"}, "annotations": {OURS: "2"}}, 4, []),
        ({"annotations": {KUEUES: "3"}}, 3, []),
        # Kueue's is an annotation alone.
        ({"labels": {KUEUES: "3"}}, 0, []),
        ({"annotations": {KUEUES: "3", OURS: "2"}}, 2, []),
        ({"labels": {OURS: "0"}}, 0, [f"metadata.labels[{OURS}]: '0': expected how many of its pods"]),
        ({"labels": {OURS: "-1"}}, 0, [f"metadata.labels[{OURS}]: '-1': expected how many"]),
        ({"labels": {OURS: "2.5"}}, 0, [f"metadata.labels[{OURS}]: '2.5': expected how many"]),
        ({"annotations": {OURS: ""}}, 0, [f"metadata.annotations[{OURS}]: '': expected how many"]),
        ({"labels": {OURS: "9" * 30}}, 0, [f"metadata.labels[{OURS}]: '9999"]),
        ({"labels": {OURS: "few"}, "annotations": {KUEUES: "3"}}, 3, [f"metadata.labels[{OURS}]: 'few'"]),
    ],
)
def test_what_a_template_says(meta: Said, pods: int, told: list[str]) -> None:
    found = facts(meta)
    assert found.minimum.pods == pods
    assert all(note.startswith(start) for note, start in zip(found.notes, told, strict=True))
    assert not found.problems


@pytest.mark.parametrize(
    ("version", "said", "pods"),
    [
        ("batch.volcano.sh/v1alpha1", 3, 3),
        ("batch.volcano.sh/v1alpha1", 5, 0),
        ("batch.volcano.sh/v1alpha1", 0, 0),
        ("batch.volcano.sh/v1alpha1", "3", 0),
        ("batch/v1", 3, 0),
    ],
)
def test_what_a_volcano_job_says(version: str, said: object, pods: int) -> None:
    tasks = [{"replicas": 4}, {"name": "one pod"}]
    assert facts({}, version, {"minAvailable": said, "tasks": tasks}).minimum.pods == pods


def of(pods: int, *, is_set: bool = False) -> Demand:
    return Demand((Component("", pods, (("nvidia.com/gpu", 2),)),), is_set)


@pytest.mark.parametrize(
    ("minimum", "kind", "demand", "placement", "bounds", "elastic", "told"),
    [
        (4, DEPLOYMENT, of(8), ANYWHERE, NO_BOUNDS, Elastic(4), ""),
        (1, DEPLOYMENT, of(8), ANYWHERE, NO_BOUNDS, Elastic(1), ""),
        (4, JOB, of(8), ANYWHERE, NO_BOUNDS, Elastic(4, in_one=True), ""),
        (4, DEPLOYMENT, of(8), Placement(max_clusters=1), NO_BOUNDS, Elastic(4, in_one=True), ""),
        (0, JOB_SET, of(8), ANYWHERE, NO_BOUNDS, None, ""),
        (8, JOB, of(8), ANYWHERE, NO_BOUNDS, None, ""),
        (9, JOB, of(8), ANYWHERE, NO_BOUNDS, None, "expected at most the 8 pods"),
        (4, JOB, of(0), ANYWHERE, NO_BOUNDS, None, ""),
        (4, JOB_SET, of(8), ANYWHERE, NO_BOUNDS, None, "a part of a JobSet.jobset.x-k8s.io"),
        (4, VOLCANO_JOB, of(8, is_set=True), ANYWHERE, NO_BOUNDS, None, "a part of a Job.batch.volcano.sh"),
        (4, ("", "Pod"), of(8), ANYWHERE, NO_BOUNDS, None, "a part of a Pod"),
        (4, JOB, of(8), Placement(division=Division.DUPLICATED), NO_BOUNDS, None, "to every cluster"),
        (4, JOB, of(8), Placement(division=Division.STATIC), NO_BOUNDS, None, "by fixed weights"),
        (4, JOB, of(8), Placement(min_clusters=2), NO_BOUNDS, None, "over 2 clusters at least"),
        (4, JOB, of(8), Placement(((ClusterAffinity(),),) * 2), NO_BOUNDS, None, "several terms"),
        (4, JOB, of(8), ANYWHERE, Bounds(in_group=True), None, "its group starts whole"),
        (4, JOB, of(8), ANYWHERE, Bounds(is_near=True), None, "near each other"),
        (4, JOB, of(8), ANYWHERE, Bounds(is_preserved=True), None, "leave pods behind"),
        (4, JOB, of(8), ANYWHERE, Bounds(states=False), None, "no estimator is asked"),
    ],
)
def test_who_is_elastic(
    minimum: int,
    kind: tuple[str, str],
    demand: Demand,
    placement: Placement,
    bounds: Bounds,
    elastic: Elastic | None,
    told: str,
) -> None:
    found, why = elastic_of(Minimum(minimum, OURS), kind, demand, placement, bounds)
    assert found == elastic
    assert told in why
    assert bool(told) == bool(why)


def test_a_size_is_of_the_same_pods() -> None:
    assert sized(of(8), 3) == of(3)
    assert sized(of(8), 3) is sized(of(8), 3)
    assert sized(of(8, is_set=True), 3) == of(8, is_set=True)


@pytest.mark.parametrize(
    ("placed", "to", "left"),
    [
        ({"a": 4}, 3, {"a": 3}),
        ({"a": 4}, 4, {"a": 4}),
        ({"a": 4}, 9, {"a": 4}),
        ({"a": 4, "b": 2}, 5, {"a": 4, "b": 1}),
        ({"a": 4, "b": 2}, 4, {"a": 4}),
        ({"a": 4, "b": 2}, 1, {"a": 1}),
        ({"a": 2, "b": 2}, 3, {"a": 1, "b": 2}),
        ({"a": 2, "b": 0}, 2, {"a": 2}),
    ],
)
def test_what_stays_of_it(placed: dict[str, int], to: int, left: dict[str, int]) -> None:
    shares = [Placed(cluster, replicas) for cluster, replicas in placed.items()]
    assert {share.cluster: share.replicas for share in lowered(shares, to)} == left


@given(st.dictionaries(st.sampled_from("abcdef"), st.integers(0, 50)), st.integers(0, 400))
def test_what_stays_is_so_many_and_nowhere_more(placed: dict[str, int], to: int) -> None:
    left = {share.cluster: share.replicas for share in lowered([Placed(*one) for one in placed.items()], to)}
    assert sum(left.values()) == min(to, sum(placed.values()))
    assert all(0 < replicas <= placed[cluster] for cluster, replicas in left.items())
