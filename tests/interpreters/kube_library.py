"""The library ``kube`` that Karmada gives to interpreters' Lua.

Mirrors Karmada's luavm/kube.go and what it calls (pkg/util/helper/binding.go and pod.go,
pkg/util/resource.go, pkg/util/lifted/visitpod.go) at f8fdd02, with the gate ResourceQuotaEstimate on. Of a
pod only the fields that it looks at are checked for their type.
"""

from collections.abc import Callable, Iterable, Iterator

import msgspec

from fairway.kube.objects import KubeStruct
from fairway.quantity import NANO, QuantityError, format_bytes, milli, parse_nano, units
from fairway.resources import HUGEPAGES_PREFIX, is_scheduled
from tests.interpreters.go_json import Json, to_json, with_empty_maps

_BINARY = ("memory", "ephemeral-storage")


class KubeError(ValueError):
    """What Karmada raises into Lua."""


class _Name(KubeStruct, frozen=True):
    name: str = ""


class _SecretName(KubeStruct, frozen=True):
    secret_name: str = ""


class _WithSecret(KubeStruct, frozen=True):
    secret_ref: _Name | None = None
    node_publish_secret_ref: _Name | None = None


class _Claim(KubeStruct, frozen=True):
    claim_name: str = ""


class _Source(KubeStruct, frozen=True):
    config_map: _Name | None = None
    secret: _Name | None = None


class _Projected(KubeStruct, frozen=True):
    sources: tuple[_Source, ...] = ()


class _Volume(KubeStruct, frozen=True):
    name: str = ""
    config_map: _Name | None = None
    secret: _SecretName | None = None
    projected: _Projected | None = None
    persistent_volume_claim: _Claim | None = None
    csi: _WithSecret | None = None


class _ValueFrom(KubeStruct, frozen=True):
    config_map_key_ref: _Name | None = None
    secret_key_ref: _Name | None = None


class _Env(KubeStruct, frozen=True):
    name: str = ""
    value: str = ""
    value_from: _ValueFrom | None = None


class _EnvFrom(KubeStruct, frozen=True):
    config_map_ref: _Name | None = None
    secret_ref: _Name | None = None


_Quantities = dict[str, str | int | float]


class _Resources(KubeStruct, frozen=True):
    requests: _Quantities = msgspec.field(default_factory=dict)
    limits: _Quantities = msgspec.field(default_factory=dict)


class _Container(KubeStruct, frozen=True):
    name: str = ""
    image: str = ""
    resources: _Resources = _Resources()
    env: tuple[_Env, ...] = ()
    env_from: tuple[_EnvFrom, ...] = ()


class _NodeAffinity(KubeStruct, frozen=True):
    required_during_scheduling_ignored_during_execution: dict[str, msgspec.Raw] | None = None


class _Affinity(KubeStruct, frozen=True):
    node_affinity: _NodeAffinity | None = None


class _Toleration(KubeStruct, frozen=True, omit_defaults=True):
    key: str = ""
    operator: str = ""
    value: str = ""
    effect: str = ""
    toleration_seconds: int | None = None


class _PodSpec(KubeStruct, frozen=True):
    containers: tuple[_Container, ...] = ()
    init_containers: tuple[_Container, ...] = ()
    overhead: _Quantities = msgspec.field(default_factory=dict)
    node_selector: dict[str, str] | None = None
    tolerations: tuple[_Toleration, ...] = ()
    affinity: _Affinity | None = None
    volumes: tuple[_Volume, ...] = ()
    image_pull_secrets: tuple[_Name, ...] = ()
    service_account_name: str = ""
    priority_class_name: str = ""


class _PodTemplate(KubeStruct, frozen=True):
    spec: _PodSpec = _PodSpec()


def accurate_pod_requirements(*arguments: object) -> Json:
    """What a pod of the template asks for and where it may run; None where it says nothing."""
    (argument,) = _exactly(1, arguments)
    pod = _template(argument).spec
    claim: dict[str, Json] = {}
    required = pod.affinity and pod.affinity.node_affinity
    if required and (terms := required.required_during_scheduling_ignored_during_execution) is not None:
        claim["hardNodeAffinity"] = msgspec.json.decode(msgspec.json.encode(terms))
    if pod.node_selector is not None:
        claim["nodeSelector"] = dict(pod.node_selector)
    if pod.tolerations:
        claim["tolerations"] = [msgspec.to_builtins(each) for each in pod.tolerations]
    found: dict[str, Json] = {"nodeClaim": claim} if claim else {}
    if request := _request(pod):
        found["resourceRequest"] = request
    if found and pod.priority_class_name:
        found["priorityClassName"] = pod.priority_class_name
    return found or None


