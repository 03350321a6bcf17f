"""From a reading to the object: what it says, what lasts of it, and what is cut."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import msgspec
import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from fairway.kube.device_bounds import MOST_WINDOW_S, OF_DEVICE, OF_WINDOW
from fairway.kube.node_devices import (
    AgentReport,
    DeviceWindow,
    Health,
    Holder,
    HolderOwner,
    NodeDevice,
    NodeDevices,
)
from fairway.kube.usage_days import DAY_S, MOST_DAYS, MOST_SECONDS, MOST_TEAMS
from node_agent import bounds
from node_agent.document import Document, Owner, Troubles, document, encoded, lasting
from node_agent.reading import NodeReading, Trouble
from tests.manifests.objects import MANIFESTS
from tests.node_agent.readings import HOT, XID79, device, eight, holder, node, uuid

WALL_S = 1_767_225_600.0
NOBODY: dict[str, list[Holder]] = {}
OWNER = Owner("gpu-1", "12345678-0000-0000-0000-000000000000")


def made(
    reading: NodeReading,
    holders: dict[str, list[Holder]] | None = None,
    *,
    problem: str = "",
    wall_s: float = WALL_S,
    windows: dict[str, DeviceWindow] | None = None,
) -> Document:
    since = Troubles().see(reading.devices, WALL_S)
    return document(
        "gpu-1", reading, holders or {}, windows or {}, since, version="0.1.0", problem=problem, wall_s=wall_s
    )


def stored(of: Document) -> NodeDevices:
    """As an API server gives it back."""
    return msgspec.json.decode(encoded(of.object, OWNER)[0], type=NodeDevices)


def test_the_object_says_what_was_read() -> None:
    window = DeviceWindow(utilization_p50=90, samples=60, source="NVML")
    owner = HolderOwner("batch/v1", "Job", "train")
    held = Holder("vision", "train-0", "u", "main", owner, "PodResources", 2)
    found = stored(made(eight(), {uuid(0): [held]}, windows={uuid(0): window}))
    first = found.devices[0]
    assert (found.metadata.name, found.observed_at, found.window_seconds) == (
        "gpu-1",
        "2026-01-01T00:00:00Z",
        300,
    )
    assert (found.driver.version, found.driver.cuda_version) == ("580.95.05", "13.0")
    assert [each.island for each in found.devices] == [0] * 8
    assert (first.id, first.health, first.window, first.holders) == (uuid(0), "Healthy", window, [held])
    assert found.agent.problem == ""


def test_it_belongs_to_its_node_and_goes_with_it() -> None:
    body = msgspec.json.decode(encoded(made(eight()).object, OWNER)[0])
    assert body["metadata"] == {
        "name": "gpu-1",
        "ownerReferences": [{"apiVersion": "v1", "kind": "Node", "name": "gpu-1", "uid": OWNER.uid}],
    }
    assert msgspec.json.decode(encoded(made(eight()).object, None)[0])["metadata"] == {"name": "gpu-1"}


def test_nothing_unknown_is_sent() -> None:
    unknown = device(utilization=None, numa_node=None, bus_id="", product="")
    text = encoded(made(node(unknown)).object, OWNER)[0]
    assert b"null" not in text
    assert b'""' not in text


@pytest.mark.parametrize(
    ("troubles", "health"),
    [
        ((), Health.HEALTHY),
        ((HOT,), Health.DEGRADED),
        ((HOT, Trouble("Xid63", "row remapping is pending", Health.UNHEALTHY)), Health.UNHEALTHY),
        ((HOT, XID79), Health.LOST),
        ((Trouble("Told", "worth a word", Health.HEALTHY),), Health.HEALTHY),
    ],
)
def test_health_is_the_worst_of_the_troubles(troubles: tuple[Trouble, ...], health: Health) -> None:
    (found,) = made(node(device(troubles=troubles))).object.devices
    assert found.health == health
    assert len(found.problems or ()) == len(troubles)


def test_a_trouble_keeps_the_moment_it_began_until_it_ends() -> None:
    troubles, bad, good = Troubles(), [device(troubles=(HOT,))], [device()]
    assert troubles.see(bad, 10) == {(uuid(0), "Throttled"): 10}
    assert troubles.see(bad, 20) == {(uuid(0), "Throttled"): 10}
    assert troubles.see(good, 30) == {}
    assert troubles.see(bad, 40) == {(uuid(0), "Throttled"): 40}


SAME: dict[str, Document] = {
    "later": made(eight(), wall_s=WALL_S + 5),
    "another agent": Document(
        msgspec.structs.replace(made(eight()).object, agent=AgentReport(version="0.2.0"))
    ),
    "other use": made(eight(utilization=3, power_milliwatts=1), windows={uuid(0): DeviceWindow(samples=2)}),
}
OTHER: dict[str, Document] = {
    "a device less": made(node(*eight().devices[:7])),
    "a device is lost": made(node(replace(eight().devices[0], troubles=(XID79,)), *eight().devices[1:])),
    "a pod came": made(eight(), {uuid(0): [holder()]}),
    "the driver is another": made(replace(eight(), driver_version="590.1")),
    "something is not known": made(eight(), problem="kubelet does not answer"),
}


@pytest.mark.parametrize("case", SAME)
def test_what_moves_all_the_time_is_no_change(case: str) -> None:
    assert lasting(SAME[case].object) == lasting(made(eight()).object)


@pytest.mark.parametrize("case", OTHER)
def test_what_lasts_is_a_change(case: str) -> None:
    assert lasting(OTHER[case].object) != lasting(made(eight()).object)


def test_a_message_that_counts_on_is_no_change() -> None:
    def counted(errors: int) -> NodeDevices:
        trouble = Trouble("EccCorrected", f"{errors} errors were corrected", Health.DEGRADED)
        return lasting(made(node(device(troubles=(trouble,))), problem=f"asked {errors} times").object)

    assert counted(3) == counted(4)


def test_what_is_read_back_lasts_as_it_was_written() -> None:
    bad = device(8, troubles=(HOT, XID79), mig_enabled=True, mig_profile="1g.10gb", parent=uuid(0))
    written = made(node(*eight().devices, bad), {uuid(0): [holder(), holder("b")]}, problem="p")
    assert lasting(stored(written)) == lasting(written.object)


def many(count: int) -> list[Holder]:
    return [holder(f"p-{index:04d}") for index in range(count)]


CUT: list[tuple[str, Document, str]] = [
    (
        "too many devices",
        made(node(*(device(index) for index in range(130)))),
        "128 of 130 devices are written",
    ),
    ("no id", made(node(device(0, id=""))), "device 0 is left out: its id '' is none"),
    ("a bad id", made(node(device(0, id="GPU 0\n"))), r"device 0 is left out: its id 'GPU 0\n' is none"),
    (
        "an id twice",
        made(node(device(0), device(1, id=uuid(0)))),
        f"device 1 is left out: {uuid(0)} is there",
    ),
    ("too many holders", made(node(device()), {uuid(0): many(130)}), f"128 of 130 holders of {uuid(0)}"),
    (
        "too many problems",
        made(node(device(troubles=tuple(Trouble(f"Xid{code}", "m", Health.DEGRADED) for code in range(20))))),
        f"16 of 20 problems of {uuid(0)}",
    ),
]


@pytest.mark.parametrize(("document", "told"), [row[1:] for row in CUT], ids=[row[0] for row in CUT])
def test_what_the_schema_does_not_allow_is_cut_and_told(document: Document, told: str) -> None:
    assert told in document.cut[0]
    assert told in document.object.agent.problem


def test_texts_are_cut_and_those_with_strange_characters_left_out() -> None:
    odd = replace(device(product="x" * 500, bus_id="no bus", clique="a b", mig_profile="$(rm)"), index=99_999)
    (found,) = made(
        node(odd), {uuid(0): [Holder("a", "Pod_0"), holder("pod-0"), Holder(uid="u")]}
    ).object.devices
    assert (found.product, found.bus_id, found.clique, found.mig_profile) == ("x" * 128, "", "", "")
    assert found.index == 0
    assert [(each.pod, each.uid) for each in found.holders or ()] == [("", "u"), ("pod-0", "uid-pod-0")]


def test_an_object_that_is_too_large_loses_holders() -> None:
    wide = [holder("p" * 240 + f"{index:04d}", "n" * 60) for index in range(128)]
    reading = node(*(device(index) for index in range(128)))
    body, left_out = encoded(made(reading, {uuid(index): wide for index in range(128)}).object, OWNER)
    assert len(body) <= bounds.MOST_OBJECT_BYTES
    assert left_out == "holders beyond 16 of each device"
    assert encoded(made(eight()).object, OWNER)[1] == ""


def schema() -> Any:  # noqa: ANN401 - a schema is JSON
    text = (MANIFESTS / "member" / "node-agent" / "crd.yaml").read_text("utf-8")
    (version,) = yaml.safe_load(text)["spec"]["versions"]
    return version["schema"]["openAPIV3Schema"]["properties"]


def texts(of: Any) -> dict[str, tuple[object, object]]:  # noqa: ANN401 - as above
    return {
        name: (each.get("maxLength"), each.get("pattern"))
        for name, each in of.items()
        if each["type"] == "string" and "enum" not in each and "format" not in each
    }


def allowed(**fields: bounds.Text) -> dict[str, tuple[object, object]]:
    return {name: (text.most, f"^{text.pattern}$" if text.pattern else None) for name, text in fields.items()}


def test_the_bounds_are_those_of_the_schema() -> None:
    top = schema()
    device_schema = top["devices"]["items"]["properties"]
    holders, problems = device_schema["holders"], device_schema["problems"]
    window = device_schema["window"]["properties"]
    assert top["devices"]["maxItems"] == bounds.MOST_DEVICES
    assert (holders["maxItems"], problems["maxItems"]) == (bounds.MOST_HOLDERS, bounds.MOST_PROBLEMS)
    assert texts(device_schema) == allowed(
        id=bounds.ID,
        product=bounds.PRODUCT,
        busId=bounds.BUS_ID,
        parent=bounds.ID,
        migProfile=bounds.MIG_PROFILE,
        clique=bounds.CLIQUE,
    )
    team = top["days"]["items"]["properties"]["teams"]
    assert (top["days"]["maxItems"], team["maxItems"]) == (MOST_DAYS, MOST_TEAMS + 1)
    assert texts(team["items"]["properties"]) == allowed(namespace=bounds.NAME, queue=bounds.NAME)
    amounts = {one["maximum"] for one in team["items"]["properties"].values() if "maximum" in one}
    assert amounts == {MOST_SECONDS}
    assert top["days"]["items"]["properties"]["observedSeconds"]["maximum"] == DAY_S
    assert texts(top["driver"]["properties"]) == allowed(
        version=bounds.VERSION, cudaVersion=bounds.VERSION, bootId=bounds.BOOT_ID
    )
    assert problems["items"]["properties"]["gpuInstance"]["maximum"] == bounds.MOST_GPU_INSTANCE
    assert texts(problems["items"]["properties"]) == allowed(code=bounds.CODE, message=bounds.MESSAGE)
    holder_schema = holders["items"]["properties"]
    assert texts(holder_schema) == allowed(
        namespace=bounds.NAME, pod=bounds.NAME, uid=bounds.UID, container=bounds.CONTAINER, queue=bounds.NAME
    )
    assert texts(holder_schema["owner"]["properties"]) == allowed(
        apiVersion=bounds.API_VERSION, kind=bounds.KIND, name=bounds.NAME
    )
    assert "|".join(holder_schema["source"]["enum"]) == bounds.HOLDER_SOURCE.pattern
    assert "|".join(window["source"]["enum"]) == bounds.WINDOW_SOURCE.pattern
    assert device_schema["health"]["enum"] == [each.value for each in Health]
    device_most, window_most = (
        {name: each["maximum"] for name, each in of.items() if "maximum" in each}
        for of in (device_schema, window)
    )
    assert device_most == {**by_name_in_json(OF_DEVICE, NodeDevice), "numaNode": bounds.MOST_INDEX}
    assert window_most == by_name_in_json(OF_WINDOW, DeviceWindow)
    assert top["windowSeconds"]["maximum"] == MOST_WINDOW_S


def by_name_in_json(most: Mapping[str, int], of: type[msgspec.Struct]) -> dict[str, int]:
    names = {each.name: each.encode_name for each in msgspec.structs.fields(of)}
    return {names[name]: bound for name, bound in most.items()}


@given(st.text(max_size=300), st.integers(-(2**70), 2**70))
def test_whatever_a_driver_says_is_within_the_bounds(text: str, number: int) -> None:
    odd = device(
        product=text, bus_id=text, mig_profile=text, clique=text, parent=text, index=number, numa_node=number
    )
    (found,) = made(node(replace(odd, memory_bytes=number))).object.devices
    assert len(found.product) <= bounds.PRODUCT.most
    assert 0 <= found.index <= bounds.MOST_INDEX
    assert 0 <= found.memory_bytes <= bounds.MOST_BYTES
    assert bounds.BUS_ID.within(found.bus_id) == found.bus_id
