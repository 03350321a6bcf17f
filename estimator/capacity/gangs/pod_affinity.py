"""What a pod template says of where its pods are with respect to each other, and to pods that run already.

Required anti-affinity to itself allows one pod in each domain of a label, a host port one on each node;
spreading that does not give way keeps domains even. What is about other pods is kept as it is: each cluster
answers it from the pods that it has.

Mirrors interpodaffinity, podtopologyspread and nodeports of kube-scheduler 1.36.
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

from estimator.fit.pod_shape import EACH_NODE, InterPod, Spread
from fairway.kube.objects import PodAffinity
from fairway.kube.templates import Affinity, PodTemplate, TopologySpreadConstraint
from fairway.pod_terms import (
    PodTerm,
    Selector,
    host_ports,
    label_selector,
    matches,
    pod_term,
    required_terms,
    with_label_keys,
)
from fairway.selectors import SelectorError

_REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"
_HARD = "DoNotSchedule"
_ADDED_LABELS = (
    "pod-template-hash",
    "controller-revision-hash",
    "statefulset.kubernetes.io/",
    "apps.kubernetes.io/pod-index",
    "batch.kubernetes.io/",
    "jobset.sigs.k8s.io/",
    "leaderworkerset.sigs.k8s.io/",
    "training.kubeflow.org/",
    "ray.io/",
    "volcano.sh/",
)
MAX_POD_TERMS = 64
"""Terms about other pods; each is looked for among all pods that run."""
_NO_NAMESPACE = "default"
_QUEUE_GATE = "kueue.x-k8s.io/admission"  # lifted on admission, which is what is asked about


class RefusedTemplate(ValueError):
    """Kubernetes accepts no such pod; the message says which field, and what was expected."""


@dataclass(frozen=True, slots=True)
class Distances:
    """``per_domain``, ``spread`` and ``inter_pod`` as in `estimator.capacity.request.PodShape`."""

    per_domain: tuple[tuple[str, int], ...]
    spread: tuple[Spread, ...]
    inter_pod: InterPod


def distances(template: PodTemplate, field: str, namespace: str, problems: list[str]) -> Distances:
    """What the pod spec at ``field`` says of pods, its own and others. Raises RefusedTemplate.

    What only the member can know is added to ``problems``.
    """
    spec, labels = template.spec, template.metadata.labels or {}
    namespace = namespace or _NO_NAMESPACE
    affinity = spec.affinity or Affinity()
    if any(gate.name != _QUEUE_GATE for gate in spec.scheduling_gates or ()):
        problems.append(f"{field}.schedulingGates: the pods wait until somebody lifts them")
    where = f"{field}.affinity.podAntiAffinity.{_REQUIRED}"
    unsettled: list[str] = []
    apart = _terms(affinity.pod_anti_affinity, where, namespace, labels, unsettled)
    where = f"{field}.affinity.podAffinity.{_REQUIRED}"
    near = _terms(affinity.pod_affinity, where, namespace, labels, unsettled)
    spread = tuple(
        _spread(constraint, f"{field}.topologySpreadConstraints[{index}]", labels, unsettled)
        for index, constraint in enumerate(spec.topology_spread_constraints or ())
        if constraint.when_unsatisfiable == _HARD
    )
    spread = tuple(dict.fromkeys(spread))
    if (terms := len(apart) + len(near) + len(spread)) > MAX_POD_TERMS:
        raise RefusedTemplate(
            f"{field}: {terms} affinity terms and spread constraints: at most {MAX_POD_TERMS} distinct"
        )
    sidecars = [c for c in spec.init_containers or () if c.restart_policy == "Always"]
    ports = host_ports((*(spec.containers or ()), *sidecars), on_host_network=spec.host_network)
    own = {term.key for term in apart if _names(term, namespace) and term.selects(labels)}
    if ports:
        own.add(EACH_NODE)
    return Distances(
        tuple((key, 1) for key in sorted(own)),
        spread,
        InterPod(namespace, tuple(sorted(labels.items())), near, apart, ports, tuple(unsettled)),
    )


def _names(term: PodTerm, namespace: str) -> bool:
    """Whether the term is about the namespace, whatever labels that has."""
    return namespace in term.namespaces or term.namespace_selector == ()


def _terms(
    affinity: PodAffinity | None, field: str, namespace: str, labels: dict[str, str], unsettled: list[str]
) -> tuple[PodTerm, ...]:
    found: dict[PodTerm, None] = {}
    for index, term in enumerate(required_terms(affinity)):
        where = f"{field}[{index}]"
        try:
            found_term = pod_term(term, namespace, labels)
        except SelectorError as error:
            raise RefusedTemplate(f"{where}.{error}") from None
        found[found_term] = None
        selected = (requirement.key for requirement in found_term.selector or ())
        keys = (*(term.match_label_keys or ()), *(term.mismatch_label_keys or ()), *selected)
        unsettled += _added(keys, where, labels)
    return tuple(found)


def _spread(
    constraint: TopologySpreadConstraint, field: str, labels: dict[str, str], unsettled: list[str]
) -> Spread:
    if not constraint.topology_key:
        raise RefusedTemplate(f"{field}.topologyKey: expected a node label, found none")
    least = constraint.min_domains
    for name, value in (("maxSkew", constraint.max_skew), ("minDomains", 1 if least is None else least)):
        if value < 1:
            raise RefusedTemplate(f"{field}.{name}: {value}: expected at least 1")
    selector = _spread_selector(constraint, field, labels)
    selected = (requirement.key for requirement in selector or ())
    unsettled += _added((*(constraint.match_label_keys or ()), *selected), field, labels)
    return Spread(
        constraint.topology_key,
        constraint.max_skew,
        least or 0,
        selector,
        counts_own=selector is not None and matches(selector, labels),
        honors_affinity=constraint.node_affinity_policy != "Ignore",
        honors_taints=constraint.node_taints_policy == "Honor",
    )


def _spread_selector(
    constraint: TopologySpreadConstraint, field: str, labels: dict[str, str]
) -> Selector | None:
    """The pods that count; None where none do, as kube-scheduler has it of an empty selector too."""
    if constraint.label_selector is None:
        return None
    try:
        selector = label_selector(constraint.label_selector)
        return with_label_keys(selector, labels, constraint.match_label_keys) or None
    except SelectorError as error:
        raise RefusedTemplate(f"{field}.labelSelector: {error}") from None


def _added(keys: Iterable[str], field: str, labels: Mapping[str, str]) -> Iterator[str]:
    """Of labels that controllers put on pods in the member, and that the template does not have."""
    for key in dict.fromkeys(keys):
        if key not in labels and key.startswith(_ADDED_LABELS):
            yield f"{field}: {key} is set in the cluster; all values count"
