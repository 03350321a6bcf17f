"""What the estimators are asked about a workload, and what their answers mean for it. Pure.

A workload that Karmada divides over clusters needs room for its pods anywhere, so it is asked about as single
pods, and the clusters' numbers add up. All others are asked about whole: one cluster has to take all of it,
or, where each of several clusters gets a copy, so many of them.

Of one that grows, only the pods that are not placed yet are asked about, one by one: those of a divided
workload anywhere that it may go, as Karmada divides the difference over all clusters; but where it runs alone
if it may have no more clusters than it has, or gets its replicas in each of them.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace

import msgspec

from fairway.capacity.v1 import capacity_pb2 as pb
from fairway.kube.objects import KubeStruct, RawResources
from fairway.kube.templates import NodeSelector
from fairway.taints import Toleration
from fairway.workloads.gang import Gang
from fairway.workloads.registry import KNOWN_KINDS, read_workload
from queue_dispatcher.bindings.binding import Binding
from queue_dispatcher.cycle.displacement import Pods
from queue_dispatcher.cycle.snapshot import Verdict
from queue_dispatcher.estimates.cluster_room import ClusterRoom

MAX_REASONS = 4
MAX_ALIKE = 4
"""Clusters that are named with one reason."""


@dataclass(frozen=True, slots=True)
class Question:
    """``gang``: what is asked of each of ``clusters``.

    ``needed``: how many copies of the gang there must be room for, over all clusters with ``adds_up``; else
    in each of ``clusters_needed`` clusters. ``is_guided``: its pods can be told where to go there.
    ``elsewhere``: of clusters in which its pods are told otherwise, what is asked instead. ``in_one``: what
    adds up must be in one cluster. Of an elastic workload more copies are asked about than are needed.
    """

    clusters: tuple[str, ...]
    gang: pb.Gang
    needed: int
    adds_up: bool
    clusters_needed: int = 1
    is_guided: bool = False
    elsewhere: Mapping[str, pb.Gang] = field(default_factory=dict)
    in_one: bool = False

    def with_copies(self, copies: int) -> "Question":
        """The same about so many copies of each gang."""
        if self.gang.copies == copies:
            return self
        elsewhere = {cluster: _of_copies(gang, copies) for cluster, gang in self.elsewhere.items()}
        return replace(self, gang=_of_copies(self.gang, copies), elsewhere=elsewhere)

    def gang_at(self, cluster: str) -> pb.Gang:
        """What is asked of the cluster."""
        return self.elsewhere.get(cluster, self.gang)

    def by_gang(self, clusters: Iterable[str]) -> list[tuple[tuple[str, ...], pb.Gang]]:
        """These clusters by what is asked of them."""
        found: dict[int, tuple[list[str], pb.Gang]] = {}
        for cluster in clusters:
            gang = self.gang_at(cluster)
            found.setdefault(id(gang), ([], gang))[0].append(cluster)
        return [(tuple(names), gang) for names, gang in found.values()]

    @property
    def is_of_alike_pods(self) -> bool:
        """Whether each copy is one pod."""
        return len(self.gang.pod_sets) == 1 and self.gang.pod_sets[0].count == 1


class _NodeClaim(KubeStruct, frozen=True):
    hard_node_affinity: NodeSelector | None = None
    node_selector: dict[str, str] | None = None
    tolerations: list[Toleration] | None = None


class _Requirements(KubeStruct, frozen=True):
    node_claim: _NodeClaim | None = None
    resource_request: RawResources | None = None


class _Component(KubeStruct, frozen=True):
    name: str = ""
    replicas: int = 0
    replica_requirements: _Requirements | None = None


class _Spec(KubeStruct, frozen=True):
    replicas: int = 0
    replica_requirements: _Requirements | None = None
    components: list[_Component] | None = None


class StatedBinding(KubeStruct, frozen=True):
    """A binding as the API server has it, as far as it says what pods ask for."""

    spec: _Spec = _Spec()


def is_readable(binding: Binding) -> bool:
    """Whether the workload's own object tells more than the binding does."""
    return (binding.workload.kind, binding.workload.group) in KNOWN_KINDS


