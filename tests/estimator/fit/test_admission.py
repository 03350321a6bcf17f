"""Pods as the member's API server stores them: LimitRanges, RuntimeClasses, tolerations for devices."""

from collections.abc import Mapping
from typing import TypeVar

import msgspec
import pytest

from estimator.cluster.admission import AdmissionMirror, DeviceTolerations, device_tolerations
from estimator.cluster.report import Report
from estimator.fit.admission import AdmissionView, Admitted, admitted
from estimator.fit.device_tolerations import (
    NOTHING_ADDED,
    TolerationMode,
    TolerationPolicy,
    toleration_policy,
)
from fairway.kube.member_kinds import LimitRange, Namespace, RuntimeClass
from fairway.kube.templates import PodTemplate
from fairway.resources import pod_template_request
from fairway.taints import NO_SCHEDULE, Taint, Toleration
from tests.builders import Complaints, no_complaints

GPU = "nvidia.com/gpu"
Json = Mapping[str, object]
_T = TypeVar("_T")


def typed(stated: object, kind: type[_T]) -> _T:
    return msgspec.json.decode(msgspec.json.encode(stated), type=kind)


def limit_range(*limits: Json, name: str = "limits", namespace: str = "team") -> LimitRange:
    stated = {"metadata": {"name": name, "namespace": namespace}, "spec": {"limits": limits}}
    return typed(stated, LimitRange)


def runtime_class(name: str = "kata", **stated: object) -> RuntimeClass:
    return typed({"metadata": {"name": name}, "handler": name, **stated}, RuntimeClass)


def containers(*resources: Json) -> list[Json]:
    return [{"name": f"c{index}", "resources": stated} for index, stated in enumerate(resources)]


def template(*resources: Json, **spec: object) -> PodTemplate:
    return typed({"spec": {"containers": containers(*resources), **spec}}, PodTemplate)


def mirror(*objects: LimitRange | RuntimeClass, report: Report = no_complaints) -> AdmissionMirror:
    found = AdmissionMirror(report)
    for stated in objects:
        if isinstance(stated, LimitRange):
            found.limit_ranges.upsert(stated)
        else:
            found.runtime_classes.upsert(stated)
    found.limit_ranges.synced = found.runtime_classes.synced = True
    return found


def admit(
    asked: PodTemplate, *objects: LimitRange | RuntimeClass, policy: TolerationPolicy = NOTHING_ADDED
) -> Admitted:
    return admitted(asked, "team", AdmissionView(mirror(*objects), policy))


def limits(kind: str = "Container", **stated: Json) -> Json:
    return {"type": kind, **stated}


# --- LimitRanges: what containers are given ----------------------------------------------------------------

