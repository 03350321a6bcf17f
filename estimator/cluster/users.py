"""What a mirror has for who-uses-what: a copy of it taken in a moment, and worked on elsewhere.

The model itself is `fairway.usage`, the same for dumps and live clusters.
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

from estimator.cluster.mirror import ClusterMirror
from estimator.cluster.occupancy import PodGroup
from estimator.cluster.packed import Unpacking
from estimator.cluster.pods import HeldByPod
from fairway.accelerators.catalogue import Catalogue
from fairway.accelerators.devices import Device, NodeFacts, Scheme
from fairway.usage.bound_pod import UNKNOWN, BoundPod
from fairway.usage.cluster import Objects, as_of_s, usage_parts
from fairway.usage.held import stated_devices
from fairway.usage.no_agents import NO_AGENTS, NOT_IN_FILE
from fairway.usage.owner import Owner, Owners
from fairway.usage.use import ClusterUsage


@dataclass(frozen=True, slots=True)
class Users:
    """One moment of a cluster. ``agents``: `packed`, by node; None where they could not be read.

    ``devices``: by sharing scheme and node. ``written_at_s``: as in `ClusterMirror`; ``newest_s``: as in
    `NodeDevicesMirror`.
    """

    nodes: Mapping[str, NodeFacts]
    pods: Mapping[str, HeldByPod]
    agents: Mapping[str, bytes] | None
    devices: Mapping[str, Mapping[str, Mapping[str, Device]]]
    default_queues: Mapping[str, str]
    written_at_s: float | None
    newest_s: float | None

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
            mirror.node_devices.newest_s,
        )

    def usage_parts(
        self, cluster: str, catalogue: Catalogue, now_s: float, lost_s: float
    ) -> Iterator[ClusterUsage]:
        """Who uses what, node by node, worked out as it is taken: see `fairway.usage.cluster.usage_parts`.

        ``now_s``: seconds since the epoch; ``lost_s``: out of contact for so long, or 0.
        """
        pods = self._pods()
        agents = None if self.agents is None else Unpacking(self.agents, dict.fromkeys((*pods, *self.agents)))
        age_s = lost_s if self.written_at_s is None else max(0.0, now_s - self.written_at_s)
        at_s = as_of_s([self.newest_s], now_s, age_s)
        owners = Owners(default_queues=self.default_queues)
        none = NO_AGENTS if self.written_at_s is None else NOT_IN_FILE
        objects = Objects(self.nodes.values(), pods, agents, owners, self._inventory, none)
        yield from usage_parts(cluster, objects, catalogue, at_s)

    def _pods(self) -> Mapping[str, Iterable[BoundPod]]:
        """By node; each is made when it is looked at, as all at once take long to be forgotten again."""
        keys: dict[str, list[str]] = {}
        for key, held in self.pods.items():
            if held.group is not None and not held.group.traits.is_promised:
                keys.setdefault(held.node, []).append(key)
        labels: dict[PodGroup, dict[str, str]] = {}
        return {node: (self._pod(key, labels) for key in there) for node, there in keys.items()}

    def _pod(self, key: str, labels: dict[PodGroup, dict[str, str]]) -> BoundPod:
        """``labels``: of groups that were looked at before, which most pods share with others."""
        held = self.pods[key]
        assert held.group is not None
        traits = held.group.traits
        if held.group not in labels:
            labels[held.group] = dict(traits.labels)
        return BoundPod(
            traits.namespace,
            key.removeprefix(f"{traits.namespace}/"),
            held.node,
            labels[held.group],
            None if held.controller is None else Owner(held.controller[2], held.controller[1]),
            tuple((table.scheme, uses) for table, uses in held.devices),
            held.tenancy or UNKNOWN,
        )

    def _inventory(self, scheme: Scheme, node: NodeFacts) -> Mapping[str, Device]:
        # Nodes are kept without annotations: the schemes that write these have told the mirror.
        return stated_devices(scheme, node) or self.devices[scheme.name].get(node.name, {})
