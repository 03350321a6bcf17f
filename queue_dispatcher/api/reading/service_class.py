"""Reads ServiceClasses. A duration that cannot be read is the default; a class that is not known is Never."""

from queue_dispatcher.api.objects import RequeueSpec, ServiceClassObject
from queue_dispatcher.api.reading.fields import MAX_INT32, Problems, ageing, choice, duration_ms, integer
from queue_dispatcher.api.service_class import (
    BACKOFF_BASE_MS,
    BACKOFF_MAX_MS,
    CLUSTER_LOST_TIMEOUT_MS,
    START_TIMEOUT_MS,
    Preemptible,
    ServiceClass,
)

MAX_PRIORITY = 1_000_000_000
"""What Kubernetes allows a PriorityClass of users."""


def read_service_class(stated: ServiceClassObject) -> ServiceClass:
    """The class, with what is wrong with it."""
    spec, problems = stated.spec, Problems()
    requeue = spec.requeue or RequeueSpec()
    base_ms = duration_ms(requeue.backoff_base, BACKOFF_BASE_MS, "spec.requeue.backoffBase", problems)
    max_ms = duration_ms(requeue.backoff_max, BACKOFF_MAX_MS, "spec.requeue.backoffMax", problems)
    if max_ms < base_ms:
        problems.add(
            "spec.requeue.backoffBase", "above backoffMax: expected at most that; backoffMax is read as this"
        )
        max_ms = base_ms
    limit = requeue.backoff_limit
    if limit is not None:
        limit = integer(limit, 0, 0, 0, MAX_INT32, "spec.requeue.backoffLimit", problems)
    return ServiceClass(
        name=stated.metadata.name,
        priority=integer(spec.priority, 0, 0, -MAX_PRIORITY, MAX_PRIORITY, "spec.priority", problems),
        start_timeout_ms=duration_ms(spec.start_timeout, START_TIMEOUT_MS, "spec.startTimeout", problems),
        ready_timeout_ms=duration_ms(spec.ready_timeout, None, "spec.readyTimeout", problems),
        cluster_lost_timeout_ms=duration_ms(
            spec.cluster_lost_timeout,
            CLUSTER_LOST_TIMEOUT_MS,
            "spec.clusterLostTimeout",
            problems,
            may_be_zero=True,
        ),
        backoff_base_ms=base_ms,
        backoff_max_ms=max_ms,
        backoff_limit=limit,
        max_wait_ms=duration_ms(spec.max_wait, None, "spec.maxWait", problems),
        max_runtime_ms=duration_ms(spec.max_runtime, None, "spec.maxRuntime", problems),
        min_runtime_ms=duration_ms(spec.min_runtime, None, "spec.minRuntime", problems),
        preemptible=choice(
            spec.preemptible, Preemptible.ALWAYS, Preemptible.NEVER, "spec.preemptible", problems
        ),
        ageing=ageing(spec.ageing, "spec.ageing", problems) if spec.ageing else None,
        is_default=spec.global_default or False,
        problems=problems.found,
    )
