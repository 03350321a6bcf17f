"""Which flavors a workload can be charged to, before anybody knows where Karmada will place it.

Where the dispatcher states the clusters of a release, the flavor chooses them: each flavor is an alternative,
which goes to the clusters that it has. What fits in none of them alone, or where nobody can tell, is charged
as what Karmada chooses for.

Where Karmada chooses, it does so among all that the placement permits. So a flavor can be chosen for a
workload only where it has all of them; then each such flavor is an alternative, and the first that fits wins.
Otherwise the workload may land on several, and it is charged to each of them in full until it is placed:
quota is never exceeded, wherever it lands. Then an alternative is a choice of flavors that between them have
every place that any has. A placement that keeps to the clusters of one flavor is never charged twice.

As in Kueue, resources of one group come from the same flavor, each component of a workload has flavors of its
own, and a queue's order of flavors is its preference. Which the components get together is searched for while
there is room (`queue_dispatcher.cycle.assignment`), not enumerated here. Resources that no group covers are
not limited, except accelerators: for those there is no quota.
"""

from collections.abc import Callable, Container, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import NamedTuple

from fairway.taints import Taint, Toleration, first_untolerated
from queue_dispatcher.api.cluster_queue import ClusterQueue, ResourceGroup
from queue_dispatcher.api.problem import Problem
from queue_dispatcher.api.resource_flavor import ResourceFlavor
from queue_dispatcher.cycle.items import Alternative, joined
from queue_dispatcher.cycle.keeping import FlavorNodes, Keeping
from queue_dispatcher.cycle.reasons import Reason, never_fits
from queue_dispatcher.ledger.cells import CellTable, added
from queue_dispatcher.workloads.demand import Component, Demand, Requests
from queue_dispatcher.workloads.fleet import Cluster, clusters_of
from queue_dispatcher.workloads.node_claim import NodeClaim


@dataclass(frozen=True, slots=True)
class Reach:
    """What a flavor means on this fleet.

    ``clusters``: where it is. ``node_labels``: what all its nodes carry. ``taints``: those of
    its nodes that keep pods off, but for what the flavor says that its workloads tolerate. ``tolerations``:
    what that is.
    """

    clusters: frozenset[str]
    node_labels: Mapping[str, str] = field(default_factory=dict)
    taints: tuple[Taint, ...] = ()
    tolerations: tuple[Toleration, ...] = ()

    @property
    def is_telling(self) -> bool:
        """Whether pods have to say anything to be on its nodes alone."""
        return bool(self.node_labels or self.tolerations)

    def takes(self, claim: NodeClaim) -> bool:
        """Whether pods with this claim may be on its nodes."""
        return claim.allows(self.node_labels) and claim.untolerated(self.taints) is None


Reaches = Mapping[str, Reach]
"""By the flavor's name."""

Parts = tuple[tuple[Alternative, ...], ...]
"""Of each part of a workload, its alternatives; one part at least, and one alternative in each."""


def reach_of(flavor: ResourceFlavor, fleet: Iterable[Cluster]) -> Reach:
    """The reach of a flavor."""
    keeping_off = (t for t in flavor.node_taints if first_untolerated((t,), flavor.tolerations) is not None)
    return Reach(clusters_of(flavor, fleet), flavor.node_labels, tuple(keeping_off), flavor.tolerations)


def alternatives(
    demand: Demand,
    copies: int,
    queue: ClusterQueue,
    reaches: Reaches,
    permitted: frozenset[str],
    is_accelerator: Callable[[str], bool],
    table: CellTable,
    *,
    is_preplaced: bool = False,
    told: Container[str] = (),
) -> Parts | Reason:
    """The ways to charge each part of a workload to its queue, the preferred first, or why there is none.

    ``permitted``: the clusters that its placement permits. ``is_preplaced``: its release states where to.
    ``told``: the components whose pods can be told on which nodes to stay.
    That the amounts may be more than the queue could ever use is for the ledger to find out.
    """
    if not permitted:
        return never_fits("its placement permits none of the clusters that there are")
    covered = {resource for group in queue.groups for resource in group.covered}
    for resource, _ in demand.total(copies):
        if resource not in covered and is_accelerator(resource):
            return never_fits(f"queue {queue.name} has no quota for {resource}")
    fixed: list[Alternative] = []
    free: list[tuple[Alternative, ...]] = []
    for component in demand.components:
        amounts = dict(Demand((component,)).total(copies))
        for group in queue.groups:
            asked = [(resource, amounts[resource]) for resource in amounts if resource in group.covered]
            if not asked:
                continue
            found = _choices(group, component.claim, reaches, permitted, is_preplaced=is_preplaced)
            if isinstance(found, str):
                of = f" of component {component.name}" if len(demand.components) > 1 else ""
                names = ", ".join(resource for resource, _ in asked)
                return _never(f"{names}{of}", f"{found} of queue {queue.name}", queue.name, group, reaches)
            options = tuple(_alternative(choice, asked, component, copies, table) for choice in found)
            if component.name in told:
                options = tuple(_kept(one, component, reaches, permitted) for one in options)
            if len(options) == 1 and not options[0].places:
                fixed += options
            else:
                free.append(options)
    if fixed or not free:
        free.insert(0, (joined(fixed) if fixed else Alternative((), ()),))
    if is_preplaced and not permitted.intersection(*(_somewhere(part, permitted) for part in free)):
        # No cluster is in flavors for all of it, so none can be stated.
        return alternatives(demand, copies, queue, reaches, permitted, is_accelerator, table, told=told)
    return tuple(free)


