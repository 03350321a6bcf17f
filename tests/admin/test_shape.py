"""Workloads said in flags, and what they mean in a cluster."""

from collections.abc import Callable
from dataclasses import replace
from fractions import Fraction

import pytest

from admin.shape import Shape, ShapeError, parse_fraction, parse_resource
from admin.shape_gang import NotHere, gang_in
from estimator.capacity.summary import Fractions, SliceShape, Summary
from fairway.accelerators.builtin import builtin_catalogue
from fairway.resources import pod_template_request
from fairway.workloads.gang import Gang, TopologyMode, TopologyRequest
from tests.admin.examples import A100, GPU, alpha, bravo, charlie, whole

CATALOGUE = builtin_catalogue()


def gang(shape: Shape, cluster: Summary) -> Gang:
    return gang_in(shape, cluster, CATALOGUE)


def requests(found: Gang) -> dict[str, int]:
    return pod_template_request(found.pod_sets[0].template.spec)


def sharing(scheme: str) -> Summary:
    product = replace(whole(A100, [8]), fractions=(Fractions(scheme, 8, 8_000, 1_000, 81_920, 8),))
    return Summary("s", 1, 0, (product,))


def test_pods_of_whole_devices_become_a_gang_that_leaves_tolerations_to_admission() -> None:
    shape = Shape(gpus=8, nodes=16, cpu="32", memory="64Gi", within="rack", copies=2, namespace="team")
    found = gang(shape, bravo())
    assert requests(found) == {GPU: 8, "cpu": 32_000, "memory": 64 << 30}
    assert (found.pod_sets[0].count, found.copies, found.namespace, found.is_gang) == (16, 2, "team", True)
    assert found.topology == TopologyRequest(TopologyMode.REQUIRED, "rack")
    assert found.pod_sets[0].template.spec.tolerations is None
    assert str(shape) == "16 pods of 8 GPUs, 32 CPUs, 64Gi memory, within one rack"


def test_a_product_becomes_affinity_to_the_labels_that_tell_it() -> None:
    found = gang(Shape(gpus=1, product="h100"), bravo())
    affinity = found.pod_sets[0].template.spec.affinity
    assert affinity is not None
    assert affinity.node_affinity is not None
    selector = affinity.node_affinity.required_during_scheduling_ignored_during_execution
    assert selector is not None
    (term, *_) = [
        term.match_expressions[0]
        for term in selector.node_selector_terms or ()
        if term.match_expressions and term.match_expressions[0].key == "nvidia.com/gpu.product"
    ]
    assert (term.operator, term.values) == ("In", ["NVIDIA-H100-80GB-HBM3"])


def test_devices_are_asked_for_by_the_name_that_the_cluster_has() -> None:
    amd = Summary("amd", 1, 0, (replace(whole("AMD-MI300X", [8]), resource="amd.com/gpu"),))
    assert requests(gang(Shape(gpus=8), amd)) == {"amd.com/gpu": 8}
    assert requests(gang(Shape(gpus=8), charlie())) == {GPU: 8}
    assert requests(gang(Shape(resources=(("example.com/npu", "2"),)), amd)) == {"example.com/npu": 2}


@pytest.mark.parametrize(
    ("scheme", "shape", "asked", "annotations"),
    [
        ("hami-nvidia", Shape(fraction=Fraction("0.5")), {GPU: 1, "nvidia.com/gpumem-percentage": 50}, None),
        ("hami-nvidia", Shape(gpu_memory="20Gi"), {GPU: 1, "nvidia.com/gpumem": 20_480}, None),
        (
            "volcano-vgpu",
            Shape(fraction=Fraction("0.251")),
            {"volcano.sh/vgpu-number": 1, "volcano.sh/vgpu-memory-percentage": 26},
            None,
        ),
        ("kai", Shape(fraction=Fraction("0.5")), {}, {"gpu-fraction": "0.5"}),
        ("kai", Shape(gpu_memory="1Gi"), {}, {"gpu-memory": "1024"}),
        ("gpushare", Shape(gpu_memory="1500Mi"), {"aliyun.com/gpu-mem": 2}, None),
    ],
)
def test_a_part_of_a_device_is_asked_for_in_the_words_of_the_scheme(
    scheme: str, shape: Shape, asked: dict[str, int], annotations: dict[str, str] | None
) -> None:
    found = gang(shape, sharing(scheme))
    assert requests(found) == asked
    assert found.pod_sets[0].template.metadata.annotations == annotations