# Containers, entries of a LimitRange, what the whole pod then asks for.
DEFAULTS: dict[str, tuple[PodTemplate, list[Json], dict[str, int]]] = {
    "default requests": (
        template({}, {"requests": {"cpu": "2"}}),
        [limits(defaultRequest={"cpu": "100m", "memory": "1Ki"})],
        {"cpu": 2100, "memory": 2048},
    ),
    "a stated limit stands in before a default request": (
        template({"limits": {"cpu": "3"}}),
        [limits(defaultRequest={"cpu": "1"})],
        {"cpu": 3000},
    ),
    "a default limit is no request where one is defaulted": (
        template({}),
        [limits(default={"cpu": "4"}, defaultRequest={"cpu": "1"})],
        {"cpu": 1000},
    ),
    "a default limit is the default request where none is stated": (
        template({}),
        [limits(default={"cpu": "4"})],
        {"cpu": 4000},
    ),
    "a maximum is the default limit": (template({}), [limits(max={"cpu": "4"})], {"cpu": 4000}),
    "a minimum is the default request": (template({}), [limits(min={"cpu": "500m"})], {"cpu": 500}),
    "a default goes before a minimum": (
        template({}),
        [limits(min={"cpu": "1"}, default={"cpu": "4"})],
        {"cpu": 4000},
    ),
    "init containers and sidecars too": (
        template(
            {},
            initContainers=[
                {"name": "first", "resources": {"requests": {"cpu": "5"}}},
                {"name": "beside", "restartPolicy": "Always"},
            ],
        ),
        [limits(defaultRequest={"cpu": "1", "memory": 7})],
        {"cpu": 5000, "memory": 14},
    ),
    "extended resources": (template({}), [limits(default={GPU: 1})], {GPU: 1}),
    "the first of two entries": (
        template({}),
        [limits(defaultRequest={"cpu": "1"}), limits(defaultRequest={"cpu": "2"})],
        {"cpu": 1000},
    ),
    "nothing for pods": (template({}), [limits("Pod", max={"cpu": "4"})], {}),
    "pod-level requests do not count what is added later": (
        template({"requests": {"memory": 5}}, resources={"limits": {"cpu": "2", "memory": 9}}),
        [limits(defaultRequest={"cpu": "8", "memory": 8})],
        {"cpu": 2000, "memory": 5},
    ),
    "a null is not stated": (
        template({"requests": {"cpu": None}}),
        [limits(defaultRequest={"cpu": "1"})],
        {"cpu": 1000},
    ),
}


@pytest.mark.parametrize(("asked", "entries", "total"), DEFAULTS.values(), ids=DEFAULTS)
def test_defaults_of_limit_ranges(asked: PodTemplate, entries: list[Json], total: dict[str, int]) -> None:
    found = admit(asked, limit_range(*entries))
    assert pod_template_request(found.template.spec) == total
    elsewhere = admit(asked, limit_range(*entries, namespace="other"))
    assert elsewhere.template is asked


def test_limit_ranges_of_a_namespace_go_by_name() -> None:
    second = limit_range(limits(defaultRequest={"cpu": "2"}), name="b")
    first = limit_range(limits(defaultRequest={"cpu": "1"}), name="a")
    known = mirror(second, first)
    view = AdmissionView(known)
    version = known.version
    assert pod_template_request(admitted(template({}), "team", view).template.spec) == {"cpu": 1000}
    known.limit_ranges.delete("team/a")
    assert pod_template_request(admitted(template({}), "team", view).template.spec) == {"cpu": 2000}
    known.limit_ranges.delete("team/b")
    known.limit_ranges.delete("team/b")
    assert admitted(template({}), "team", view) == Admitted(template({}))
    assert known.version == version + 2


# --- LimitRanges: what is refused --------------------------------------------------------------------------

ONE = {"requests": {"cpu": "1"}, "limits": {"cpu": "1"}}

