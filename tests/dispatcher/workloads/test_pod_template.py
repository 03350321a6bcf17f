"""Where pod templates stand in their objects, and what of them guidance keeps."""

import json

import pytest

from fairway.workloads.gang import Gang
from fairway.workloads.registry import read_workload
from queue_dispatcher.workloads.pod_template import (
    MAX_AFFINITY_BYTES,
    PodTemplateFacts,
    StatedAffinity,
    pod_templates,
)

POD = {"containers": [{"name": "main", "resources": {"requests": {"nvidia.com/gpu": "1"}}}]}


def job(**spec: object) -> dict[str, object]:
    return {"parallelism": 2, "template": {"spec": {**POD, **spec}}}


def facts(api_version: str, kind: str, spec: object) -> tuple[PodTemplateFacts, ...]:
    workload = {"apiVersion": api_version, "kind": kind, "metadata": {"name": "x"}, "spec": spec}
    raw = json.dumps(workload).encode()
    gang = read_workload(raw)
    assert isinstance(gang, Gang), gang
    return pod_templates(api_version.rpartition("/")[0], raw, gang)


TEMPLATE = {"template": {"spec": POD}}
POINTERS: list[tuple[str, str, object, dict[str, str]]] = [
    ("v1", "Pod", POD, {"main": "/spec"}),
    ("batch/v1", "Job", job(), {"main": "/spec/template/spec"}),
    (
        "jobset.x-k8s.io/v1alpha2",
        "JobSet",
        {"replicatedJobs": [{"name": name, "template": {"spec": job()}} for name in ("head", "tail")]},
        {
            "head": "/spec/replicatedJobs/0/template/spec/template/spec",
            "tail": "/spec/replicatedJobs/1/template/spec/template/spec",
        },
    ),
    (
        "batch.volcano.sh/v1alpha1",
        "Job",
        {"tasks": [{"name": "a", "replicas": 1, **TEMPLATE}, {"name": "b", "replicas": 2, **TEMPLATE}]},
        {"a": "/spec/tasks/0/template/spec", "b": "/spec/tasks/1/template/spec"},
    ),
    (
        "kubeflow.org/v1",
        "PyTorchJob",
        {"pytorchReplicaSpecs": {"Master": TEMPLATE, "Worker": {"replicas": 3, **TEMPLATE}}},
        {
            "master": "/spec/pytorchReplicaSpecs/Master/template/spec",
            "worker": "/spec/pytorchReplicaSpecs/Worker/template/spec",
        },
    ),
    (
        # Without a submitter's template there is none to say anything in.
        "ray.io/v1",
        "RayJob",
        {"rayClusterSpec": {"headGroupSpec": TEMPLATE, "workerGroupSpecs": [{"groupName": "w", **TEMPLATE}]}},
        {
            "ray-head": "/spec/rayClusterSpec/headGroupSpec/template/spec",
            "w": "/spec/rayClusterSpec/workerGroupSpecs/0/template/spec",
        },
    ),
    # A role can be called anything: what cannot be found again is left alone.
    ("kubeflow.org/v1", "PyTorchJob", {"pytorchReplicaSpecs": {"a].b": TEMPLATE}}, {}),
    (
        "kubeflow.org/v1",
        "PyTorchJob",
        {"pytorchReplicaSpecs": {"a/b~c": TEMPLATE}},
        {"a/b~c": "/spec/pytorchReplicaSpecs/a~1b~0c/template/spec"},
    ),
    # Their templates are edited while they run.
    ("apps/v1", "Deployment", {"replicas": 2, **TEMPLATE}, {}),
    ("apps/v1", "StatefulSet", {"replicas": 2, **TEMPLATE}, {}),
]


@pytest.mark.parametrize(("api_version", "kind", "spec", "pointers"), POINTERS)
def test_where_templates_stand(api_version: str, kind: str, spec: object, pointers: dict[str, str]) -> None:
    found = facts(api_version, kind, spec)
    assert {one.pod_set: one.pointer for one in found} == pointers


