"""Objects that are half there, or that nobody meant well: no script ever fails, and every answer is one."""

import copy
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.interpreters.go_json import Json
from tests.interpreters.lua_vm import LuaVm, Object
from tests.interpreters.objects import customizations, example, example_names, vm, vm_for

HUGE = 10**300
_SCALARS = (
    st.none() | st.booleans() | st.sampled_from([0, -1, 1.5, HUGE, -HUGE, 2**31, "", "7", "☃", "x" * 300])
)
_VALUES = st.recursive(
    _SCALARS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=4), inner, max_size=3),
    max_leaves=6,
)


def _ask_everything(machine: LuaVm, obj: Object, items: list[Json] | None = None) -> None:
    """All operations; the machine checks what Karmada would: types, int32, names of dependencies."""
    replicas, _ = machine.replicas(obj)
    assert replicas >= 0
    if "componentResource" in machine.operations():
        components = machine.components(obj)
        names = [each.name for each in components]
        assert len(set(names)) == len(names)
        assert all(0 < len(name) <= 32 for name in names)
        assert all(each.replicas >= 0 for each in components)
        assert not components or any(each.replicas for each in components)
    if "replicaRevision" in machine.operations():
        machine.revised(obj, 5)
    machine.healthy(obj)
    machine.dependencies(obj)
    machine.aggregated(obj, items or [{"clusterName": "a", "status": obj.get("status")}])


@pytest.mark.parametrize("target", customizations())
def test_an_object_without_its_parts_asks_for_nothing_it_does_not_say(target: tuple[str, str]) -> None:
    api_version, kind = target
    without_parts: list[Object] = [
        {},
        {"spec": None, "status": None},
        {"spec": {}, "status": {}},
        {"spec": [], "status": []},
        {"spec": "all", "status": "well"},
        {"spec": 7, "status": True, "metadata": None},
        {"metadata": {"namespace": 3}},
    ]
    for fields in without_parts:
        metadata = {"name": "x", "namespace": "y"}
        obj = {"apiVersion": api_version, "kind": kind, "metadata": metadata, **fields}
        _ask_everything(vm(*target), obj)
        assert not vm(*target).healthy(obj), fields
        assert vm(*target).dependencies(obj) == set(), fields


def _paths(value: object, path: tuple[str | int, ...] = ()) -> list[tuple[str | int, ...]]:
    children = (
        value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    )
    return [path, *(found for key, child in children for found in _paths(child, (*path, key)))]


def _with(obj: Object, path: tuple[str | int, ...], value: object) -> Object:
    changed = copy.deepcopy(obj)
    place: Any = changed
    for key in path[:-1]:
        place = place[key]
    place[path[-1]] = value
    return changed


@pytest.mark.parametrize(
    "name",
    [
        "job-set-driver",
        "leader-worker-set-group",
        "train-job-patched",
        "paddle-job-servers",
        "jax-job-tpu",
        "volcano-job-mpi",
        "ray-cluster-suspended-group",
        "ray-job-hosts",
        "inference-service-multi-node",
        "llm-inference-service-disaggregated",
    ],
)
def test_whatever_stands_in_a_field_is_answered(name: str) -> None:
    obj = example(name)
    for path in _paths(obj["spec"], ("spec",)):
        value: object
        for value in (None, "7", HUGE, [None, 3, "x"]):
            _ask_everything(vm_for(obj), _with(obj, path, value))


@settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(name=st.sampled_from(example_names()), status=_VALUES, second=_VALUES, data=st.data())
def test_any_status_and_any_field_are_answered(
    name: str, status: object, second: object, data: st.DataObject
) -> None:
    obj = example(name)
    path = data.draw(st.sampled_from(_paths(obj["spec"], ("spec",))))
    changed = _with(obj, path, data.draw(_VALUES)) | {"status": status}
    items: list[Any] = [
        {"clusterName": "a", "status": status},
        {"clusterName": "b", "status": second},
        second,
    ]
    _ask_everything(vm_for(obj), changed, items)


_STATUS_FIELDS = (
    "conditions",
    "state",
    "replicatedJobsStatus",
    "jobsStatus",
    "replicaStatuses",
    "taskStatusCount",
    "readyReplicas",
    "running",
    "desiredCPU",
    "desiredGPU",
    "jobStatus",
    "jobDeploymentStatus",
)


@settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(
    target=st.sampled_from(sorted(customizations())),
    statuses=st.lists(st.dictionaries(st.sampled_from(_STATUS_FIELDS), _VALUES, max_size=6), max_size=3),
)
def test_fields_of_a_status_may_be_anything(target: tuple[str, str], statuses: list[Object]) -> None:
    items: list[Json] = [{"clusterName": "a", "status": status} for status in statuses]
    for status in statuses:
        obj = {"apiVersion": target[0], "kind": target[1], "metadata": {"name": "x"}, "status": status}
        _ask_everything(vm(*target), obj, items)


@pytest.mark.parametrize(
    ("value", "pods"),
    [
        (-1, 1),
        ("7", 1),
        (1.5, 1),
        (None, 1),
        (True, 1),
        (2**31, 2**31 - 1),
        (HUGE, 2**31 - 1),
        (0, 0),
        (7, 7),
    ],
)
def test_counts_are_read_as_the_capacity_service_reads_them(value: object, pods: int) -> None:
    obj = example("jax-job")
    obj["spec"]["jaxReplicaSpecs"]["Worker"]["replicas"] = value
    assert vm_for(obj).replicas(obj)[0] == pods


def test_many_templates_are_read_in_time() -> None:
    obj = example("volcano-job")
    obj["spec"]["tasks"] = [{**obj["spec"]["tasks"][0], "name": "t"}] * 500
    components = vm_for(obj).components(obj)
    assert len({each.name for each in components}) == 500
    assert vm_for(obj).replicas(obj)[0] == 1000
    assert vm_for(obj).dependencies(obj) == set()
