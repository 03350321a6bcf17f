"""Extended resources that device classes serve instead of a device plugin.

A class may state the name of an extended resource, and every class has one of its own besides. Where a
node's allocatable has the name, the device plugin serves it; where it does not, kube-scheduler makes a claim
of the container's request: so many devices of the class.

Mirrors deviceclass/extendedresourcecache of k8s.io/dynamic-resource-allocation and the
extendeddynamicresources part of the DynamicResources plugin, Kubernetes 1.36. Difference: a class that loses
its explicit name to a newer one keeps its own name, whatever the order of events.
"""

from collections.abc import Iterable

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
