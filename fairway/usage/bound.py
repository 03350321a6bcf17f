"""Since when a pod is on its node."""

from collections.abc import Iterable

from fairway.kube.objects import Condition, ObjectMeta
from fairway.moments import moment_s


def bound_s(metadata: ObjectMeta, conditions: Iterable[Condition] | None) -> float | None:
    """When the pod was bound to its node, or else made, in seconds since the epoch; None: nobody says."""
    return moment_s(bound_at(metadata, conditions))


def bound_at(metadata: ObjectMeta, conditions: Iterable[Condition] | None) -> str:
    """The same as it is written, for whoever may never read it; empty: nobody says."""
    made = metadata.creation_timestamp or ""
    for condition in conditions or ():
        if condition.type == "PodScheduled" and condition.status == "True":
            return condition.last_transition_time or made
    return made
