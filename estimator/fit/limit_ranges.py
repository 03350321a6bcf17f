"""What the LimitRanges of a namespace make of a pod: defaults for its containers, and what they refuse.

Mirrors SetDefaults_Pod (pkg/apis/core/v1/defaults.go), the admission plugin LimitRanger and the validation of
container resources of Kubernetes 1.36, in the API server's order: limits stand in for requests that are not
stated, then come the defaults of LimitRanges, then the checks. Claims on volumes are not looked at.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping
from itertools import chain
from typing import TypeVar

from msgspec.structs import replace

from estimator.cluster.admission import CONTAINER, Bound, LimitItem
from fairway.kube.objects import Container, RawResources, ResourceRequirements
from fairway.kube.templates import TemplateSpec
from fairway.quantity import MAX_INT64, milli, units
from fairway.resources import (
    CPU,
    HUGEPAGES_PREFIX,
    MEMORY,
    Amounts,
    amounts,
    containers_request,
    format_amount,
    is_extended,
    parse_nano_list,
)

_MAX_MILLI = MAX_INT64 // 1000
_SHOWN = 80

_Container = TypeVar("_Container", bound=Container)

_Amount = tuple[int, str]
"""Nano-units, and how they are written."""


def defaulted(spec: TemplateSpec, items: Iterable[LimitItem]) -> TemplateSpec:
    """The pod with what LimitRanges give to containers that state less; where nothing, the same object.

    Raises ResourceError where the pod states pod-level limits beside quantities that are none.
    """
    given = [item for item in items if item.type == CONTAINER and (item.default or item.default_request)]
    if not given:
        return spec
    containers = [_defaulted(container, given) for container in spec.containers or ()]
    init_containers = [_defaulted(container, given) for container in spec.init_containers or ()]
    before = (*(spec.containers or ()), *(spec.init_containers or ()))
    if all(new is old for new, old in zip((*containers, *init_containers), before, strict=True)):
        return spec
    return replace(
        spec,
        containers=containers,
        init_containers=init_containers or None,
        resources=_pod_level(spec),
    )


def _defaulted(container: _Container, items: Iterable[LimitItem]) -> _Container:
    stated = container.resources or ResourceRequirements()
    limits = _stated(stated.limits)
    requests = {**limits, **_stated(stated.requests)}
    known = len(limits), len(requests)
    for item in items:
        for name, value in item.default:
            limits.setdefault(name, value)
        for name, value in item.default_request:
            requests.setdefault(name, value)
    if (len(limits), len(requests)) == known:
        return container
    return replace(container, resources=ResourceRequirements(requests, limits))


def _stated(raw: RawResources | None) -> RawResources:
    return {name: value for name, value in (raw or {}).items() if value is not None}


def _pod_level(spec: TemplateSpec) -> ResourceRequirements | None:
    """Pod-level requests as they are defaulted from what containers state themselves, before LimitRanges."""
    if spec.resources is None or not spec.resources.limits:
        return spec.resources
    as_stored = replace(
        spec,
        containers=[_with_requests(container) for container in spec.containers or ()],
        init_containers=[_with_requests(container) for container in spec.init_containers or ()],
    )
    requests = _stated(spec.resources.requests)
    for name, nano in containers_request(as_stored).items():
        if name in (CPU, MEMORY):
            requests.setdefault(name, f"{nano}n")
    for name, value in _stated(spec.resources.limits).items():
        if name in (CPU, MEMORY) or name.startswith(HUGEPAGES_PREFIX):
            requests.setdefault(name, value)
    return replace(spec.resources, requests=requests)


def _with_requests(container: _Container) -> _Container:
    stated = container.resources or ResourceRequirements()
    requests = {**_stated(stated.limits), **_stated(stated.requests)}
    return replace(container, resources=ResourceRequirements(requests, stated.limits))


def refusal(spec: TemplateSpec, items: Iterable[LimitItem]) -> str:
    """Why the API server refuses the pod (with its defaults), in its words; empty where it does not.

    Raises ResourceError where the pod states quantities that are none.
    """
    items = tuple(items)
    if not items:
        return ""
    stored = replace(
        spec,
        containers=[_with_requests(container) for container in spec.containers or ()],
        init_containers=[_with_requests(container) for container in spec.init_containers or ()],
    )
    containers = (*(stored.containers or ()), *(stored.init_containers or ()))
    invalid = next(chain.from_iterable(_beyond_limits(stored)), "")
    if invalid:
        return invalid
    found: list[str] = []
    for item in items:
        if item.type == CONTAINER:
            for container in containers:
                found += _violations(item, _amounts(container, _requests), _amounts(container, _limits))
        else:
            found += _violations(item, _together(stored, _requests), _together(stored, _limits))
    found = list(dict.fromkeys(found))
    return found[0] if len(found) == 1 else f"[{', '.join(found)}]" if found else ""


def _requests(stated: ResourceRequirements) -> RawResources:
    return _stated(stated.requests)


def _limits(stated: ResourceRequirements) -> RawResources:
    return _stated(stated.limits)


_Part = Callable[[ResourceRequirements], RawResources]


def _amounts(container: Container, part: _Part) -> dict[str, _Amount]:
    raw = part(container.resources or ResourceRequirements())
    return {name: (nano, str(raw[name])) for name, nano in parse_nano_list(raw).items()}


def _together(spec: TemplateSpec, part: _Part) -> dict[str, _Amount]:
    """What the pod has of it as a whole; cpu and memory at pod level replace those of the containers."""
    total: Amounts = containers_request(
        replace(
            spec,
            containers=[_only(container, part) for container in spec.containers or ()],
            init_containers=[_only(container, part) for container in spec.init_containers or ()],
        )
    )
    pod_level = parse_nano_list(part(spec.resources)) if spec.resources else {}
    total.update((name, nano) for name, nano in pod_level.items() if name in (CPU, MEMORY))
    written = amounts(total)
    return {name: (nano, format_amount(name, written[name])) for name, nano in total.items()}


def _only(container: _Container, part: _Part) -> _Container:
    stated = container.resources or ResourceRequirements()
    return replace(container, resources=ResourceRequirements(part(stated)))


def _beyond_limits(spec: TemplateSpec) -> Iterator[Iterator[str]]:
    for field, containers in (("containers", spec.containers), ("initContainers", spec.init_containers)):
        for index, container in enumerate(containers or ()):
            yield _requests_beyond_limits(container, f"spec.{field}[{index}].resources.requests")


def _requests_beyond_limits(container: Container, field: str) -> Iterator[str]:
    limits = _amounts(container, _limits)
    for name, (nano, text) in sorted(_amounts(container, _requests).items()):
        if name not in limits:
            continue
        most, limit = limits[name]
        shown = name[:_SHOWN]
        if nano != most and (is_extended(name) or name.startswith(HUGEPAGES_PREFIX)):
            yield f'{field}: Invalid value: "{text}": must be equal to {shown} limit of {limit}'
        elif nano > most:
            yield f'{field}: Invalid value: "{text}": must be less than or equal to {shown} limit of {limit}'


def _violations(
    item: LimitItem, requests: Mapping[str, _Amount], limits: Mapping[str, _Amount]
) -> Iterator[str]:
    for name, bound in item.min:
        yield from _below_min(item.type, name, bound, requests.get(name), limits.get(name))
    for name, bound in item.max:
        yield from _above_max(item.type, name, bound, requests.get(name), limits.get(name))
    for name, bound in item.ratio:
        yield from _beyond_ratio(item.type, name, bound, requests.get(name), limits.get(name))


def _below_min(
    kind: str, name: str, bound: Bound, request: _Amount | None, limit: _Amount | None
) -> Iterator[str]:
    says = f"minimum {name[:_SHOWN]} usage per {kind} is {bound.text}"
    asked, capped, least = _comparable(request, limit, bound)
    if request is None:
        yield f"{says}.  No request is specified"
    elif asked < least:
        yield f"{says}, but request is {request[1]}"
    elif limit is not None and capped < least:
        yield f"{says}, but limit is {limit[1]}"


def _above_max(
    kind: str, name: str, bound: Bound, request: _Amount | None, limit: _Amount | None
) -> Iterator[str]:
    says = f"maximum {name[:_SHOWN]} usage per {kind} is {bound.text}"
    asked, capped, most = _comparable(request, limit, bound)
    if limit is None:
        yield f"{says}.  No limit is specified"
    elif capped > most:
        yield f"{says}, but limit is {limit[1]}"
    elif request is not None and asked > most:
        yield f"{says}, but request is {request[1]}"


def _beyond_ratio(
    kind: str, name: str, bound: Bound, request: _Amount | None, limit: _Amount | None
) -> Iterator[str]:
    says = f"{name[:_SHOWN]} max limit to request ratio per {kind} is {bound.text}"
    asked, capped, _ = _comparable(request, limit, bound)
    if not asked:
        yield f"{says}, but no request is specified or request is 0"
    elif not capped:
        yield f"{says}, but no limit is specified or limit is 0"
    elif capped / asked * 1000 > float(milli(bound.nano)):
        yield f"{says}, but provided ratio is {capped / asked:f}"


def _comparable(request: _Amount | None, limit: _Amount | None, bound: Bound) -> tuple[int, int, int]:
    """In milli-units, rounded up, or in whole units where that would be too many; 0 for what is not there."""
    nano = [amount[0] if amount else 0 for amount in (request, limit)] + [bound.nano]
    in_milli = all(units(value) <= _MAX_MILLI for value in nano)
    asked, capped, enforced = ((milli if in_milli else units)(value) for value in nano)
    return asked, capped, enforced
