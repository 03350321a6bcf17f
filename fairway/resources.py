"""Resource names, their units, and what a pod asks a node for.

Amounts are integers everywhere: milli-cores for ``cpu``, whole units (bytes, devices) for all else,
both rounded up. Mirrors pkg/scheduler/framework/types.go and component-helpers/resource/helpers.go of
Kubernetes 1.36.
"""

from collections.abc import Iterable, Mapping, Sequence
from functools import lru_cache

from fairway.kube.objects import Container, ContainerStatus, Pod, PodSpec, RawQuantity, RawResources
from fairway.kube.templates import TemplateSpec
from fairway.quantity import format_bytes, format_milli, milli, parse_nano, units
from fairway.selectors import is_label_key

CPU = "cpu"
MEMORY = "memory"
EPHEMERAL_STORAGE = "ephemeral-storage"
PODS = "pods"
HUGEPAGES_PREFIX = "hugepages-"
_VOLUMES_PREFIX = "attachable-volumes-"
_QUOTA_PREFIX = "requests."
_NATIVE_DOMAIN = "kubernetes.io/"
_MAX_NAME_LENGTH = 63 + 1 + 253

Amounts = dict[str, int]
"""Resource name to amount: milli-cores for cpu, whole units for all else."""


class ResourceError(ValueError):
    """A resource list holds something that is no quantity; the message names the resource."""


def parse_nano_list(raw: RawResources | None) -> Amounts:
    """A resource list in nano-units, entries that are null left out. Raises ResourceError."""
    return {name: _nano(name, value) for name, value in (raw or {}).items() if value is not None}


def amounts(nano: Mapping[str, int]) -> Amounts:
    """Nano-units as amounts: cpu to milli-cores, all else to whole units, rounded up."""
    return {name: milli(value) if name == CPU else units(value) for name, value in nano.items()}


def parse_amounts(raw: RawResources | None) -> Amounts:
    """A resource list as amounts, entries that are null left out. Raises ResourceError."""
    return amounts(parse_nano_list(raw))


def format_amount(name: str, amount: int) -> str:
    """The amount as Kubernetes would print it: ``500m`` of cpu, ``64Gi`` of memory, ``8`` GPUs."""
    if name == CPU:
        return format_milli(amount)
    if name in (MEMORY, EPHEMERAL_STORAGE) or name.startswith(HUGEPAGES_PREFIX):
        return format_bytes(amount)
    return str(amount)


def is_extended(name: str) -> bool:
    """Whether the name is that of an extended resource, that is: something a device plugin advertises."""
    return len(name) <= _MAX_NAME_LENGTH and _classify(name) == _EXTENDED


def devices_asked(requests: Iterable[tuple[str, int]]) -> int:
    """How many units of extended resources these requests ask for, of whichever."""
    return sum(amount for name, amount in requests if is_extended(name))


def pod_size(requests: Sequence[tuple[str, int]]) -> tuple[int, int, int]:
    """What makes a pod hard to place, as something that sorts: devices, then cpu, then memory.

    Larger pods of a gang go first by this, and a placement that counts on that has to go by the same.
    """
    asked = dict(requests)
    return (devices_asked(requests), asked.get(CPU, 0), asked.get(MEMORY, 0))


def is_scheduled(name: str) -> bool:
    """Whether kube-scheduler counts the resource on nodes; any other name in a request it ignores."""
    return len(name) <= _MAX_NAME_LENGTH and _classify(name) != _IGNORED


_EXTENDED, _NATIVE, _IGNORED = range(3)


@lru_cache(maxsize=4096)
def _classify(name: str) -> int:
    if "/" in name and _NATIVE_DOMAIN not in name and not name.startswith(_QUOTA_PREFIX):
        return _EXTENDED if is_label_key(_QUOTA_PREFIX + name) else _IGNORED
    if name in (CPU, MEMORY, EPHEMERAL_STORAGE) or name.startswith((HUGEPAGES_PREFIX, _VOLUMES_PREFIX)):
        return _NATIVE
    return _NATIVE if _NATIVE_DOMAIN in name and is_label_key(name) else _IGNORED


def pod_request(pod: Pod) -> Amounts:
    """What the pod holds of its node, or will hold: the effective request as kube-scheduler computes it.

    Regular containers and sidecars add up; ordinary init containers count as a maximum over what runs
    beside them; pod-level requests replace cpu, memory and huge pages; a container being resized in
    place counts with the largest of what it asked for, was granted and has; overhead comes on top.
    Raises ResourceError.
    """
    spec, status = pod.spec, pod.status
    resized = {
        s.name: s
        for s in (*(status.container_statuses or ()), *(status.init_container_statuses or ()))
        if s.resources is not None
    }
    infeasible = bool(resized or status.resources) and _resize_infeasible(pod)
    total = _container_total(spec, resized, infeasible)
    pod_level = parse_nano_list(spec.resources.requests) if spec.resources else {}
    effective: Amounts = pod_level
    if pod_level and status.resources is not None:
        has, granted = parse_nano_list(status.resources.requests), parse_nano_list(status.allocated_resources)
        effective = _maximum(has, granted) if infeasible else _maximum(pod_level, has, granted)
    total.update((name, effective.get(name, 0)) for name in pod_level if _is_pod_level(name))
    _add(total, parse_nano_list(spec.overhead))
    return amounts(total)


