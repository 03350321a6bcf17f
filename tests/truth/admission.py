"""What the API server makes of a pod before any scheduler sees it.

Defaults of core/v1, the admission plugins LimitRanger, RuntimeClass, DefaultTolerationSeconds and
ExtendedResourceToleration, and the pod strategy's merging of label keys, as in Kubernetes 1.36.
"""

import copy
from dataclasses import dataclass

from tests.truth.amounts import amounts, container_amounts, is_pod_level
from tests.truth.fields import Json, labels_of, objects, strings, table, text, words
from tests.truth.world import World

_REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"


@dataclass(frozen=True)
class Admitted:
    """The pod as it is stored; ``refusal`` says why it is not, and is empty where it is."""

    pod: Json
    refusal: str = ""


def admitted(template: Json, namespace: str, world: World, *, tolerates_extended: bool = False) -> Admitted:
    """A pod of the template in the namespace. ``tolerates_extended``: ExtendedResourceToleration is on."""
    pod: Json = copy.deepcopy(
        {"metadata": template.get("metadata") or {}, "spec": template.get("spec") or {}}
    )
    _own(pod, "metadata")["namespace"] = namespace
    _requests_from_limits(pod)
    _pod_requests(pod)
    _host_network(pod)
    refusal = _runtime_class(pod, world)
    for limits in world.all("LimitRange"):
        if text(limits, "metadata", "namespace") == namespace:
            _limit_defaults(pod, limits)
    if tolerates_extended:
        _tolerate_extended(pod)
    _tolerate_conditions(pod)
    _merge_label_keys(pod)
    return Admitted(pod, refusal or _beyond_limits(pod, namespace, world) or _invalid(pod))


def limit_range_item_defaults(item: Json) -> Json:
    """SetDefaults_LimitRangeItem: what is stored of an item for containers."""
    item = copy.deepcopy(item)
    if text(item, "type") == "Container":
        default, request = _own(item, "default"), _own(item, "defaultRequest")
        for source, target in (("max", default), ("default", request), ("min", request)):
            for name, value in table(item, source).items():
                target.setdefault(name, value)
    return item


def _is_extended(resource: str) -> bool:
    return "/" in resource and not resource.split("/")[0].endswith("kubernetes.io")


def _own(obj: Json, key: str) -> Json:
    found = obj.get(key)
    if not isinstance(found, dict):
        found = obj[key] = {}
    return found


def _containers(pod: Json) -> list[Json]:
    return [*objects(pod, "spec", "containers"), *objects(pod, "spec", "initContainers")]


def _requests_from_limits(pod: Json) -> None:
    for container in _containers(pod):
        for name, value in table(container, "resources", "limits").items():
            _own(_own(container, "resources"), "requests").setdefault(name, value)


def _pod_requests(pod: Json) -> None:
    """defaultPodRequests: of what the containers ask in all, else of the pod's limits."""
    limits = table(pod, "spec", "resources", "limits")
    if not limits:
        return
    requests = _own(_own(_own(pod, "spec"), "resources"), "requests")
    for name, value in container_amounts(pod).items():
        if name in ("cpu", "memory"):
            requests.setdefault(name, f"{value * 1000}m" if name == "cpu" else str(value))
    for name, limit in limits.items():
        if is_pod_level(name):
            requests.setdefault(name, limit)


def _host_network(pod: Json) -> None:
    if table(pod, "spec").get("hostNetwork") is True:
        for container in _containers(pod):
            for port in objects(container, "ports"):
                if not port.get("hostPort"):
                    port["hostPort"] = port.get("containerPort")


def _runtime_class(pod: Json, world: World) -> str:
    spec = _own(pod, "spec")
    name = text(spec, "runtimeClassName")
    if not name:
        return ""
    found = world.find("RuntimeClass", name)
    if found is None:
        return f'RuntimeClass "{name}" not found'
    if overhead := table(found, "overhead", "podFixed"):
        spec["overhead"] = dict(overhead)
    selector = _own(spec, "nodeSelector")
    for key, value in strings(found, "scheduling", "nodeSelector").items():
        if selector.setdefault(key, value) != value:
            return f"conflict: runtimeClass.scheduling.nodeSelector[{key}]"
    # Of two tolerations where one covers the other only that is kept, which changes nothing for taints.
    spec["tolerations"] = [*objects(spec, "tolerations"), *objects(found, "scheduling", "tolerations")]
    return ""


