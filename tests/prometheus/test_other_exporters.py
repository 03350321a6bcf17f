"""TPU, AMD, Neuron and Gaudi: whose a device is, what becomes of its numbers, and what is not believed."""

import math
from collections.abc import Mapping

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fairway.kube.node_devices import Health, NodeDevice, NodeDevices
from fairway.prometheus.answer import Sample
from fairway.prometheus.cluster import Cluster
from fairway.prometheus.devices import node_devices
from fairway.prometheus.exporters import METRICS, Exporter, Value
from fairway.prometheus.merging import merged
from fairway.prometheus.neuron_nodes import neuron_nodes
from fairway.prometheus.told import Told
from tests.builders import NodeBuilder, PodBuilder, node, pod
from tests.prometheus.series import AT_S, cluster

Labels = dict[str, str]
MEASURED = (Value.P50, Value.P95, Value.MAX, Value.SAMPLES)


def told(exporter: Exporter, *series: tuple[Labels, Mapping[Value, float]]) -> Told:
    """What is told of devices, or cores, with these labels and numbers."""
    metrics = METRICS[exporter]
    values: dict[Value, list[Sample]] = {}
    for labels, numbers in series:
        for value, number in numbers.items():
            of_chip = value in metrics.faults and metrics.faults[value].of_chip
            keys = metrics.identity if of_chip else metrics.keys
            values.setdefault(value, []).append(
                Sample({key: labels[key] for key in keys if key in labels}, number)
            )
    return Told(
        exporter,
        AT_S,
        tuple(Sample(labels, 1.0) for labels, _ in series),
        values={value: tuple(samples) for value, samples in values.items()},
    )


def used(percent: float, **more: float) -> dict[Value, float]:
    """A device that was used so much, and no more is told of it."""
    named = {Value[name.upper()]: number for name, number in more.items()}
    return {**dict.fromkeys(MEASURED, percent), Value.SAMPLES: 20.0, **named}


def devices(read: Told, there: Cluster) -> list[NodeDevice]:
    return [device for one in node_devices(read, there).found for device in one.devices]


def p50(device: NodeDevice) -> int | None:
    return device.window.utilization_p50 if device.window else None


def tpu(chip: str, **more: str) -> Labels:
    return {"accelerator_id": chip, "model": "tpu-v5p-slice", "node": "g1", **more}


def neuron(core: int | str, instance: str = "i-1", **more: str) -> Labels:
    return {"instance_id": instance, "neuroncore": str(core), "node": "g1", **more}


def amd(gpu: int, **more: str) -> Labels:
    return {"hostname": "g1", "gpu_id": str(gpu), "serial_number": "S1", **more}


GAUDI = {"UUID": "U", "node": "g1"}


def test_the_kth_number_of_a_runtime_is_the_kth_chip_of_its_host() -> None:
    runtime = told(
        Exporter.TPU,
        *((tpu(f"77-{number}"), used(percent)) for number, percent in ((404, 10), (405, 20), (1012, 30))),
        (tpu("78-7", node="g2"), used(40)),
    )
    host = told(
        Exporter.TPU_HOST,
        *((tpu(f"77-{number}"), used(1)) for number in range(4)),
        (tpu("78-0", node="g2"), used(1)),
    )
    nodes: tuple[NodeDevices, ...] = ()
    for one in (runtime, host):
        nodes = merged(nodes, node_devices(one, cluster()).found, AT_S)
    found = {device.id: p50(device) for one in nodes for device in one.devices}
    # The fourth is told of by the host alone.
    assert found == {"77-0": 10, "77-1": 20, "77-2": 30, "77-3": 1, "78-0": 40}


LEARNER = pod("learner", "team").on("g1")
TWO_CHIPS = {"aws.amazon.com/neuron": 2}


