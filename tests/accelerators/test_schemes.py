"""All schemes together: they keep out of each other's way, and say quickly that a pod holds nothing."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fairway.accelerators.annotation import MOST
from fairway.accelerators.devices import ANY_SLOTS, PPM, Device, DeviceFilter, Read, Scheme
from fairway.accelerators.hami_vendors import VENDORS
from fairway.accelerators.schemes import MARKS, SCHEMES
from tests.accelerators.facts import ask, node, node_of, pod, pod_of

each_scheme = pytest.mark.parametrize("scheme", SCHEMES, ids=lambda scheme: scheme.name)


def test_schemes_have_names_of_their_own_in_a_fixed_order() -> None:
    names = [scheme.name for scheme in SCHEMES]
    assert len(set(names)) == len(names)
    assert names[0] == "hami-nvidia"
    assert names[-5:] == ["volcano-vgpu", "volcano-gpu", "gpushare", "kai", "alnair"]


def test_no_resource_is_managed_by_two_schemes() -> None:
    managed = [name for scheme in SCHEMES for name in scheme.managed]
    assert len(set(managed)) == len(managed)


@each_scheme
def test_a_plain_node_and_a_plain_pod_take_no_part(scheme: Scheme) -> None:
    assert scheme.devices(node({"cpu": 8}, {"a": "b"}, {"c": "d"})) is None
    assert scheme.uses(pod({"a": "b"}, {"nvidia.com/gpu": 1}, labels={"c": "d"})) == Read(())
    assert scheme.claims(ask({"cpu": 1, "example.com/x": 2}, a="b")) is None


@given(
    st.dictionaries(
        st.sampled_from([*sorted(MARKS), "gpu-fraction", "a"]), st.text("GPU-1,:;_05", max_size=20)
    ),
    st.dictionaries(st.sampled_from([*sorted(MARKS), "runai-gpu-group/a", "b"]), st.text("ab", max_size=2)),
)
def test_a_pod_without_a_mark_holds_nothing(annotations: dict[str, str], labels: dict[str, str]) -> None:
    made = pod(annotations, labels=labels)
    for scheme in SCHEMES:
        uses = scheme.uses(made)
        if MARKS.isdisjoint(annotations) and MARKS.isdisjoint(labels):
            assert uses == Read(()), scheme.name


@pytest.mark.parametrize(
    "fixture",
    [
        "gpushare/pod-indexed.yaml",
        "gpushare/pod-allocation.yaml",
        "kai/half-pod.yaml",
        "kai/memory-pod.yaml",
        "kai/two-devices-pod.yaml",
        "alnair/pod.yaml",
        "volcano/gpu-pod-memory.yaml",
        "volcano/gpu-pod-number.yaml",
    ],
)
def test_a_pod_holds_devices_of_one_scheme_and_carries_its_mark(fixture: str) -> None:
    held = pod_of(fixture)
    assert len([scheme.name for scheme in SCHEMES if scheme.uses(held).found]) == 1
    assert not (MARKS.isdisjoint(held.annotations) and MARKS.isdisjoint(held.labels))


@pytest.mark.parametrize(
    ("fixture", "names"),
    [
        ("gpushare/node.yaml", ["gpushare"]),
        ("kai/node.yaml", ["kai"]),
        ("alnair/node.yaml", ["alnair"]),
        ("volcano/gpu-node.yaml", ["volcano-gpu"]),
    ],
)
def test_a_node_takes_part_in_its_scheme(fixture: str, names: list[str]) -> None:
    assert [scheme.name for scheme in SCHEMES if scheme.devices(node_of(fixture))] == names


RESOURCES = sorted(
    {name for scheme in SCHEMES for name in scheme.managed}
    | {vendor.count for vendor in VENDORS}
    | {"volcano.sh/vgpu-number", "volcano.sh/gpu-number", "volcano.sh/gpu-memory"}
    | {"aliyun.com/gpu-mem", "aliyun.com/gpu-core.percentage", "alnair/vgpu-memory", "alnair/vgpu-compute"}
)
ANNOTATIONS = ("gpu-fraction", "gpu-memory", "gpu-fraction-num-devices", "huawei.com/vnpu-mode")


@given(
    st.lists(st.dictionaries(st.sampled_from(RESOURCES), st.integers(-2, 2**63 - 1)), max_size=3),
    st.dictionaries(st.sampled_from(ANNOTATIONS), st.text("0.59hami-core", max_size=12)),
)
def test_claims_are_within_bounds_or_refused(
    containers: list[dict[str, int]], annotations: dict[str, str]
) -> None:
    for scheme in SCHEMES:
        read = scheme.claims(ask(*containers, **annotations))
        if read is None:
            continue
        assert bool(read.found) != bool(read.problems)
        for claim in read.found:
            assert 1 <= claim.count <= MOST
            assert 0 <= claim.memory <= MOST
            assert 0 <= claim.memory_ppm <= PPM
            assert 0 <= claim.cores <= 100 or scheme.name == "gpushare"
            assert 0 <= claim.cores_ppm <= PPM


@each_scheme
def test_schemes_can_be_keys_of_caches(scheme: Scheme) -> None:
    assert {scheme: 1}[scheme] == 1


@pytest.mark.parametrize(
    ("filter", "allowed"),
    [
        (DeviceFilter(), True),
        (DeviceFilter(products=("h100", "a100")), True),
        (DeviceFilter(products=("a100",)), False),
        (DeviceFilter(not_products=("H100",)), False),
        (DeviceFilter(ids=("x",)), True),
        (DeviceFilter(ids=("X",)), False),
        (DeviceFilter(not_ids=("x",)), False),
        (DeviceFilter(mode="mig"), False),
        (DeviceFilter(mode="hami-core"), True),
    ],
)
def test_filters_match_products_by_part_and_ids_and_modes_whole(filter: DeviceFilter, allowed: bool) -> None:
    assert filter.allows(Device("x", 1, product="NVIDIA H100", mode="hami-core")) is allowed
    assert DeviceFilter(mode="mig").allows(Device("x", 1, slots=ANY_SLOTS))