def _limit_defaults(pod: Json, limits: Json) -> None:
    for item in objects(limits, "spec", "limits"):
        if text(item, "type") != "Container":
            continue
        stored = limit_range_item_defaults(item)
        for container in _containers(pod):
            resources = _own(container, "resources")
            for kind, source in (("limits", "default"), ("requests", "defaultRequest")):
                for name, value in table(stored, source).items():
                    _own(resources, kind).setdefault(name, value)


def _beyond_limits(pod: Json, namespace: str, world: World) -> str:
    """LimitRanger's verdict on min and max of containers."""
    for limits in world.all("LimitRange"):
        if text(limits, "metadata", "namespace") != namespace:
            continue
        for item in objects(limits, "spec", "limits"):
            if text(item, "type") != "Container":
                continue
            for container in _containers(pod):
                asked, capped = (amounts(container, "resources", kind) for kind in ("requests", "limits"))
                for name, least in amounts(item, "min").items():
                    if name not in asked or asked[name] < least or capped.get(name, least) < least:
                        return f"minimum {name} usage per Container"
                for name, most in amounts(item, "max").items():
                    if name not in capped or capped[name] > most or asked.get(name, most) > most:
                        return f"maximum {name} usage per Container"
    return ""


def _invalid(pod: Json) -> str:
    """Validation: no request above its limit, no containers above what the pod states as a whole."""
    for container in _containers(pod):
        limits = amounts(container, "resources", "limits")
        for name, value in amounts(container, "resources", "requests").items():
            if name in limits and value > limits[name]:
                return f"container request of {name} above its limit"
            if _is_extended(name) and value != limits.get(name):
                return f"container request of {name} without an equal limit"
    whole = amounts(pod, "spec", "resources", "requests")
    for name, value in container_amounts(pod).items():
        if name in whole and value > whole[name]:
            return f"containers' requests of {name} above the pod's"
    limits = amounts(pod, "spec", "resources", "limits")
    for name, value in whole.items():
        if name in limits and value > limits[name]:
            return f"the pod's request of {name} above its limit"
    for container in _containers(pod):
        for name, value in amounts(container, "resources", "limits").items():
            if name in limits and value > limits[name]:
                return f"container limit of {name} above the pod's"
    return ""


def _tolerate_extended(pod: Json) -> None:
    names = {
        name
        for container in _containers(pod)
        for name in table(container, "resources", "requests")
        if _is_extended(name)
    }
    added: list[Json] = [
        {"key": name, "operator": "Exists", "effect": "NoSchedule"} for name in sorted(names)
    ]
    spec = _own(pod, "spec")
    spec["tolerations"] = [*objects(spec, "tolerations"), *added]


def _tolerate_conditions(pod: Json) -> None:
    """DefaultTolerationSeconds: a pod stays a while on a node that is lost, so NoExecute lets it in."""
    spec = _own(pod, "spec")
    tolerations = objects(spec, "tolerations")
    for key in ("node.kubernetes.io/not-ready", "node.kubernetes.io/unreachable"):
        if not any(
            text(each, "key") in ("", key) and text(each, "effect") in ("", "NoExecute")
            for each in tolerations
        ):
            tolerations.append(
                {"key": key, "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 300}
            )
    spec["tolerations"] = tolerations


def _merge_label_keys(pod: Json) -> None:
    """Label keys become requirements with the pod's own values; a term without a selector stays as it is."""
    labels = labels_of(pod)
    terms = [
        term
        for kind in ("podAffinity", "podAntiAffinity")
        for term in objects(pod, "spec", "affinity", kind, _REQUIRED)
    ]
    for term in (*terms, *objects(pod, "spec", "topologySpreadConstraints")):
        selector = term.get("labelSelector")
        if not isinstance(selector, dict):
            continue
        added: list[Json] = [
            {"key": key, "operator": operator, "values": [labels[key]]}
            for field, operator in (("matchLabelKeys", "In"), ("mismatchLabelKeys", "NotIn"))
            for key in words(term, field)
            if key in labels
        ]
        if added:
            selector["matchExpressions"] = [*objects(selector, "matchExpressions"), *added]