def get_pod_dependencies(*arguments: object) -> Json:
    """ConfigMaps, Secrets, the ServiceAccount and PersistentVolumeClaims that the template names."""
    argument, given = _exactly(2, arguments)
    if given is not None and not isinstance(given, str | int | float):
        raise KubeError("bad argument #2 to getPodDependencies (string expected)")
    namespace = "default" if given is None else str(given)
    pod = _template(argument).spec
    account = pod.service_account_name
    named = {
        "ConfigMap": _config_maps(pod),
        "Secret": _secrets(pod),
        "ServiceAccount": [account] if account != "default" else [],
        "PersistentVolumeClaim": [
            volume.persistent_volume_claim.claim_name
            for volume in pod.volumes
            if volume.persistent_volume_claim
        ],
    }
    found: list[Json] = [
        {"apiVersion": "v1", "kind": kind, "namespace": namespace, "name": name}
        for kind, names in named.items()
        for name in sorted({name for name in names if name})
    ]
    return found or None


def get_resource_quantity(*arguments: object) -> float:
    """The quantity as a number of whole units."""
    (argument,) = _exactly(1, arguments)
    found = _nano(argument) / NANO
    if found < 0:
        raise KubeError("int approximation unexpectedly returned a negative value")
    return found


def resource_add(*arguments: object) -> str:
    """The sum, in the form of the first quantity that is not zero."""
    total = sum(_nano(argument) for argument in arguments)
    first = next((argument for argument in arguments if _nano(argument)), "")
    return format_bytes(units(total)) if str(first).endswith("i") else _decimal(milli(total))


FUNCTIONS: dict[str, Callable[..., Json | float]] = {
    "accuratePodRequirements": accurate_pod_requirements,
    "getPodDependencies": get_pod_dependencies,
    "getResourceQuantity": get_resource_quantity,
    "resourceAdd": resource_add,
}
"""The whole library."""


def _exactly(count: int, arguments: tuple[object, ...]) -> tuple[object, ...]:
    if len(arguments) != count:
        raise KubeError(f"expected {count} arguments, got {len(arguments)}")
    return arguments


def _template(argument: object) -> _PodTemplate:
    if not hasattr(argument, "items"):
        raise KubeError("bad argument #1 (table expected)")
    try:
        return msgspec.convert(with_empty_maps(to_json(argument), struct=True), _PodTemplate)
    except ValueError as error:
        raise KubeError(f"fail to convert to PodTemplateSpec: {error}") from error


def _nano(argument: object) -> int:
    if argument is None:
        return 0
    if not isinstance(argument, str):
        raise KubeError("string expected")
    return _parsed(argument)


def _parsed(quantity: str | float) -> int:
    try:
        return parse_nano(quantity)
    except QuantityError as error:
        raise KubeError(str(error)) from error


def _amounts(quantities: _Quantities) -> dict[str, int]:
    return {
        name: milli(_parsed(value)) if name == "cpu" else units(_parsed(value))
        for name, value in quantities.items()
        if is_scheduled(name) or name == "pods"
    }


def _request(pod: _PodSpec) -> dict[str, Json]:
    total: dict[str, int] = {}
    for container in pod.containers:
        _add(total, container.resources)
    for container in pod.init_containers:
        resources = container.resources
        for name, amount in _amounts({**resources.limits, **resources.requests}).items():
            total[name] = max(total.get(name, 0), amount)
    _add(total, _Resources(pod.overhead))
    return {name: _quantity(name, amount) for name, amount in total.items() if amount > 0}


def _add(total: dict[str, int], resources: _Resources) -> None:
    for name, amount in _amounts({**resources.limits, **resources.requests}).items():
        total[name] = total.get(name, 0) + amount


def _quantity(name: str, amount: int) -> str:
    if name in _BINARY or name.startswith(HUGEPAGES_PREFIX):
        return format_bytes(amount)
    return _decimal(amount if name == "cpu" else amount * 1000)


def _decimal(value_milli: int) -> str:
    if value_milli % 1000:
        return f"{value_milli}m"
    value, suffixes = value_milli // 1000, iter("kMGTPE")
    suffix = ""
    while value and value % 1000 == 0:
        value, suffix = value // 1000, next(suffixes)
    return f"{value}{suffix}"


def _containers(pod: _PodSpec) -> Iterable[_Container]:
    return (*pod.init_containers, *pod.containers)


def _config_maps(pod: _PodSpec) -> Iterator[str]:
    for container in _containers(pod):
        yield from (each.config_map_ref.name for each in container.env_from if each.config_map_ref)
        yield from (
            each.value_from.config_map_key_ref.name
            for each in container.env
            if each.value_from and each.value_from.config_map_key_ref
        )
    for volume in pod.volumes:
        if volume.config_map:
            yield volume.config_map.name
        if volume.projected:
            yield from (source.config_map.name for source in volume.projected.sources if source.config_map)


def _secrets(pod: _PodSpec) -> Iterator[str]:
    yield from (each.name for each in pod.image_pull_secrets)
    for container in _containers(pod):
        yield from (each.secret_ref.name for each in container.env_from if each.secret_ref)
        yield from (
            each.value_from.secret_key_ref.name
            for each in container.env
            if each.value_from and each.value_from.secret_key_ref
        )
    for volume in pod.volumes:
        if volume.secret:
            yield volume.secret.secret_name
        if volume.projected:
            yield from (source.secret.name for source in volume.projected.sources if source.secret)
        if volume.csi and volume.csi.node_publish_secret_ref:
            yield volume.csi.node_publish_secret_ref.name
