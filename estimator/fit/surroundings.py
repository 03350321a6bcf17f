"""What the pods of a cluster leave of it to further pods of one shape, by filters that look at pods.

Worked out where the cluster's state is written, so that a question carried to another thread needs nothing
but what is in here.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from estimator.cluster.columns import BoolVector, IntVector, NodeColumns
from estimator.cluster.mirror import ClusterMirror
from estimator.cluster.volumes import VolumesMirror
from estimator.fit.eligibility import EligibilityCache
from estimator.fit.inter_pod_affinity import inter_pod_affinity
from estimator.fit.limits import Limit
from estimator.fit.node_ports import node_ports
from estimator.fit.pod_shape import PodShape
from estimator.fit.pod_topology_spread import pod_topology_spread, running_pods
from estimator.fit.pod_volumes import PodVolume
from estimator.fit.volume_binding import volume_binding, volume_zone
from estimator.fit.volume_counts import node_volume_limits, volume_restrictions


@dataclass(frozen=True, slots=True, eq=False)
class Surroundings:
    """Limits in the order of kube-scheduler's filters, each None of which leaves everything.

    ``running``: for each spread constraint the pods per row that it counts. ``together``: labels of each of
    which all further pods must share one value, because they want their own company and nobody is there yet.
    """

    limits: tuple[Limit, ...]
    running: tuple[IntVector, ...] = ()
    together: tuple[str, ...] = ()

    @property
    def rows(self) -> BoolVector | None:
        """The rows that all limits leave; None where they leave all."""
        masks = [limit.rows for limit in self.limits if limit.rows is not None]
        return np.logical_and.reduce(masks) if masks else None

    @property
    def total(self) -> int | None:
        """The most further pods in the whole cluster; None where nothing limits that."""
        return min((limit.total for limit in self.limits if limit.total is not None), default=None)

    @property
    def choices(self) -> tuple[BoolVector, ...]:
        """All further pods go on the rows of one of these; empty where nothing keeps them together so."""
        return next((limit.choices for limit in self.limits if limit.choices), ())

    @property
    def unknown(self) -> tuple[str, ...]:
        """What could not be known, so that the answer is not proven."""
        return tuple(dict.fromkeys(told for limit in self.limits for told in limit.unknown))


def surroundings(mirror: ClusterMirror, cache: EligibilityCache, shape: PodShape) -> Surroundings | None:
    """What is left to the shape; None where it is left everything.

    O(rows) for each term that is about anybody, tens of microseconds at 5,000 nodes.
    """
    nodes, pod = mirror.columns, shape.inter_pod
    running = running_pods(nodes, shape)
    company = inter_pod_affinity(nodes, pod, mirror.admission.namespaces)
    limits = (
        node_ports(nodes, shape),
        *volume_limits(nodes, mirror.volumes, shape.volumes),
        pod_topology_spread(nodes, cache, shape, running),
        *company.limits,
    )
    found = tuple(limit for limit in limits if limit is not None)
    if not found and not company.together and not any(counts.any() for counts in running):
        return None
    return Surroundings(found, running, company.together)


def volume_limits(
    nodes: NodeColumns, known: VolumesMirror, volumes: Sequence[PodVolume]
) -> tuple[Limit, ...]:
    """What each filter on volumes that has something to say allows, in the order of the scheduler's.

    O(rows) for each volume; attach limits also O(claims in use) once after each change.
    """
    if not volumes:
        return ()
    found = (
        volume_restrictions(nodes, known, volumes),
        node_volume_limits(nodes, known, volumes),
        volume_binding(nodes, known, volumes),
        volume_zone(nodes, known, volumes),
    )
    return tuple(limit for limit in found if limit.reason or limit.unknown)