def pod_template_request(spec: PodSpec | TemplateSpec) -> Amounts:
    """What each pod made from this template will ask for.

    A template is not defaulted by the API server as a pod is, so limits stand in for missing requests
    here: per container, and at pod level where no container states a request. Raises ResourceError.
    """
    total = _container_total(spec, {}, infeasible=False, limits_stand_in=True)
    if spec.resources:
        pod_level = parse_nano_list(spec.resources.requests)
        for name, value in parse_nano_list(spec.resources.limits).items():
            may_overcommit = not name.startswith(HUGEPAGES_PREFIX)
            pod_level.setdefault(name, total.get(name, value) if may_overcommit else value)
        total.update((name, value) for name, value in pod_level.items() if _is_pod_level(name))
    _add(total, parse_nano_list(spec.overhead))
    return amounts(total)


def contradicted_by_pod(spec: TemplateSpec) -> str:
    """What the pod states as a whole, beside its containers, that no API server accepts, as field and rule.

    Empty where there is nothing. Raises ResourceError.
    """
    if spec.resources is None:
        return ""
    stated, limits = parse_nano_list(spec.resources.requests), parse_nano_list(spec.resources.limits)
    total = _container_total(spec, {}, infeasible=False, limits_stand_in=True) if stated or limits else {}
    for name in filter(_is_pod_level, stated):
        if stated[name] < total.get(name, 0):
            return f"resources.requests.{name}: expected at least what the containers ask for together"
    for name in filter(_is_pod_level, limits):
        if limits[name] < stated.get(name, total.get(name, 0)):
            return f"resources.limits.{name}: expected at least what the pod and its containers ask for"
    return ""


def containers_request(spec: PodSpec | TemplateSpec) -> Amounts:
    """What all containers state as requests, in nano-units, nothing standing in. Raises ResourceError."""
    return _container_total(spec, {}, infeasible=False)


def container_template_request(container: Container) -> Amounts:
    """What one container of a pod template asks for, limits standing in. Raises ResourceError."""
    return amounts(_container_request(container, None, infeasible=False, limits_stand_in=True))


def _container_total(
    spec: PodSpec | TemplateSpec,
    resized: Mapping[str, ContainerStatus],
    infeasible: bool,
    limits_stand_in: bool = False,
) -> Amounts:
    total: Amounts = {}
    for container in spec.containers or ():
        _add(total, _container_request(container, resized.get(container.name), infeasible, limits_stand_in))
    if not spec.init_containers:
        return total
    sidecars: Amounts = {}
    peak: Amounts = {}
    for container in spec.init_containers:
        is_sidecar = container.restart_policy == "Always"
        status = resized.get(container.name) if is_sidecar else None
        request = _container_request(container, status, infeasible, limits_stand_in)
        if is_sidecar:
            _add(total, request)
            _add(sidecars, request)
            running = sidecars
        else:
            running = dict(sidecars)
            _add(running, request)
        peak = _maximum(peak, running)
    return _maximum(total, peak)


def _container_request(
    container: Container, status: ContainerStatus | None, infeasible: bool, limits_stand_in: bool
) -> Amounts:
    request = parse_nano_list(container.resources.requests) if container.resources else {}
    if limits_stand_in and container.resources:
        for name, value in parse_nano_list(container.resources.limits).items():
            request.setdefault(name, value)
    if status is None or status.resources is None:
        return request
    has = parse_nano_list(status.resources.requests)
    granted = parse_nano_list(status.allocated_resources)
    return _maximum(has, granted) if infeasible else _maximum(request, has, granted)


def _resize_infeasible(pod: Pod) -> bool:
    for condition in pod.status.conditions or ():
        if condition.type == "PodResizePending":
            return condition.reason == "Infeasible"
    return False


def _is_pod_level(name: str) -> bool:
    return name in (CPU, MEMORY) or name.startswith(HUGEPAGES_PREFIX)


def _add(total: Amounts, more: Mapping[str, int]) -> None:
    for name, value in more.items():
        total[name] = total.get(name, 0) + value


def _maximum(*lists: Mapping[str, int]) -> Amounts:
    names: Iterable[str] = dict.fromkeys(name for amounts in lists for name in amounts)
    return {name: max(amounts[name] for amounts in lists if name in amounts) for name in names}


def _nano(name: str, value: RawQuantity) -> int:
    try:
        return _parse_cached(value)
    except ValueError as error:
        raise ResourceError(f"{name[:63]}: {error}") from None


# A cluster uses few distinct quantities; typed, because 1 and 1.0 and True are equal as keys.
_parse_cached = lru_cache(maxsize=16384, typed=True)(parse_nano)
