"""How long a workload may run, by whose word."""

import msgspec
import pytest

from queue_dispatcher.api.service_class import ServiceClass
from queue_dispatcher.workloads.max_runtime import RuntimeLimit, runtime_limits, shown_duration
from queue_dispatcher.workloads.template import TemplateFacts, read_template

OURS, KUEUES = "fairway.dev/max-runtime", "kueue.x-k8s.io/max-exec-time-seconds"
Spec = dict[str, object]


def facts(
    spec: Spec | None = None, kind: str = "Job", version: str = "batch/v1", meta: Spec | None = None
) -> TemplateFacts:
    stated = {"apiVersion": version, "kind": kind, "metadata": meta or {}, "spec": spec}
    found = read_template(msgspec.json.encode(stated))
    assert isinstance(found, TemplateFacts)
    return found


@pytest.mark.parametrize(
    ("meta", "limits_ms", "told"),
    [
        ({}, [], []),
        ({"labels": {OURS: "1h30m"}}, [5_400_000], []),
        ({"annotations": {OURS: "1.5s"}}, [1_500], []),
        ({"labels": {OURS: "1h"}, "annotations": {OURS: "never"}}, [3_600_000], []),
        ({"labels": {KUEUES: "60", OURS: "1h"}}, [3_600_000, 60_000], []),
        # Kueue's is a label alone.
        ({"annotations": {KUEUES: "60"}}, [], []),
        ({"labels": {OURS: "0s"}}, [], [f"metadata.labels[{OURS}]: '0s': expected a duration above zero"]),
        ({"labels": {OURS: "60"}}, [], [f"metadata.labels[{OURS}]: '60': expected a duration above zero"]),
        ({"annotations": {OURS: ""}}, [], [f"metadata.annotations[{OURS}]: '': expected a duration above"]),
        (
            {"labels": {KUEUES: "0"}},
            [],
            [f"metadata.labels[{KUEUES}]: '0': expected whole seconds, 1 or more"],
        ),
        ({"labels": {KUEUES: "9" * 30}}, [], [f"metadata.labels[{KUEUES}]: '9999"]),
        ({"labels": {KUEUES: "60", OURS: "soon"}}, [60_000], [f"metadata.labels[{OURS}]: 'soon'"]),
    ],
)
def test_what_it_says_itself(meta: Spec, limits_ms: list[int], told: list[str]) -> None:
    found = facts(meta=meta)
    assert [one.limit_ms for one in found.limits] == limits_ms
    assert all(one.is_ours for one in found.limits)
    assert all(note.startswith(start) for note, start in zip(found.notes, told, strict=True))
    assert not found.problems


def job(seconds: object, **more: object) -> Spec:
    return {"name": "a", "template": {"spec": {"activeDeadlineSeconds": seconds}}, **more}


@pytest.mark.parametrize(
    ("kind", "spec", "seconds"),
    [
        ("Job", {"activeDeadlineSeconds": 90}, 90),
        ("Job", {"activeDeadlineSeconds": None}, None),
        ("Job", {"activeDeadlineSeconds": -1}, None),
        ("Job", {"activeDeadlineSeconds": "90"}, None),
        # A pod's is for that pod: the Job makes another.
        ("Job", {"template": {"spec": {"activeDeadlineSeconds": 90}}}, None),
        ("Deployment", {"activeDeadlineSeconds": 90}, None),
        ("JobSet", {"replicatedJobs": [job(60), job(90)]}, 90),
        ("JobSet", {"replicatedJobs": [job(60), job(None)]}, None),
        ("JobSet", {"replicatedJobs": [job(60), {"name": "b"}]}, None),
        ("JobSet", {"replicatedJobs": [job(60), job(90, dependsOn=[{"name": "a"}])]}, 150),
        (
            "JobSet",
            {"replicatedJobs": [job(60), job(90)], "startupPolicy": {"startupPolicyOrder": "InOrder"}},
            150,
        ),
        ("JobSet", {"replicatedJobs": [job(60)], "failurePolicy": {"maxRestarts": 3}}, 240),
        ("JobSet", {"replicatedJobs": [job(60)], "failurePolicy": {"rules": [{"action": "x"}]}}, None),
    ],
)
def test_when_kubernetes_ends_it(kind: str, spec: Spec, seconds: int | None) -> None:
    version = {"JobSet": "jobset.x-k8s.io/v1alpha2", "Deployment": "apps/v1"}.get(kind, "batch/v1")
    found = facts(spec, kind, version).limits
    expected = [] if seconds is None else [(1000 * seconds, False)]
    assert [(one.limit_ms, one.is_ours) for one in found] == expected


LIMITS = (RuntimeLimit(60_000, "label"), RuntimeLimit(30_000, "Kubernetes", is_ours=False))


@pytest.mark.parametrize(
    ("max_runtime_ms", "by"),
    [
        (None, ["Kubernetes", "label"]),
        (45_000, ["Kubernetes", "its maxRuntime of 45s (ServiceClass short)", "label"]),
        # At the same moment we come first.
        (30_000, ["its maxRuntime of 30s (ServiceClass short)", "Kubernetes", "label"]),
    ],
)
def test_the_least_comes_first(max_runtime_ms: int | None, by: list[str]) -> None:
    promised = ServiceClass("short", max_runtime_ms=max_runtime_ms)
    assert [one.by for one in runtime_limits(promised, LIMITS)] == by


@pytest.mark.parametrize(
    ("duration_ms", "told"),
    [
        (1, "0.001s"),
        (1_500, "1.5s"),
        (60_000, "1m"),
        (90_000, "1m30s"),
        (14_400_000, "4h"),
        (5_400_000, "1h30m"),
        (3_600_500, "1h0.5s"),
        (172_800_000, "48h"),
    ],
)
def test_durations_as_people_write_them(duration_ms: int, told: str) -> None:
    assert shown_duration(duration_ms) == told
