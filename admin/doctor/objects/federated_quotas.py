"""Check: is anything counted twice, by a queue and by Karmada's own FederatedResourceQuota?

Karmada charges a FederatedResourceQuota when clusters are assigned, so after the queue has released the
workload; what it refuses stays released, holds its quota, and is taken back after its startTimeout.
"""

from collections.abc import Iterator

import msgspec

from admin.doctor.check import Check
from admin.doctor.evidence import Evidence
from admin.doctor.finding import Finding, Patch, Verdict
from admin.doctor.karmada_kinds import (
    FEDERATED_RESOURCE_QUOTAS,
    FederatedResourceQuotaObject,
    FederatedResourceQuotaSpec,
)
from admin.doctor.objects.seen import Seen, seen
from queue_dispatcher.api.kinds import CLUSTER_QUEUES, LOCAL_QUEUES
from queue_dispatcher.bindings.binding import SchedulingReason
from queue_dispatcher.bindings.objects import RESOURCE_BINDINGS
from queue_dispatcher.bindings.salvage import salvage

_SPECS = msgspec.json.Decoder(FederatedResourceQuotaSpec)
_NO_SPEC = FederatedResourceQuotaSpec()


def _twice(evidence: Evidence) -> Iterator[Finding]:
    found = seen(evidence, CLUSTER_QUEUES, LOCAL_QUEUES, RESOURCE_BINDINGS)
    refused: dict[str, int] = {}
    for entry in found.entries.values():
        condition = entry.binding.scheduled
        if condition is not None and condition.reason == SchedulingReason.QUOTA_EXCEEDED:
            refused[entry.binding.namespace] = refused.get(entry.binding.namespace, 0) + 1
    for stated in evidence.on_karmada().listed(FEDERATED_RESOURCE_QUOTAS):
        yield from _of(stated, found, refused.get(stated.metadata.namespace, 0))


def _of(stated: FederatedResourceQuotaObject, found: Seen, refused: int) -> Iterator[Finding]:
    namespace, name = stated.metadata.namespace, stated.metadata.name
    subject = f"FederatedResourceQuota {namespace}/{name}"
    problems: list[str] = []
    spec = salvage(stated.spec, _SPECS, _NO_SPEC, "spec", problems)
    for problem in problems:
        yield Finding(Verdict.WARNING, subject, problem, "correct the field")
    covered, queues = _covered(namespace, found)
    overall = {_resource(limit) for limit in spec.overall or ()}
    twice = sorted(overall & covered)
    if not queues or not twice:
        return
    is_all = overall <= covered
    target = f"federatedresourcequota/{name} -n {namespace}"
    dropped = {limit: None for limit in spec.overall or () if _resource(limit) in covered}
    patch = Patch(found.name, msgspec.json.encode({"spec": {"overall": dropped}}).decode(), target)
    exceeded = f"; bindings that it refuses now: {refused:,}" if refused else ""
    keeps = "" if is_all else "; the rest of its limits can stay"
    yield Finding(
        Verdict.ERROR if refused else Verdict.WARNING,
        subject,
        f"spec.overall limits {', '.join(twice[:8])}, which ClusterQueue {', '.join(queues[:4])} accounts "
        "for "
        "too: what the queue releases beyond this limit is refused with QuotaExceeded while it holds its "
        f"quota{exceeded}",
        f"drop the FederatedResourceQuota: kubectl delete {target}"
        if is_all
        else f"keep these resources in the queue and apply the patch{keeps}",
        None if is_all else patch,
    )


def _resource(limit: str) -> str:
    """The resource that a limit is of: quotas name some with a prefix."""
    return limit.removeprefix("requests.")


def _covered(namespace: str, found: Seen) -> tuple[set[str], list[str]]:
    """The resources that the namespace's queues account for, and these queues."""
    queues = found.cache.queues.queues
    led_to = {
        local.cluster_queue for local in queues.local_queues.values() if local.namespace == namespace
    } & queues.cluster_queues.keys()
    covered = {
        resource
        for name in led_to
        for group in queues.cluster_queues[name].groups
        for resource in group.covered
    }
    return covered, sorted(led_to)


FEDERATED_QUOTAS = Check(
    "federated-quotas",
    "Does Karmada count anything against a quota of its own that the queues count too?",
    "no namespace has both a LocalQueue and a FederatedResourceQuota of the same resources",
    _twice,
)
