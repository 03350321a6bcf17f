"""Reads LocalQueues. A stop policy that is not known is Hold."""

from queue_dispatcher.api.cluster_queue import StopPolicy
from queue_dispatcher.api.local_queue import LocalQueue
from queue_dispatcher.api.objects import LocalQueueObject
from queue_dispatcher.api.reading.fields import Problems, choice, weight_milli
from queue_dispatcher.api.reading.history import read_history


def read_local_queue(stated: LocalQueueObject) -> LocalQueue:
    """The queue, with what is wrong with it."""
    spec, problems = stated.spec, Problems()
    if not spec.cluster_queue:
        problems.add("spec.clusterQueue", "nothing: expected the name of a ClusterQueue; its workloads wait")
    return LocalQueue(
        namespace=stated.metadata.namespace,
        name=stated.metadata.name,
        cluster_queue=spec.cluster_queue or "",
        default_class=spec.default_service_class or "",
        stop_policy=choice(spec.stop_policy, StopPolicy.NONE, StopPolicy.HOLD, "spec.stopPolicy", problems),
        weight_milli=weight_milli(spec.weight, problems),
        problems=problems.found,
        history=read_history(stated.status.history if stated.status is not None else None),
    )