def _somewhere(options: Iterable[Alternative], permitted: frozenset[str]) -> frozenset[str]:
    """The clusters that one of the options can go to."""
    clusters = (permitted if option.clusters is None else option.clusters for option in options)
    return frozenset[str]().union(*clusters)


def absent_flavors(queue: ClusterQueue, flavors: Container[str]) -> Iterator[Problem]:
    """The flavors of a queue that are not among those that there are, by field."""
    for number, group in enumerate(queue.groups):
        for index, quotas in enumerate(group.flavors):
            if quotas.flavor not in flavors:
                yield Problem(
                    f"spec.resourceGroups[{number}].flavors[{index}].name",
                    f"there is no ResourceFlavor {quotas.flavor[:253]}: its quota is never given; create it, "
                    "or name another",
                )


def without_flavors(queue: str, groups: Sequence[ResourceGroup], flavors: Container[str]) -> str:
    """What to know of groups of a queue whose flavors are all not there; empty if any is."""
    named = dict.fromkeys(quotas.flavor for group in groups for quotas in group.flavors)
    if not named or any(name in flavors for name in named):
        return ""
    return f"there is no ResourceFlavor {_listed(named)}, and queue {queue} has quota of no other"


def offered(queue: ClusterQueue) -> Mapping[str, tuple[str, ...]]:
    """The flavors from which a queue offers a resource, in its order, by resource."""
    return {
        resource: tuple(quotas.flavor for quotas in group.flavors)
        for group in queue.groups
        for resource in group.covered
    }


def offered_by_all(total: Requests, reaches: Reaches) -> Mapping[str, tuple[str, ...]]:
    """All flavors for all resources: what a workload without a queue takes up capacity of."""
    names = tuple(sorted(reaches))
    return {resource: names for resource, _ in total}


def _never(asked: str, problem: str, queue: str, group: ResourceGroup, flavors: Container[str]) -> Reason:
    """Why none of a group's flavors can be charged; where some are not there, it may be for want of them."""
    gone = [quotas.flavor for quotas in group.flavors if quotas.flavor not in flavors]
    if not gone:
        return never_fits(f"{asked}: {problem}")
    told = f"{problem}, and there is no ResourceFlavor {_listed(gone)}"
    return never_fits(
        f"{asked}: {without_flavors(queue, (group,), flavors) or told}",
        f"an administrator creates ResourceFlavor {_listed(gone)}, or has queue {queue} name another",
    )


def _listed(flavors: Iterable[str]) -> str:
    return ", ".join(name[:253] for name in flavors)


def preferred_clusters(
    alternative: Alternative, reaches: Reaches, tiers: Sequence[frozenset[str]]
) -> list[frozenset[str]]:
    """Of the tiers, the clusters with a flavor for all of it that it is charged to, in the flavors' order."""
    found = frozenset[str]().union(*tiers)
    for part in alternative.parts or (alternative,):
        by_resource: dict[str, frozenset[str]] = {}
        for resource, flavor in part.flavors:
            reach = reaches[flavor].clusters if flavor in reaches else frozenset()
            by_resource[resource] = by_resource.get(resource, frozenset()) | reach
        for clusters in by_resource.values():
            found &= clusters
    flavors = dict.fromkeys(flavor for _, flavor in alternative.flavors if flavor in reaches)
    in_order = [reaches[flavor].clusters for flavor in flavors] or [found]
    return [tier & clusters & found for tier in tiers for clusters in in_order]


