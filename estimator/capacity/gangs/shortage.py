"""What a gang lacks in one cluster, in terms that people act on; and whether it could ever fit there.

An answer's reasons follow the search that found it. This looks from the other end: which nodes the pods may
use at all, what these would hold if nothing ran on them, what they hold now. Of several kinds of pods the
scarcest is told.
"""

from dataclasses import dataclass, replace

import numpy as np

from estimator.capacity.answer import NO_BOUND
from estimator.capacity.request import Component
from estimator.capacity.room import Room, demand
from estimator.cluster.columns import BoolVector, IntVector
from estimator.fit.eligibility import eligibility
from estimator.fit.pod_shape import PodShape
from estimator.reasons import Reason, no_such_node, short_nodes, short_pods, too_few_nodes, too_few_tolerated
from fairway.quantity import MAX_INT64
from fairway.resources import is_extended
from fairway.selectors import Requirement
from fairway.taints import Toleration

_ANY_TAINT = Toleration(operator="Exists")
PASSING_TAINTS = tuple(
    Toleration(key=key, operator="Exists")
    for key in (
        "node.kubernetes.io/unschedulable",
        "node.kubernetes.io/not-ready",
        "node.kubernetes.io/unreachable",
        "node.kubernetes.io/memory-pressure",
        "node.kubernetes.io/disk-pressure",
        "node.kubernetes.io/pid-pressure",
        "node.kubernetes.io/network-unavailable",
        "node.kubernetes.io/out-of-service",
        "node.cloudprovider.kubernetes.io/uninitialized",
    )
)
"""Taints of a state in which no node stays: cordons, nodes that are not ready."""
_SHOWN = 3


@dataclass(frozen=True, slots=True)
class Shortage:
    """``empty_bound``: no more copies than this would fit if nothing ran on the nodes, all of them were well
    and none cordoned. ``reasons``: what is lacking for as many copies as are wanted; none where numbers do
    not tell.
    """

    empty_bound: int
    reasons: tuple[Reason, ...] = ()


@dataclass(frozen=True, slots=True)
class _Scarce:
    shape: PodShape
    pods: int
    empty: IntVector
    """Pods by row if nothing ran."""


def shortage(room: Room, components: tuple[Component, ...], copies: int) -> Shortage:
    """For ``copies`` of the gang, each whole. O(rows x resources) for each distinct shape."""
    per_shape: dict[PodShape, int] = {}
    for component in components:
        if component.replicas > 0:
            per_shape[component.shape] = per_shape.get(component.shape, 0) + component.replicas
    if not per_shape:
        return Shortage(NO_BOUND)
    found = [_Scarce(shape, pods, _empty(room, shape)) for shape, pods in per_shape.items()]
    bound = min(_total(one.empty) // one.pods for one in found)
    if bound < copies:
        worst = min(found, key=lambda one: _total(one.empty) // one.pods)
        return Shortage(min(bound, NO_BOUND), _never(room, worst, copies))
    for one in found:
        fits = _total(room.row_fits(one.shape).most)
        if fits < one.pods * copies:
            return Shortage(min(bound, NO_BOUND), _now(room, one, one.pods * copies, fits))
    return Shortage(min(bound, NO_BOUND))


def _empty(room: Room, shape: PodShape) -> IntVector:
    """Pods of the shape by row if nothing ran there, whatever state the nodes are in that passes."""
    claim = replace(shape.claim, tolerations=(*shape.claim.tolerations, *PASSING_TAINTS))
    fits = np.where(eligibility(room.nodes, claim).mask, MAX_INT64, 0)
    for resource, amount in demand(shape):
        np.minimum(fits, _all_of(room, resource) // amount, out=fits)
    return fits


def _all_of(room: Room, resource: str) -> IntVector:
    """What a row has of a resource in all: where devices decide instead, as good as endless."""
    most = MAX_INT64 // 2
    nodes = room.nodes
    has = np.minimum(nodes.allocatable(resource), most) + np.minimum(nodes.unhealthy(resource), most)
    return np.asarray(np.maximum(has, room.free(resource)))


def _never(room: Room, scarce: _Scarce, copies: int) -> tuple[Reason, ...]:
    nodes, shape = room.nodes, scarce.shape
    wanted = scarce.pods * copies
    accepted = eligibility(nodes, replace(shape.claim, tolerations=(_ANY_TAINT,))).mask
    if not nodes.node_count:
        return ()
    if not accepted.any():
        return (no_such_node(_asked(room, shape), nodes.node_count),)
    holding = int(np.count_nonzero(scarce.empty))
    resource, amount = _main(room, shape, accepted)
    if holding:
        return (too_few_nodes(resource, amount, wanted, _total(scarce.empty)),)
    tolerations = (*shape.claim.tolerations, *PASSING_TAINTS)
    tolerant = eligibility(nodes, replace(shape.claim, tolerations=tolerations))
    if not tolerant.count:
        return (too_few_tolerated(int(np.count_nonzero(accepted)), tolerant.blocked),)
    return ()  # no node is large enough, which the answer says itself


def _now(room: Room, scarce: _Scarce, wanted: int, fits: int) -> tuple[Reason, ...]:
    shape = scarce.shape
    usable = room.eligible(shape).mask
    resource, amount = _main(room, shape, usable)
    if _total(room.free(resource) // amount * usable) > fits and amount:
        return (short_pods("", 0, wanted, fits),)  # not for want of amounts: the answer says for what
    is_whole = int(scarce.empty.max()) == 1
    told = short_nodes if is_whole else short_pods
    return (told(resource, amount, wanted, fits),)


def _main(room: Room, shape: PodShape, usable: BoolVector) -> tuple[str, int]:
    """The resource by which the nodes hold fewest pods; of equal ones a device's."""
    amounts = shape.requests or demand(shape)
    return min(
        amounts,
        key=lambda pair: (_total(room.free(pair[0]) // pair[1] * usable), not is_extended(pair[0]), pair[0]),
    )


def _asked(room: Room, shape: PodShape) -> str:
    """What of the node selector, or of the required affinity, no node has."""
    missing = [one for one in shape.claim.selector if not _matching(room, one).any()]
    named = missing or shape.claim.selector
    if not missing and shape.claim.affinity is not None:
        return f"{'nodeSelector and ' * bool(named)}the required node affinity"
    told = ", ".join(f"{one.key}={','.join(sorted(one.values)[:_SHOWN])}" for one in named[:_SHOWN])
    return f"nodeSelector {told}"


def _matching(room: Room, requirement: Requirement) -> BoolVector:
    nodes = room.nodes
    return nodes.labels.matching(requirement)[: len(nodes.rows)] & nodes.present


def _total(column: IntVector) -> int:
    """The exact sum."""
    if len(column) and int(column.max()) > MAX_INT64 // len(column):
        return sum(column.tolist())
    return int(column.sum())
