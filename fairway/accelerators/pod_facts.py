"""A pod as the adapters of sharing schemes look at it."""

from contextlib import suppress

from fairway.accelerators.devices import PodFacts
from fairway.kube.objects import Pod
from fairway.resources import Amounts, ResourceError, is_extended, parse_amounts


def pod_facts(pod: Pod) -> PodFacts:
    """The pod's marks, and the extended resources by container, as far as they can be read."""
    metadata = pod.metadata
    return PodFacts(metadata.namespace, metadata.labels or {}, metadata.annotations or {}, _extended(pod))


def _extended(pod: Pod) -> tuple[Amounts, ...]:
    found: list[Amounts] = []
    for container in pod.spec.containers or ():
        amounts: Amounts = {}
        for name, raw in ((container.resources.requests if container.resources else None) or {}).items():
            if is_extended(name):
                with suppress(ResourceError):
                    amounts.update(parse_amounts({name: raw}))
        found.append(amounts)
    return tuple(found)
