"""Objects that are broken, hostile or unknown: always a located message, never an exception."""

import copy

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fairway.kube.objects import ObjectMeta
from fairway.workloads.gang import Gang
from fairway.workloads.registry import (
    KNOWN_KINDS,
    MAX_POD_SETS,
    NotRead,
    read_gang,
    read_parts,
    read_workload,
)
from tests.workloads.objects import (
    EXAMPLES,
    Object,
    deployment,
    example,
    read,
    refusal,
    volcano_job,
    workload,
)

CI = settings(max_examples=400, derandomize=True, deadline=None)
NAMES = sorted(path.stem for path in EXAMPLES.glob("*.yaml"))


# --- kinds -------------------------------------------------------------------------------------------------


def test_an_unknown_kind_is_named_beside_those_that_are_known() -> None:
    told = refusal(workload("SparkApplication", "sparkoperator.k8s.io/v1beta2", {}))
    assert told.startswith("kind SparkApplication of group sparkoperator.k8s.io is not known; known are ")
    assert "Deployment.apps, JAXJob.kubeflow.org, Job.batch, Job.batch.volcano.sh" in told
    assert ", Pod, " in told


def test_a_known_kind_of_another_group_names_its_groups() -> None:
    told = refusal(workload("Job", "example.com/v1", {}))
    assert told == (
        "kind Job of group example.com is not known; Job is known in batch, batch.volcano.sh: "
        "correct its apiVersion"
    )
    assert "group core is not known" in refusal(workload("Deployment", "v1", {}))


@pytest.mark.parametrize("version", ["v1", "v1beta2", "v99"])
def test_any_version_of_a_group_is_read(version: str) -> None:
    raw = msgspec.json.encode(deployment(3))
    assert isinstance(read_gang("Deployment", f"apps/{version}", raw), Gang)


@pytest.mark.parametrize(
    "fields", [{}, {"kind": "Pod"}, {"apiVersion": "v1"}, {"kind": None, "apiVersion": "v1"}]
)
def test_an_object_without_a_type_is_not_read(fields: Object) -> None:
    assert refusal({**fields, "spec": {}}).startswith("kind, apiVersion: expected both")


def test_a_very_long_kind_is_cut() -> None:
    assert len(refusal(workload("X" * 10**6, "example.com/v1", {}))) < 1000


# --- bytes -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("raw", "told"),
    [
        (b"", "the object: "),
        (b"null", "the object: "),
        (b"[]", "the object: expected `object`, got `array`"),
        (b"{", "the object: "),
        (b"\xff\xfe", "the object: "),
        (b'{"kind": "Pod", "apiVersion": "v1", "spec": ' + b"[" * 100_000, "the object: "),
        (
            b'{"kind": "Pod", "apiVersion": "v1", "x": ' + b"[" * 100_000 + b"]" * 100_000 + b"}",
            "nested too deeply",
        ),
        (b'{"kind": "P\xffd", "apiVersion": "v1"}', "the object: "),
        (b'{"kind": 7, "apiVersion": "v1"}', "kind: expected `str"),
        (b'{"kind": "Pod", "apiVersion": "v1", "metadata": {"name": "\xff"}, "spec": {}}', "the object: "),
    ],
)
def test_bytes_that_are_no_object_are_told(raw: bytes, told: str) -> None:
    assert told in refusal(raw)


@pytest.mark.parametrize(
    ("built", "told"),
    [
        (
            workload("Deployment", "apps/v1", None),
            "spec.template: expected a pod template with containers, found none",
        ),
        (
            workload("Deployment", "apps/v1", []),
            "spec: expected `object | null`, got `array`; correct the object",
        ),
        (workload("Deployment", "apps/v1", {"replicas": 3}), "spec.template: expected a pod template"),
        (workload("Deployment", "apps/v1", {"template": {}}), "spec.template: expected a pod template"),
        (
            workload("Deployment", "apps/v1", {"template": {"spec": {"containers": []}}}),
            "expected a pod template",
        ),
        (
            workload("Deployment", "apps/v1", {"template": {"spec": {"containers": [{}, 7]}}}),
            "spec.template.spec.containers[1]: expected `object`, got `int`",
        ),
        (
            {**workload("Deployment", "apps/v1", {}), "metadata": {"annotations": {"a": None}}},
            "metadata.annotations[...]: expected `str`, got `null`",
        ),
        (volcano_job(), "spec.tasks: expected at least one task, found none"),
        (volcano_job({}, {}, {"template": None}), "spec.tasks[2].template: expected a pod template"),
        (volcano_job({}, {"name": 7}), "spec.tasks[1].name: expected `str`, got `int`"),
        (
            workload("JobSet", "jobset.x-k8s.io/v1alpha2", {}),
            "spec.replicatedJobs: expected at least one job",
        ),
        (
            workload("JobSet", "jobset.x-k8s.io/v1alpha2", {"replicatedJobs": [{"name": "a"}]}),
            "spec.replicatedJobs[0].template.spec.template: expected a pod template",
        ),
        (
            workload("LeaderWorkerSet", "leaderworkerset.x-k8s.io/v1", {}),
            "spec.leaderWorkerTemplate.workerTemplate: ",
        ),
        (
            workload("PyTorchJob", "kubeflow.org/v1", {}),
            "spec.pytorchReplicaSpecs: expected at least one role",
        ),
        (
            workload("TFJob", "kubeflow.org/v1", {"tfReplicaSpecs": {"Worker": {}}}),
            "spec.tfReplicaSpecs[Worker].template: expected a pod template",
        ),
        (workload("RayCluster", "ray.io/v1", {}), "spec.headGroupSpec.template: expected a pod template"),
        (workload("RayService", "ray.io/v1", {}), "spec.rayClusterConfig.headGroupSpec.template: expected"),
        (workload("Pod", "v1", {}), "spec: expected a pod template with containers, found none"),
    ],
)
def test_an_object_of_the_wrong_shape_is_told_by_field(built: Object, told: str) -> None:
    assert told in refusal(built)


