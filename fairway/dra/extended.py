"""Extended resources that device classes serve instead of a device plugin.

A class may state the name of an extended resource, and every class has one of its own besides. Where a
node's allocatable has the name, the device plugin serves it; where it does not, kube-scheduler makes a claim
of the container's request: so many devices of the class.

Mirrors deviceclass/extendedresourcecache of k8s.io/dynamic-resource-allocation and the
extendeddynamicresources part of the DynamicResources plugin, Kubernetes 1.36. Difference: a class that loses
its explicit name to a newer one keeps its own name, whatever the order of events.
"""

from collections.abc import Iterable, Mapping

from fairway.dra.allocation import Budget
from fairway.dra.counting import Copies, count_copies
from fairway.dra.in_use import InUse
from fairway.dra.pools import NodeDevices
from fairway.dra.requests import Ask, Claim, ClaimError, Request, selectors_of
from fairway.dra.selection import Selection
from fairway.kube.resource_slices import DeviceClass

IMPLICIT_PREFIX = "deviceclass.resource.kubernetes.io/"
"""The extended resource of every class is this and the name of the class."""


def classes_by_resource(classes: Iterable[DeviceClass]) -> dict[str, DeviceClass]:
    """The class behind each extended resource: the newest that states the name, then the lowest name.

    Times are compared as the API server writes them, in UTC and whole seconds; a class without one is oldest.
    """
    known = list(classes)
    served = {IMPLICIT_PREFIX + device_class.metadata.name: device_class for device_class in known}
    known.sort(key=lambda device_class: device_class.metadata.name, reverse=True)
    known.sort(key=lambda device_class: device_class.metadata.creation_timestamp or "")
    for device_class in known:
        if device_class.spec.extended_resource_name:
            served[device_class.spec.extended_resource_name] = device_class
    return served


def serving_class(
    resource: str, served: Mapping[str, DeviceClass], allocatable: Mapping[str, int]
) -> DeviceClass | None:
    """The class that serves the resource on a node with this allocatable; None: a device plugin or nobody."""
    return None if allocatable.get(resource, 0) > 0 else served.get(resource)


def free_of_class(
    device_class: DeviceClass,
    node: NodeDevices,
    in_use: InUse,
    selection: Selection,
    *,
    limit: int,
    budget: Budget,
) -> Copies:
    """How many devices of the class are free on the node, at most ``limit``; shares count one by one."""
    name = device_class.metadata.name
    try:
        selectors = selectors_of(device_class)
    except ClaimError as error:
        return Copies(0, 0, (str(error),))
    claim = Claim(f"of class {name}", (Request("devices", (Ask("devices", name, selectors),)),))
    return count_copies((claim,), node, in_use, selection, limit=limit, budget=budget)
