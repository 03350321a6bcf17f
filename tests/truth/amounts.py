"""Quantities, and what a pod asks a node for, after k8s.io/component-helpers/resource."""

from collections.abc import Iterable, Mapping
from fractions import Fraction
from math import ceil

from tests.truth.fields import Json, objects, strings, table, text

Amounts = dict[str, Fraction]

_SUFFIXES = {
    **{f"{letter}i": Fraction(1024**power) for power, letter in enumerate("KMGTPE", 1)},
    **{letter: Fraction(1000**power) for power, letter in enumerate("kMGTPE", 1)},
    "n": Fraction(1, 10**9),
    "u": Fraction(1, 10**6),
    "m": Fraction(1, 1000),
}


def quantity(written: str) -> Fraction:
    """The exact value of a well-formed quantity."""
    for suffix, factor in _SUFFIXES.items():
        if written.endswith(suffix):
            return Fraction(written.removesuffix(suffix)) * factor
    return Fraction(written)


def amounts(obj: object, *path: str) -> Amounts:
    """A ResourceList."""
    return {name: quantity(written) for name, written in strings(obj, *path).items()}


def counted(wanted: Mapping[str, Fraction]) -> dict[str, int]:
    """As the scheduler counts: milli-cores of cpu, units of everything else, rounded up."""
    return {name: ceil(value * 1000 if name == "cpu" else value) for name, value in wanted.items()}


def is_sidecar(container: Json) -> bool:
    """An init container that goes on running."""
    return text(container, "restartPolicy") == "Always"


def is_pod_level(resource: str) -> bool:
    """Which resources may be stated for the pod as a whole."""
    return resource in ("cpu", "memory") or resource.startswith("hugepages-")


def container_amounts(pod: Json, kind: str = "requests") -> Amounts:
    """AggregateContainerRequests or -Limits: all containers at once, or the largest init phase."""
    total = _sum(amounts(each, "resources", kind) for each in objects(pod, "spec", "containers"))
    sidecars: Amounts = {}
    largest: Amounts = {}
    for container in objects(pod, "spec", "initContainers"):
        own = amounts(container, "resources", kind)
        if is_sidecar(container):
            total = _sum((total, own))
            sidecars = phase = _sum((sidecars, own))
        else:
            phase = _sum((own, sidecars))
        largest = _most(largest, phase)
    return _most(total, largest)


def pod_amounts(pod: Json) -> Amounts:
    """PodRequests: what the pod states as a whole overrides, and its overhead comes on top."""
    total = container_amounts(pod)
    stated = amounts(pod, "spec", "resources", "requests")
    total |= {name: value for name, value in stated.items() if is_pod_level(name)}
    return _sum((total, amounts(pod, "spec", "overhead")))


def host_ports(pod: Json) -> set[tuple[str, str, int]]:
    """(address, protocol, port) of each host port that the pod holds while it runs."""
    containers = [each for each in objects(pod, "spec", "initContainers") if is_sidecar(each)]
    found = set()
    for container in (*containers, *objects(pod, "spec", "containers")):
        for port in objects(container, "ports"):
            number = port.get("hostPort")
            if isinstance(number, int) and number > 0:
                found.add((text(port, "hostIP") or "0.0.0.0", text(port, "protocol") or "TCP", number))
    return found


def ports_conflict(wanted: Iterable[tuple[str, str, int]], used: Iterable[tuple[str, str, int]]) -> bool:
    """HostPortInfo.CheckConflict: the wildcard address takes the port on every address."""
    used = set(used)
    return any(
        protocol == protocol_used
        and port == port_used
        and ("0.0.0.0" in (address, address_used) or address == address_used)
        for address, protocol, port in wanted
        for address_used, protocol_used, port_used in used
    )


def claim_names(pod: Json) -> list[str]:
    """Names of the PersistentVolumeClaims that the pod mounts."""
    volumes = (table(volume, "persistentVolumeClaim") for volume in objects(pod, "spec", "volumes"))
    return [text(volume, "claimName") for volume in volumes if volume]


def _sum(parts: Iterable[Mapping[str, Fraction]]) -> Amounts:
    total: Amounts = {}
    for part in parts:
        for name, value in part.items():
            total[name] = total.get(name, Fraction(0)) + value
    return total


def _most(left: Mapping[str, Fraction], right: Mapping[str, Fraction]) -> Amounts:
    return {
        name: max(left.get(name, Fraction(0)), right.get(name, Fraction(0))) for name in {**left, **right}
    }