class _Choice(NamedTuple):
    """Flavors to charge together, and where each is.

    ``clusters``: where it has to go then; None for anywhere. ``is_any``: to whichever of the flavors.
    """

    flavors: Mapping[str, frozenset[str] | None]
    clusters: frozenset[str] | None = None
    is_any: bool = False


def _choices(
    group: ResourceGroup,
    claim: NodeClaim,
    reaches: Reaches,
    permitted: frozenset[str],
    *,
    is_preplaced: bool,
) -> list[_Choice] | str:
    """What to charge, the preferred first; or why none of the group's flavors can be."""
    there = {
        quotas.flavor: reaches[quotas.flavor]
        for quotas in group.flavors
        if quotas.flavor in reaches and not reaches[quotas.flavor].clusters.isdisjoint(permitted)
    }
    if not there:
        return "the clusters that its placement permits are in no flavor"
    alike = {name: reach for name, reach in there.items() if claim.allows(reach.node_labels)}
    if not alike:
        return "its node selector or node affinity contradicts the node labels of every flavor"
    where = {name: reach.clusters & permitted for name, reach in alike.items() if reach.takes(claim)}
    if not where:
        kept_off = (f"{claim.untolerated(reach.taints)} of {name}" for name, reach in alike.items())
        return f"its pods tolerate the nodeTaints of no flavor that suits them ({', '.join(kept_off)})"
    bound = {name: None if clusters == permitted else clusters for name, clusters in where.items()}
    found = [
        _Choice({name: clusters}, clusters)
        for name, clusters in bound.items()
        if is_preplaced or clusters is None
    ]
    if None in bound.values():
        return found
    covers: dict[frozenset[str], _Choice] = {}
    for name in where:
        cover = _cover(name, where)
        if is_preplaced:
            together = frozenset[str]().union(*(where[one] for one in cover))
            clusters = None if together == permitted else together
            choice = _Choice({one: where[one] for one in cover}, clusters, is_any=True)
        else:
            choice = _Choice(dict.fromkeys(cover), is_any=len(cover) > 1)
        covers.setdefault(frozenset(cover), choice)  # in another order they are the same charge
    return found + list(covers.values())


def _cover(first: str, where: Mapping[str, frozenset[str]]) -> tuple[str, ...]:
    """Flavors, ``first`` the first, that together have all clusters that any has; each has some of its own.

    What lands in a cluster is charged to the first of them that has it, so a flavor that adds none is left
    out.
    """
    covered: frozenset[str] = frozenset()
    cover = []
    for name in (first, *where):
        if not where[name] <= covered:
            covered |= where[name]
            cover.append(name)
    return tuple(cover)


def _alternative(
    choice: _Choice,
    asked: Sequence[tuple[str, int]],
    component: Component,
    copies: int,
    table: CellTable,
) -> Alternative:
    each = [
        Alternative(
            tuple((resource, flavor) for resource, _ in asked),
            tuple(sorted((table.cell(flavor, resource), amount) for resource, amount in asked)),
            component=component.name,
            clusters=clusters,
        )
        for flavor, clusters in choice.flavors.items()
    ]
    if not choice.is_any:
        return each[0]
    return Alternative(
        tuple((resource, flavor) for resource, _ in asked for flavor in choice.flavors),
        added(*(one.charge for one in each)),
        # Several copies will be on several flavors, not on one of them.
        places=tuple(each) if copies == 1 else (),
        component=component.name,
        clusters=choice.clusters,
    )


def _kept(
    option: Alternative, component: Component, reaches: Reaches, permitted: frozenset[str]
) -> Alternative:
    keeping = keeping_of(component, dict.fromkeys(flavor for _, flavor in option.flavors), reaches, permitted)
    return option if keeping is None else replace(option, keeps=(keeping,))


def keeping_of(
    component: Component, flavors: Iterable[str], reaches: Reaches, permitted: frozenset[str]
) -> Keeping | None:
    """What keeps the pods of a component on the nodes of its flavors; None where there is nothing to tell.

    ``permitted``: the clusters that the workload may be in.
    """
    claim, found = component.claim, []
    for name in flavors:
        reach = reaches.get(name)
        if reach is None:
            continue
        labels = sorted(pair for pair in reach.node_labels.items() if not claim.states(*pair))
        tolerations = (one for one in reach.tolerations if one not in claim.tolerations)
        clusters = reach.clusters & permitted
        found.append(
            FlavorNodes(name, tuple(labels), tuple(tolerations), None if clusters == permitted else clusters)
        )
    return Keeping(component.name, tuple(found)) if any(one.is_telling for one in found) else None
