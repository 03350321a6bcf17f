"""Whether a queue admits workloads, and what is wrong with it: what conditions and views tell alike. Pure."""

from collections.abc import Sequence
from typing import NamedTuple

from queue_dispatcher.api.cluster_queue import ClusterQueue, StopPolicy
from queue_dispatcher.api.effect import IS_ABOVE_OTHERS, KARMADA_CHOOSES
from queue_dispatcher.api.local_queue import LocalQueue
from queue_dispatcher.api.problem import Problem
from queue_dispatcher.cache.cache import Cache
from queue_dispatcher.workloads.flavors import absent_flavors, without_flavors


class Refusal(NamedTuple):
    """Why a queue admits nothing: a reason of the condition Active, as Kueue calls it, and a sentence."""

    reason: str = "Stopped"
    text: str = ""


def refusal(cache: Cache, queue: ClusterQueue) -> Refusal | None:
    """Why a ClusterQueue admits nothing, as a place in the tree; None if it admits."""
    stopped = cache.resolved.stopped.get(queue.name)
    if stopped:
        return Refusal(text=stopped)
    # What is above others lends what they have flavors for, whatever it lacks itself.
    if queue.name in cache.resolved.inner:
        return None
    lacking = without_flavors(queue.name, queue.groups, cache.fleet.flavors)
    return Refusal("FlavorNotFound", lacking) if lacking else None


def local_refusal(cache: Cache, local: LocalQueue) -> Refusal | None:
    """Why nothing that names a LocalQueue is admitted; None if it is."""
    if local.stop_policy is not StopPolicy.NONE:
        return Refusal(text=f"its stopPolicy is {local.stop_policy}")
    queue = cache.queues.queues.cluster_queues.get(local.cluster_queue)
    if queue is None:
        return Refusal(text=f"ClusterQueue {local.cluster_queue} does not exist")
    stopped = cache.resolved.refusal(queue.name)
    return Refusal(text=stopped) if stopped else refusal(cache, queue)


def unplaced(cache: Cache, queue: ClusterQueue) -> str:
    """Why no releases of a ClusterQueue say where they go; empty where they do."""
    if queue.name in cache.resolved.inner:
        return IS_ABOVE_OTHERS
    if not cache.preplaces:
        return KARMADA_CHOOSES
    return ""


def problems_of(cache: Cache, queue: ClusterQueue) -> Sequence[Problem]:
    """What is to be mended of a ClusterQueue: its fields, its place in the tree, its flavors."""
    own = (*queue.problems, *cache.resolved.problems.get(queue.name, ()))
    return (*own, *absent_flavors(queue, cache.fleet.flavors))