TERM = {"weight": 1, "preference": {"matchExpressions": []}}
REQUIRED: dict[str, object] = {"nodeSelectorTerms": []}
SAID: list[tuple[object, StatedAffinity | None]] = [
    (None, StatedAffinity()),
    ({}, StatedAffinity()),
    ({"nodeAffinity": None}, StatedAffinity()),
    (
        {
            "nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": REQUIRED},
            "podAffinity": {"a": 1},
        },
        StatedAffinity(
            on_nodes=(("requiredDuringSchedulingIgnoredDuringExecution", json.dumps(REQUIRED).encode()),),
            others=(("podAffinity", b'{"a": 1}'),),
        ),
    ),
    (
        {"nodeAffinity": {"preferredDuringSchedulingIgnoredDuringExecution": [TERM]}},
        StatedAffinity(preferred=(json.dumps(TERM).encode(),)),
    ),
    ({"nodeAffinity": {"preferredDuringSchedulingIgnoredDuringExecution": {}}}, None),
]


@pytest.mark.parametrize(("affinity", "stated"), SAID)
def test_what_an_affinity_says(affinity: object, stated: StatedAffinity | None) -> None:
    found = facts("batch/v1", "Job", job(affinity=affinity))
    assert [one.affinity for one in found] == ([] if stated is None else [stated])


@pytest.mark.parametrize(
    ("said", "selector", "tolerations"),
    [
        ({}, (), ()),
        ({"nodeSelector": None, "tolerations": None}, (), ()),
        ({"nodeSelector": {"b": "1", "a": "2"}}, (("a", "2"), ("b", "1")), ()),
        (
            {"tolerations": [{"key": "x", "tolerationSeconds": 5}, {}]},
            (),
            (b'{"key": "x", "tolerationSeconds": 5}', b"{}"),
        ),
    ],
)
def test_which_nodes_pods_ask_for(
    said: dict[str, object], selector: tuple[tuple[str, str], ...], tolerations: tuple[bytes, ...]
) -> None:
    (found,) = facts("batch/v1", "Job", job(**said))
    assert (found.selector, found.tolerations) == (selector, tolerations)


@pytest.mark.parametrize(
    ("said", "is_named"),
    [
        ({}, False),
        ({"priorityClassName": ""}, False),
        ({"priorityClassName": "high"}, True),
        ({"priority": 5}, True),
    ],
)
def test_whether_pods_say_how_urgent_they_are(said: dict[str, object], is_named: bool) -> None:
    (found,) = facts("batch/v1", "Job", job(**said))
    assert found.names_priority is is_named


@pytest.mark.parametrize(
    ("labels", "is_one"),
    [
        ({"scheduling.x-k8s.io/pod-group": "g"}, True),
        ({"pod-group.scheduling.sigs.k8s.io": "g"}, True),
        ({"scheduling.x-k8s.io/pod-group": ""}, False),
        ({"kueue.x-k8s.io/pod-group-name": "g"}, False),
        (None, False),
    ],
)
def test_whether_all_of_their_group_have_one_priority(labels: dict[str, str] | None, is_one: bool) -> None:
    made = job()
    made["template"] = {"metadata": {"labels": labels}, "spec": POD}
    (found,) = facts("batch/v1", "Job", made)
    assert found.names_priority is is_one


@pytest.mark.parametrize(
    ("said", "scheduler"),
    [({}, ""), ({"schedulerName": None}, ""), ({"schedulerName": "volcano"}, "volcano")],
)
def test_which_scheduler_takes_pods(said: dict[str, object], scheduler: str) -> None:
    (found,) = facts("batch/v1", "Job", job(**said))
    assert found.scheduler == scheduler


@pytest.mark.parametrize(
    ("said", "is_told"),
    [
        ('{"a":' * 50 + "1" + "}" * 50, True),
        # Read at the bottom of the stack, and written higher up.
        pytest.param('{"a":' * 940 + "1" + "}" * 940, False, id="deep"),
        ("1e999", False),
        pytest.param(f'"{"x" * MAX_AFFINITY_BYTES}"', False, id="long"),
    ],
)
def test_what_could_not_be_written_again_is_left_alone(said: str, is_told: bool) -> None:
    spec = {"pytorchReplicaSpecs": {"Worker": {"template": {"spec": {**POD, "affinity": {"later": "HERE"}}}}}}
    made = {"apiVersion": "kubeflow.org/v1", "kind": "PyTorchJob", "metadata": {"name": "x"}, "spec": spec}
    raw = json.dumps(made).replace('"HERE"', said)
    gang = read_workload(raw.encode())
    assert isinstance(gang, Gang), gang
    assert bool(pod_templates("kubeflow.org", raw.encode(), gang)) is is_told
