"""What a mirror has for who-uses-what: a copy of it taken in a moment, and worked on elsewhere.

The model itself is `fairway.usage`, the same for dumps and live clusters.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from estimator.cluster.mirror import ClusterMirror
from estimator.cluster.packed import unpacked
from estimator.cluster.pods import HeldByPod
from fairway.accelerators.catalogue import Catalogue
from fairway.accelerators.devices import Device, NodeFacts, Scheme
from fairway.usage.bound_pod import UNKNOWN, BoundPod
from fairway.usage.cluster import Objects, as_of_s, cluster_usage
from fairway.usage.owner import Owner, Owners
from fairway.usage.use import ClusterUsage


@dataclass(frozen=True, slots=True)
class Users:
    """One moment of a cluster. ``agents``: `packed`, by node; None where they could not be read.

    ``devices``: by sharing scheme and node. ``written_at_s``: as in `ClusterMirror`.
    """

    nodes: Mapping[str, NodeFacts]
    pods: Mapping[str, HeldByPod]
    agents: Mapping[str, bytes] | None
    devices: Mapping[str, Mapping[str, Mapping[str, Device]]]
    default_queues: Mapping[str, str]
    written_at_s: float | None

    @classmethod
    def of(cls, mirror: ClusterMirror) -> "Users":
        """As it is now; to be called on the event loop."""
        return cls(
            mirror.nodes.copy(),
            mirror.pods.copy(),
            mirror.node_devices.copy() if mirror.node_devices.synced else None,
            {table.scheme.name: table.inventories() for table in mirror.columns.devices},
            mirror.admission.namespaces.default_queues.copy(),
            mirror.written_at_s,
        )

    def usage(self, cluster: str, catalogue: Catalogue, now_s: float, lost_s: float) -> ClusterUsage:
        """Who uses what. ``now_s``: seconds since the epoch; ``lost_s``: out of contact for so long, or 0."""
        agents = None if self.agents is None else tuple(map(unpacked, self.agents.values()))
        age_s = lost_s if self.written_at_s is None else max(0.0, now_s - self.written_at_s)
        owners = Owners(default_queues=self.default_queues)
        objects = Objects(tuple(self.nodes.values()), self._pods(), agents, owners, self._inventory)
        return cluster_usage(cluster, objects, catalogue, as_of_s(agents or (), now_s, age_s))

    def _pods(self) -> Iterator[BoundPod]:
        for key, held in self.pods.items():
            if held.group is None:
                continue
            traits = held.group.traits
            yield BoundPod(
                traits.namespace,
                key.removeprefix(f"{traits.namespace}/"),
                held.node,
                dict(traits.labels),
                None if held.controller is None else Owner(held.controller[2], held.controller[1]),
                held.footprint,
                tuple((table.scheme, uses) for table, uses in held.devices),
                held.tenancy or UNKNOWN,
            )

    def _inventory(self, scheme: Scheme, node: NodeFacts) -> Mapping[str, Device]:
        return self.devices[scheme.name].get(node.name, {})
