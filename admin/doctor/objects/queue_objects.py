"""Checks of how the queues' own objects go together: the tree, flavors, quotas, classes.

What is wrong with a tree is what the dispatcher itself finds when it reads them.
"""

from collections.abc import Iterator, Sequence

from admin.doctor.check import Check
from admin.doctor.evidence import Evidence
from admin.doctor.finding import Finding, Verdict
from admin.doctor.objects.gathered import Case, gathered
from admin.doctor.objects.queue_fields import edit, queue_title
from admin.doctor.objects.seen import Seen, seen, title
from fairway.resources import format_amount
from queue_dispatcher.api.cluster_queue import ClusterQueue
from queue_dispatcher.api.kinds import (
    CLUSTER_QUEUES,
    LOCAL_QUEUES,
    RESOURCE_FLAVORS,
    SERVICE_CLASSES,
)
from queue_dispatcher.api.quota import ZERO, Percent
from queue_dispatcher.api.resource_flavor import ResourceFlavor, Static
from queue_dispatcher.bindings.cluster import CLUSTERS
from queue_dispatcher.bindings.objects import RESOURCE_BINDINGS
from queue_dispatcher.workloads.flavors import absent_flavors

_PARENT = "spec.parent"
_NAMED = 4
"""Queues that are named; of more only the number is told."""


def _tree(evidence: Evidence) -> Iterator[Finding]:
    found = seen(evidence, CLUSTER_QUEUES)
    resolved = found.cache.resolved
    for name, problems in resolved.problems.items():
        for problem in problems:
            yield Finding(
                Verdict.ERROR if problem.field == _PARENT else Verdict.WARNING,
                queue_title(found, name),
                str(problem),
                edit(queue_title(found, name), found),
            )
    for name in sorted(resolved.inner):
        queue = found.cache.queues.queues.cluster_queues[name]
        if name not in found.volcano and _owns_any(queue):
            yield Finding(
                Verdict.NOTE,
                queue_title(found, name),
                "spec.resourceGroups: it has queues below it, so its own quota is a pool that they borrow "
                "from, on top of theirs",
                "leave it if that is meant; else move the quota to the queues below",
            )
    if any(_is_of_clusters(flavor, found) for flavor, _ in found.cache.queues.shares):
        seen(evidence, CLUSTERS)


def _is_of_clusters(name: str, found: Seen) -> bool:
    """Whether what a percentage of the flavor comes to is known by its clusters alone."""
    flavor = found.cache.flavors.values.get(name)
    return flavor is not None and not isinstance(flavor.capacity, Static)


def _owns_any(queue: ClusterQueue) -> bool:
    """Whether it states any quota above nothing."""
    flavors = (flavor for group in queue.groups for flavor in group.flavors)
    return any(quota.nominal not in (ZERO, Percent(0)) for one in flavors for quota in one.quotas.values())


def _flavors(evidence: Evidence) -> Iterator[Finding]:
    found = seen(evidence, CLUSTER_QUEUES, RESOURCE_FLAVORS, CLUSTERS)
    fleet, flavors = found.cache.fleet, found.cache.fleet.flavors
    for name, queue in found.cache.queues.queues.cluster_queues.items():
        for problem in absent_flavors(queue, flavors):
            yield Finding(
                Verdict.ERROR,
                queue_title(found, name),
                str(problem),
                "kubectl get resourceflavors shows those that there are",
            )
    for name, flavor in found.cache.flavors.values.items():
        if not fleet.reaches[name].clusters:
            yield Finding(
                Verdict.ERROR,
                f"ResourceFlavor {name}",
                f"{_selecting(flavor)} selects none of the {len(fleet.clusters)} clusters: quota of it is "
                "never given",
                "correct it: kubectl get clusters --show-labels shows what there is to select",
            )
        else:
            absent = sorted(set(flavor.cluster_names) - fleet.clusters.keys())
            if absent:
                yield Finding(
                    Verdict.WARNING,
                    f"ResourceFlavor {name}",
                    f"spec.clusterNames: no such cluster: {', '.join(absent[:8])}",
                    "correct the names, or join the clusters",
                )


def _selecting(flavor: ResourceFlavor) -> str:
    fields = []
    if flavor.cluster_names:
        fields.append("spec.clusterNames")
    if flavor.cluster_selector is not None:
        fields.append("spec.clusterSelector")
    return " with ".join(fields) or "spec"


