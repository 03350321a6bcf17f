"""NodeDevices as agents write them, through JSON as the API server sends them.

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
                "parent": whole["id"],
                "migProfile": profile,
                "health": "Healthy",
                "holders": [],
            }
            for number in range(len(self.devices), len(self.devices) + count)
        )
        return replace(self.having(parent, migEnabled=True), devices=self.having(parent).devices + made)

    def having(self, index: int, /, **fields: object) -> AgentBuilder:
        """The device of this number with these fields."""
        devices = list(self.devices)
        devices[index] = {**devices[index], **fields}
        return replace(self, devices=tuple(devices))

    def bad(self, index: int, code: str = "Xid79", health: str = "Unhealthy") -> AgentBuilder:
        return self.having(index, health=health, problems=[{"code": code}])

    def held(self, index: int, *pods: str, shares: int = 0) -> AgentBuilder:
        """The device runs these pods (namespace/name) and no others."""
        holders: list[Mapping[str, object]] = []
        for key in pods:
            namespace, _, name = key.partition("/")
            holders.append({"namespace": namespace, "pod": name, "container": "c", "shares": shares})
        return self.having(index, holders=holders)

    def observed(self, at: object) -> AgentBuilder:
        return replace(self, observed_at=at)

    def troubled(self, problem: str) -> AgentBuilder:
        """The agent knows less than it should."""
        return replace(self, problem=problem)

    def object(self) -> dict[str, object]:
        return {
            "apiVersion": "fairway.dev/v1alpha1",
            "kind": "NodeDevices",
            "metadata": {"name": self.name},
            "observedAt": self.observed_at,
            "agent": {"version": "0.1.0", "problem": self.problem},
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
