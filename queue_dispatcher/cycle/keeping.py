"""What keeps the pods of a workload on the nodes of the flavor that it is charged to.

A flavor that is a part of a cluster's nodes says by its labels which, and by its tolerations what gets pods
there. Both are told to the pods of a component, as far as those do not say it themselves; and the estimators
are asked about pods that say it, so that the proof is about these nodes.
"""

from collections.abc import Collection
from dataclasses import dataclass, replace

from fairway.taints import Toleration


@dataclass(frozen=True, slots=True)
class FlavorNodes:
    """The nodes of one flavor: ``labels`` and ``tolerations`` that pods need and do not state themselves.

    ``clusters``: where the flavor is; None for all clusters that the workload's placement permits.
    """

    flavor: str
    labels: tuple[tuple[str, str], ...] = ()
    tolerations: tuple[Toleration, ...] = ()
    clusters: frozenset[str] | None = None

    @property
    def is_telling(self) -> bool:
        """Whether there is anything to tell pods."""
        return bool(self.labels or self.tolerations)


@dataclass(frozen=True, slots=True)
class Keeping:
    """The pods of ``component`` are kept on the nodes of these flavors.

    In each cluster on those of the first flavor that is there, for that is the one that is charged.
    """

    component: str
    flavors: tuple[FlavorNodes, ...]

    def among(self, flavors: Collection[str]) -> "Keeping":
        """The same with no others than these flavors."""
        return replace(self, flavors=tuple(one for one in self.flavors if one.flavor in flavors))

    def at(self, cluster: str) -> FlavorNodes | None:
        """On whose nodes they are kept in a cluster; None where none of the flavors is."""
        return next((one for one in self.flavors if one.clusters is None or cluster in one.clusters), None)