# Containers, an entry of a LimitRange, the API server's words.
REFUSED: dict[str, tuple[PodTemplate, Json, str]] = {
    "below the minimum": (
        template({"requests": {"cpu": "50m"}}),
        limits(min={"cpu": "100m"}),
        "minimum cpu usage per Container is 100m, but request is 50m",
    ),
    "above the maximum": (
        template(ONE),
        limits(max={"cpu": "500m"}),
        "maximum cpu usage per Container is 500m, but limit is 1",
    ),
    "a request above a default limit": (
        template({"requests": {"cpu": "2"}}),
        limits(max={"cpu": "1"}),
        'spec.containers[0].resources.requests: Invalid value: "2": '
        "must be less than or equal to cpu limit of 1",
    ),
    "extended resources are not overcommitted": (
        template({"requests": {GPU: "1"}}),
        limits(default={GPU: "2"}),
        f'spec.containers[0].resources.requests: Invalid value: "1": must be equal to {GPU} limit of 2',
    ),
    "an init container": (
        template(ONE, initContainers=containers({"limits": {"cpu": "8"}})),
        limits(max={"cpu": "4"}),
        "maximum cpu usage per Container is 4, but limit is 8",
    ),
    "a ratio": (
        template({"requests": {"cpu": "1"}, "limits": {"cpu": "3"}}),
        limits(maxLimitRequestRatio={"cpu": "2"}),
        "cpu max limit to request ratio per Container is 2, but provided ratio is 3.000000",
    ),
    "a ratio without a limit": (
        template({"requests": {"cpu": "1"}}),
        limits(maxLimitRequestRatio={"cpu": "2"}),
        "cpu max limit to request ratio per Container is 2, but no limit is specified or limit is 0",
    ),
    "a ratio without a request": (
        template({}),
        limits(maxLimitRequestRatio={"cpu": "2"}),
        "cpu max limit to request ratio per Container is 2, but no request is specified or request is 0",
    ),
    "a pod's maximum": (
        template(ONE, ONE),
        limits("Pod", max={"cpu": "1500m"}),
        "maximum cpu usage per Pod is 1500m, but limit is 2",
    ),
    "a pod's maximum without limits": (
        template({"requests": {"cpu": "1"}}),
        limits("Pod", max={"cpu": "4"}),
        "maximum cpu usage per Pod is 4.  No limit is specified",
    ),
    "a pod's minimum, nothing stated": (
        template({}),
        limits("Pod", min={"memory": "1Gi"}),
        "minimum memory usage per Pod is 1Gi.  No request is specified",
    ),
    "a pod's minimum by its own limit": (
        template({}, resources={"requests": {"cpu": "4"}, "limits": {"cpu": "6"}}),
        limits("Pod", min={"cpu": "5"}, max={"cpu": "8"}),
        "minimum cpu usage per Pod is 5, but request is 4",
    ),
    "several things": (
        template({"requests": {"cpu": "1", "memory": 1}, "limits": {"cpu": "9", "memory": 9}}),
        limits(max={"cpu": "4", "memory": 4}),
        "[maximum cpu usage per Container is 4, but limit is 9, "
        "maximum memory usage per Container is 4, but limit is 9]",
    ),
    "amounts beyond 64 bits in milli-units": (
        template({"requests": {"memory": "9Ei"}, "limits": {"memory": "9Ei"}}),
        limits(max={"memory": "7Ei"}),
        "maximum memory usage per Container is 7Ei, but limit is 9Ei",
    ),
}


@pytest.mark.parametrize(("asked", "entry", "words"), REFUSED.values(), ids=REFUSED)
def test_refused_by_limit_ranges(asked: PodTemplate, entry: Json, words: str) -> None:
    assert admit(asked, limit_range(entry)).refused == words


@pytest.mark.parametrize(
    ("asked", "entry"),
    [
        (template(ONE), limits(min={"cpu": "1"}, max={"cpu": "1"}, maxLimitRequestRatio={"cpu": "1"})),
        (template(ONE, ONE), limits("Pod", max={"cpu": "2"})),
        (template({}), limits(min={"cpu": "1"}, max={"cpu": "2"})),
        (template({}), limits("PersistentVolumeClaim", max={"storage": "1"}, min={"cpu": "5"})),
    ],
)
def test_accepted_by_limit_ranges(asked: PodTemplate, entry: Json) -> None:
    assert admit(asked, limit_range(entry)).refused == ""


# --- RuntimeClasses ----------------------------------------------------------------------------------------

OVERHEAD = {"podFixed": {"cpu": "250m", "memory": "1Mi"}}
PLACED = {"nodeSelector": {"runtime": "kata"}, "tolerations": [{"key": "kata", "operator": "Exists"}]}


def test_a_runtime_class_adds_overhead_selector_and_tolerations() -> None:
    own = {"key": "spot", "operator": "Exists"}
    asked = template(ONE, runtimeClassName="kata", nodeSelector={"disk": "ssd"}, tolerations=[own])
    found = admit(asked, runtime_class(overhead=OVERHEAD, scheduling=PLACED))
    assert found.refused == ""
    assert pod_template_request(found.template.spec) == {"cpu": 1250, "memory": 1 << 20}
    assert found.template.spec.node_selector == {"disk": "ssd", "runtime": "kata"}
    assert [t.key for t in found.template.spec.tolerations or ()] == ["spot", "kata"]


