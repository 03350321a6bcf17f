"""NodeDevices as agents write them (`test_agents.py` compares), through JSON as the API server sends them.

agent("a").gpus(8).bad(0, "Xid79").held(0, "default/x")
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime

import msgspec

from estimator.cluster.mirror import ClusterMirror
from fairway.kube.node_devices import NodeDevices

NOW_S = 1_800_000_000.0
PRODUCT = "NVIDIA H100 80GB HBM3"
GIB = 2**30


def at(seconds: float) -> str:
    """The time so many seconds after `NOW_S`, in RFC 3339."""
    return datetime.fromtimestamp(NOW_S + seconds, UTC).isoformat().replace("+00:00", "Z")


@dataclass(frozen=True)
class AgentBuilder:
    """What the agent of a node writes; every method returns a new value."""

    name: str
    devices: tuple[dict[str, object], ...] = ()
    observed_at: object = field(default_factory=lambda: at(0))
    problem: str = ""
    missing: tuple[str, ...] = ()
    boot_id: str = ""

    def gpus(self, count: int, more: Mapping[str, object] | None = None, /, **fields: object) -> AgentBuilder:
        """So many GPUs more, healthy, held by nobody."""
        made: tuple[dict[str, object], ...] = tuple(
            {
                "id": f"GPU-{self.name}-{number}",
                "index": number,
                "product": PRODUCT,
                "memoryBytes": 80 * GIB,
                "health": "Healthy",
                "holders": [],
                **(more or {}),
                **fields,
            }
            for number in range(len(self.devices), len(self.devices) + count)
        )
        return replace(self, devices=self.devices + made)

    def cut(self, parent: int, profile: str, count: int) -> AgentBuilder:
        """So many instances of the profile on the GPU of this number."""
        whole = self.devices[parent]
        made: tuple[dict[str, object], ...] = tuple(
            {
                "id": f"MIG-{self.name}-{parent}-{number}",
                "index": number - len(self.devices),
                "product": whole["product"],
                "memoryBytes": int(profile.partition(".")[2].partition("gb")[0]) * GIB,
                "parent": whole["id"],
                "migEnabled": True,
                "migProfile": profile,
                "health": "Healthy",
                "holders": [],
            }
            for number in range(len(self.devices), len(self.devices) + count)
        )
        return replace(self, devices=self.having(parent, migEnabled=True).devices + made)

    def cut_each(self, profile: str, count: int) -> AgentBuilder:
        """So many instances on each of the GPUs."""
        made = self
        for parent in range(len(self.devices)):
            made = made.cut(parent, profile, count)
        return made

    def having(self, index: int, /, **fields: object) -> AgentBuilder:
        """The device of this number with these fields."""
        devices = list(self.devices)
        devices[index] = {**devices[index], **fields}
        return replace(self, devices=tuple(devices))

    def bad(self, index: int, code: str = "Xid79", health: str = "Unhealthy") -> AgentBuilder:
        return self.having(index, health=health, problems=[{"code": code}])

    def held(
        self,
        index: int,
        *pods: str,
        shares: int = 0,
        source: str = "PodResources",
        container: str = "c",
        uid: str = "",
    ) -> AgentBuilder:
        """Beside who holds it already, these pods (namespace/name) do."""
        held = self.devices[index]["holders"]
        assert isinstance(held, list)
        holders: list[Mapping[str, object]] = [*held]
        for key in pods:
            namespace, _, name = key.partition("/")
            names = {"namespace": namespace, "pod": name, "uid": uid, "container": container}
            holders.append({**names, "source": source, "shares": shares})
        return self.having(index, holders=holders)

    def run_by(self, index: int, *pods: str) -> AgentBuilder:
        """Processes of these pods run there as well, and nobody gave it to them."""
        return self.held(index, *pods, source="Cgroup")

    def untold(self, index: int) -> AgentBuilder:
        """Nobody knows who holds the device."""
        devices = list(self.devices)
        devices[index] = {key: value for key, value in devices[index].items() if key != "holders"}
        return replace(self, devices=tuple(devices))

    def offered(self, *indexes: int) -> AgentBuilder:
        """kubelet may give these devices to pods, and of all others it is known that it may not."""
        made = ({**device, "schedulable": index in indexes} for index, device in enumerate(self.devices))
        return replace(self, devices=tuple(made))

    def observed(self, at: object) -> AgentBuilder:
        return replace(self, observed_at=at)

    def troubled(self, problem: str) -> AgentBuilder:
        """The agent knows less than it should."""
        return replace(self, problem=problem)

    def lacking(self, *missing: str) -> AgentBuilder:
        """What the agent says that is not all there: Devices, Holders."""
        return replace(self, missing=missing)

    def booted(self, boot_id: str) -> AgentBuilder:
        """The node runs since this boot."""
        return replace(self, boot_id=boot_id)

    def object(self) -> dict[str, object]:
        return {
            "apiVersion": "fairway.dev/v1alpha1",
            "kind": "NodeDevices",
            "metadata": {"name": self.name},
            "observedAt": self.observed_at,
            "windowSeconds": 300,
            "agent": {
                "version": "0.1.0",
                **({"problem": self.problem} if self.problem else {}),
                **({"missing": list(self.missing)} if self.missing else {}),
            },
            "driver": {"bootId": self.boot_id} if self.boot_id else {},
            "devices": list(self.devices),
        }

    def build(self) -> NodeDevices:
        return msgspec.json.decode(msgspec.json.encode(self.object()), type=NodeDevices)


def agent(name: str) -> AgentBuilder:
    return AgentBuilder(name)


def write(mirror: ClusterMirror, *agents: AgentBuilder) -> None:
    """The agents have written, in this order."""
    for one in agents:
        mirror.node_devices.upsert(one.build())
