"""Since when a pod is on its node."""

from collections.abc import Iterable

from fairway.kube.objects import Condition, ObjectMeta
from fairway.moments import moment_s


def bound_s(metadata: ObjectMeta, conditions: Iterable[Condition] | None) -> float | None:
    """When the pod was bound to its node, or else made, in seconds since the epoch; None: nobody says."""
    bound = (one for one in conditions or () if one.type == "PodScheduled" and one.status == "True")
    since_s = moment_s(next((one.last_transition_time for one in bound), None))
    return moment_s(metadata.creation_timestamp) if since_s is None else since_s
