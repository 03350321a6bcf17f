"""What a pod template says of where its own pods are with respect to each other.

Required anti-affinity to itself allows one pod in each domain of a label, a host port one on each node;
required affinity to itself keeps all pods in one domain; spreading that does not give way keeps the domains
even. All of it holds only where the selector matches the labels of the template itself: what a template says
of other pods depends on what runs in a cluster, is not looked at, and is told.

Mirrors interpodaffinity, podtopologyspread and nodeports of kube-scheduler 1.36, and metav1.LabelSelector:
no selector matches nothing, an empty one everything.
"""

from collections.abc import Mapping
from dataclasses import dataclass

from estimator.capacity.request import Spread
from estimator.capacity.topology.levels import HOSTNAME
from fairway.kube.objects import (
    LabelSelector,
    PodAffinity,
    PodAffinityTerm,
)
from fairway.kube.templates import (
    Affinity,
    PodTemplate,
    TopologySpreadConstraint,
)
from fairway.selectors import Operator, Requirement, SelectorError, label_requirement

Selector = tuple[Requirement, ...]
"""A label selector: all of it must hold."""

_REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"
_HARD = "DoNotSchedule"
_ELSEWHERE = "is about other pods than its own, and not looked at"


class RefusedTemplate(ValueError):
    """Kubernetes accepts no such pod; the message says which field, and what was expected."""


@dataclass(frozen=True, slots=True)
class OwnDistances:
    """How near and how far from each other the pods of one template have to be.

    ``per_domain`` and ``spread`` as in `estimator.capacity.request.PodShape`. ``one_domain``: labels of each
    of which all pods must have the same value, in the order of the template.
    """

    per_domain: tuple[tuple[str, int], ...] = ()
    spread: tuple[Spread, ...] = ()
    one_domain: tuple[str, ...] = ()


def own_distances(template: PodTemplate, field: str, problems: list[str]) -> OwnDistances:
    """What the pod spec at ``field`` says of its own pods. Raises RefusedTemplate.

    What is about other pods, or is not kept by the numbers that Fairway gives, is added to ``problems``.
    """
    spec, labels = template.spec, template.metadata.labels or {}
    affinity = spec.affinity or Affinity()
    where = f"{field}.affinity.podAntiAffinity.{_REQUIRED}"
    apart = _own_keys(affinity.pod_anti_affinity, where, labels, problems)
    where = f"{field}.affinity.podAffinity.{_REQUIRED}"
    near = _own_keys(affinity.pod_affinity, where, labels, problems)
    spread = [
        _own_spread(constraint, f"{field}.topologySpreadConstraints[{index}]", labels, problems)
        for index, constraint in enumerate(spec.topology_spread_constraints or ())
        if constraint.when_unsatisfiable == _HARD
    ]
    if _has_host_port(template):
        apart.append(HOSTNAME)
    return OwnDistances(
        tuple((key, 1) for key in sorted(set(apart))),
        tuple(dict.fromkeys(one for one in spread if one is not None)),
        tuple(dict.fromkeys(near)),
    )


def repelled(template: PodTemplate) -> tuple[Selector, ...]:
    """Selectors of the pods that required anti-affinity keeps the template's pods away from.

    Those that Kubernetes would refuse are left out; they are told elsewhere.
    """
    selectors: list[Selector] = []
    for term in _terms((template.spec.affinity or Affinity()).pod_anti_affinity):
        if term.label_selector is None:
            continue
        try:
            selectors.append(_selector(term.label_selector))
        except SelectorError:
            continue
    return tuple(selectors)


def matches(selector: Selector, labels: Mapping[str, str]) -> bool:
    """Whether pods with these labels are selected."""
    return all(requirement.allows(labels.get(requirement.key)) for requirement in selector)


def _terms(affinity: PodAffinity | None) -> list[PodAffinityTerm]:
    return (affinity and affinity.required_during_scheduling_ignored_during_execution) or []


def _own_keys(
    affinity: PodAffinity | None, field: str, labels: Mapping[str, str], problems: list[str]
) -> list[str]:
    """The topology keys of the terms that match the template itself."""
    keys: list[str] = []
    for index, term in enumerate(_terms(affinity)):
        where = f"{field}[{index}]"
        if not term.topology_key:
            raise RefusedTemplate(f"{where}.topologyKey: expected a node label, found none")
        if _own(term.label_selector, f"{where}.labelSelector", labels):
            keys.append(term.topology_key)
        else:
            problems.append(f"{where}: {_ELSEWHERE}")
    return keys


def _own_spread(
    constraint: TopologySpreadConstraint, field: str, labels: Mapping[str, str], problems: list[str]
) -> Spread | None:
    """The constraint as far as it is about the template's own pods."""
    if not constraint.topology_key:
        raise RefusedTemplate(f"{field}.topologyKey: expected a node label, found none")
    least = constraint.min_domains
    for name, value in (("maxSkew", constraint.max_skew), ("minDomains", 1 if least is None else least)):
        if value < 1:
            raise RefusedTemplate(f"{field}.{name}: {value}: expected at least 1")
    if not _own(constraint.label_selector, f"{field}.labelSelector", labels):
        problems.append(f"{field}: {_ELSEWHERE}")
        return None
    if constraint.node_affinity_policy not in (None, "Honor"):
        problems.append(f"{field}.nodeAffinityPolicy: only Honor is looked at; read as Honor")
    if constraint.node_taints_policy not in (None, "Ignore"):
        problems.append(f"{field}.nodeTaintsPolicy: only Ignore is looked at; read as Ignore")
    return Spread(constraint.topology_key, constraint.max_skew, least or 0)


def _own(selector: LabelSelector | None, field: str, labels: Mapping[str, str]) -> bool:
    if selector is None:
        return False
    try:
        return matches(_selector(selector), labels)
    except SelectorError as error:
        raise RefusedTemplate(f"{field}: {error}") from None


def _selector(selector: LabelSelector) -> Selector:
    """The selector's requirements. Raises SelectorError."""
    labels = (selector.match_labels or {}).items()
    return (
        *(_requirement(key, Operator.IN, (value,)) for key, value in labels),
        *(_requirement(r.key, r.operator, tuple(r.values or ())) for r in selector.match_expressions or ()),
    )


def _requirement(key: str, operator: str, values: tuple[str, ...]) -> Requirement:
    if operator in (Operator.GT, Operator.LT):
        raise SelectorError(f"{operator} on {key[:63]}: expected In, NotIn, Exists or DoesNotExist")
    return label_requirement(key, operator, values)


def _has_host_port(template: PodTemplate) -> bool:
    """Whether a container that runs as long as the pod does has a port of its node.

    On the network of its node each port of a container is one, as the API server's defaults have it.
    """
    spec = template.spec
    sidecars = [c for c in spec.init_containers or () if c.restart_policy == "Always"]
    ports = [port for c in (*(spec.containers or ()), *sidecars) for port in c.ports or ()]
    return any(port.host_port > 0 or (spec.host_network and port.container_port > 0) for port in ports)
