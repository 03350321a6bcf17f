"""Extended resources that device classes serve."""

import pytest

from fairway.dra.extended import IMPLICIT_PREFIX, classes_by_resource
from fairway.kube.resource_slices import DeviceClass
from tests.dra.objects import device_class

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