def _capacity(evidence: Evidence) -> Iterator[Finding]:
    found = seen(evidence, CLUSTER_QUEUES, RESOURCE_FLAVORS, CLUSTERS)
    cache, tree = found.cache, found.cache.resolved.tree
    for cell in range(len(cache.table)):
        name = cache.table.name(cell)
        capacity = cache.fleet.capacity(name.flavor)
        if name.flavor not in cache.fleet.flavors or not cache.fleet.reaches[name.flavor].clusters:
            continue
        if capacity is None:
            continue
        nominal = tree.limits(cell).nominal
        there, wanted = capacity.get(name.resource, 0), sum(nominal)
        if wanted <= there:
            continue
        owners = [node.name for node, own in zip(tree.nodes, nominal, strict=True) if own]
        has = f"and there are {format_amount(name.resource, there)} on its Ready clusters"
        alone = [(node.name, own) for node, own in zip(tree.nodes, nominal, strict=True) if own > there]
        if alone:
            yield Finding(
                Verdict.WARNING,
                f"ResourceFlavor {name.flavor}",
                f"nominalQuota of {name.resource} is {_each(alone, name.resource)}, {has}: what is "
                "within it waits for room that is not there",
                "lower the quota, state it as a percentage, or add nodes; see also capacityPolicy of the "
                "flavor",
            )
            continue
        yield Finding(
            Verdict.NOTE,
            f"ResourceFlavor {name.flavor}",
            f"nominalQuota of {name.resource} adds up to {format_amount(name.resource, wanted)} in "
            f"{_some(owners)}, {has}: what is within its quota may wait for room while others use theirs",
            "leave it if that is meant; else lower the quotas or state them as percentages",
        )


def _each(owners: Sequence[tuple[str, int]], resource: str) -> str:
    """Who owns how much, those with the most first."""
    by_amount = sorted(owners, key=lambda owner: (-owner[1], owner[0]))
    told = [f"{format_amount(resource, own)} in ClusterQueue {name}" for name, own in by_amount]
    return _listed(told)


def _some(names: Sequence[str]) -> str:
    return f"ClusterQueue {_listed(names)}"


def _listed(told: Sequence[str]) -> str:
    more = f" and {len(told) - _NAMED} more" if len(told) > _NAMED else ""
    return f"{', '.join(told[:_NAMED])}{more}"


def _classes(evidence: Evidence) -> Iterator[Finding]:
    found = seen(evidence, SERVICE_CLASSES, LOCAL_QUEUES, RESOURCE_BINDINGS)
    classes = found.cache.queues.service_classes.values
    defaults = sorted(name for name, one in classes.items() if one.is_default)
    if len(defaults) > 1:
        used = min(defaults, key=lambda name: (classes[name].priority, name))
        yield Finding(
            Verdict.WARNING,
            f"ServiceClass {used}",
            f"spec.globalDefault is true of {', '.join(defaults[:8])}: {used} counts, as the least in "
            "priority",
            "leave globalDefault to one of them",
        )
    remedy = "create the ServiceClass, or name another; meanwhile it is passed over"
    missing: list[tuple[Case, str]] = []
    for local in found.cache.queues.queues.local_queues.values():
        if local.default_class and local.default_class not in classes:
            told = f"spec.defaultServiceClass: there is no ServiceClass {local.default_class[:253]}"
            missing.append((Case(Verdict.WARNING, told, remedy), f"LocalQueue {local.key}"))
    for entry in found.entries.values():
        name = entry.binding.service_class or entry.facts.service_class
        if name and name not in classes:
            told = f"fairway.dev/class: there is no ServiceClass {name[:253]}"
            missing.append((Case(Verdict.WARNING, told, remedy), title(entry.binding)))
    yield from gathered(missing)


QUEUE_TREE = Check(
    "queue-tree",
    "Do the ClusterQueues form trees, with limits that can hold?",
    "the ClusterQueues form trees",
    _tree,
)
QUEUE_FLAVORS = Check(
    "queue-flavors",
    "Is there capacity behind every flavor?",
    "every flavor is there and selects clusters",
    _flavors,
)
QUEUE_CAPACITY = Check(
    "queue-capacity",
    "Are there as many devices as the quotas promise?",
    "the quotas promise no more than there is",
    _capacity,
)
QUEUE_CLASSES = Check(
    "queue-classes",
    "Is every ServiceClass there that is named?",
    "every ServiceClass that is named is there",
    _classes,
)
