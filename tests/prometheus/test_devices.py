"""From series to NodeDevices: what is known of a device, where it is, who holds it, what is not believed."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fairway.kube.node_devices import Health, NodeDevice
from fairway.prometheus.answer import Sample
from fairway.prometheus.devices import node_devices
from fairway.prometheus.exporters import Exporter, Value
from fairway.prometheus.told import Told
from tests.builders import PodBuilder, pod
from tests.prometheus.series import AT_S, BUSY, GIB, Series, cluster, told
from tests.usage.agents import ago

WORKER = pod("worker", "team").on("g1").requests(gpu=1)
EXPORTER = (
    pod("dcgm-exporter-x", "gpu-operator").on("g1").owned_by("DaemonSet", "dcgm-exporter").requests(cpu="1")
)
FIRST = Series("GPU-1")


def only(series: Series, *pods: PodBuilder) -> NodeDevice:
    (found,) = node_devices(told(series), cluster(*pods)).found
    (device,) = found.devices
    return device


def test_everything_that_is_told_of_a_device() -> None:
    (found,) = node_devices(told(FIRST.held_by("team/worker")), cluster(WORKER)).found
    assert (found.metadata.name, found.window_seconds, found.observed_at) == ("g1", 300, ago(0))
    (device,) = found.devices
    assert (device.id, device.index, device.product) == ("GPU-1", 0, "NVIDIA H100 80GB HBM3")
    assert (device.memory_bytes, device.bus_id, device.health) == (
        80 * GIB,
        "00000000:0F:00.0",
        Health.HEALTHY,
    )
    assert [(one.namespace, one.pod, one.container) for one in device.holders or ()] == [
        ("team", "worker", "main")
    ]
    window = device.window
    assert window is not None
    assert (window.utilization_p50, window.utilization_p95, window.utilization_max) == (63, 97, 99)
    assert (window.memory_used_bytes, window.memory_peak_bytes) == (30 * GIB, 40 * GIB)
    assert (window.power_max_milliwatts, window.temperature_max_celsius) == (350_250, 61)
    assert (window.throttled_seconds, window.samples, window.source) == (0, 20, "DCGM")


def test_an_instance_is_a_device_of_its_own_on_its_parent() -> None:
    device = only(FIRST.with_(GPU_I_ID="3", GPU_I_PROFILE="3g.40gb"))
    assert (device.id, device.parent, device.mig_profile) == ("GPU-1/gi3", "GPU-1", "3g.40gb")
    assert device.window is not None
    assert device.window.utilization_p50 == 63


@pytest.mark.parametrize(
    ("labels", "node"),
    [
        ({"Hostname": "g2"}, "g2"),
        ({"hostname": "g2"}, "g2"),
        ({"Hostname": "nvidia-dcgm-exporter-57pvc", "node": "g2"}, "g2"),
        ({"Hostname": "nvidia-dcgm-exporter-57pvc", "kubernetes_node": "g2"}, "g2"),
        ({"node": "g1", "kubernetes_node": "g2", "Hostname": "g2"}, "g1"),
        ({"node": "elsewhere", "Hostname": "g2"}, "g2"),
        ({"instance": "g2:9400"}, "g2"),
        ({"instance": "g2"}, "g2"),
    ],
)
def test_the_node_is_named_by_the_first_label_that_names_one(labels: dict[str, str], node: str) -> None:
    series = FIRST.without("Hostname", "instance").with_(**labels)
    assert [one.metadata.name for one in node_devices(told(series), cluster()).found] == [node]


@pytest.mark.parametrize(
    ("series", "node"),
    [
        (FIRST.held_by("gpu-operator/dcgm-exporter-x", ""), "g1"),
        (FIRST.held_by("team/worker"), "g1"),
        (FIRST.held_by("team/worker").with_(Hostname="g2"), "g2"),
        (FIRST.held_by("team/gone"), ""),
    ],
)
def test_else_it_is_the_node_of_a_pod_that_is_named(series: Series, node: str) -> None:
    unnamed = series if series.labels["Hostname"] == "g2" else series.with_(Hostname="dcgm-exporter-x")
    found = node_devices(told(unnamed), cluster(WORKER, EXPORTER)).found
    assert [one.metadata.name for one in found] == ([node] if node else [])


@pytest.mark.parametrize(
    ("series", "pods", "holders"),
    [
        (FIRST.held_by("team/worker"), [WORKER], ["worker"]),
        (FIRST.held_by("team/worker", ""), [WORKER], ["worker"]),
        (FIRST.held_by("gpu-operator/dcgm-exporter-x", ""), [EXPORTER], []),
        (
            FIRST.held_by("gpu-operator/dcgm-exporter-x", "").held_by("team/worker"),
            [EXPORTER, WORKER],
            ["worker"],
        ),
        (FIRST.held_by("team/gone"), [WORKER], []),
        (FIRST.held_by("team/worker"), [WORKER.on("g2")], []),
        (FIRST, [WORKER], []),
        (FIRST.held_by("team/by-claim"), [pod("by-claim", "team").on("g1")], ["by-claim"]),
    ],
    ids=["renamed", "honoured", "exporter", "both", "ended", "elsewhere", "nobody", "claim"],
)
def test_who_holds_a_device(series: Series, pods: list[PodBuilder], holders: list[str]) -> None:
    assert [one.pod for one in only(series, *pods).holders or ()] == holders


@pytest.mark.parametrize(
    ("values", "health", "codes"),
    [
        ({}, Health.HEALTHY, []),
        ({Value.XID: 0.0}, Health.HEALTHY, []),
        ({Value.XID: 31.0}, Health.HEALTHY, []),
        ({Value.XID: 79.0}, Health.UNHEALTHY, ["Xid79"]),
        ({Value.XID: 48.0}, Health.DEGRADED, ["Xid48"]),
        ({Value.XID: 94.0}, Health.DEGRADED, ["Xid94"]),
        ({Value.REMAP_FAILED: 1.0}, Health.UNHEALTHY, ["RowRemapFailure"]),
        ({Value.REMAP_FAILED: 0.0}, Health.HEALTHY, []),
        ({Value.XID: 64.0, Value.REMAP_FAILED: 1.0}, Health.UNHEALTHY, ["Xid64", "RowRemapFailure"]),
    ],
)
def test_what_errors_make_of_health(values: dict[Value, float], health: Health, codes: list[str]) -> None:
    device = only(FIRST.doing(values))
    assert device.health == health
    assert [one.code for one in device.problems or ()] == codes
    assert not any(one.since for one in device.problems or ())


@pytest.mark.parametrize(
    ("first", "busy", "since"),
    [
        (14_400, None, 14_400),
        (14_400, 7_200, 7_200),
        (14_400, 200, None),
        (7_200, 14_000, 7_200),
        (20, None, None),
        (None, None, None),
    ],
)
def test_idle_since_it_was_used_last_or_is_known(
    first: int | None, busy: int | None, since: int | None
) -> None:
    moments = {Value.FIRST_AT: first, Value.BUSY_AT: busy}
    values = {value: AT_S - seconds for value, seconds in moments.items() if seconds is not None}
    window = only(FIRST.doing(values)).window
    assert window is not None
    assert window.idle_since == (None if since is None else ago(since))


@pytest.mark.parametrize("moment", [1e12, -1.0, math.inf, math.nan, AT_S + 4000])
def test_a_moment_that_cannot_be_is_none(moment: float) -> None:
    window = only(FIRST.doing({Value.FIRST_AT: moment})).window
    assert window is not None
    assert window.idle_since is None


@pytest.mark.parametrize(
    ("value", "number", "said"),
    [
        (
            Value.P50,
            900.0,
            "median utilisation, by DCGM's exporter: expected 0 to 100 %, found 900: not used, of 1 device",
        ),
        (Value.P95, math.nan, "expected 0 to 100 %, found NaN: not used, of 1 device"),
        (Value.MAX, math.inf, "found inf"),
        (Value.MEMORY_USED, -1.0, "memory used, by DCGM's exporter: expected 0 to"),
        # What DCGM writes where it has no value.
        (
            Value.TEMPERATURE_MAX,
            9223372036854775794.0,
            "expected 0 to 250 degrees Celsius, found 9.22337e+18",
        ),
    ],
)
def test_a_number_that_no_device_can_have_is_told_and_costs_only_itself(
    value: Value, number: float, said: str
) -> None:
    read = node_devices(told(FIRST.doing({value: number}), Series("GPU-2")), cluster())
    (problem,) = read.problems
    assert said in problem
    bad, good = read.found[0].devices
    assert good.window is not None
    assert bad.window is not None
    different = [
        name
        for name in bad.window.__struct_fields__
        if getattr(bad.window, name) != getattr(good.window, name)
    ]
    assert len(different) == 1


@pytest.mark.parametrize(
    ("series", "said"),
    [
        (
            FIRST.with_(Hostname="h7").with_(gpu="1"),
            "1 device of DCGM's exporter on no node of this cluster, such as GPU-1 (Hostname='h7', "
            "instance='10.244.1.9:9400'); expected a node's name in one of node, kubernetes_node",
        ),
        (FIRST.without("Hostname", "instance"), "(no label names a node)"),
        (
            Series(""),
            "1 series of DCGM's exporter without the label UUID; expected the exporter's own labels",
        ),
    ],
)
def test_series_that_cannot_be_placed_are_told_once(series: Series, said: str) -> None:
    read = node_devices(told(series, Series("GPU-9")), cluster())
    assert said in " ".join(read.problems)
    assert [device.id for one in read.found for device in one.devices] == ["GPU-9"]


def test_ten_thousand_devices_of_elsewhere_are_one_sentence() -> None:
    many = (Series(f"GPU-{n}").with_(Hostname=f"h{n}") for n in range(10_000))
    read = node_devices(told(*many), cluster())
    assert len(read.problems) == 1
    assert read.problems[0].startswith("10,000 devices of DCGM's exporter on no node")


def test_what_node_agents_export() -> None:
    labels = {
        "uuid": "GPU-1",
        "index": "3",
        "product": "NVIDIA A100",
        "node": "g1",
        "instance": "10.1.1.1:8080",
    }
    key = {"uuid": "GPU-1"}
    agent = Told(
        Exporter.AGENT,
        AT_S,
        (Sample(labels, 1.0),),
        (Sample({**key, "exported_namespace": "team", "exported_pod": "worker", "pod": "agent-x"}, 1.0),),
        (Sample({**key, "health": "Unhealthy"}, 1.0), Sample({**key, "code": "Xid79"}, 1.0)),
        {value: (Sample(key, number),) for value, number in {**BUSY, Value.IDLE: 4000.0}.items()},
    )
    (found,) = node_devices(agent, cluster(WORKER)).found
    (device,) = found.devices
    assert (device.id, device.index, device.product, device.health) == (
        "GPU-1",
        3,
        "NVIDIA A100",
        "Unhealthy",
    )
    assert [one.code for one in device.problems or ()] == ["Xid79"]
    assert [one.pod for one in device.holders or ()] == ["worker"]
    assert device.window is not None
    assert (device.window.utilization_p50, device.window.idle_since) == (63, ago(4000))


NUMBERS = st.floats(min_value=0, max_value=100)
SERIES = st.builds(
    lambda uuid, instance, host, pod, exporter, p50: (
        Series(f"GPU-{uuid}")
        .with_(GPU_I_ID=instance, Hostname=host, instance=exporter)
        .held_by(f"team/{pod}")
        .doing({Value.P50: p50, Value.P95: 100.0})
    ),
    st.integers(0, 3),
    st.sampled_from(["", "1"]),
    st.sampled_from(["g1", "g2", "h9"]),
    st.sampled_from(["worker", "other"]),
    st.sampled_from(["a:9400", "b:9400"]),
    NUMBERS,
)


@given(st.lists(SERIES, max_size=8), st.data())
def test_neither_order_nor_doubling_of_series_matters(series: list[Series], data: st.DataObject) -> None:
    more = data.draw(st.lists(st.sampled_from(series), max_size=4)) if series else []
    mixed = data.draw(st.permutations([*series, *more]))
    pods = (WORKER, pod("other", "team").on("g2"))
    assert node_devices(told(*mixed), cluster(*pods)) == node_devices(told(*series), cluster(*pods))
