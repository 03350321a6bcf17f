"""Requests of fairway.capacity.v1 to questions in the estimator's own terms.

Nothing here trusts its input: sizes are bounded before anything is decoded, and whatever cannot be read is a
`RequestError` that names the field as the proto file does. What can be read but not used (an annotation that
means nothing) does not fail the request; it comes back as a problem to tell beside the answer.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import msgspec

from estimator.capacity.gangs.workload_gang import gang_components
from estimator.capacity.request import AssumedWorkload, Component, GangQuestion
from estimator.workload_requests import (
    MAX_NAME,
    MAX_WORKLOADS,
    RequestError,
    Surplus,
    read_endings,
    read_surplus,
    read_without,
)
from fairway.capacity.v1 import capacity_pb2 as pb
from fairway.workloads.fields import TemplateFields, Unreadable, decode, template_at
from fairway.workloads.gang import Gang, PodSet, TopologyMode, TopologyRequest
from fairway.workloads.registry import MAX_POD_SETS, NotRead, read_workload
from fairway.workloads.workload_name import WorkloadName

MAX_JSON_BYTES = 2 << 20
"""Of one template or workload; etcd takes objects of 1.5 MiB."""

MAX_CLUSTERS = 1000
MAX_ASSUMED = 20_000
"""Gangs on their way, and pod sets of all of them; far more than a dispatcher has in flight."""

_TEMPLATES = msgspec.json.Decoder(TemplateFields)
_MODES = {
    pb.Topology.REQUIRED: TopologyMode.REQUIRED,
    pb.Topology.PREFERRED: TopologyMode.PREFERRED,
    pb.Topology.EXCLUSIVE: TopologyMode.EXCLUSIVE,
    pb.Topology.SLICED: TopologyMode.SLICED,
}
_IN_RUNS = (TopologyMode.EXCLUSIVE, TopologyMode.SLICED)


@dataclass(frozen=True, slots=True)
class CapacityQuestion:
    """What `Place` and `Explain` are asked: about which clusters (none: all of them), and what.

    ``gang`` names no cluster yet, see `about`. ``copies``: how many the workload itself has of its gang.
    ``search_s`` is 0 where the server shall choose. ``placements``: how many are to be told. ``problems``:
    what of templates could not be used. ``without``: workloads that are taken to be gone. ``endings``: when
    workloads end, in milliseconds since the epoch; None where nobody asks when there will be room.
    ``of_choice``: whoever asks can end them, the earlier the rather, and asks which of them have to; or, of
    those that have a ``surplus``, give up how many pods.
    """

    clusters: tuple[str, ...]
    gang: GangQuestion
    copies: int
    search_s: float
    placements: int
    problems: tuple[str, ...]
    without: tuple[WorkloadName, ...] = ()
    endings: Mapping[WorkloadName, int] | None = None
    of_choice: bool = False
    surplus: tuple[Surplus, ...] = ()

    def about(self, cluster: str) -> GangQuestion:
        """The question, asked about one cluster."""
        return replace(self.gang, cluster=cluster)


@dataclass(frozen=True, slots=True)
class ClusterWorkloads:
    """Workloads of one cluster."""

    cluster: str
    workloads: tuple[WorkloadName, ...]


def read_place(message: pb.PlaceRequest) -> CapacityQuestion:
    """What a PlaceRequest asks. Raises RequestError."""
    if message.placements < 0:
        raise RequestError(f"placements: {message.placements}: expected how many, or 0 for one")
    question = _question(message, max(1, message.placements) if message.want_placement else 0)
    without, endings = read_without(message.without), None
    of_choice, surplus = message.endings.of_choice, read_surplus(message.endings.endings)
    if message.HasField("endings"):
        endings = read_endings(message.endings.endings)
    if surplus and not of_choice:
        raise RequestError("endings.endings: a surplus without of_choice: expected one only with it")
    return replace(question, without=without, endings=endings, of_choice=of_choice, surplus=surplus)


def read_explain(message: pb.ExplainRequest) -> CapacityQuestion:
    """What an ExplainRequest asks. Raises RequestError."""
    return _question(message, placements=0)


def _question(message: pb.PlaceRequest | pb.ExplainRequest, placements: int) -> CapacityQuestion:
    clusters = read_clusters(message)
    if message.search_ms < 0:
        raise RequestError(
            f"search_ms: {message.search_ms}: expected milliseconds, or 0 for the server's own"
        )
    if not message.HasField("gang"):
        raise RequestError("gang: is missing: expected pod_sets or workload_json")
    problems: list[str] = []
    gang = _gang(message.gang, "gang")
    components, unused = gang_components(gang)
    problems += [*gang.problems, *unused]
    if not components:
        raise RequestError("gang: has no pods: expected at least one pod set with a count above 0")
    question = GangQuestion(
        cluster="",
        components=components,
        namespace=gang.namespace,
        topology=gang.topology,
        wanted=message.gang.copies,
        assumed=_assumed(message.assumed, problems),
    )
    return CapacityQuestion(
        clusters, question, gang.copies, message.search_ms / 1000, placements, tuple(problems)
    )


def read_clusters(
    message: pb.PlaceRequest | pb.ExplainRequest | pb.SummaryRequest | pb.UsageRequest,
) -> tuple[str, ...]:
    """The clusters that a request names, each once, in its order. Raises RequestError."""
    names = message.clusters
    if len(names) > MAX_CLUSTERS:
        raise RequestError(f"clusters: {len(names)} names: expected at most {MAX_CLUSTERS}")
    return tuple(dict.fromkeys(names))


def read_bound(message: pb.BoundRequest) -> tuple[ClusterWorkloads, ...]:
    """What a BoundRequest asks. Raises RequestError."""
    if len(message.clusters) > MAX_CLUSTERS:
        raise RequestError(f"clusters: {len(message.clusters)}: expected at most {MAX_CLUSTERS}")
    names = [of.cluster for of in message.clusters]
    if len(set(names)) < len(names):
        raise RequestError("clusters: a name is there twice: expected each cluster once")
    if sum(len(of.workloads) for of in message.clusters) > MAX_WORKLOADS:
        raise RequestError(f"clusters: expected at most {MAX_WORKLOADS} workloads in all of them")
    return tuple(
        ClusterWorkloads(
            of.cluster, tuple(WorkloadName(w.namespace, w.name, w.kind, w.group) for w in of.workloads)
        )
        for of in message.clusters
    )


def _assumed(gangs: Sequence[pb.Gang], problems: list[str]) -> tuple[AssumedWorkload, ...]:
    if len(gangs) > MAX_ASSUMED or sum(len(gang.pod_sets) for gang in gangs) > MAX_ASSUMED:
        raise RequestError(f"assumed: expected at most {MAX_ASSUMED} gangs and pod sets of them")
    if sum(len(gang.where) for gang in gangs) > MAX_ASSUMED:
        raise RequestError(f"assumed.where: expected at most {MAX_ASSUMED} places of all gangs")
    found: list[AssumedWorkload] = []
    for index, message in enumerate(gangs):
        gang, held = gang_on_its_way(message, f"assumed[{index}]", problems)
        where = places(message, f"assumed[{index}].where")
        if len(held) == 1:
            # Under its own name, by which `outstanding` finds the pods of it that are bound; or under none.
            held = (replace(held[0], name=gang.name),)
            where = tuple((gang.name, node, pods) for _, node, pods in where)
        if held:
            found.append(AssumedWorkload(gang.namespace, held, where, message.waits))
    return tuple(found)


def places(message: pb.Gang, field: str) -> tuple[tuple[str, str, int], ...]:
    """Where pods of a gang are said to go: pod set, node and pods. Raises RequestError."""
    return tuple(_place(one, field) for one in message.where)


def _place(message: pb.Assignment, field: str) -> tuple[str, str, int]:
    if message.pods < 0 or max(len(message.node), len(message.pod_set)) > MAX_NAME:
        raise RequestError(f"{field}: expected a number of pods, and names of at most {MAX_NAME} characters")
    return message.pod_set, message.node, message.pods


def gang_on_its_way(message: pb.Gang, field: str, problems: list[str]) -> tuple[Gang, tuple[Component, ...]]:
    """A gang with all of its pods, of all copies, by pod set. Raises RequestError."""
    gang = _gang(message, field)
    components, unused = gang_components(gang)
    problems += [f"{field}: {problem}" for problem in (*gang.problems, *unused)]
    copies = message.copies or gang.copies
    return gang, tuple(replace(one, replicas=one.replicas * copies, topology=None) for one in components)


def _gang(message: pb.Gang, field: str) -> Gang:
    if message.copies < 0:
        raise RequestError(f"{field}.copies: {message.copies}: expected a number of gangs, or 0")
    if len(message.name) > MAX_NAME:
        raise RequestError(f"{field}.name: {len(message.name)} characters: expected at most {MAX_NAME}")
    if message.workload_json:
        if message.pod_sets or message.HasField("topology"):
            raise RequestError(
                f"{field}: has workload_json and pod_sets or topology: expected one or the other"
            )
        return _workload(message, field)
    if not message.pod_sets:
        raise RequestError(f"{field}: has no pods: expected pod_sets or workload_json")
    if len(message.pod_sets) > MAX_POD_SETS:
        raise RequestError(
            f"{field}.pod_sets: {len(message.pod_sets)} pod sets: expected at most {MAX_POD_SETS}"
        )
    pod_sets = tuple(_pod_set(one, f"{field}.pod_sets[{i}]") for i, one in enumerate(message.pod_sets))
    names = [one.name for one in pod_sets]
    for index, name in enumerate(names):
        if name in names[:index]:
            raise RequestError(
                f"{field}.pod_sets[{index}].name: {name[:63]!r} is there twice: expected it once"
            )
    topology = _topology(message, field)
    return Gang("", message.namespace, message.name, pod_sets, is_gang=True, topology=topology)


def _workload(message: pb.Gang, field: str) -> Gang:
    raw = _bounded(message.workload_json, f"{field}.workload_json")
    gang = read_workload(raw)
    if isinstance(gang, NotRead):
        raise RequestError(f"{field}.workload_json: {'; '.join(gang.problems)}")
    longest = max((len(one.name) for one in gang.pod_sets), default=0)
    if longest > MAX_NAME:
        raise RequestError(
            f"{field}.workload_json: a pod set has a name of {longest} characters: "
            f"expected at most {MAX_NAME}"
        )
    return replace(gang, namespace=message.namespace or gang.namespace, name=message.name or gang.name)


def _pod_set(message: pb.PodSet, field: str) -> PodSet:
    if len(message.name) > MAX_NAME:
        raise RequestError(f"{field}.name: {len(message.name)} characters: expected at most {MAX_NAME}")
    if message.count < 0:
        raise RequestError(f"{field}.count: {message.count}: expected a number of pods")
    where = f"{field}.template_json"
    try:
        template = template_at(decode(_TEMPLATES, _bounded(message.template_json, where), where), where, {})
    except Unreadable as error:
        raise RequestError(str(error)) from None
    topology = _topology(message, field)
    return PodSet(message.name, message.count, message.count, template, topology)


def _topology(of: pb.Gang | pb.PodSet, field: str) -> TopologyRequest | None:
    if not of.HasField("topology"):
        return None
    message, field = of.topology, f"{field}.topology"
    mode = _MODES.get(message.mode)
    if mode is None:
        raise RequestError(f"{field}.mode: {message.mode}: expected {', '.join(pb.Topology.Mode.keys()[1:])}")
    if not message.level:
        raise RequestError(f"{field}.level: is empty: expected a label key or a level's short name")
    if message.slice_size < 0 or (mode is TopologyMode.SLICED and not message.slice_size):
        raise RequestError(f"{field}.slice_size: {message.slice_size}: expected how many pods share a domain")
    if message.slice_size and mode not in _IN_RUNS:
        raise RequestError(f"{field}.slice_size: {message.slice_size}: expected 0 unless SLICED or EXCLUSIVE")
    return TopologyRequest(mode, message.level, message.slice_size)


def _bounded(raw: bytes, field: str) -> bytes:
    if len(raw) > MAX_JSON_BYTES:
        raise RequestError(f"{field}: {len(raw)} bytes: expected at most {MAX_JSON_BYTES}")
    return raw
