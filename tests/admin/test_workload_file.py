"""Workload files: one workload among whatever else a manifest holds."""

import json
from datetime import UTC, datetime
from pathlib import Path

import pytest

from admin.asking import Asked
from admin.explaining import as_verdicts
from admin.gathering import Gathered
from admin.workload_file import WorkloadError, read_workload_file
from estimator.capacity.gangs.placements import ClusterExplanation, ClusterPlacement
from estimator.capacity.summary import Summary
from fairway.accelerators.builtin import builtin_catalogue
from fairway.workloads.registry import read_workload

JOB = """apiVersion: batch/v1
kind: Job
metadata: {name: train, namespace: research, annotations: {fairway.dev/gang: "true"}}
spec:
  parallelism: 3
  completions: 3
  template:
    spec:
      containers:
      - {name: main, resources: {limits: {nvidia.com/gpu: "8"}}}
"""
SERVICE = "apiVersion: v1\nkind: Service\nmetadata: {name: train}\n"
DEPLOYMENT = """apiVersion: apps/v1
kind: Deployment
metadata: {name: web}
spec: {replicas: 10, template: {spec: {containers: [{name: m, resources: {requests: {cpu: "2"}}}]}}}
"""


def write(folder: Path, text: str) -> Path:
    file = folder / "job.yaml"
    file.write_text(text)
    return file


def test_the_workload_is_found_beside_other_objects(tmp_path: Path) -> None:
    workload = read_workload_file(write(tmp_path, f"{SERVICE}---\n{JOB}---\n"))
    assert str(workload) == "Job research/train"
    assert (workload.gang.is_gang, workload.gang.pod_sets[0].count) == (True, 3)
    assert read_workload(workload.raw_json) == workload.gang


def test_json_and_lists_are_read_as_well(tmp_path: Path) -> None:
    job = json.loads(read_workload_file(write(tmp_path, JOB)).raw_json)
    listed = json.dumps({"apiVersion": "v1", "kind": "List", "items": [job]})
    assert str(read_workload_file(write(tmp_path, json.dumps(job)))) == "Job research/train"
    assert str(read_workload_file(write(tmp_path, listed))) == "Job research/train"


def test_yaml_in_flow_style_is_read_as_well(tmp_path: Path) -> None:
    template = "{spec: {containers: [{name: m}]}}"
    web = (
        f"{{apiVersion: apps/v1, kind: Deployment, metadata: {{name: web}}, spec: {{template: {template}}}}}"
    )
    assert str(read_workload_file(write(tmp_path, web))) == "Deployment web"


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (SERVICE, "expected a workload, found Service; known are"),
        (f"{JOB}---\n{DEPLOYMENT}", "2 workloads (Job research/train, Deployment web): put the one"),
        ("kind: [", "the YAML is malformed"),
        ("", "the file is empty"),
        ("{}", "found no kind"),
        (
            JOB.replace('"8"', '"-8"'),
            "containers[0] (main): resources.limits: nvidia.com/gpu -8: expected 0 or more",
        ),
        (JOB.replace("nvidia.com/gpu:", "gpu:"), "limits: gpu 8: expected cpu, memory, ephemeral-storage"),
        (
            DEPLOYMENT.replace('"2"', "-2"),
            "containers[0] (m): resources.requests: cpu -2: expected 0 or more",
        ),
        (
            JOB.replace("      containers:", "      overhead: {cpu: -1}\n      containers:"),
            "overhead: cpu -1: expected 0 or more",
        ),
        (
            JOB.replace(
                "      containers:",
                "      initContainers: [{name: i, resources: {requests: {a/b: 1.5}}}]\n      containers:",
            ),
            "initContainers[0] (i): resources.requests: a/b 1.5: expected whole devices",
        ),
        (JOB.replace("batch/v1", "batch.example.com/v1"), "is not known"),
        (JOB.replace("containers:", "containers: 7\n      x:"), "containers"),
    ],
)
def test_what_holds_no_workload_is_told_with_its_file(tmp_path: Path, text: str, said: str) -> None:
    with pytest.raises(WorkloadError) as raised:
        read_workload_file(write(tmp_path, text))
    assert said in str(raised.value)
    assert str(tmp_path / "job.yaml") in str(raised.value)


def test_a_missing_file_is_told(tmp_path: Path) -> None:
    with pytest.raises(WorkloadError, match="there is no such file"):
        read_workload_file(tmp_path / "none.yaml")


def test_pods_that_are_no_gang_are_asked_about_one_by_one(tmp_path: Path) -> None:
    gang = Asked.of(read_workload_file(write(tmp_path, JOB)))
    assert gang.copies == 1
    web = Asked.of(read_workload_file(write(tmp_path, DEPLOYMENT)))
    assert web.copies == 10
    message = web.wire_gang(None, builtin_catalogue())
    assert ([pod_set.count for pod_set in message.pod_sets], message.copies) == ([1], 10)
    assert Asked.of(read_workload_file(write(tmp_path, JOB)), copies=4).copies == 4
    nobody = Summary("c", 0, 0)
    assert gang.wire_gang(None, builtin_catalogue()).workload_json
    assert web.gang(nobody, builtin_catalogue()).pod_sets[0].count == 1


ELASTIC = """apiVersion: batch/v1
kind: Job
metadata: {name: sweep, namespace: research, labels: {fairway.dev/min-replicas: "4"}}
spec:
  parallelism: 16
  template: {spec: {containers: [{name: main, resources: {limits: {nvidia.com/gpu: "1"}}}]}}
"""


@pytest.mark.parametrize(
    ("text", "pods", "notes"),
    [
        (ELASTIC, 4, 0),
        (ELASTIC.replace("labels", "annotations"), 4, 0),
        (
            ELASTIC.replace("labels", "annotations").replace(
                "fairway.dev/min-replicas", "kueue.x-k8s.io/job-min-parallelism"
            ),
            4,
            0,
        ),
        (ELASTIC.replace('"4"', "some"), 0, 1),
        (ELASTIC.replace("labels:", 'annotations: {fairway.dev/gang: "true"}, labels:'), 0, 0),
        (DEPLOYMENT, 0, 0),
    ],
)
def test_what_may_start_with_fewer_pods_says_so(text: str, pods: int, notes: int, tmp_path: Path) -> None:
    asked = Asked.of(read_workload_file(write(tmp_path, text)))
    assert (asked.minimum.pods, len(asked.notes)) == (pods, notes)


@pytest.mark.parametrize(
    ("fits", "where"),
    [
        ((16, 4, 3), "fit in c0, c1"),
        ((3, 0, 0), "fit in no cluster here"),
    ],
)
def test_where_the_minimum_fits_is_told(fits: tuple[int, ...], where: str, tmp_path: Path) -> None:
    found = tuple(
        ClusterExplanation(ClusterPlacement(f"c{number}", each, each, True))
        for number, each in enumerate(fits)
    )
    asked = Asked.of(read_workload_file(write(tmp_path, ELASTIC)))
    (note,) = as_verdicts(asked, Gathered(found, ()), datetime(2026, 1, 1, tzinfo=UTC)).notes
    assert note == (
        "fairway.dev/min-replicas: asked about with all of its 16 pods; a queue starts it with 4 of them or "
        f"more, and so many {where}"
    )
    one_by_one = Asked.of(read_workload_file(write(tmp_path, ELASTIC)), copies=4)
    assert as_verdicts(one_by_one, Gathered(found, ()), datetime(2026, 1, 1, tzinfo=UTC)).notes == ()
