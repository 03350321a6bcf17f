"""What pods say of other pods: affinity terms, label selectors, host ports, as small comparable values.

Mirrors framework.AffinityTerm and NewPodInfo of kube-scheduler 1.36, the API server's merging of
``matchLabelKeys`` and ``mismatchLabelKeys`` into the selector, and metav1.LabelSelector: no selector matches
nothing, an empty one everything.
"""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

from fairway.kube.objects import Container, LabelSelector, PodAffinity, PodAffinityTerm
from fairway.selectors import Operator, Requirement, SelectorError, label_requirement

Selector = tuple[Requirement, ...]
"""A label selector: all of it must hold; nothing in it matches everything."""

NAMESPACE_NAME = "kubernetes.io/metadata.name"
"""The label that every namespace carries, with its own name."""

_ANY_ADDRESS = "0.0.0.0"


@dataclass(frozen=True, slots=True)
class PodTerm:
    """Pods that ``selector`` matches (None: none at all), in these namespaces, counted by a node label.

    ``namespace_selector`` adds the namespaces whose labels it matches; None adds none.
    """

    key: str
    selector: Selector | None
    namespaces: frozenset[str]
    namespace_selector: Selector | None = None

    def selects(self, labels: Mapping[str, str]) -> bool:
        """Whether a pod with these labels, in a namespace of the term, is meant."""
        return self.selector is not None and matches(self.selector, labels)


@dataclass(frozen=True, slots=True)
class HostPort:
    """A port of the node that a pod takes for itself."""

    port: int
    protocol: str = "TCP"
    address: str = _ANY_ADDRESS

    def conflicts(self, other: "HostPort") -> bool:
        """Whether both cannot be had on one node. Mirrors HostPortInfo.CheckConflict."""
        if (self.port, self.protocol) != (other.port, other.protocol):
            return False
        return self.address == other.address or _ANY_ADDRESS in (self.address, other.address)


def matches(selector: Selector, labels: Mapping[str, str]) -> bool:
    """Whether these labels satisfy all of the selector."""
    return all(requirement.allows(labels.get(requirement.key)) for requirement in selector)


def by_label(selectors: Iterable[Selector]) -> Mapping[str, Requirement]:
    """All of these selectors as one requirement for each label, so that a pod costs as much as its labels.

    Linear in what they state, which may be a thousand requirements on one label.
    """
    parts: defaultdict[str, list[Requirement]] = defaultdict(list)
    for selector in selectors:
        for requirement in selector:
            parts[requirement.key].append(requirement)
    return {key: stated[0] if len(stated) == 1 else _all_of(stated) for key, stated in parts.items()}


def _all_of(parts: Sequence[Requirement]) -> Requirement:
    listed = [part.values for part in parts if not part.complement]
    excluded = frozenset[str]().union(*(part.values for part in parts if part.complement))
    return Requirement(
        parts[0].key,
        frozenset.intersection(*listed) - excluded if listed else excluded,
        complement=not listed,
        allows_absent=all(part.allows_absent for part in parts),
    )


def label_selector(selector: LabelSelector) -> Selector:
    """The selector's requirements. Raises SelectorError."""
    return (
        *(_requirement(key, Operator.IN, (value,)) for key, value in (selector.match_labels or {}).items()),
        *(_requirement(r.key, r.operator, tuple(r.values or ())) for r in selector.match_expressions or ()),
    )


def pod_term(term: PodAffinityTerm, namespace: str, labels: Mapping[str, str]) -> PodTerm:
    """One affinity term of a pod in this namespace with these labels.

    A term that names no namespaces is about the pod's own. Raises SelectorError that begins with the field.
    """
    if not term.topology_key:
        raise SelectorError("topologyKey: expected a node label, found none")
    chosen = None
    if term.namespace_selector is not None:
        with _field("namespaceSelector"):
            chosen = label_selector(term.namespace_selector)
    named = frozenset(term.namespaces or (() if chosen is not None else (namespace,)))
    selector = None
    if term.label_selector is not None:
        with _field("labelSelector"):
            selector = with_label_keys(
                label_selector(term.label_selector), labels, term.match_label_keys, term.mismatch_label_keys
            )
    return PodTerm(term.topology_key, selector, named, chosen)


def with_label_keys(
    selector: Selector,
    labels: Mapping[str, str],
    same: Sequence[str] | None,
    different: Sequence[str] | None = None,
) -> Selector:
    """The selector narrowed to pods with the same, or different, values of these labels.

    Keys that the pod itself lacks narrow nothing.
    """
    return (
        *selector,
        *(_requirement(key, Operator.IN, (labels[key],)) for key in same or () if key in labels),
        *(_requirement(key, Operator.NOT_IN, (labels[key],)) for key in different or () if key in labels),
    )


def required_terms(affinity: PodAffinity | None) -> Sequence[PodAffinityTerm]:
    """The terms that must hold at scheduling; preferred ones decide nothing that is counted."""
    return (affinity and affinity.required_during_scheduling_ignored_during_execution) or ()


def host_ports(containers: Iterable[Container], *, on_host_network: bool = False) -> tuple[HostPort, ...]:
    """The ports of their node that these containers take, sorted.

    On the network of its node each port of a container is one, as the API server's defaults have it.
    """
    found = {
        HostPort(port.host_port or port.container_port, port.protocol or "TCP", port.host_ip or _ANY_ADDRESS)
        for container in containers
        for port in container.ports or ()
        if port.host_port > 0 or (on_host_network and port.container_port > 0)
    }
    return tuple(sorted(found, key=lambda port: (port.port, port.protocol, port.address)))


@contextmanager
def _field(name: str) -> Iterator[None]:
    try:
        yield
    except SelectorError as error:
        raise SelectorError(f"{name}: {error}") from None


def _requirement(key: str, operator: str, values: tuple[str, ...]) -> Requirement:
    if operator in (Operator.GT, Operator.LT):
        raise SelectorError(f"{operator} on {key[:63]}: expected In, NotIn, Exists or DoesNotExist")
    return label_requirement(key, operator, values)
