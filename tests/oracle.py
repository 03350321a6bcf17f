"""A second, plain and slow reading of the rules, to hold the fast one against.

Works on objects and messages as they arrive, one node and one pod at a time, in exact fractions; it shares no
code with what it judges.
"""

import re
from collections.abc import Iterable, Mapping
from fractions import Fraction
from math import ceil, floor

from estimator.pb import estimator_pb2 as pb
from fairway.kube.objects import Container, Node, Pod, RawQuantity, ResourceRequirements

LARGEST = 2**63 - 1
_BINARY = {"Ki": 1, "Mi": 2, "Gi": 3, "Ti": 4, "Pi": 5, "Ei": 6}
_DECIMAL = {"n": -3, "u": -2, "m": -1, "": 0, "k": 1, "M": 2, "G": 3, "T": 4, "P": 5, "E": 6}

Vector = dict[str, Fraction]


def quantity(raw: RawQuantity) -> Fraction | None:
    """The exact value, before any rounding or saturation; None for what is no quantity."""
    text = raw if isinstance(raw, str) else str(raw)
    at = 0
    if text[:1] in ("+", "-"):
        at = 1
    end = at
    while end < len(text) and (text[end] in "0123456789" or (text[end] == "." and "." not in text[at:end])):
        end += 1
    number, suffix = text[at:end], text[end:]
    if not text:
        return None
    whole, _, fraction = number.partition(".")
    value = Fraction(int(whole or "0")) + (Fraction(int(fraction), 10 ** len(fraction)) if fraction else 0)
    if suffix in _BINARY:
        value *= 1024 ** _BINARY[suffix]
    elif suffix in _DECIMAL:
        value *= Fraction(1000) ** _DECIMAL[suffix]
    elif re.match(r"^[eE][+-]?[0-9]+\Z", suffix):
        value *= Fraction(10) ** int(suffix[1:])
    else:
        return None
    return -value if text[0] == "-" else value


def nano(raw: RawQuantity) -> int | None:
    """As Kubernetes keeps it: in nano-units, rounded away from zero, saturated; None for no quantity."""
    value = quantity(raw)
    if value is None:
        return None
    magnitude = min(ceil(abs(value) * 10**9), LARGEST * 10**9)
    return magnitude if value > 0 else -magnitude


def amount(name: str, raw: RawQuantity) -> int:
    """As a scheduler counts it: cpu in milli-cores, all else in units, rounded up, saturated."""
    kept = nano(raw)
    assert kept is not None
    return min(LARGEST, ceil(Fraction(kept, 10**6 if name == "cpu" else 10**9)))


def pod_request(pod: Pod) -> Vector:
    """The most that the pod ever holds at once, by what runs at the same time in each of its phases."""
    statuses = (*(pod.status.container_statuses or ()), *(pod.status.init_container_statuses or ()))
    pending = [c for c in pod.status.conditions or () if c.type == "PodResizePending"]
    hopeless = bool(pending) and pending[0].reason == "Infeasible"

    def of(container: Container) -> Vector:
        asked = _vector(container.resources)
        if container in (pod.spec.init_containers or ()) and container.restart_policy != "Always":
            return asked
        status = next((s for s in statuses if s.name == container.name), None)
        if status is None or status.resources is None:
            return asked
        real = (_vector(status.resources), _list(status.allocated_resources))
        return _most(real if hopeless else (asked, *real))

    early = list(pod.spec.init_containers or ())
    lasting = [c for c in early if c.restart_policy == "Always"]
    phases = [_sum(of(c) for c in (*(pod.spec.containers or ()), *lasting))]
    for index, container in enumerate(early):
        before = [c for c in early[:index] if c.restart_policy == "Always"]
        phases.append(_sum(of(c) for c in (*before, container)))
    peak = _most(phases)
    of_pod = _vector(pod.spec.resources)
    for name, value in of_pod.items():
        if name in ("cpu", "memory") or name.startswith("hugepages-"):
            peak[name] = value
            if pod.status.resources is not None:
                real = (_vector(pod.status.resources), _list(pod.status.allocated_resources))
                peak[name] = _most(real if hopeless else (of_pod, *real)).get(name, Fraction(0))
    return _sum((peak, _list(pod.spec.overhead)))


def free_of(node: Node, pods: Iterable[Pod]) -> dict[str, int]:
    """What the node has left, of everything it has, in the scheduler's amounts."""
    free = {name: amount(name, raw) for name, raw in (node.status.allocatable or {}).items()}
    for pod in pods:
        place = pod.spec.node_name or pod.status.nominated_node_name
        if place != node.metadata.name or pod.status.phase in ("Succeeded", "Failed"):
            continue
        for name, value in pod_request(pod).items():
            if name in free:
                free[name] -= max(0, ceil(value * 1000 if name == "cpu" else value))
        if "pods" in free:
            free["pods"] -= 1
    return {name: max(0, left) for name, left in free.items()}


