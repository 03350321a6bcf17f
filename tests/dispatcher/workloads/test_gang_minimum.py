"""How many pods of a Job start together, as gang schedulers have to be told."""

import json
from collections.abc import Mapping
from typing import Any

import pytest

from fairway.workloads.gang import Gang
from fairway.workloads.registry import read_workload
from queue_dispatcher.workloads.demand import Component, Demand, Placed
from queue_dispatcher.workloads.gang_minimum import (
    MAX_STATED_BYTES,
    GangMinimum,
    Together,
    gang_minimums,
    together,
)
from queue_dispatcher.workloads.placement import Division, Placement
from queue_dispatcher.workloads.pod_template import pod_templates

VOLCANO = "scheduling.volcano.sh/group-min-member"
KAI = "kai.scheduler/batch-min-member"
GANG = {"fairway.dev/gang": "true"}


def template(scheduler: str = "volcano", **metadata: object) -> dict[str, object]:
    pod = {"containers": [{"name": "main", "resources": {"requests": {"nvidia.com/gpu": "1"}}}]}
    return {"metadata": metadata, "spec": {**pod, **({"schedulerName": scheduler} if scheduler else {})}}


def job(pods: object = 4, of: object = None, **spec: object) -> dict[str, Any]:
    return {"parallelism": pods, "template": of or template(), **spec}


def jobs(*each: Mapping[str, object]) -> dict[str, Any]:
    return {"replicatedJobs": [{"name": f"r{number}", **one} for number, one in enumerate(each)]}


def read(
    kind: str, spec: object, annotations: Mapping[str, str] = GANG, version: str = ""
) -> tuple[GangMinimum, ...]:
    version = version or {"Job": "batch/v1", "JobSet": "jobset.x-k8s.io/v1alpha2", "Pod": "v1"}[kind]
    metadata = {"name": "x", "annotations": annotations}
    raw = json.dumps({"apiVersion": version, "kind": kind, "metadata": metadata, "spec": spec}).encode()
    gang = read_workload(raw)
    assert isinstance(gang, Gang), gang
    group = version.rpartition("/")[0]
    return gang_minimums(group, raw, gang, pod_templates(group, raw, gang))


def own(pods: int, annotation: str = VOLCANO) -> tuple[GangMinimum, ...]:
    return (GangMinimum("/metadata", annotation, pods),)


JOBS: list[tuple[str, object, Mapping[str, str], tuple[GangMinimum, ...]]] = [
    ("all of its pods", job(4), GANG, own(4)),
    ("for KAI", job(4, template("kai-scheduler"), backoffLimit=0), GANG, own(4, KAI)),
    ("for KAI, pods made anew by default", job(4, template("kai-scheduler")), GANG, ()),
    ("for KAI, pods made anew", job(4, template("kai-scheduler"), backoffLimit=1), GANG, ()),
    (
        "for KAI, failures that may be ignored",
        job(4, template("kai-scheduler"), backoffLimit=0, podFailurePolicy={"rules": []}),
        GANG,
        (),
    ),
    (
        "some for KAI",
        job(8, template("kai-scheduler"), backoffLimit=0),
        {"fairway.dev/gang": "6"},
        own(6, KAI),
    ),
    ("so many of them", job(8), {"fairway.dev/gang": "6"}, own(6)),
    ("no more than are made at a time", job(8, completions=3), GANG, own(3)),
    ("what all have to be near each other", job(4), {"fairway.dev/topology-required": "rack"}, own(4)),
    (
        "slices that each have a domain",
        job(8),
        {"fairway.dev/topology-exclusive": "rack", "fairway.dev/topology-slice-size": "4"} | GANG,
        own(8),
    ),
    ("no gang", job(4), {}, ()),
    ("one pod", job(1), GANG, ()),
    ("the default scheduler", job(4, template("")), GANG, ()),
    ("some other scheduler", job(4, template("koord-scheduler")), GANG, ()),
    ("pods that take turns", job(4, completions=5), GANG, ()),
    ("said already", job(4), GANG | {VOLCANO: "2"}, ()),
    ("said to the other", job(4), GANG | {KAI: "2"}, own(4)),
    ("in a PodGroup", job(4, template(annotations={"scheduling.k8s.io/group-name": "g"})), GANG, ()),
    ("coscheduled", job(4, template(labels={"scheduling.x-k8s.io/pod-group": "g"})), GANG, ()),
    ("no number of completions", job(4, completions="many"), GANG, ()),
]


@pytest.mark.parametrize(
    ("spec", "annotations", "told"), [pytest.param(*case[1:], id=case[0]) for case in JOBS]
)
def test_what_a_job_is_told(
    spec: object, annotations: Mapping[str, str], told: tuple[GangMinimum, ...]
) -> None:
    assert read("Job", spec, annotations) == told


def within(
    number: int,
    pods: int,
    stated: Mapping[str, str] | None = None,
    annotation: str = VOLCANO,
) -> GangMinimum:
    said = None if stated is None else tuple(stated.items())
    return GangMinimum(f"/spec/replicatedJobs/{number}/template/metadata", annotation, pods, said)


def told_each(**metadata: object) -> dict[str, Any]:
    return {"spec": job(4), "metadata": metadata}


