"""By which ids whoever looks at the hardware knows a device, published under a name of its driver's."""

from collections.abc import Iterator
from typing import Final

from fairway.dra.devices import Device, Kind, full_name
from fairway.kube.pci_address import pci_address

OWN: Final = ("uuid", "resource.kubernetes.io/pciBusID", "pciBusID", "pcieBusID")
"""The attributes that say it, the most telling first; one without a domain is of the driver's own.

NVIDIA's driver states ``uuid`` of GPUs and of MIG instances; others a PCI address.
"""
_WHOLE: Final = ("parentUUID",)


def hardware_ids(device: Device) -> Iterator[str]:
    """Its own ids, and that of the device that it is a part of; PCI addresses as `pci_address` has them."""
    for name in (*OWN, *_WHOLE):
        value = device.attribute(full_name(name, device.id.driver))
        if value is not None and value.kind is Kind.STRING and isinstance(value.value, str):
            yield pci_address(value.value) or value.value
