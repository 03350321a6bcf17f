"""Whether the clusters of a workload have the gang scheduler that its pods name.

Nothing else asks: Karmada and the estimators look at kinds and room, so such pods are placed, and nobody
takes them. What a cluster serves is told by its Cluster object, which Karmada keeps.
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import Final

import msgspec

from admin.doctor.check import Check
from admin.doctor.evidence import Evidence
from admin.doctor.finding import Finding, Verdict
from admin.doctor.karmada_kinds import WORKLOADS, WorkloadObject
from admin.doctor.kinds import CLUSTERS
from admin.doctor.member_cluster import MemberCluster
from admin.doctor.objects.gathered import Case, gathered
from admin.doctor.objects.seen import Seen, seen, title
from fairway.kube.objects import object_key
from fairway.workloads.gang import Gang
from fairway.workloads.registry import read_workload
from queue_dispatcher.bindings.objects import RESOURCE_BINDINGS
from queue_dispatcher.bindings.state import Finished, Foreign
from queue_dispatcher.cache.entry import Entry
from queue_dispatcher.cache.templates import Kind, template_key
from queue_dispatcher.workloads.pod_template import FIXED_KINDS, KAI, pod_templates

SERVES: Final[Mapping[str, str]] = {"volcano": "scheduling.volcano.sh", KAI: "scheduling.run.ai"}
"""By gang scheduler, of which API group a cluster that has it serves PodGroups."""
MAX_NAMED: Final = 4
_REMEDY: Final = (
    "install it there, keep such workloads away by the clusterAffinity of their policy, or leave the "
    "schedulerName out of their pod template"
)


def _lacking(evidence: Evidence) -> Iterator[Finding]:
    karmada = evidence.on_karmada()
    clusters = {cluster.name: cluster for cluster in karmada.listed(CLUSTERS)}
    found = seen(evidence, RESOURCE_BINDINGS)
    named = {
        (name, object_key(one.metadata)): schedulers
        for name, kind in WORKLOADS.items()
        if name in FIXED_KINDS and kind.name not in karmada.unread
        for one in karmada.listed(kind)
        if (schedulers := _schedulers(name, kind.path, one))
    }
    yield from gathered(
        (case, title(entry.binding))
        for entry in found.entries.values()
        if not isinstance(entry.state, Foreign | Finished)
        for scheduler in named.get(_key(entry), ())
        for case in _case(scheduler, entry, found, clusters)
    )


def _case(scheduler: str, entry: Entry, found: Seen, clusters: Mapping[str, MemberCluster]) -> Iterator[Case]:
    binding = entry.binding
    goes = {one.cluster for one in binding.placed}
    if not goes and binding.placement is not None:
        goes = set(found.cache.fleet.permitted(binding.placement))
    group = SERVES[scheduler]
    served = {name: clusters[name].serves(group, "PodGroup") for name in sorted(goes & clusters.keys())}
    is_there = "is in" if binding.placed else "may go to"
    told = f"its pods name the scheduler {scheduler}, and it {is_there}"
    if lacking := [name for name, serves in served.items() if serves is False]:
        yield Case(
            Verdict.WARNING,
            f"{told} {_some(lacking)}, without PodGroups of {group}: nobody takes its pods there",
            _REMEDY,
        )
    if unread := [name for name, serves in served.items() if serves is None]:
        yield Case(
            Verdict.UNKNOWN,
            f"{told} {_some(unread)}, and of what is served there Karmada has not read all "
            f"(CompleteAPIEnablements is not True): whether PodGroups of {group} are is not known",
            "wait until Karmada has read it; if it stays so: kubectl describe cluster, and that cluster's "
            "APIServices",
        )


def _some(names: Sequence[str]) -> str:
    more = f" and {len(names) - MAX_NAMED} more" if len(names) > MAX_NAMED else ""
    return ", ".join(names[:MAX_NAMED]) + more


def _key(entry: Entry) -> tuple[Kind, str]:
    workload = entry.binding.workload
    return (workload.group, workload.kind), template_key(workload)


def _schedulers(name: Kind, path: str, one: WorkloadObject) -> tuple[str, ...]:
    """The gang schedulers that its pod templates name; none of what cannot be read."""
    spec = bytes(one.spec)
    if not any(f'"{scheduler}"'.encode() in spec for scheduler in SERVES):
        return ()
    group, kind = name
    version = path.removeprefix("/apis/").rpartition("/")[0]
    whole = {"apiVersion": version, "kind": kind, "metadata": {"name": one.metadata.name}, "spec": one.spec}
    raw = msgspec.json.encode(whole)
    gang = read_workload(raw)
    if not isinstance(gang, Gang):
        return ()
    return tuple(sorted({pods.scheduler for pods in pod_templates(group, raw, gang)} & SERVES.keys()))


GANG_SCHEDULERS = Check(
    "gang-schedulers",
    "Do clusters have the gang schedulers that pods name?",
    "every cluster that workloads are in, or may go to, has the gang scheduler that their pods name",
    _lacking,
)