def test_a_tpu_slice_is_all_its_hosts_in_one_node_pool() -> None:
    found = gang(Shape(tpu_topology="4x4"), charlie())
    assert requests(found) == {"google.com/tpu": 4}
    assert found.pod_sets[0].count == 4
    assert found.topology == TopologyRequest(TopologyMode.REQUIRED, "cloud.google.com/gke-nodepool")
    selector = found.pod_sets[0].template.spec.node_selector
    assert selector == {"cloud.google.com/gke-tpu-topology": "4x4"}
    one = replace(charlie(), slices=(SliceShape("v5e", "2x2", 1, 3, 3, 0, 0),))
    assert gang(Shape(tpu_topology="2x2"), one).topology is None


@pytest.mark.parametrize(
    ("shape", "cluster", "said"),
    [
        (Shape(gpus=1, product="h200"), bravo, "no product like 'h200' here; there is NVIDIA-H100-80GB-HBM3"),
        (Shape(tpu_topology="8x8"), charlie, "no TPU slices of 8x8 here; there is tpu-v5-lite-podslice 2x4"),
        (Shape(tpu_topology="4x4"), bravo, "there is none"),
        (Shape(fraction=Fraction("0.5")), bravo, "nothing shares devices here"),
        (Shape(fraction=Fraction("0.5")), lambda: sharing("gpushare"), "there is gpushare"),
        (
            Shape(tpu_topology="4x4"),
            lambda: replace(charlie(), slices=(*charlie().slices, SliceShape("v6e", "4x4", 2, 1, 1, 0, 0))),
            "is several kinds of slices here",
        ),
    ],
)
def test_what_a_cluster_lacks_is_its_verdict(shape: Shape, cluster: Callable[[], Summary], said: str) -> None:
    with pytest.raises(NotHere) as raised:
        gang(shape, cluster())
    assert said in str(raised.value)


@pytest.mark.parametrize(
    ("flags", "said"),
    [
        ({}, "nothing is asked for"),
        ({"nodes": 3}, "nothing is asked for"),
        ({"gpus": 1, "fraction": Fraction("0.5")}, "exclude each other"),
        ({"gpus": 1, "tpu_topology": "4x4"}, "exclude each other"),
        ({"fraction": Fraction("0.5"), "gpu_memory": "1Gi"}, "give one"),
        ({"fraction": Fraction("1")}, "less than 1"),
        ({"tpu_topology": "4by4"}, "expected AxB or AxBxC"),
        ({"gpus": -1}, "--gpus -1"),
        ({"gpus": 1, "nodes": 0}, "--nodes 0"),
        ({"gpus": 1, "copies": 10**7}, "--copies 10000000"),
        ({"cpu": "many"}, "cpu"),
        ({"gpu_memory": "20GB"}, "memory"),
    ],
)
def test_flags_that_make_up_no_shape_are_told(flags: dict[str, object], said: str) -> None:
    with pytest.raises(ShapeError) as raised:
        Shape(**flags)  # type: ignore[arg-type]  # also of wrong types
    assert said in str(raised.value)


def test_amounts_on_the_command_line() -> None:
    assert parse_resource("nvidia.com/gpu=8") == ("nvidia.com/gpu", "8")
    assert parse_fraction("0.5") == Fraction(1, 2)
    assert parse_fraction(".25") == Fraction(1, 4)
    for text in ("nvidia.com/gpu", "=8", "x="):
        with pytest.raises(ShapeError):
            parse_resource(text)
    for text in ("half", "1/2", "1e-9", "0.5 ", "-0.5", "9"):
        with pytest.raises(ShapeError, match="--fraction"):
            parse_fraction(text)


def test_alpha_shares_by_hami_under_an_older_name() -> None:
    assert requests(gang(Shape(fraction=Fraction("0.5")), alpha()))["nvidia.com/gpumem-percentage"] == 50