def question_of(
    binding: Binding, permitted: frozenset[str], copies: int, source: bytes | StatedBinding
) -> Question | None:
    """The question about a binding; None if there is nothing to ask.

    ``source``: the template as JSON where `is_readable`, else the binding as it is stated.
    """
    placement, demand = binding.placement, binding.demand
    if placement is None or not permitted or not demand.replicas:
        return None
    clusters = tuple(sorted(permitted))
    divides = not (placement.is_duplicated or demand.is_set) and placement.max_clusters != 1
    if isinstance(source, bytes):
        gang = read_workload(source)
        if not isinstance(gang, Gang):
            return None
        if not divides or len(gang.pod_sets) != 1:
            whole = pb.Gang(namespace=binding.namespace, workload_json=source, copies=gang.copies)
            return Question(clusters, whole, gang.copies, adds_up=False, clusters_needed=copies)
        template = msgspec.json.encode(gang.pod_sets[0].template)
        return _divided(clusters, binding, template, demand.replicas)
    pod_sets = _pod_sets(source.spec)
    if not pod_sets:
        return None
    if divides and len(pod_sets) == 1:
        return _divided(clusters, binding, pod_sets[0].template_json, demand.replicas)
    together = pb.Gang(namespace=binding.namespace, pod_sets=pod_sets, copies=1)
    return Question(clusters, together, 1, adds_up=False, clusters_needed=copies)


def pods_of(binding: Binding, copies: int) -> Pods:
    """The pods of all of a workload, on as many clusters as get it."""
    return tuple(
        (component.requests, component.replicas * copies)
        for component in binding.demand.components
        if component.replicas > 0
    )


def growth_question_of(
    binding: Binding, permitted: frozenset[str], copies: int, source: bytes | StatedBinding
) -> Question | None:
    """The question about what of a binding is not placed yet; None if there is nothing to ask.

    Nor is there where replicas are not alike pods: then the difference cannot be asked about by itself. And
    what grows inside the pods, or in the components of a set that runs, Karmada passes on, held or not.
    """
    placement, demand = binding.placement, binding.demand
    if not binding.placed:
        return question_of(binding, permitted, copies, source)
    if placement is None or demand.is_set:
        return None
    template = _template_of_replicas(source)
    if template is None:
        return None
    there = {share.cluster: share.replicas for share in binding.placed}
    if placement.is_duplicated:
        lacking = max(demand.replicas - replicas for replicas in there.values())
        clusters, needed = tuple(sorted(there)), len(there)
    else:
        lacking = demand.replicas - sum(there.values())
        is_full = 0 < placement.max_clusters <= len(there)
        clusters, needed = tuple(sorted(there if is_full else permitted or there)), 1
    if lacking <= 0:
        return None
    question = _divided(clusters, binding, template, lacking)
    if not placement.is_duplicated:
        return question
    return replace(question, adds_up=False, clusters_needed=needed)


def _template_of_replicas(source: bytes | StatedBinding) -> bytes | None:
    """The pod template of a workload whose replicas are alike pods; None if they are not."""
    if isinstance(source, bytes):
        gang = read_workload(source)
        if not isinstance(gang, Gang) or len(gang.pod_sets) != 1:
            return None
        return msgspec.json.encode(gang.pod_sets[0].template)
    pod_sets = _pod_sets(source.spec)
    return pod_sets[0].template_json if len(pod_sets) == 1 else None