# Stated in the pod, in its RuntimeClass, and how it is refused.
REJECTED: dict[str, tuple[Json, list[RuntimeClass], str]] = {
    "no such class": ({"runtimeClassName": "kata"}, [], 'pod rejected: RuntimeClass "kata" not found'),
    "a conflict of selectors": (
        {"runtimeClassName": "kata", "nodeSelector": {"runtime": "runc"}},
        [runtime_class(scheduling=PLACED)],
        "conflict: runtimeClass.scheduling.nodeSelector[runtime] = kata; "
        "pod.spec.nodeSelector[runtime] = runc",
    ),
    "another overhead": (
        {"runtimeClassName": "kata", "overhead": {"cpu": "1"}},
        [runtime_class(overhead=OVERHEAD)],
        "pod rejected: Pod's Overhead doesn't match RuntimeClass's defined Overhead",
    ),
    "the same overhead": (
        {"runtimeClassName": "kata", "overhead": {"cpu": "0.25", "memory": 1 << 20}},
        [runtime_class(overhead=OVERHEAD)],
        "",
    ),
    "overhead of a class without": (
        {"runtimeClassName": "kata", "overhead": {"cpu": "1"}},
        [runtime_class()],
        "pod rejected: Pod Overhead set without corresponding RuntimeClass defined Overhead",
    ),
    "overhead without a class": (
        {"overhead": {"cpu": "1"}},
        [],
        "pod rejected: Pod Overhead set without corresponding RuntimeClass defined Overhead",
    ),
}


@pytest.mark.parametrize(("spec", "classes", "words"), REJECTED.values(), ids=REJECTED)
def test_rejected_by_runtime_classes(spec: Json, classes: list[RuntimeClass], words: str) -> None:
    assert admit(template(ONE, **spec), *classes).refused == words


# --- tolerations for devices -------------------------------------------------------------------------------


def taints(*keys: str, effect: str = NO_SCHEDULE) -> list[tuple[Taint, ...]]:
    return [(), *((Taint(key, "present", effect),) for key in keys)]


def seen(**pods: tuple[int, int]) -> DeviceTolerations:
    """By resource (of nvidia.com) how many pods tolerate its name, and how many do not."""
    found = DeviceTolerations()
    for name, (those_with, those_without) in pods.items():
        found.seen(f"nvidia.com/{name}", True, those_with)
        found.seen(f"nvidia.com/{name}", False, those_without)
    return found


AUTO, ON, OFF = TolerationMode.AUTO, TolerationMode.ON, TolerationMode.OFF

# How it is set, what pods are seen, taints, for which resources tolerations are added, which are assumed.
POLICIES: dict[str, tuple[TolerationMode, DeviceTolerations, list[tuple[Taint, ...]], set[str], set[str]]] = {
    "pods have it": (AUTO, seen(gpu=(3, 0)), taints(GPU), {GPU}, {GPU}),
    "a pod lacks it": (AUTO, seen(gpu=(3, 1)), taints(GPU), set(), set()),
    "no pod tells": (AUTO, seen(), taints(GPU), {GPU}, {GPU}),
    "pods of others lack it": (AUTO, seen(nic=(0, 1)), taints(GPU), set(), set()),
    "pods of others have it": (AUTO, seen(nic=(1, 0)), taints(GPU), {GPU}, {GPU}),
    "on": (ON, seen(gpu=(0, 1)), taints(GPU), {GPU}, set()),
    "off": (OFF, seen(gpu=(1, 0)), taints(GPU), set(), set()),
    "no such taint": (ON, seen(gpu=(1, 0)), taints("spot", "kubernetes.io/os"), set(), set()),
    "an effect that is not tolerated": (ON, seen(), taints(GPU, effect="NoExecute"), set(), set()),
}


