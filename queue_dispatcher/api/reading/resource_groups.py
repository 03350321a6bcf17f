"""Reads the quotas of a ClusterQueue. What cannot be read is a quota of zero that borrows and lends nothing.

What contradicts an earlier line is left out, so that each resource is covered once and each flavor named
once, and each flavor of a group has a quota of every resource that the group covers.
"""

from collections.abc import Iterable

from queue_dispatcher.api.cluster_queue import FlavorQuotas, ResourceGroup
from queue_dispatcher.api.objects import FlavorQuotasSpec, ResourceGroupSpec, ResourceQuotaSpec
from queue_dispatcher.api.quota import ZERO, ResourceQuota
from queue_dispatcher.api.reading.fields import Problems, limit, quota, shown


def read_resource_groups(
    stated: Iterable[ResourceGroupSpec], has_parent: bool, field: str, problems: Problems
) -> tuple[ResourceGroup, ...]:
    """The groups, in order; limits need a queue above (``has_parent``)."""
    covered_before: set[str] = set()
    named_before: set[str] = set()
    groups: list[ResourceGroup] = []
    for index, group in enumerate(stated):
        where = f"{field}[{index}]"
        covered = tuple(
            _unique(group.covered_resources or (), covered_before, f"{where}.coveredResources", problems)
        )
        flavors: list[FlavorQuotas] = []
        for position, flavor in enumerate(group.flavors or ()):
            place = f"{where}.flavors[{position}]"
            if not flavor.name:
                problems.add(f"{place}.name", "nothing: expected the name of a ResourceFlavor; left out")
            elif flavor.name in named_before:
                problems.add(f"{place}.name", f"{shown(flavor.name)} is named before; left out")
            else:
                named_before.add(flavor.name)
                flavors.append(_flavor_quotas(flavor, covered, has_parent, place, problems))
        if not flavors:
            problems.add(f"{where}.flavors", "nothing: expected at least one flavor; the group gives nothing")
        groups.append(ResourceGroup(covered, tuple(flavors)))
    return tuple(groups)


def _unique(names: Iterable[str], before: set[str], field: str, problems: Problems) -> Iterable[str]:
    for index, name in enumerate(names):
        if name in before:
            problems.add(f"{field}[{index}]", f"{shown(name)} is covered before; left out")
        else:
            before.add(name)
            yield name


def _flavor_quotas(
    stated: FlavorQuotasSpec, covered: tuple[str, ...], has_parent: bool, field: str, problems: Problems
) -> FlavorQuotas:
    read: dict[str, ResourceQuota] = {}
    for index, one in enumerate(stated.resources or ()):
        where = f"{field}.resources[{index}]"
        if one.name not in covered:
            problems.add(
                f"{where}.name", f"{shown(one.name)} is not in coveredResources of its group; left out"
            )
        elif one.name in read:
            problems.add(f"{where}.name", f"{shown(one.name)} has a quota before; left out")
        else:
            read[one.name] = _resource_quota(one, has_parent, where, problems)
    for name in covered:
        if name not in read:
            problems.add(
                f"{field}.resources", f"no quota of {shown(name)}, which its group covers: read as 0"
            )
    return FlavorQuotas(stated.name, {name: read.get(name, _NO_QUOTA) for name in covered})


_NO_QUOTA = ResourceQuota(ZERO, borrowing_limit=ZERO)


def _resource_quota(
    stated: ResourceQuotaSpec, has_parent: bool, field: str, problems: Problems
) -> ResourceQuota:
    nominal = quota(stated.name, stated.nominal_quota, f"{field}.nominalQuota", problems)
    borrowing = limit(stated.name, stated.borrowing_limit, f"{field}.borrowingLimit", problems)
    lending = limit(stated.name, stated.lending_limit, f"{field}.lendingLimit", problems)
    if has_parent:
        return ResourceQuota(nominal, borrowing, lending)
    for name, value in (("borrowingLimit", borrowing), ("lendingLimit", lending)):
        if value is not None:
            problems.add(f"{field}.{name}", "of no effect without spec.parent: name a parent, or remove it")
    return ResourceQuota(nominal)
