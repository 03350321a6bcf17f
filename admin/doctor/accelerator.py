"""Which resources are accelerators: what the packaged catalogue says."""

from collections.abc import Mapping

from fairway.accelerators.builtin import builtin_catalogue
from fairway.kube.objects import RawResources
from fairway.resources import ResourceError, parse_amounts


def is_accelerator(resource: str) -> bool:
    """Whether the catalogue calls the resource an accelerator."""
    entry = builtin_catalogue().lookup(resource)
    return entry is not None and entry.is_accelerator


def accelerators_of(raw: RawResources | None) -> Mapping[str, int]:
    """How many there are of each accelerator of which there are any; none where it cannot be read."""
    try:
        return {
            name: amount for name, amount in parse_amounts(raw).items() if amount > 0 and is_accelerator(name)
        }
    except ResourceError:
        return {}