@pytest.mark.parametrize(
    ("pods", "holder", "said"),
    [
        ([LEARNER.requests(TWO_CHIPS)], "learner", ""),
        ([LEARNER.requests({"aws.amazon.com/neurondevice": 16})], "learner", ""),
        ([LEARNER.requests({"aws.amazon.com/neuroncore": 3})], "learner", ""),
        ([LEARNER.requests({"aws.amazon.com/neuron": 1})], None, "2 devices of AWS's neuron-monitor"),
        (
            [
                LEARNER.requests(TWO_CHIPS),
                pod("b").on("g1").requests(TWO_CHIPS),
            ],
            None,
            "of no pod: it does not say which pod has which",
        ),
        ([LEARNER.requests(TWO_CHIPS).on("g2")], None, ""),
        ([LEARNER.requests(TWO_CHIPS).phase("Succeeded")], None, ""),
        ([], None, ""),
    ],
    ids=["chips", "older name", "cores", "fewer", "two pods", "elsewhere", "ended", "nobody"],
)
def test_neuron_chips_are_of_the_one_pod_that_asks_for_them(
    pods: list[PodBuilder], holder: str | None, said: str
) -> None:
    read = node_devices(
        told(Exporter.NEURON, (neuron(0), used(50)), (neuron(3), used(10))), cluster(*pods, cores={"g1": 2})
    )
    holders = {one.pod for node in read.found for device in node.devices for one in device.holders or ()}
    assert holders == ({holder} if holder else set())
    assert said in " ".join(read.problems)
    assert bool(said) == bool(read.problems)


@pytest.mark.parametrize(
    ("cores", "numbers", "percent", "said"),
    [
        (2, {0: 80.0, 1: 20.0}, 50, ""),
        # The other cores have no runtime, and do nothing.
        (2, {1: 80.0}, 40, ""),
        (8, {0: 80.0, 7: 80.0}, 20, ""),
        (
            2,
            {0: 80.0, 1: 900.0},
            40,
            "median utilisation, by AWS's neuron-monitor: expected 0 to 100 %, found 9",
        ),
        (2, {0: math.nan, 1: math.nan}, None, "found NaN: not used, of 1 device"),
    ],
)
def test_a_neuron_chip_is_used_as_much_as_the_mean_of_its_cores(
    cores: int, numbers: dict[int, float], percent: int | None, said: str
) -> None:
    read = node_devices(
        told(Exporter.NEURON, *((neuron(core), {Value.P50: number}) for core, number in numbers.items())),
        cluster(cores={"g1": cores}),
    )
    (device,) = [device for one in read.found for device in one.devices]
    assert p50(device) == percent
    assert said in " ".join(read.problems)
    assert bool(said) == bool(read.problems)


def test_where_nobody_knows_the_cores_of_a_chip_none_is_made_up() -> None:
    read = node_devices(told(Exporter.NEURON, (neuron(0), used(50))), cluster())
    assert read.found == ()
    (problem,) = read.problems
    assert "1 instance, such as i-1: expected to know how many cores a chip has" in problem


@pytest.mark.parametrize(
    ("builder", "cores"),
    [
        (node("g1").has({"aws.amazon.com/neuron": 16, "aws.amazon.com/neuroncore": 64}), 4),
        (
            node("g1")
            .has({"aws.amazon.com/neuron": 16})
            .label({"node.kubernetes.io/instance-type": "trn1.32xlarge"}),
            2,
        ),
        (node("g1").gpus(8), None),
    ],
)
def test_cores_of_a_chip_are_known_from_the_node(builder: NodeBuilder, cores: int | None) -> None:
    assert neuron_nodes([builder.build()], []).cores.get("g1") == cores


@pytest.mark.parametrize(
    ("labels", "whole"),
    [
        ({"gpu_compute_partition_type": "SPX", "gpu_memory_partition_type": "NPS1"}, True),
        ({"gpu_compute_partition_type": "none"}, True),
        ({}, True),
        ({"gpu_compute_partition_type": "CPX", "gpu_memory_partition_type": "NPS4"}, False),
    ],
)
def test_a_cut_amd_gpu_is_a_part_of_its_board(labels: Labels, whole: bool) -> None:
    (device,) = devices(told(Exporter.AMD, (amd(2, **labels), used(50))), cluster())
    assert (device.id, device.index) == ("g1/2", 2)
    assert (device.parent, device.mig_profile) == (("", "") if whole else ("S1", "cpx_nps4"))


