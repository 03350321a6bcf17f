"""Volcano's Queues as ClusterQueues, so that those who have them need not write them anew.

Volcano's terms: ``deserved`` is a queue's own and is lent while unused, ``guarantee`` the part of it that is
never lent, ``capability`` the most it may use. In ours: nominal quota, nominal less lending limit, nominal
plus borrowing limit. Volcano knows no flavors, so there is one, `FLAVOR`, of all clusters.

Volcano states a queue's entitlement with that of the queues below in it, we without. So a queue's nominal
quota is what it claims less what the queues below it have, and lending and borrowing limits, which are of
whole subtrees in both, are taken over. The root is the same with the flavor's capacity for its claim: what no
queue claims is its nominal quota, so the tree holds exactly the capacity, and a queue without a capability is
limited by the root. That is why the capacity is an argument, and the queues are made anew when it changes.
Where queues claim more than there is, the root's quota is zero, and the capacity limits them, not the quota.
Where queues claim more than the queue above may use, each gets its proportion of that, rounded down.

Looked at are weight, capability, deserved, guarantee, parent, priority, dequeueStrategy and the state; not
looked at are reclaimable, affinity, extendClusters and type.
"""

from collections.abc import Iterable, Mapping
from enum import StrEnum
from typing import Final

from queue_dispatcher.api.cluster_queue import (
    ClusterQueue,
    FlavorQuotas,
    QueueingStrategy,
    ResourceGroup,
    StopPolicy,
)
from queue_dispatcher.api.quota import Amount, ResourceQuota
from queue_dispatcher.api.reading.fields import MAX_INT32, Problems, choice, integer, shown
from queue_dispatcher.api.resource_flavor import ResourceFlavor
from queue_dispatcher.api.volcano_claims import Claim, Claims, read_claims
from queue_dispatcher.api.volcano_objects import VolcanoQueueObject

ROOT: Final = "root"
"""The queue above all that name no parent: Volcano's own, where it is there."""

FLAVOR: Final = ResourceFlavor("default")
"""The one flavor: all clusters, with what they report as allocatable."""

_MAX_WEIGHT = 65535


class _DequeueStrategy(StrEnum):
    TRAVERSE = "traverse"
    FIFO = "fifo"


_STRATEGIES = {
    _DequeueStrategy.TRAVERSE: QueueingStrategy.BEST_EFFORT_FIFO,
    _DequeueStrategy.FIFO: QueueingStrategy.STRICT_FIFO,
}


def read_volcano_queues(
    stated: Iterable[VolcanoQueueObject], capacity: Mapping[str, int]
) -> tuple[ClusterQueue, ...]:
    """The tree that the queues make of `FLAVOR`'s capacity (milli-cores of cpu, whole units of all else).

    The root comes first, then the queues in their order. A parent that is not there, or a cycle, stays as it
    is stated: whoever resolves the tree finds it.
    """
    objects = {one.metadata.name: one for one in stated}
    root = objects.pop(ROOT, None) or _ABSENT_ROOT
    claims = {name: read_claims(one) for name, one in objects.items()}
    claims[ROOT] = read_claims(root)
    names = dict.fromkeys((*capacity, *(name for one in claims.values() for name in one.of)))
    below = _below(objects)
    order = _from_the_top(below, objects)
    quotas: dict[str, dict[str, ResourceQuota]] = {name: {} for name in claims}
    crowded: dict[str, list[str]] = {name: [] for name in claims}
    for resource in sorted(names):
        of = {name: one.get(resource) for name, one in claims.items()}
        there = capacity.get(resource, 0)
        top = of[ROOT].most
        of[ROOT] = Claim(there if top is None else min(there, top), 0, top)
        subtree = _subtrees(of, below, order)
        held = _shared_out(subtree, below, order)
        for name, claim in of.items():
            given = sum(held[child] for child in below.get(name, ()))
            wanted = sum(subtree[child] for child in below.get(name, ()))
            if wanted > held[name]:
                crowded[name].append(resource)
            nominal = Amount(max(0, held[name] - given))
            quotas[name][resource] = (
                ResourceQuota(nominal) if name == ROOT else _limited(nominal, claim, held[name])
            )
    return tuple(
        _cluster_queue(one, claims[name], quotas[name], crowded[name])
        for name, one in {ROOT: root, **objects}.items()
    )


