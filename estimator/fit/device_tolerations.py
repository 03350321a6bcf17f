"""Whether a cluster gives pods of devices the toleration of taints that are named after these devices.

The admission plugin ExtendedResourceToleration does (key: the resource, Exists, NoSchedule) for every
extended resource that a container asks for. It is off in plain Kubernetes and on in some offerings (GKE),
which cannot be read from an API server; but pods tell, since the plugin leaves none of them without.

Mirrors plugin/pkg/admission/extendedresourcetoleration of Kubernetes 1.36.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from enum import StrEnum

from estimator.cluster.admission import DeviceTolerations
from fairway.resources import is_extended
from fairway.taints import NO_SCHEDULE, Taint


class TolerationMode(StrEnum):
    """What ``--extended-resource-toleration`` says: as the pods tell, always, never."""

    AUTO = "auto"
    ON = "on"
    OFF = "off"


@dataclass(frozen=True, slots=True)
class TolerationPolicy:
    """For which extended resources a toleration is added; only those that a node's taint is named after.

    ``assumed``: those of them for which it is not proven: that all pods tolerate the taint may be what their
    authors wrote.
    """

    added: frozenset[str] = frozenset()
    assumed: frozenset[str] = frozenset()


NOTHING_ADDED = TolerationPolicy()


def toleration_policy(
    mode: TolerationMode, seen: DeviceTolerations, taint_sets: Iterable[Iterable[Taint]]
) -> TolerationPolicy:
    """What is added in a cluster whose nodes carry these taints.

    Where pods shall tell, one without the toleration proves that there is no such plugin. Where all of them
    have it, and where none asks for the resource and no pod of another goes without, it is assumed: whoever
    names a taint after a resource keeps others than its pods off.
    """
    if mode is TolerationMode.OFF:
        return NOTHING_ADDED
    named = {
        taint.key
        for taints in taint_sets
        for taint in taints
        if taint.effect == NO_SCHEDULE and is_extended(taint.key)
    }
    if not named:
        return NOTHING_ADDED
    if mode is TolerationMode.ON:
        return TolerationPolicy(frozenset(named))
    unseen = {key for key in named if seen.evidence(key) is None and not seen.any_without}
    assumed = frozenset(unseen | {key for key in named if seen.evidence(key)})
    return TolerationPolicy(assumed, assumed)


def assumption(resources: Sequence[str]) -> tuple[str, ...]:
    """What is assumed of pods of these resources, in a sentence for people; nothing where it is of none."""
    if not resources:
        return ()
    return (
        f"pods of {', '.join(resources)} are assumed to tolerate taints of that name: no pod goes without; "
        "--extended-resource-toleration on or off settles it",
    )