@pytest.mark.parametrize(("mode", "pods", "sets", "added", "assumed"), POLICIES.values(), ids=POLICIES)
def test_toleration_policies(
    mode: TolerationMode,
    pods: DeviceTolerations,
    sets: list[tuple[Taint, ...]],
    added: set[str],
    assumed: set[str],
) -> None:
    assert toleration_policy(mode, pods, sets) == TolerationPolicy(frozenset(added), frozenset(assumed))


def test_what_pods_show_is_taken_back_with_them() -> None:
    pods = seen(gpu=(1, 1))
    before = pods.version
    pods.seen(GPU, False, -1)
    assert pods.evidence(GPU) is True
    assert not pods.any_without
    pods.seen(GPU, True, -1)
    assert pods.evidence(GPU) is None
    assert pods.version == before + 2


@pytest.mark.parametrize(
    ("tolerations", "shown"),
    [
        ([], ((GPU, False),)),
        ([Toleration("spot", "Exists")], ((GPU, False),)),
        ([Toleration(GPU, "Exists", "", NO_SCHEDULE)], ((GPU, True),)),
        ([Toleration("", "Exists")], ()),
    ],
)
def test_what_a_pod_shows(tolerations: list[Toleration], shown: tuple[tuple[str, bool], ...]) -> None:
    assert device_tolerations([GPU], tolerations) == shown


ADDED = TolerationPolicy(frozenset({GPU}))

# The pod, and the keys of its tolerations once stored.
TOLERATING: dict[str, tuple[PodTemplate, list[str]]] = {
    "a request": (template({"requests": {GPU: 1}}), [GPU]),
    "a limit stands in": (template({"limits": {GPU: 1}}), [GPU]),
    "an init container": (template({}, initContainers=containers({"limits": {GPU: 1}})), [GPU]),
    "another resource": (template({"limits": {"amd.com/gpu": 1}}), []),
    "beside others": (
        template({"limits": {GPU: 1}}, tolerations=[{"key": "spot", "operator": "Exists"}]),
        ["spot", GPU],
    ),
    "tolerated by itself": (
        template({"limits": {GPU: 1}}, tolerations=[{"key": GPU, "operator": "Exists"}]),
        [GPU],
    ),
    "of one value only": (
        template({"limits": {GPU: 1}}, tolerations=[{"key": GPU, "value": "x"}]),
        [GPU, GPU],
    ),
}


@pytest.mark.parametrize(("asked", "keys"), TOLERATING.values(), ids=TOLERATING)
def test_tolerations_for_devices(asked: PodTemplate, keys: list[str]) -> None:
    found = admit(asked, policy=ADDED)
    assert [t.key for t in found.template.spec.tolerations or ()] == keys
    assert found.unknown == ()


def test_a_device_given_by_a_limit_range_is_tolerated_for() -> None:
    found = admit(template({}), limit_range(limits(default={GPU: 1})), policy=ADDED)
    assert [t.key for t in found.template.spec.tolerations or ()] == [GPU]


def test_what_is_assumed_is_told() -> None:
    policy = TolerationPolicy(frozenset({GPU}), frozenset({GPU}))
    assert GPU in admit(template({"limits": {GPU: 1}}), policy=policy).unknown[0]
    assert admit(template({}), policy=policy).unknown == ()


# --- what is not known, what is wrong ----------------------------------------------------------------------


def test_nothing_to_add_is_the_very_same_object() -> None:
    asked = template(ONE, nodeSelector={"runtime": "kata"}, runtimeClassName="kata")
    bare = runtime_class(scheduling={"nodeSelector": {"runtime": "kata"}})
    assert admit(asked, bare, policy=ADDED).template is asked
    assert admit(asked, bare, limit_range(limits(defaultRequest={"cpu": "1"}))).template is asked


