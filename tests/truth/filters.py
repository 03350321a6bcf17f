"""kube-scheduler's filters for the next of identical pods, given how many of them each node has already.

After pkg/scheduler/framework/plugins of Kubernetes 1.36 in the default profile's order: what running pods
weigh is counted once, as the plugins' PreFilter does, and pods of the template are added by their number.
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from tests.truth.amounts import amounts, counted, host_ports, pod_amounts, ports_conflict
from tests.truth.fields import Json, integer, labels_of, name_of, namespace_of, objects, table, text, words
from tests.truth.selectors import (
    is_empty_selector,
    label_selector_matches,
    required_node_affinity_matches,
    tolerates,
    untolerated,
)
from tests.truth.volumes import Binding, Volumes
from tests.truth.world import World

_REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"
_CORDON: Json = {"key": "node.kubernetes.io/unschedulable", "effect": "NoSchedule"}
_NEVER = 2**31 - 1

Pair = tuple[str, str]
Counts = Sequence[int]


def terms_of(pod: Json, kind: str) -> list[Json]:
    """Required terms of ``podAffinity`` or ``podAntiAffinity``."""
    return objects(pod, "spec", "affinity", kind, _REQUIRED)


def term_matches(term: Json, of: Json, pod: Json, world: World) -> bool:
    """AffinityTerm.Matches: whether the term of one pod means the other, by namespace and labels."""
    names, selector = words(term, "namespaces"), term.get("namespaceSelector")
    if not names and selector is None:
        names = [namespace_of(of)]
    inside = namespace_of(pod) in names or label_selector_matches(
        selector, world.namespace_labels(namespace_of(pod))
    )
    return inside and label_selector_matches(term.get("labelSelector"), labels_of(pod))


@dataclass(frozen=True)
class Spread:
    """One hard spread constraint: which nodes count, and what running pods count there."""

    key: str
    max_skew: int
    min_domains: int
    counts_itself: bool
    adds: bool
    eligible: frozenset[int]
    running: Mapping[str, int]
    domains: frozenset[str]


class Filters:
    """The verdict on each node for one more pod; nodes by their place in ``world.all("Node")``."""

    def __init__(self, world: World, pod: Json) -> None:
        self.nodes = world.all("Node")
        self.labels = [labels_of(node) for node in self.nodes]
        self.volumes = Volumes(world, pod, namespace_of(pod))
        held = [world.held(name_of(node)) for node in self.nodes]
        self._static = [_static(pod, node) for node in self.nodes]
        self._ports = host_ports(pod)
        self._used_ports = [{port for each in pods for port in host_ports(each)} for pods in held]
        self._wanted = counted(pod_amounts(pod))
        self._pods = [len(pods) for pods in held]
        self._room = [_room(node, pods) for node, pods in zip(self.nodes, held, strict=True)]
        self._affinity = terms_of(pod, "podAffinity")
        self._anti = terms_of(pod, "podAntiAffinity")
        self._matches_itself = bool(self._affinity) and all(
            term_matches(t, pod, pod, world) for t in self._affinity
        )
        self._repels_itself = [term_matches(term, pod, pod, world) for term in self._anti]
        self._attracting: Counter[Pair] = Counter()
        self._repelled_by: Counter[Pair] = Counter()
        self._repelling: Counter[Pair] = Counter()
        for labels, pods in zip(self.labels, held, strict=True):
            for other in pods:
                self._count_terms(world, pod, other, labels)
        self.spreads = self._spreads(pod, held)

    def _count_terms(self, world: World, pod: Json, other: Json, labels: Mapping[str, str]) -> None:
        if self._affinity and all(term_matches(term, pod, other, world) for term in self._affinity):
            self._attracting.update(_pairs(self._affinity, labels))
        self._repelled_by.update(
            _pairs([t for t in self._anti if term_matches(t, pod, other, world)], labels)
        )
        theirs = terms_of(other, "podAntiAffinity")
        self._repelling.update(_pairs([t for t in theirs if term_matches(t, other, pod, world)], labels))

    def _spreads(self, pod: Json, held: Sequence[Sequence[Json]]) -> list[Spread]:
        constraints = [
            each
            for each in objects(pod, "spec", "topologySpreadConstraints")
            if text(each, "whenUnsatisfiable") == "DoNotSchedule"
        ]
        keys = [text(each, "topologyKey") for each in constraints]
        whole = [row for row, labels in enumerate(self.labels) if all(key in labels for key in keys)]
        found = []
        for constraint, key in zip(constraints, keys, strict=True):
            selector = constraint.get("labelSelector")
            eligible = [row for row in whole if _counts_node(constraint, pod, self.nodes[row])]
            running: Counter[str] = Counter()
            for row in eligible:
                running[self.labels[row][key]] += sum(
                    not is_empty_selector(selector)
                    and namespace_of(other) == namespace_of(pod)
                    and not text(other, "metadata", "deletionTimestamp")
                    and label_selector_matches(selector, labels_of(other))
                    for other in held[row]
                )
            itself = label_selector_matches(selector, labels_of(pod))
            found.append(
                Spread(
                    key,
                    integer(constraint, "maxSkew") or 1,
                    integer(constraint, "minDomains") or 1,
                    itself,
                    itself and not is_empty_selector(selector),
                    frozenset(eligible),
                    running,
                    frozenset(self.labels[row][key] for row in eligible),
                )
            )
        return found

    def influences(self, row: int) -> tuple[object, ...]:
        """What a pod on this node changes for other nodes; nodes alike in it are interchangeable for them."""
        labels = self.labels[row]
        own = self._affinity if self._matches_itself else []
        own = [*own, *(term for term, itself in zip(self._anti, self._repels_itself, strict=True) if itself)]
        pairs = tuple(sorted(set(_pairs(own, labels))))
        spread = tuple((labels.get(s.key), row in s.eligible) for s in self.spreads if s.adds)
        settled = self.volumes.bindings(self.nodes[row]) if self.volumes.is_settled_by_first else None
        return pairs, spread, settled, row if self.volumes.once else None

    def rejections(self, counts: Counts, settled: Binding | None) -> list[str]:
        """Of each node, the first filter that keeps the next pod off it; empty where it may go there."""
        attracting, repelled_by, repelling = self._attracting, self._repelled_by, self._repelling
        placed = [row for row, count in enumerate(counts) if count]
        if placed and (self._matches_itself or any(self._repels_itself)):
            attracting, repelled_by, repelling = (
                Counter(each) for each in (attracting, repelled_by, repelling)
            )
            own = [term for term, itself in zip(self._anti, self._repels_itself, strict=True) if itself]
            for row in placed:
                for pair in _pairs(self._affinity if self._matches_itself else (), self.labels[row]):
                    attracting[pair] += counts[row]
                for pair in _pairs(own, self.labels[row]):
                    repelled_by[pair] += counts[row]
                    repelling[pair] += counts[row]
        spreading = [self._matched(spread, counts) for spread in self.spreads]
        total = sum(counts)
        found = []
        for row, node in enumerate(self.nodes):
            found.append(
                self._static[row]
                or self._fits(row, counts[row])
                or self.volumes.rejects(node, counts[row], total - counts[row], settled)
                or self._skewed(row, spreading)
                or self._inter_pod(row, attracting, repelled_by, repelling)
            )
        return found

    def _fits(self, row: int, own: int) -> str:
        if self._ports and (own or ports_conflict(self._ports, self._used_ports[row])):
            return "NodePorts"
        room = self._room[row]
        if self._pods[row] + own + 1 > room.get("pods", 0):
            return "NodeResourcesFit"
        for name, wanted in self._wanted.items():
            if wanted and name != "pods" and wanted > room.get(name, 0) - own * wanted:
                return "NodeResourcesFit"
        return ""

    def _matched(self, spread: Spread, counts: Counts) -> tuple[dict[str, int], int]:
        """Matching pods by domain, and the least of them, as the constraint takes it."""
        matched = {domain: spread.running.get(domain, 0) for domain in spread.domains}
        if spread.adds:
            for row in spread.eligible:
                matched[self.labels[row][spread.key]] += counts[row]
        least = 0 if len(matched) < spread.min_domains else min(matched.values(), default=_NEVER)
        return matched, least

    def _skewed(self, row: int, spreading: Sequence[tuple[dict[str, int], int]]) -> str:
        for spread, (matched, least) in zip(self.spreads, spreading, strict=True):
            domain = self.labels[row].get(spread.key)
            if domain is None:
                return "PodTopologySpread"
            if matched.get(domain, 0) + spread.counts_itself - least > spread.max_skew:
                return "PodTopologySpread"
        return ""

    def _inter_pod(
        self,
        row: int,
        attracting: Mapping[Pair, int],
        repelled_by: Mapping[Pair, int],
        repelling: Mapping[Pair, int],
    ) -> str:
        labels = self.labels[row]
        pairs = _pairs(self._affinity, labels)
        if len(pairs) < len(self._affinity):
            return "InterPodAffinity"
        if not all(attracting.get(pair, 0) > 0 for pair in pairs) and (
            attracting or not self._matches_itself
        ):
            return "InterPodAffinity"
        if any(repelled_by.get(pair, 0) > 0 for pair in _pairs(self._anti, labels)):
            return "InterPodAffinity"
        return "InterPodAffinity" if any(repelling.get(pair, 0) > 0 for pair in labels.items()) else ""


def _static(pod: Json, node: Json) -> str:
    """The filters that no other pod has a say in."""
    if table(node, "spec").get("unschedulable") is True and not any(
        tolerates(each, _CORDON) for each in objects(pod, "spec", "tolerations")
    ):
        return "NodeUnschedulable"
    if untolerated(pod, node):
        return "TaintToleration"
    return "" if required_node_affinity_matches(pod, node) else "NodeAffinity"


def _room(node: Json, held: Sequence[Json]) -> dict[str, int]:
    room = counted(amounts(node, "status", "allocatable"))
    for pod in held:
        for name, amount in counted(pod_amounts(pod)).items():
            room[name] = room.get(name, 0) - amount
    return room


def _pairs(terms: Sequence[Json], labels: Mapping[str, str]) -> list[Pair]:
    """(key, value) of each term whose topology key the node has."""
    keys = [text(term, "topologyKey") for term in terms]
    return [(key, labels[key]) for key in keys if key in labels]


def _counts_node(constraint: Json, pod: Json, node: Json) -> bool:
    """matchNodeInclusionPolicies: affinity is honoured by default, taints are not."""
    if text(constraint, "nodeAffinityPolicy") != "Ignore" and not required_node_affinity_matches(pod, node):
        return False
    return text(constraint, "nodeTaintsPolicy") != "Honor" or not untolerated(pod, node)