def eligible(node: Node, claim: pb.NodeClaim) -> bool:
    """Whether the scheduler would let a pod with this claim onto the node, were there room."""
    labels = node.metadata.labels or {}
    if any(labels.get(key) != value for key, value in claim.node_selector.items()):
        return False
    terms = pb.NodeSelector.FromString(claim.node_affinity_bytes).node_selector_terms
    if terms and not any(_term_matches(term, node) for term in terms):
        return False
    tolerations = [pb.Toleration.FromString(data) for data in claim.tolerations_bytes]
    taints = [(t.key, t.value, t.effect) for t in node.spec.taints or ()]
    if node.spec.unschedulable:
        taints.append(("node.kubernetes.io/unschedulable", "", "NoSchedule"))
    return all(
        effect not in ("NoSchedule", "NoExecute")
        or any(_tolerates(toleration, key, value, effect) for toleration in tolerations)
        for key, value, effect in taints
    )


def fitting(free: Mapping[str, int], request: Mapping[str, int]) -> int:
    """How many pods of the request fit into the free amounts."""
    limits = [floor(Fraction(free.get(name, 0), asked)) for name, asked in request.items() if asked > 0]
    return min((*limits, free.get("pods", 0)))


def request_of(asked: pb.ComponentReplicaRequirements) -> dict[str, int]:
    """What the message asks for, in the scheduler's amounts; bare names it does not know left out."""
    request = {
        name: amount(name, pb.Quantity.FromString(data).string)
        for name, data in asked.resource_request_bytes.items()
    }
    return {name: n for name, n in request.items() if "/" in name or name in ("cpu", "memory")}


def max_replicas(nodes: Iterable[Node], pods: Iterable[Pod], asked: pb.ComponentReplicaRequirements) -> int:
    """How many more such pods the nodes hold, node by node."""
    pods = tuple(pods)
    request = request_of(asked)
    return sum(fitting(free_of(n, pods), request) for n in nodes if eligible(n, asked.node_claim))


def _term_matches(term: pb.NodeSelectorTerm, node: Node) -> bool:
    if not term.match_expressions and not term.match_fields:
        return False
    labels = node.metadata.labels or {}
    return all(_expression_matches(e, labels) for e in term.match_expressions) and all(
        _field_matches(e, node.metadata.name) for e in term.match_fields
    )


def _expression_matches(expression: pb.NodeSelectorRequirement, labels: Mapping[str, str]) -> bool:
    has, value = expression.key in labels, labels.get(expression.key, "")
    values = list(expression.values)
    match expression.operator:
        case "In":
            return has and value in values
        case "NotIn":
            return bool(values) and not (has and value in values)
        case "Exists":
            return has and not values
        case "DoesNotExist":
            return not has and not values
        case "Gt" | "Lt" if len(values) == 1 and re.match(r"^[0-9]+\Z", values[0]):
            if not has or not re.match(r"^[0-9]+\Z", value):
                return False
            above, below = int(value) > int(values[0]), int(value) < int(values[0])
            return above if expression.operator == "Gt" else below
    return False


def _field_matches(expression: pb.NodeSelectorRequirement, name: str) -> bool:
    if len(expression.values) != 1 or expression.operator not in ("In", "NotIn"):
        return False
    field = name if expression.key == "metadata.name" else ""
    return (field == expression.values[0]) == (expression.operator == "In")


def _tolerates(toleration: pb.Toleration, key: str, value: str, effect: str) -> bool:
    if toleration.effect not in ("", effect) or toleration.key not in ("", key):
        return False
    if toleration.operator == "Exists":
        return True
    return toleration.operator in ("", "Equal") and toleration.value == value


def _vector(resources: ResourceRequirements | None) -> Vector:
    return _list(resources.requests if resources else None)


def _list(raw: Mapping[str, RawQuantity] | None) -> Vector:
    return {name: quantity(value) or Fraction(0) for name, value in (raw or {}).items()}


def _sum(vectors: Iterable[Vector]) -> Vector:
    total: Vector = {}
    for vector in vectors:
        for name, value in vector.items():
            total[name] = total.get(name, Fraction(0)) + value
    return total


def _most(vectors: Iterable[Vector]) -> Vector:
    most: Vector = {}
    for vector in vectors:
        for name, value in vector.items():
            most[name] = max(value, most.get(name, value))
    return most