def verdict_of(question: Question, rooms: Iterable[ClusterRoom]) -> tuple[Verdict | None, tuple[str, ...]]:
    """What the answers mean; None where it depends on clusters that nobody knows, which are told as well."""
    known = [room for room in rooms if not room.unknown]
    unknown = tuple(room.unknown for room in rooms if room.unknown)
    with_room = frozenset(room.cluster for room in known if room.fits > 0)
    if question.adds_up and question.in_one:
        fits = sum(room.fits // max(1, question.needed) for room in known)
    elif question.adds_up:
        fits = sum(room.fits for room in known) // max(1, question.needed)
    else:
        enough = sorted((room.fits // max(1, question.needed) for room in known), reverse=True)
        chosen = enough[: question.clusters_needed]
        fits = (
            sum(enough)
            if question.clusters_needed == 1
            else (min(chosen) if len(chosen) == question.clusters_needed else 0)
        )
    if fits > 0:
        per = max(1, question.needed) if question.adds_up else 1
        where: tuple[tuple[str, int], ...] | None = None
        if question.adds_up or question.clusters_needed == 1:
            of = 1 if question.adds_up else max(1, question.needed)
            where = tuple((room.cluster, room.fits // of) for room in known if room.fits >= of)
        witnesses = tuple((room.cluster, room.witnesses) for room in known if room.witnesses)
        return Verdict(fits, with_room, per=per, rooms=where, witnesses=witnesses), ()
    if unknown:
        return None, unknown
    return Verdict(0, reasons=_reasons(question, known), never=_is_never(question, known)), ()


def _is_never(question: Question, rooms: Iterable[ClusterRoom]) -> bool:
    """Whether it would not even fit if nothing else ran; not where nobody knows."""
    needed = max(1, question.needed)
    most = [room.fits if room.most is None and room.fits >= needed else room.most for room in rooms]
    known = [one for one in most if one is not None]
    if len(known) < len(most) or not known:
        return False
    if question.adds_up and not question.in_one:
        return sum(known) < needed
    return sum(one >= needed for one in known) < question.clusters_needed


def _reasons(question: Question, rooms: Iterable[ClusterRoom]) -> tuple[str, ...]:
    of: dict[tuple[int, str], list[str]] = {}
    for room in rooms:
        of.setdefault((room.fits, room.why or "no room"), []).append(room.cluster)
    told = []
    for (fits, why), clusters in of.items():
        more = f" and {len(clusters) - MAX_ALIKE} more" if len(clusters) > MAX_ALIKE else ""
        each = f": {fits} of {question.needed} fit" if fits else ""
        told.append(f"{', '.join(clusters[:MAX_ALIKE])}{more}{each}: {why}")
    return (*told[:MAX_REASONS], *([f"{len(told) - MAX_REASONS} more"] if len(told) > MAX_REASONS else []))


def _of_copies(gang: pb.Gang, copies: int) -> pb.Gang:
    made = pb.Gang()
    made.CopyFrom(gang)
    made.copies = copies
    return made


def _divided(clusters: tuple[str, ...], binding: Binding, template: bytes, replicas: int) -> Question:
    pod = pb.PodSet(name="pod", count=1, template_json=template)
    gang = pb.Gang(namespace=binding.namespace, pod_sets=[pod], copies=replicas)
    return Question(clusters, gang, replicas, adds_up=True)


def _pod_sets(spec: _Spec) -> list[pb.PodSet]:
    components = spec.components or [_Component("main", spec.replicas, spec.replica_requirements)]
    return [
        pb.PodSet(
            name=component.name or f"component-{number}",
            count=component.replicas,
            template_json=msgspec.json.encode(_template(component.replica_requirements or _Requirements())),
        )
        for number, component in enumerate(components)
        if component.replicas > 0
    ]


def _template(requirements: _Requirements) -> Mapping[str, object]:
    claim = requirements.node_claim or _NodeClaim()
    container = {"name": "main", "resources": {"requests": requirements.resource_request or {}}}
    spec: dict[str, object] = {"containers": [container]}
    if claim.node_selector:
        spec["nodeSelector"] = claim.node_selector
    if claim.tolerations:
        spec["tolerations"] = claim.tolerations
    if claim.hard_node_affinity is not None:
        required = {"requiredDuringSchedulingIgnoredDuringExecution": claim.hard_node_affinity}
        spec["affinity"] = {"nodeAffinity": required}
    return {"spec": spec}