OTHER = {"a": "b"}
SETS: list[tuple[str, object, Mapping[str, str], tuple[GangMinimum, ...]]] = [
    ("without metadata", jobs({"template": {"spec": job(4)}}), {}, (within(0, 4),)),
    ("without annotations", jobs({"template": told_each(labels=OTHER)}), {}, (within(0, 4, {}),)),
    ("with others", jobs({"template": told_each(annotations=OTHER)}), {}, (within(0, 4, OTHER),)),
    ("with its own", jobs({"template": told_each(annotations={VOLCANO: "2"})}), {}, ()),
    (
        "each job by itself",
        jobs({"template": {"spec": job(1)}}, {"replicas": 3, "template": {"spec": job(4)}}),
        {},
        (within(1, 4),),
    ),
    (
        "each by its own scheduler",
        jobs(
            {"template": {"spec": job(2)}},
            {"template": {"spec": job(3, template("kai-scheduler"))}},
            {"template": {"spec": job(4, template(""))}},
        ),
        {},
        (within(0, 2),),
    ),
    (
        "fewer for KAI than it waits for",
        jobs({"template": {"spec": job(4, template("kai-scheduler"))}}),
        {"fairway.dev/gang": "3"},
        (within(0, 3, annotation=KAI),),
    ),
    (
        "fewer for KAI than are ever made",
        jobs({"replicas": 2, "template": {"spec": job(4, template("kai-scheduler"), completions=3)}}),
        {},
        (within(0, 3, annotation=KAI),),
    ),
    (
        "jobs that each have a domain",
        jobs({"replicas": 3, "template": {"spec": job(4)}}),
        {"alpha.jobset.sigs.k8s.io/exclusive-topology": "rack"},
        (within(0, 4),),
    ),
    ("some of one", jobs({"template": {"spec": job(4)}}), {"fairway.dev/gang": "3"}, (within(0, 3),)),
    (
        "some of several alike",
        jobs({"replicas": 2, "template": {"spec": job(4)}}),
        {"fairway.dev/gang": "6"},
        (),
    ),
    ("none of none", jobs({"replicas": 0, "template": {"spec": job(4)}}), {}, ()),
    (
        "too much to repeat",
        jobs({"template": told_each(annotations={"a": "x" * MAX_STATED_BYTES})}),
        {},
        (),
    ),
]


@pytest.mark.parametrize(
    ("spec", "annotations", "told"), [pytest.param(*case[1:], id=case[0]) for case in SETS]
)
def test_what_the_jobs_of_a_set_are_told(
    spec: object, annotations: Mapping[str, str], told: tuple[GangMinimum, ...]
) -> None:
    assert read("JobSet", spec, annotations) == told


TASKS = {"tasks": [{"name": "a", "replicas": 4, "template": template()}]}
REPLICAS = {"Worker": {"replicas": 4, "template": template()}}
RAY = {"headGroupSpec": {"template": template()}}


@pytest.mark.parametrize(
    ("version", "kind", "spec"),
    [
        ("v1", "Pod", template()["spec"]),
        ("apps/v1", "StatefulSet", {"replicas": 4, "template": template()}),
        ("batch.volcano.sh/v1alpha1", "Job", TASKS),
        ("kubeflow.org/v1", "PyTorchJob", {"pytorchReplicaSpecs": REPLICAS}),
        ("kubeflow.org/v2beta1", "MPIJob", {"mpiReplicaSpecs": REPLICAS}),
        ("ray.io/v1", "RayJob", {"rayClusterSpec": RAY}),
    ],
)
def test_other_kinds_are_told_nothing(version: str, kind: str, spec: object) -> None:
    assert read(kind, spec, version=version) == ()


def test_what_is_set() -> None:
    of_job, bare, empty = own(4)[0], within(0, 4), within(0, 4, {})
    assert of_job.path == "/metadata/annotations/scheduling.volcano.sh~1group-min-member"
    assert bare.path == "/spec/replicatedJobs/0/template/metadata"
    assert empty.path == "/spec/replicatedJobs/0/template/metadata/annotations"


ALIKE = Demand((Component("", 4),))
SET = Demand((Component("a", 4),), is_set=True)
DIVIDED, ONE = Placement(), Placement(max_clusters=1)
COPIES = Placement(division=Division.DUPLICATED)


@pytest.mark.parametrize(
    ("placement", "demand", "places", "clusters"),
    [
        pytest.param(DIVIDED, ALIKE, [Placed("a", 4)], ("a",), id="whole"),
        pytest.param(DIVIDED, ALIKE, [Placed("a", 3), Placed("b", 1)], None, id="shares"),
        pytest.param(DIVIDED, ALIKE, [Placed("a", 3)], None, id="a-part"),
        pytest.param(DIVIDED, ALIKE, [], None, id="karmada-divides"),
        pytest.param(ONE, ALIKE, [], (), id="karmada-chooses-one"),
        pytest.param(COPIES, ALIKE, [], (), id="copies"),
        pytest.param(DIVIDED, SET, [Placed("a")], (), id="set"),
    ],
)
def test_only_who_gets_all_of_it_is_told(
    placement: Placement, demand: Demand, places: list[Placed], clusters: tuple[str, ...] | None
) -> None:
    told = together(own(4), placement, demand, places)
    assert told == (None if clusters is None else Together(clusters, own(4)))
    assert together((), placement, demand, places) is None
