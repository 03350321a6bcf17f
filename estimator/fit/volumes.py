"""All of kube-scheduler's filters on persistent volumes, for the pods of one shape."""

from collections.abc import Sequence

from estimator.cluster.columns import NodeColumns
from estimator.cluster.volumes import VolumesMirror
from estimator.fit.limits import Limit
from estimator.fit.pod_volumes import PodVolume
from estimator.fit.volume_binding import volume_binding, volume_zone
from estimator.fit.volume_counts import node_volume_limits, volume_restrictions


def volume_limits(
    nodes: NodeColumns, known: VolumesMirror, volumes: Sequence[PodVolume]
) -> tuple[Limit, ...]:
    """What each filter that has something to say allows, in the order in which the scheduler asks them.

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