def test_parts_of_a_template_may_be_null_as_people_write_them() -> None:
    spec = {"template": {"metadata": None, "spec": {"containers": [{"name": "main"}]}}}
    gang = read({"apiVersion": "apps/v1", "kind": "Deployment", "metadata": None, "spec": spec})
    assert gang.pod_sets[0].count == 1


# --- sizes -------------------------------------------------------------------------------------------------


def test_two_hundred_pod_sets_are_read() -> None:
    gang = read(volcano_job(*({"replicas": 2} for _ in range(200))))
    assert sum(pod_set.minimum for pod_set in gang.pod_sets) == 400


def test_far_too_many_pod_sets_are_not() -> None:
    told = refusal(volcano_job(*({"replicas": 2} for _ in range(MAX_POD_SETS + 1))))
    assert told == f"{MAX_POD_SETS + 1} pod sets: expected at most {MAX_POD_SETS}"


def test_every_broken_count_of_an_object_is_told_and_the_good_ones_count() -> None:
    gang = read(
        volcano_job({"replicas": -1}, {"replicas": 4}, {"replicas": "x"}, spec={"minAvailable": 2**40})
    )
    assert [pod_set.count for pod_set in gang.pod_sets] == [0, 4, 0]
    assert [problem.partition(":")[0] for problem in gang.problems] == [
        "spec.tasks[0].replicas",
        "spec.tasks[2].replicas",
        "spec.minAvailable",
        "spec.minAvailable",
    ]


@pytest.mark.parametrize("key", ["fairway.dev/gang", "fairway.dev/topology-required"])
def test_a_message_does_not_repeat_a_very_long_value(key: str) -> None:
    gang = read(deployment(4, notes={key: "?" * 10**6}))
    assert 0 < len("".join(gang.problems)) < 1000


# --- anything at all ---------------------------------------------------------------------------------------

Path = tuple[str | int, ...]
ODD = st.one_of(
    st.none(),
    st.booleans(),
    st.sampled_from(
        [-1, 0, 2**31, 2**40, 2**70, 1.5, "", "x", "true", "\x00", "-1", [], {}, [None], {"a": None}]
    ),
    st.text(max_size=5),
)


def paths(value: object, path: Path = ()) -> list[Path]:
    """Every place within a JSON value."""
    found: list[Path] = [path]
    if isinstance(value, dict):
        for key, inner in value.items():
            found += paths(inner, (*path, key))
    elif isinstance(value, list):
        for index, inner in enumerate(value):
            found += paths(inner, (*path, index))
    return found


def changed(value: object, path: Path, new: object) -> object:
    """A copy with something else at one place."""
    if not path:
        return new
    result = copy.deepcopy(value)
    inner: object = result
    for step in path[:-1]:
        inner = inner[step]  # type: ignore[index]  # JSON of any shape
    inner[path[-1]] = new  # type: ignore[index]  # JSON of any shape
    return result


@CI
@given(st.data(), st.sampled_from(NAMES))
def test_an_example_with_anything_anywhere_is_read_or_told(data: st.DataObject, name: str) -> None:
    value: object = msgspec.json.decode(example(name))
    for _ in range(data.draw(st.integers(1, 3))):
        path = data.draw(st.sampled_from(paths(value)))
        value = changed(value, path, data.draw(ODD))
    found = read_workload(msgspec.json.encode(value))
    assert all(problem.strip() for problem in found.problems)
    if isinstance(found, NotRead):
        assert found.problems
        return
    for pod_set in found.pod_sets:
        assert 0 <= pod_set.minimum <= pod_set.count <= 2**31 - 1
        assert pod_set.template.spec.containers
    assert 0 <= found.copies <= 2**31 - 1


@CI
@given(st.sampled_from(KNOWN_KINDS), st.binary(max_size=40) | st.text(max_size=40).map(str.encode))
def test_any_bytes_as_any_kind_are_told(kind: tuple[str, str], raw: bytes) -> None:
    name, group = kind
    assert isinstance(read_gang(name, f"{group}/v1" if group else "v1", raw), NotRead)


def test_an_object_that_is_decoded_already_reads_like_its_bytes() -> None:
    built = volcano_job({"replicas": 2}, {"replicas": "x"}, notes={"fairway.dev/gang": "2"})
    meta, spec = msgspec.convert(built["metadata"], ObjectMeta), msgspec.json.encode(built["spec"])
    assert read_parts("Job", "batch.volcano.sh/v1alpha1", meta, spec) == read(built)


def test_what_was_told_before_an_object_became_unreadable_is_told_with_it() -> None:
    told = refusal(volcano_job({"replicas": -1}, {"template": None}))
    assert [line.partition(":")[0] for line in told.splitlines()] == [
        "spec.tasks[0].replicas",
        "spec.tasks[1].template",
    ]
