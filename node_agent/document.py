"""The object that is written: from what was read, who holds it and what it did to NodeDevices and its JSON.

Pure. What the schema would refuse is cut or left out here, and `Document.cut` says so in words.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

import msgspec

from fairway.kube.node_devices import (
    AgentReport,
    DeviceWindow,
    DriverReport,
    Health,
    Holder,
    HolderOwner,
    NodeDevice,
    NodeDevices,
    Problem,
)
from fairway.kube.objects import ObjectMeta
from fairway.kube.usage_days import UsageDay, encoded_days
from fairway.moments import moment_s
from node_agent import bounds
from node_agent.bounds import measured
from node_agent.links import islands
from node_agent.reading import DeviceReading, NodeReading, Trouble
from node_agent.times import rfc3339
from node_agent.window import WINDOW_S

API_VERSION: Final = "fairway.dev/v1alpha1"
KIND: Final = "NodeDevices"
_WORST: Final = (Health.LOST, Health.UNHEALTHY, Health.DEGRADED)
_FEWER_HOLDERS: Final = (64, 16, 4, 0)

Holders = Mapping[str, Sequence[Holder]]
"""Who holds each device, by its id."""
Since = Mapping[tuple[str, str], float]
"""Since when each trouble is there, in seconds since the epoch, by device and code."""


@dataclass(frozen=True, slots=True)
class Owner:
    """The Node that the object goes away with."""

    name: str
    uid: str


@dataclass(frozen=True, slots=True)
class Document:
    """``cut``: what was left out because the schema does not allow as much, a sentence each."""

    object: NodeDevices
    cut: tuple[str, ...] = ()


class Troubles:
    """Remembers since when devices have their troubles."""

    def __init__(self) -> None:
        self._since: dict[tuple[str, str], float] = {}

    def resume(self, stored: NodeDevices) -> None:
        """Those of the object began when it says, if they are there at the next look."""
        for device in stored.devices:
            for problem in device.problems or ():
                if (began_s := moment_s(problem.since)) is not None:
                    self._since[device.id, problem.code] = began_s

    def see(self, devices: Iterable[DeviceReading], wall_s: float) -> Since:
        """What is there now; what has ended is forgotten."""
        now = {(device.id, trouble.code) for device in devices for trouble in device.troubles}
        self._since = {key: min(wall_s, self._since.get(key, wall_s)) for key in now}
        return self._since


def document(
    node: str,
    reading: NodeReading,
    holders: Holders,
    windows: Mapping[str, DeviceWindow],
    since: Since,
    *,
    version: str,
    problem: str,
    wall_s: float,
    boot_id: str = "",
    days: tuple[UsageDay, ...] = (),
) -> Document:
    """The object as of ``wall_s``. ``problem``: what the agent lacks, beside what the reading does."""
    cut: list[str] = []
    devices = _within(reading.devices, cut)
    links = {each.id: each.links for each in devices if not each.parent}
    island_of = islands(links, {each.id: each.bus_id for each in devices})
    made = [
        _device(
            each,
            _holders(each, holders.get(each.id, ()), cut) or (None if problem else []),
            island_of.get(each.id),
            windows.get(each.id),
            since,
            wall_s,
            cut,
        )
        for each in devices
    ]
    told = "; ".join(text for text in (reading.problem, problem, *cut) if text)
    return Document(
        NodeDevices(
            metadata=ObjectMeta(name=node),
            observed_at=rfc3339(wall_s),
            window_seconds=WINDOW_S,
            agent=AgentReport(bounds.VERSION.within(version), bounds.MESSAGE.within(told)),
            driver=DriverReport(
                bounds.VERSION.within(reading.driver_version),
                bounds.VERSION.within(reading.cuda_version),
                bounds.BOOT_ID.within(boot_id),
            ),
            devices=made,
            days=encoded_days(days),
        ),
        tuple(cut),
    )


def lasting(made: NodeDevices) -> NodeDevices:
    """What is written at once when it changes: all but times, what the devices did, and the wording.

    Messages may count and measure; that there is a problem, and which, is what changes. Nor is the agent's
    version: a fleet that is upgraded need not write for it.
    """
    agent = AgentReport(problem="told" if made.agent.problem else "")
    devices = [_lasting(each) for each in made.devices]
    return NodeDevices(window_seconds=made.window_seconds, agent=agent, driver=made.driver, devices=devices)


def _lasting(device: NodeDevice) -> NodeDevice:
    problems = [Problem(code=each.code) for each in device.problems or ()]
    return msgspec.structs.replace(device, window=None, problems=problems, energy_millijoules=None)


def encoded(made: NodeDevices, owner: Owner | None) -> tuple[bytes, str]:
    """The JSON of the object for server-side apply, and what had to be left out of it, if anything.

    An object that the server would not store for its size loses holders, those at the end of each device's
    list first.
    """
    for most in (bounds.MOST_HOLDERS, *_FEWER_HOLDERS):
        fewer = [_with_fewer(each, most) for each in made.devices]
        body = msgspec.json.encode(_body(msgspec.structs.replace(made, devices=fewer), owner))
        if len(body) <= bounds.MOST_OBJECT_BYTES:
            break
    return body, f"holders beyond {most} of each device" if most < bounds.MOST_HOLDERS else ""


def _body(made: NodeDevices, owner: Owner | None) -> dict[str, object]:
    metadata: dict[str, object] = {"name": made.metadata.name}
    if owner is not None:
        metadata["ownerReferences"] = [
            {"apiVersion": "v1", "kind": "Node", "name": owner.name, "uid": owner.uid}
        ]
    known = {
        "observedAt": made.observed_at,
        "windowSeconds": made.window_seconds,
        "agent": msgspec.to_builtins(made.agent),
        "driver": msgspec.to_builtins(made.driver),
        "devices": msgspec.to_builtins(made.devices),
    }
    body = {"apiVersion": API_VERSION, "kind": KIND, "metadata": metadata, **_without_nothing(known)}
    return {**body, "days": made.days}


def _without_nothing(value: object) -> dict[str, object]:
    """A field that says nothing is not sent: the schema knows no null."""
    assert isinstance(value, dict)
    return {key: _inner(each) for key, each in value.items() if each is not None and each != ""}


def _inner(value: object) -> object:
    if isinstance(value, dict):
        return _without_nothing(value)
    return [_inner(each) for each in value] if isinstance(value, list) else value


def _with_fewer(device: NodeDevice, most: int) -> NodeDevice:
    if device.holders is None or len(device.holders) <= most:
        return device
    return msgspec.structs.replace(device, holders=device.holders[:most] or None)


def _within(devices: Sequence[DeviceReading], cut: list[str]) -> list[DeviceReading]:
    """Those that can be written: with a usable id, each once, and not too many."""
    known: dict[str, DeviceReading] = {}
    for each in sorted(devices, key=lambda device: (device.index, device.id)):
        if bounds.ID.within(each.id) != each.id or not each.id:
            cut.append(f"device {each.index} is left out: its id {each.id[:64]!r} is none")
        elif each.id in known:
            cut.append(f"device {each.index} is left out: {each.id} is there twice")
        else:
            known[each.id] = each
    if len(known) > bounds.MOST_DEVICES:
        cut.append(f"{bounds.MOST_DEVICES} of {len(known)} devices are written")
    return list(known.values())[: bounds.MOST_DEVICES]


def _holders(device: DeviceReading, holders: Sequence[Holder], cut: list[str]) -> list[Holder]:
    usable = [each for each in map(_holder, holders) if (each.namespace and each.pod) or each.uid]
    if len(usable) > bounds.MOST_HOLDERS:
        cut.append(f"{bounds.MOST_HOLDERS} of {len(usable)} holders of {device.id} are written")
    usable.sort(key=lambda each: (each.namespace, each.pod, each.container, each.source))
    return usable[: bounds.MOST_HOLDERS]


def _holder(holder: Holder) -> Holder:
    owner = holder.owner
    return Holder(
        namespace=bounds.NAME.within(holder.namespace),
        pod=bounds.NAME.within(holder.pod),
        uid=bounds.UID.within(holder.uid),
        container=bounds.CONTAINER.within(holder.container),
        owner=None
        if owner is None
        else HolderOwner(
            bounds.API_VERSION.within(owner.api_version),
            bounds.KIND.within(owner.kind),
            bounds.NAME.within(owner.name),
        ),
        source=bounds.HOLDER_SOURCE.within(holder.source),
        shares=measured(holder.shares, bounds.MOST_SHARES) or 0,
        queue=bounds.NAME.within(holder.queue),
    )


def _device(
    device: DeviceReading,
    holders: list[Holder] | None,
    island: int | None,
    window: DeviceWindow | None,
    since: Since,
    wall_s: float,
    cut: list[str],
) -> NodeDevice:
    troubles = sorted(device.troubles, key=lambda each: (_badness(each.health), each.code))
    if len(troubles) > bounds.MOST_PROBLEMS:
        cut.append(f"{bounds.MOST_PROBLEMS} of {len(troubles)} problems of {device.id} are written")
    told = [_problem(device.id, each, since, wall_s) for each in troubles[: bounds.MOST_PROBLEMS]]
    return NodeDevice(
        id=device.id,
        index=measured(device.index, bounds.MOST_INDEX) or 0,
        product=bounds.PRODUCT.within(device.product),
        memory_bytes=measured(device.memory_bytes, bounds.MOST_BYTES) or 0,
        bus_id=bounds.BUS_ID.within(device.bus_id),
        numa_node=measured(device.numa_node, bounds.MOST_INDEX),
        parent=bounds.ID.within(device.parent),
        mig_enabled=device.mig_enabled,
        mig_profile=bounds.MIG_PROFILE.within(device.mig_profile),
        island=island,
        clique=bounds.CLIQUE.within(device.clique),
        energy_millijoules=measured(device.energy_millijoules, bounds.MOST_MILLIJOULES),
        health=health_of(device.troubles),
        problems=told or None,
        holders=holders,
        window=None if window is None else _window(window),
    )


def health_of(troubles: Iterable[Trouble]) -> Health:
    """The worst of them."""
    found = {each.health for each in troubles}
    return next((each for each in _WORST if each in found), Health.HEALTHY)


def _badness(health: Health) -> int:
    return _WORST.index(health) if health in _WORST else len(_WORST)


def _problem(id: str, trouble: Trouble, since: Since, wall_s: float) -> Problem:
    began_s = since.get((id, trouble.code), wall_s)
    return Problem(
        bounds.CODE.within(trouble.code),
        bounds.MESSAGE.within(trouble.message),
        rfc3339(began_s),
        measured(trouble.gpu_instance, bounds.MOST_GPU_INSTANCE),
    )


def _window(window: DeviceWindow) -> DeviceWindow:
    return msgspec.structs.replace(window, source=bounds.WINDOW_SOURCE.within(window.source))