_ABSENT_ROOT = VolcanoQueueObject()


def _below(objects: Mapping[str, VolcanoQueueObject]) -> dict[str, list[str]]:
    """The names of the queues right below each."""
    below: dict[str, list[str]] = {}
    for name, one in objects.items():
        below.setdefault(one.spec.parent or ROOT, []).append(name)
    return below


def _from_the_top(below: Mapping[str, list[str]], objects: Mapping[str, VolcanoQueueObject]) -> list[str]:
    """All queues that are in no cycle nor below one, each after the one above it."""
    order = [
        ROOT,
        *(name for parent in below if parent != ROOT and parent not in objects for name in below[parent]),
    ]
    for name in order:
        order.extend(below.get(name, ()))
    return order


def _subtrees(of: Mapping[str, Claim], below: Mapping[str, list[str]], order: list[str]) -> dict[str, int]:
    """What each queue and those below it claim together: no less than the parts, no more than it may use."""
    subtree = {name: claim.own for name, claim in of.items()}
    for name in reversed(order):
        wanted = max(subtree[name], sum(subtree[child] for child in below.get(name, ())))
        most = of[name].most
        subtree[name] = wanted if most is None else min(wanted, most)
    return subtree


def _shared_out(
    subtree: Mapping[str, int], below: Mapping[str, list[str]], order: list[str]
) -> dict[str, int]:
    """What each subtree gets: what it claims, or its proportion where the queue above has less than that."""
    held = dict(subtree)
    for name in order:
        children = below.get(name, ())
        wanted = sum(subtree[child] for child in children)
        if wanted > held[name]:
            held.update((child, subtree[child] * held[name] // wanted) for child in children)
    return held


def _limited(nominal: Amount, claim: Claim, held: int) -> ResourceQuota:
    borrowing = None if claim.most is None else Amount(claim.most - held)
    return ResourceQuota(nominal, borrowing, Amount(max(0, held - claim.kept)))


def _cluster_queue(
    stated: VolcanoQueueObject, claims: Claims, quotas: Mapping[str, ResourceQuota], crowded: list[str]
) -> ClusterQueue:
    spec, problems = stated.spec, Problems()
    if crowded:
        found = f"less {', '.join(name[:63] for name in crowded)} than the queues below claim"
        problems.add("spec.capability", f"{found}: expected no less; each of them gets its proportion")
    traverse, fifo = _DequeueStrategy.TRAVERSE, _DequeueStrategy.FIFO
    strategy = choice(spec.dequeue_strategy, traverse, fifo, "spec.dequeueStrategy", problems)
    name = stated.metadata.name or ROOT
    return ClusterQueue(
        name=name,
        parent="" if name == ROOT else spec.parent or ROOT,
        groups=(ResourceGroup(tuple(quotas), (FlavorQuotas(FLAVOR.name, quotas),)),) if quotas else (),
        weight_milli=1000 * integer(spec.weight, 1, 1, 1, _MAX_WEIGHT, "spec.weight", problems),
        priority=integer(spec.priority, 0, 0, 0, MAX_INT32, "spec.priority", problems),
        strategy=_STRATEGIES[strategy],
        stop_policy=_stop_policy(stated, problems),
        problems=(*claims.problems, *problems.found),
    )


def _stop_policy(stated: VolcanoQueueObject, problems: Problems) -> StopPolicy:
    """Volcano admits where the state is Open; a queue that no controller has looked at yet is open."""
    match stated.status.state if stated.status else None:
        case None | "" | "Open":
            return StopPolicy.NONE
        case "Closed" | "Closing":
            return StopPolicy.HOLD
        case other:
            problems.add("status.state", f"{shown(other)}: expected Open, Closing or Closed; read as Closed")
            return StopPolicy.HOLD