@pytest.mark.parametrize(
    ("exporter", "labels", "numbers", "health", "code"),
    [
        (Exporter.AMD, amd(0), {Value.CALLED_UNHEALTHY: 1.0}, Health.UNHEALTHY, "Unhealthy"),
        (Exporter.AMD, amd(0), {Value.UNCORRECTED: 4.0}, Health.DEGRADED, "UncorrectedEcc"),
        (Exporter.AMD, amd(0), {Value.UNCORRECTED: 0.0, Value.CALLED_UNHEALTHY: 0.0}, Health.HEALTHY, ""),
        (Exporter.AMD, amd(0), {Value.UNCORRECTED: math.nan}, Health.HEALTHY, ""),
        (
            Exporter.GAUDI,
            {"UUID": "U", "node": "g1"},
            {Value.REMAP_PENDING: 1.0},
            Health.DEGRADED,
            "RowRemapPending",
        ),
        (
            Exporter.NEURON,
            neuron(0, neuron_device_index="0"),
            {Value.UNCORRECTED: 1.0},
            Health.DEGRADED,
            "UncorrectedEcc",
        ),
    ],
)
def test_health_where_it_is_told(
    exporter: Exporter, labels: Labels, numbers: dict[Value, float], health: Health, code: str
) -> None:
    (device,) = devices(told(exporter, (labels, numbers)), cluster(cores={"g1": 2}))
    assert (device.health, [one.code for one in device.problems or ()]) == (health, [code] if code else [])


@pytest.mark.parametrize(
    ("exporter", "labels", "said"),
    [
        (Exporter.TPU, {"chip": "77-0", "node": "g1"}, "without the label accelerator_id"),
        (Exporter.AMD, {"gpu_id": "0", "node": "g1"}, "without the label hostname or gpu_id"),
        (Exporter.NEURON, {"instance_id": "i-1", "node": "g1"}, "without the label instance_id or"),
        (Exporter.NEURON, neuron("x"), "without the label instance_id or"),
        (Exporter.GAUDI, {"Serial": "A", "node": "g1"}, "without the label UUID"),
        (
            Exporter.TPU,
            tpu("77-0", node="elsewhere"),
            "device plugin (runtime) on no node",
        ),
        (Exporter.NEURON, neuron(0, node="elsewhere"), "1 device of AWS's neuron-monitor on no node"),
    ],
)
def test_renamed_labels_are_told(exporter: Exporter, labels: Labels, said: str) -> None:
    read = node_devices(told(exporter, (labels, used(50))), cluster(cores={"g1": 2}))
    assert read.found == ()
    (problem,) = read.problems
    assert said in problem


def test_gaudi_names_pods_by_labels_of_its_own() -> None:
    exporter = pod("exporter-x", "gaudi").on("g1").owned_by("DaemonSet", "exporter")
    reader = pod("reader", "team").on("g1").requests({"habana.ai/gaudi": 1})
    by_exporter = {"UUID": "U", "pod": "exporter-x", "namespace": "gaudi"}
    held = {**by_exporter, "UUID": "V", "pod_name": "reader", "pod_namespace": "team"}
    found = devices(told(Exporter.GAUDI, (by_exporter, used(1)), (held, used(1))), cluster(exporter, reader))
    assert {one.id: [holder.pod for holder in one.holders or ()] for one in found} == {
        "U": [],
        "V": ["reader"],
    }


SERIES = st.tuples(
    st.sampled_from([Exporter.TPU, Exporter.TPU_HOST, Exporter.AMD, Exporter.NEURON, Exporter.GAUDI]),
    st.lists(
        st.tuples(
            st.integers(0, 5),
            st.sampled_from(["g1", "g2", "h9"]),
            st.sampled_from(["a", "b"]),
            st.floats(-1, 120) | st.just(math.nan),
        ),
        max_size=8,
    ),
)


@given(SERIES, st.data())
def test_neither_order_nor_doubling_of_series_matters(
    drawn: tuple[Exporter, list[tuple[int, str, str, float]]], data: st.DataObject
) -> None:
    exporter, rows = drawn
    series = [
        (
            {
                **tpu(f"77-{number}"),
                **neuron(number),
                **amd(number),
                "UUID": str(number),
                "node": place,
                "instance": scraped,
            },
            used(percent),
        )
        for number, place, scraped, percent in rows
    ]
    more = data.draw(st.lists(st.sampled_from(series), max_size=4)) if series else []
    mixed = data.draw(st.permutations([*series, *more]))
    there = cluster(LEARNER.requests(TWO_CHIPS), cores={"g1": 2, "g2": 2})
    assert repr(node_devices(told(exporter, *mixed), there)) == repr(
        node_devices(told(exporter, *series), there)
    )
