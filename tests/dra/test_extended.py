"""Extended resources that device classes serve."""

import msgspec
import pytest

from fairway.dra.allocation import Budget
from fairway.dra.extended import IMPLICIT_PREFIX, classes_by_resource, free_of_class, serving_class
from fairway.dra.in_use import in_use
from fairway.dra.selection import Selection
from fairway.kube.resource_slices import DeviceClass
from tests.dra.objects import Fields, Scene, device, device_class, devices, equals, held, on_node

GPU = "nvidia.com/gpu"


@pytest.mark.parametrize(
    ("classes", "served"),
    [
        pytest.param([], {}, id="no class"),
        pytest.param([device_class("a")], {}, id="a class without a name for it"),
        pytest.param([device_class("a", extended=GPU)], {GPU: "a"}, id="a class with one"),
        pytest.param(
            [
                device_class("a", extended=GPU, created="2026-01-02T00:00:00Z"),
                device_class("b", extended=GPU, created="2026-01-01T00:00:00Z"),
            ],
            {GPU: "a"},
            id="the newer one",
        ),
        pytest.param(
            [
                device_class("b", extended=GPU, created="2026-01-01T00:00:00Z"),
                device_class("a", extended=GPU, created="2026-01-01T00:00:00Z"),
            ],
            {GPU: "a"},
            id="the lower name of two equally old",
        ),
        pytest.param(
            [
                device_class("a", extended=GPU),
                device_class("b", extended=GPU, created="2026-01-01T00:00:00Z"),
            ],
            {GPU: "b"},
            id="one without a time is oldest",
        ),
    ],
)
def test_the_class_behind_a_resource(classes: list[DeviceClass], served: dict[str, str]) -> None:
    implicit = {IMPLICIT_PREFIX + known.metadata.name: known.metadata.name for known in classes}
    for order in (classes, classes[::-1]):
        found = {name: known.metadata.name for name, known in classes_by_resource(order).items()}
        assert found == {**implicit, **served}


@pytest.mark.parametrize(
    ("resource", "allocatable", "name"),
    [
        (GPU, {}, "gpu"),
        (GPU, {GPU: 0}, "gpu"),
        (GPU, {GPU: 8}, None),
        (IMPLICIT_PREFIX + "gpu", {GPU: 8}, "gpu"),
        ("amd.com/gpu", {}, None),
    ],
)
def test_a_device_plugin_goes_before_a_class(
    resource: str, allocatable: dict[str, int], name: str | None
) -> None:
    found = serving_class(resource, classes_by_resource([device_class("gpu", extended=GPU)]), allocatable)
    assert (found.metadata.name if found else None) == name


def free(scene: Scene, known: DeviceClass, limit: int = 100) -> int:
    answer = free_of_class(
        known, scene.node(), in_use(scene.claims), Selection(equals), limit=limit, budget=Budget(1000)
    )
    return answer.value


def test_free_devices_of_a_class() -> None:
    taint: Fields = {"key": "broken", "effect": "NoExecute"}
    scene = on_node(
        [*devices(5, model="x"), *devices(2, "other", model="y"), device("t", taints=[taint], model="x")],
        held("c", {"device": "gpu-0"}),
    )
    assert free(scene, device_class("gpu", "model=x")) == 4
    assert free(scene, device_class("all")) == 6
    assert free(scene, device_class("gpu", "model=x"), limit=3) == 3


def test_a_class_that_cannot_be_read_serves_nothing_and_says_why() -> None:
    scene = on_node(devices(2))
    broken = msgspec.convert({"metadata": {"name": "odd"}, "spec": {"selectors": [{}]}}, DeviceClass)
    answer = free_of_class(broken, scene.node(), in_use([]), Selection(equals), limit=5, budget=Budget(1000))
    assert (answer.value, answer.upper_bound) == (0, 0)
    assert answer.reasons == (
        "DeviceClass odd: spec.selectors[0] is no CEL selector: no other kind is known",
    )