@pytest.mark.parametrize(
    ("asked", "told"),
    [
        (template({"limits": {"cpu": 1}}), ["LimitRanges cannot be read"]),
        (template({"limits": {"cpu": 1, "memory": 1}}), []),
        (
            template({"limits": {"cpu": 1, "memory": 1}}, runtimeClassName="kata"),
            ["what kata adds is not known"],
        ),
        (
            template({"limits": {"cpu": 1, "memory": 1}}, initContainers=containers({})),
            ["LimitRanges cannot be read"],
        ),
    ],
)
def test_kinds_that_cannot_be_read_are_told_where_they_matter(asked: PodTemplate, told: list[str]) -> None:
    found = admitted(asked, "team", AdmissionView(AdmissionMirror(no_complaints)))
    assert found.template is asked
    assert found.refused == ""
    assert len(found.unknown) == len(told)
    assert all(part in text for part, text in zip(told, found.unknown, strict=True))


def test_quantities_that_are_none_are_told_and_the_rest_works() -> None:
    told = Complaints()
    stated = limit_range(
        limits(default={"cpu": "many"}, max={"memory": "?"}), limits(defaultRequest={"cpu": "1"})
    )
    known = mirror(stated, runtime_class(overhead={"podFixed": {"cpu": "x", "memory": "8"}}), report=told)
    assert [(resource, key) for resource, key, _ in told] == [
        ("limitranges", "team/limits"),
        ("limitranges", "team/limits"),
        ("runtimeclasses", "kata"),
    ]
    assert "spec.limits[0].max.memory: '?' is not a Kubernetes quantity" in told[0][2]
    assert "overhead.podFixed.cpu: 'x' is not a Kubernetes quantity" in told[2][2]
    found = admitted(template({}, runtimeClassName="kata"), "team", AdmissionView(known))
    assert pod_template_request(found.template.spec) == {"cpu": 1000, "memory": 8}


@pytest.mark.parametrize(
    "asked",
    [
        template({"limits": {"cpu": "?"}}),
        template({}, resources={"limits": {"cpu": "?"}}),
        template({"requests": {"memory": "?"}}, resources={"limits": {"cpu": 1}}),
        template({}, runtimeClassName="kata", overhead={"cpu": "?"}),
    ],
)
def test_quantities_of_the_pod_are_left_to_whoever_reads_it(asked: PodTemplate) -> None:
    entry = limits(default={"memory": 1}, max={"cpu": 1})
    found = admit(asked, limit_range(entry), runtime_class(overhead=OVERHEAD))
    assert found.refused == ""


def test_names_of_a_megabyte_are_not_repeated_in_full() -> None:
    name = "x" * (1 << 20)
    entry = limits(max={name: "1"}, default={"cpu": "?"})
    told = Complaints()
    known = mirror(
        limit_range(entry, name=name),
        runtime_class(name=name, scheduling={"nodeSelector": {name: name}}),
        report=told,
    )
    view = AdmissionView(known)
    texts = [admitted(template({"limits": {name: 2}}), "team", view).refused]
    texts.append(
        admitted(template({}, runtimeClassName=name, nodeSelector={name: "y"}), "team", view).refused
    )
    texts.append(admit(template({}, runtimeClassName=name)).refused)
    assert all(texts)
    assert max(map(len, (*texts, *told[0]))) < 500


def test_labels_of_namespaces() -> None:
    namespaces = AdmissionMirror(no_complaints).namespaces
    namespaces.upsert(typed({"metadata": {"name": "team", "labels": {"a": "b"}}}, Namespace))
    namespaces.upsert(typed({"metadata": {"name": "bare"}}, Namespace))
    assert not namespaces.synced
    assert namespaces.labels("team") == {"a": "b"}
    assert namespaces.labels("bare") == {}
    namespaces.delete("team")
    assert namespaces.labels("team") is None
    assert list(namespaces.keys()) == ["bare"]
