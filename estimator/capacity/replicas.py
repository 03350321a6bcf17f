"""How many more pods of one shape fit: the sum over eligible nodes of what each still holds.

Exact, because pods of one shape do not compete for anything but the amounts and the devices: on each node
the scarcest decides. Mirrors NodeResourcesFit of kube-scheduler 1.36.
"""

import numpy as np

from estimator.capacity.answer import UNBOUNDED, Answer
from estimator.capacity.room import Room, demand
from estimator.fit.pod_shape import PodShape
from estimator.reasons import Reason, insufficient, never_fits
from fairway.resources import PODS, is_extended


def max_replicas(room: Room, shape: PodShape) -> Answer:
    """The largest number of pods of this shape that the room holds, and what each node is short of.

    Proven, unless the pod's containers ask for shared devices separately, or its claims need a search.

    O(rows x resources); some tens of microseconds at 5,000 nodes.
    """
    eligible = room.eligible(shape)
    fits = room.free(PODS) * eligible.mask
    short: list[tuple[int, str]] = []
    held = int(np.count_nonzero(fits))
    if held < eligible.count:
        short.append((eligible.count - held, PODS))
    for resource, amount in shape.requests:
        share = room.free(resource) // amount
        held = int(np.count_nonzero((share > 0) & eligible.mask))
        if held < eligible.count:
            short.append((eligible.count - held, resource))
        np.minimum(fits, share, out=fits)
    at_most = fits
    unfit: list[Reason] = []
    for limit in room.device_limits(shape):
        held = int(np.count_nonzero((limit.pods > 0) & eligible.mask))
        if held < eligible.count:
            unfit.append(limit.reason(eligible.count - held))
        at_most = np.minimum(at_most, limit.at_most)
        fits = np.minimum(fits, limit.pods)
    value, bound = min(int(fits.sum()), UNBOUNDED), min(int(at_most.sum()), UNBOUNDED)
    short.sort(key=lambda item: -item[0])
    never = _never(room, shape) if value == 0 and eligible.count else {}
    reasons = [insufficient(resource, nodes) for nodes, resource in short if resource not in never]
    if room.nodes.broken:
        reasons += room.nodes.broken.reasons((name for name, _ in shape.requests), eligible.mask)
    return Answer(value, bound, value == bound, (*never.values(), *unfit, *reasons, *eligible.blocked))


def _never(room: Room, shape: PodShape) -> dict[str, Reason]:
    """What no eligible node has enough of even when empty; devices first, as they matter most."""
    mask = room.eligible(shape).mask
    largest = {
        name: int(np.maximum(room.nodes.allocatable(name), room.free(name))[mask].max())
        for name, _ in demand(shape)
    }
    short = [(name, amount) for name, amount in demand(shape) if largest[name] < amount]
    short.sort(key=lambda item: not is_extended(item[0]))
    return {name: never_fits(name, amount, largest[name]) for name, amount in short}
