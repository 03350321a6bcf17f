"""What the LimitRanges of a namespace make of a pod: defaults for its containers, and what they refuse.

Mirrors SetDefaults_Pod (pkg/apis/core/v1/defaults.go), the admission plugin LimitRanger and the validation of
container resources of Kubernetes 1.36, in the API server's order: limits stand in for requests that are not
stated, then come the defaults of LimitRanges, then the checks. Claims on volumes are not looked at.
"""

import operator
from collections.abc import Callable, Iterable, Iterator, Mapping

from msgspec.structs import replace

from estimator.cluster.admission import CONTAINER, LimitItem, Quantities, Stated
from fairway.kube.objects import Container, RawResources, ResourceRequirements
from fairway.kube.templates import TemplateSpec
from fairway.quantity import MAX_INT64, milli, units
from fairway.resources import (
    CPU,
    HUGEPAGES_PREFIX,
    MEMORY,
    amounts,
    containers_request,
    format_amount,
    is_extended,
    parse_nano_list,
)

_MAX_MILLI = MAX_INT64 // 1000
_SHOWN = 80

_PARTS = _REQUEST, _LIMIT = "request", "limit"
_NONE = Stated(0, "0")

_Use = Mapping[str, Quantities]
"""What a container or a pod states of each of `_PARTS`."""


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
        spec, containers=containers, init_containers=init_containers or None, resources=_pod_level(spec)
    )


def _defaulted(container: Container, items: Iterable[LimitItem]) -> Container:
    stated = container.resources or ResourceRequirements()
    limits = _stated(stated.limits)
    requests = {**limits, **_stated(stated.requests)}
    known = len(limits), len(requests)
    for item in items:
        for name, given in item.default.items():
            limits.setdefault(name, given.text)
        for name, given in item.default_request.items():
            requests.setdefault(name, given.text)
    if (len(limits), len(requests)) == known:
        return container
    return replace(container, resources=ResourceRequirements(requests, limits))


def _each(spec: TemplateSpec, change: Callable[[Container], Container]) -> TemplateSpec:
    return replace(
        spec,
        containers=[change(container) for container in spec.containers or ()],
        init_containers=[change(container) for container in spec.init_containers or ()],
    )


def _stated(raw: RawResources | None) -> RawResources:
    return {name: value for name, value in (raw or {}).items() if value is not None}


def _pod_level(spec: TemplateSpec) -> ResourceRequirements | None:
    """Pod-level requests as they are defaulted from what containers state themselves, before LimitRanges."""
    if spec.resources is None or not spec.resources.limits:
        return spec.resources
    requests = _stated(spec.resources.requests)
    for name, nano in containers_request(_each(spec, _with_requests)).items():
        if name in (CPU, MEMORY):
            requests.setdefault(name, f"{nano}n")
    for name, value in _stated(spec.resources.limits).items():
        if name in (CPU, MEMORY) or name.startswith(HUGEPAGES_PREFIX):
            requests.setdefault(name, value)
    return replace(spec.resources, requests=requests)


def _with_requests(container: Container) -> Container:
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
    stored = _each(spec, _with_requests)
    uses = {
        f"spec.{field}[{index}].resources.requests": {
            part: _quantities(_part(container.resources, part)) for part in _PARTS
        }
        for field, containers in (
            ("containers", stored.containers),
            ("initContainers", stored.init_containers),
        )
        for index, container in enumerate(containers or ())
    }
    for field, use in uses.items():
        for problem in _beyond_limits(field, use):
            return problem
    is_about_pods = any(item.type != CONTAINER for item in items)
    whole = {part: _together(stored, part) for part in _PARTS if is_about_pods}
    found = [
        violation
        for item in items
        for use in (uses.values() if item.type == CONTAINER else (whole,))
        for violation in _violations(item, use)
    ]
    found = list(dict.fromkeys(found))
    return found[0] if len(found) == 1 else f"[{', '.join(found)}]" if found else ""


def _part(stated: ResourceRequirements | None, part: str) -> RawResources:
    if stated is None:
        return {}
    return _stated(stated.requests if part == _REQUEST else stated.limits)


def _quantities(raw: RawResources) -> Quantities:
    return {name: Stated(nano, str(raw[name])) for name, nano in parse_nano_list(raw).items()}


def _together(spec: TemplateSpec, part: str) -> Quantities:
    """What the pod has of it as a whole; cpu and memory at pod level replace those of the containers."""

    def only(container: Container) -> Container:
        return replace(container, resources=ResourceRequirements(_part(container.resources, part)))

    total = containers_request(_each(spec, only))
    pod_level = parse_nano_list(_part(spec.resources, part))
    total.update((name, nano) for name, nano in pod_level.items() if name in (CPU, MEMORY))
    written = amounts(total)
    return {name: Stated(nano, format_amount(name, written[name])) for name, nano in total.items()}


def _beyond_limits(field: str, use: _Use) -> Iterator[str]:
    for name, request in sorted(use[_REQUEST].items()):
        limit, shown = use[_LIMIT].get(name), name[:_SHOWN]
        if limit is None:
            continue
        must = f'{field}: Invalid value: "{request.text}": must be'
        if request.nano != limit.nano and (is_extended(name) or name.startswith(HUGEPAGES_PREFIX)):
            yield f"{must} equal to {shown} limit of {limit.text}"
        elif request.nano > limit.nano:
            yield f"{must} less than or equal to {shown} limit of {limit.text}"


def _violations(item: LimitItem, use: _Use) -> Iterator[str]:
    for word, bounds, is_beyond, parts in (
        ("minimum", item.min, operator.lt, _PARTS),
        ("maximum", item.max, operator.gt, _PARTS[::-1]),
    ):
        for name, bound in bounds.items():
            says = f"{word} {name[:_SHOWN]} usage per {item.type} is {bound.text}"
            stated = [(part, use[part][name]) for part in parts if name in use[part]]
            if name not in use[parts[0]]:
                yield f"{says}.  No {parts[0]} is specified"
                continue
            enforced, *values = _comparable(bound, *(quantity for _, quantity in stated))
            for (part, quantity), value in zip(stated, values, strict=True):
                if is_beyond(value, enforced):
                    yield f"{says}, but {part} is {quantity.text}"
                    break
    for name, bound in item.ratio.items():
        says = f"{name[:_SHOWN]} max limit to request ratio per {item.type} is {bound.text}"
        asked, capped, _ = _comparable(*(use[part].get(name, _NONE) for part in _PARTS), bound)
        if not asked:
            yield f"{says}, but no request is specified or request is 0"
        elif not capped:
            yield f"{says}, but no limit is specified or limit is 0"
        elif capped / asked * 1000 > float(milli(bound.nano)):
            yield f"{says}, but provided ratio is {capped / asked:f}"


def _comparable(*stated: Stated) -> list[int]:
    """In milli-units, rounded up, or all in whole units where that would be too many."""
    in_milli = all(units(one.nano) <= _MAX_MILLI for one in stated)
    return [(milli if in_milli else units)(one.nano) for one in stated]
