"""Elastic work: what starts with fewer pods than it asks for, and may be lowered to so many again. Pure.

A workload names its minimum; its maximum is what it asks for. Karmada gives each cluster as many replicas as
stand in ``spec.clusters``, also while it may not place the binding: that is how less than all of it runs. So
it is for kinds whose replicas Karmada sets in the member (its interpreter's ReviseReplica), that are divided,
and whose clusters a release states.

A Job runs in one cluster: over several Karmada would divide its completions, which nobody may change later.

Mirrors Kueue 0.20 (``kueue.x-k8s.io/job-min-parallelism``), batch.volcano.sh/v1alpha1 (``minAvailable``), and
the default interpreters of Karmada 1.19.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Final

import msgspec

from fairway.kube.objects import KubeStruct
from fairway.names import MIN_REPLICAS
from fairway.selectors import parse_int64
from fairway.workloads.fields import shown
from fairway.workloads.kueue import JOB_MINIMUM
from queue_dispatcher.workloads.demand import Demand, Placed
from queue_dispatcher.workloads.form import Form, form_of
from queue_dispatcher.workloads.placement import Placement

GroupKind = tuple[str, str]
JOB: Final[GroupKind] = ("batch", "Job")
VOLCANO_JOB: Final[GroupKind] = ("batch.volcano.sh", "Job")
REVISABLE: Final = frozenset({("apps", "Deployment"), ("apps", "StatefulSet"), ("apps", "ReplicaSet"), JOB})
"""Kinds of which Karmada gives a cluster as many pods as its binding says."""
GROWS_EVERY_MS: Final = 30_000
"""An elastic workload grows at most once in so long, and so long after it gave pods up."""
_MIN_AVAILABLE: Final = b"minAvailable"
_BROKEN = (msgspec.DecodeError, UnicodeDecodeError, RecursionError)


@dataclass(frozen=True, slots=True)
class Minimum:
    """How many pods a template says are enough, 0 where it says nothing. ``by``: by whose word. ``notes``:
    what of it cannot be read and is passed over.
    """

    pods: int = 0
    by: str = ""
    notes: tuple[str, ...] = ()


NO_MINIMUM: Final = Minimum()


@dataclass(frozen=True, slots=True)
class Elastic:
    """``least``: with so many pods it starts and runs on, at least 1 and fewer than it asks for. ``in_one``:
    all of them are in one cluster.
    """

    least: int
    in_one: bool = False


@dataclass(frozen=True, slots=True)
class Bounds:
    """What else keeps a workload from being elastic. ``in_group``: it starts with others. ``is_near``: its
    pods have to be near each other, or are not all alike. ``is_preserved``: what is taken off a cluster goes
    on there. ``states``: releases say where to, and estimators are asked about such pods.
    """

    in_group: bool = False
    is_near: bool = False
    is_preserved: bool = False
    states: bool = True


def stated_minimum(labels: Mapping[str, str], annotations: Mapping[str, str]) -> Minimum:
    """What a template's labels and annotations say: Fairway's own, a label before an annotation, else
    Kueue's annotation.
    """
    stated = (
        ("labels", labels, MIN_REPLICAS),
        ("annotations", annotations, MIN_REPLICAS),
        ("annotations", annotations, JOB_MINIMUM),
    )
    notes: list[str] = []
    for where, said, name in stated:
        if name not in said:
            continue
        pods = parse_int64(said[name])
        if pods is not None and pods >= 1:
            return Minimum(pods, name, tuple(notes))
        notes.append(
            f"metadata.{where}[{name}]: {shown(said[name])}: expected how many of its pods are enough, 1 or "
            "more; passed over"
        )
    return Minimum(notes=tuple(notes)) if notes else NO_MINIMUM


class _Task(KubeStruct, frozen=True):
    replicas: int | None = None


class _Spec(KubeStruct, frozen=True):
    min_available: int | None = None
    tasks: list[_Task] | None = None


_SPECS = msgspec.json.Decoder(_Spec)


def volcano_minimum(group: str, kind: str, spec: msgspec.Raw) -> Minimum:
    """What the ``spec.minAvailable`` of a Volcano Job says, if that is fewer pods than it has."""
    if (group, kind) != VOLCANO_JOB or _MIN_AVAILABLE not in bytes(spec):
        return NO_MINIMUM
    try:
        said = _SPECS.decode(spec)
    except _BROKEN:
        return NO_MINIMUM
    pods = said.min_available or 0
    all_pods = sum(1 if task.replicas is None else task.replicas for task in said.tasks or ())
    return Minimum(pods, "minAvailable") if 1 <= pods < all_pods else NO_MINIMUM


def elastic_of(
    minimum: Minimum, of: GroupKind, demand: Demand, placement: Placement, bounds: Bounds
) -> tuple[Elastic | None, str]:
    """How the workload is elastic; else None, and why its minimum has no effect, if that is to be told."""
    if not minimum.pods:
        return None, ""
    why = _refusal(of, demand, placement, bounds)
    if why:
        return None, f"starts whole, whatever its {minimum.by} of {minimum.pods} says: {why}"
    if minimum.pods > demand.replicas > 0:
        return None, (
            f"starts whole, whatever its {minimum.by} of {minimum.pods} says: expected at most the "
            f"{demand.replicas} pods that it asks for"
        )
    if minimum.pods >= demand.replicas:
        return None, ""
    return Elastic(minimum.pods, of == JOB or placement.max_clusters == 1), ""


def _refusal(of: GroupKind, demand: Demand, placement: Placement, bounds: Bounds) -> str:
    group, kind = of
    if of not in REVISABLE or demand.is_set or len(demand.components) > 1:
        return f"Karmada cannot give a cluster a part of a {kind}{'.' if group else ''}{group}"
    if placement.is_duplicated:
        return "its policy gives all of it to every cluster"
    form, why = form_of(placement, demand)
    if form is not Form.CONFIRM and demand.replicas:
        return why
    if len(placement.groups) > 1:
        return "its policy has several terms of affinity"
    if bounds.in_group:
        return "its group starts whole"
    if bounds.is_near:
        return "its pods are not alike, or have to be near each other"
    if bounds.is_preserved:
        return "preserveResourcesOnDeletion would leave pods behind"
    if not bounds.states:
        return "no estimator is asked about it, so its release does not say where to"
    return ""


@lru_cache(maxsize=65_536)
def sized(demand: Demand, replicas: int) -> Demand:
    """The demand of so many pods of a workload of plain replicas; the same object each time."""
    if demand.is_set or len(demand.components) != 1 or demand.replicas == replicas:
        return demand
    return replace(demand, components=(replace(demand.components[0], replicas=replicas),))


def lowered(placed: Iterable[Placed], replicas: int) -> tuple[Placed, ...]:
    """What stays where, of so many replicas; the smallest share goes first, and a cluster with none is left.

    All of them where there are no more.
    """
    shares = sorted(placed, key=lambda share: (share.replicas, share.cluster))
    beyond = sum(share.replicas for share in shares) - replicas
    left = []
    for share in shares:
        taken = max(0, min(beyond, share.replicas))
        beyond -= taken
        if share.replicas > taken:
            left.append(Placed(share.cluster, share.replicas - taken))
    return tuple(sorted(left, key=lambda share: share.cluster))
