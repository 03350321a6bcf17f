"""The estimators of the members, as they answer the dispatcher and karmada-scheduler, and how they go wrong.

What they say is worked out from the nodes as they are, by means of their own: pods of one shape are counted,
gangs are packed big pods first, and once more with a little search where that fails. Faults make an answer
late, old, too high, or none.
"""

import random
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache
from types import MappingProxyType

import msgspec

from fairway.capacity.v1 import capacity_pb2 as pb
from fairway.resources import ResourceError
from queue_dispatcher.bindings.binding import WorkloadReference
from queue_dispatcher.cycle.witness import LEFT_ALONE, Witness
from queue_dispatcher.estimates.cluster_room import ClusterRoom
from queue_dispatcher.estimates.promised import HOLDS_S, Lists, Promised
from sandbox.simulation.member import Member
from sandbox.simulation.nodes import Node
from sandbox.simulation.objects import Obj
from sandbox.simulation.pods import Owner
from sandbox.simulation.templates import Request, pod_sets, pod_template, request_of

MOST_COPIES = 1_000
MOST_WITNESSES = 3
SEARCHED = 200
"""How many steps back a search for a packing takes at most."""
SKIP = -1


@dataclass(frozen=True, slots=True)
class Pods:
    """So many pods of one shape; ``spec`` for what they demand of their node beside resources."""

    count: int
    request: Request
    spec: Obj = field(hash=False)
    name: str = "main"


@dataclass(slots=True)
class Failing:
    """How the estimator of one cluster is wrong. ``extra``: pods or copies that it says too many.

    ``frozen``: the free amounts by node that it goes on answering from, None for the true ones.
    """

    is_gone: bool = False
    delay_ms: int = 0
    extra: int = 0
    is_silent: bool = False
    frozen: Mapping[str, Mapping[str, int]] | None = None


class Estimators:
    """``failing`` by cluster; a cluster without an entry there is answered for truly, after 2 to 12 ms."""

    def __init__(self, members: Mapping[str, Member], rng: random.Random) -> None:
        self.failing: dict[str, Failing] = {}
        self.asked = 0
        # By cluster, what is promised and until when; and by whom, as of `estimator.capacity.promises`.
        self._promised: dict[str, tuple[int, Sequence[Promised]]] = {}
        self._holder: tuple[int, str] | None = None
        self._held_until_ms = 0
        self._members, self._rng = members, rng

    def freeze(self, cluster: str) -> None:
        """From now on the cluster's answers are of now."""
        self._failing(cluster).frozen = {
            name: dict(node.free) for name, node in self._members[cluster].nodes.items()
        }

    def _failing(self, cluster: str) -> Failing:
        return self.failing.setdefault(cluster, Failing())

    # As the dispatcher asks: fairway.capacity.v1.

    def delay_ms(self, clusters: Sequence[str]) -> int:
        """How long the answer about these clusters takes from now: as long as the slowest."""
        slowest = max((one.delay_ms for name in clusters if (one := self.failing.get(name))), default=0)
        return slowest + self._rng.randint(2, 12)

    def place(
        self,
        clusters: Sequence[str],
        gang: pb.Gang,
        assumed: Mapping[str, Sequence[pb.Gang]],
        want_placement: bool = False,
    ) -> tuple[ClusterRoom, ...]:
        """How many copies of ``gang`` fit each cluster, beside what is ``assumed`` to be on its way there."""
        self.asked += 1
        rooms = (self._room(cluster, gang, assumed.get(cluster, ())) for cluster in clusters)
        if not want_placement:
            return tuple(replace(room, witnesses=()) for room in rooms)
        return tuple(rooms)

    def bound(self, asked: Mapping[str, Sequence[WorkloadReference]]) -> dict[str, tuple[int | None, ...]]:
        """By cluster that answers, how many pods of each workload have nodes there."""
        found: dict[str, tuple[int | None, ...]] = {}
        for cluster, workloads in asked.items():
            failing = self.failing.get(cluster)
            if self._free(cluster) is not None and (failing is None or failing.frozen is None):
                owners = self._members[cluster].owners
                found[cluster] = tuple(
                    _bound(owners.get(f"{one.kind}/{one.namespace}/{one.name}")) for one in workloads
                )
        return found

    def promise(
        self, holder: str, since_ms: int, lists: Lists, now_ms: int
    ) -> dict[str, tuple[int | None, ...]]:
        """As `Promise` of the estimators: of each cluster the list takes the place of the one before."""
        if self._holder is not None and self._holder > (since_ms, holder) and now_ms < self._held_until_ms:
            return {}
        until_ms = now_ms + int(1000 * HOLDS_S)
        self._holder, self._held_until_ms = (since_ms, holder), until_ms
        heard = {name: of for name, of in lists.items() if self._free(name) is not None}
        self._promised.update((name, (until_ms, tuple(of))) for name, of in heard.items())
        return self.bound({name: [one.workload for one in of] for name, of in heard.items()})

    def _hold(self, cluster: str, nodes: list[Node], asking: str) -> None:
        """Take what is promised to others, as far as there is room for it."""
        member = self._members[cluster]
        until_ms, promised = self._promised.get(cluster, (0, ()))
        if member.timeline.now_ms >= until_ms:
            return
        for one in promised:
            key = f"{one.workload.kind}/{one.workload.namespace}/{one.workload.name}"
            if key == asking:
                continue
            pods = _pods_of_gang(one.gang)
            copies = max(1, one.gang.copies)
            lacking = sum(part.count for part in pods) * copies - _bound(member.owners.get(key))
            for part in pods:
                left = replace(part, count=max(0, min(part.count * copies, lacking)))
                _fill(left, nodes, _told(one.gang, part))

    def _room(self, cluster: str, gang: pb.Gang, assumed: Sequence[pb.Gang]) -> ClusterRoom:
        free = self._free(cluster)
        if free is None:
            return ClusterRoom(cluster, 0, unknown=f"estimator of {cluster}: unavailable")
        try:
            pods = _pods_of_gang(gang)
            for one in assumed:
                self._assume(cluster, free, one)
        except (ResourceError, msgspec.DecodeError) as error:
            return ClusterRoom(cluster, 0, unknown=str(error))
        wanted = gang.copies or MOST_COPIES
        witnesses = witnesses_of(pods, free, gang.copies or 1)
        fits = copies_that_fit(pods, free, MOST_COPIES if len(pods) == 1 else wanted)
        failing = self.failing.get(cluster)
        if failing is not None:
            fits = max(0, fits + failing.extra)
        if fits:
            return ClusterRoom(cluster, fits, witnesses=witnesses)
        empty = [node.renewed() for node in self._members[cluster].nodes.values()]
        return ClusterRoom(cluster, 0, why=_why(pods, free), most=copies_that_fit(pods, empty, wanted))

    def _assume(self, cluster: str, free: list[Node], gang: pb.Gang) -> None:
        """Pods of it that are bound already, known by its name, hold their nodes by themselves."""
        pods = _pods_of_gang(gang)
        bound = 0
        if gang.name and len(pods) == 1:
            member = self._members[cluster]
            bound = sum(
                pod.node is not None
                for owner in member.owners.values()
                if owner.template["metadata"]["name"] == gang.name
                and owner.template["metadata"].get("namespace", "") == gang.namespace
                for pod in owner.pods
            )
        copies = max(1, gang.copies)
        for one in pods:
            left = replace(one, count=max(0, one.count * copies - bound))
            _fill(left, free, _told(gang, one))

    # As karmada-scheduler asks: see karmada.estimation.Accurate.

    def replicas(self, cluster: str, requirements: Obj, asking: str = "") -> int | None:
        """How many more pods of these replicaRequirements fit; None: no answer in time."""
        return self._answer(cluster, [_pods_of_requirements(requirements, 1)], asking)

    def sets(self, cluster: str, components: Iterable[Obj], asking: str = "") -> int | None:
        """How many whole sets of these components fit; None: no answer in time."""
        pods = [
            _pods_of_requirements(one.get("replicaRequirements") or {}, one.get("replicas") or 0)
            for one in components
        ]
        return self._answer(cluster, pods, asking)

    def _answer(self, cluster: str, pods: Sequence[Pods], asking: str) -> int | None:
        failing = self.failing.get(cluster)
        if failing is not None and (failing.is_gone or failing.delay_ms >= 3_000):
            return None
        free = self._free(cluster)
        if free is None:
            return 0 if any("/" in name for one in pods for name, _ in one.request) else SKIP
        self._hold(cluster, free, asking)
        fits = copies_that_fit(pods, free, MOST_COPIES)
        return fits if failing is None else max(0, fits + failing.extra)

    def _free(self, cluster: str) -> list[Node] | None:
        """Copies of the nodes as the estimator believes them to be; None where it cannot tell."""
        member, failing = self._members.get(cluster), self.failing.get(cluster)
        if member is None or (failing is not None and failing.is_gone):
            return None
        if not member.is_reachable and (failing is None or failing.frozen is None):
            return None
        nodes = []
        for node in member.nodes.values():
            copy = node.copied()
            if failing is not None and failing.frozen is not None:
                copy.free = dict(failing.frozen.get(node.name, node.allocatable))
            nodes.append(copy)
        return nodes


def _bound(owner: Owner | None) -> int:
    if owner is None:
        return 0
    return sum(pod.node is not None for pod in owner.pods)


def copies_that_fit(pods: Sequence[Pods], nodes: list[Node], most: int) -> int:
    """How many whole copies of the gang the nodes take, at most ``most``. The nodes are filled with them."""
    wanted = [one for one in pods if one.count > 0]
    if not wanted:
        return most
    if len(wanted) == 1:
        room = sum(node.fits(wanted[0].request) for node in nodes if node.takes(wanted[0].spec))
        return min(most, room // wanted[0].count)
    copies = 0
    while copies < most and _pack(wanted, nodes) is not None:
        copies += 1
    return copies


def _pack(pods: Sequence[Pods], nodes: list[Node]) -> list[tuple[Pods, Node]] | None:
    """One copy: largest pods first, each on the fullest node that takes it; steps back where that fails.

    Which pod went where, None where they do not fit.
    """
    flat = [one for one in sorted(pods, key=_size, reverse=True) for _ in range(one.count)]
    steps = SEARCHED
    went: list[tuple[Pods, Node]] = []

    def search(number: int) -> bool:
        nonlocal steps
        if number == len(flat):
            return True
        pod = flat[number]
        tried: set[tuple[tuple[str, int], ...]] = set()
        fitting = [node for node in nodes if node.fits(pod.request) > 0 and node.takes(pod.spec)]
        for node in sorted(fitting, key=lambda node: [node.free.get(name, 0) for name, _ in pod.request]):
            state = tuple(sorted(node.free.items()))
            if state in tried:
                continue
            tried.add(state)
            node.hold(pod.request)
            went.append((pod, node))
            if search(number + 1):
                return True
            went.pop()
            node.release(pod.request)
            steps -= 1
            if steps <= 0:
                return False
        return False

    return went if search(0) else None


def witnesses_of(pods: Sequence[Pods], nodes: Sequence[Node], copies: int) -> tuple[Witness, ...]:
    """Where pods of one copy would go; or so many of a single kind, and as many again beside them. Nowhere
    where a scheduler that spreads does no harm: of one kind, where all nodes that take it have as much free.
    Pods of one kind become whole all the same, so theirs only pack.
    """
    mirrored = [node.copied() for node in nodes]
    if len(pods) > 1:
        went = _pack([one for one in pods if one.count > 0], mirrored)
        return (_witness(went),) if went else ()
    request = pods[0].request
    taking = [node for node in mirrored if node.fits(request) and node.takes(pods[0].spec)]
    if len({tuple(node.free.get(name, 0) for name, _ in request) for node in taking}) == 1:
        return (LEFT_ALONE,)
    found: list[Witness] = []
    together = replace(pods[0], count=pods[0].count * copies)
    while len(found) < MOST_WITNESSES:
        filled = _fill(together, mirrored)
        if not filled or (found and len(filled) < together.count):
            break
        found.append(replace(_witness(filled), only_packs=True))
    return tuple(found)


def _witness(went: Sequence[tuple[Pods, Node]]) -> Witness:
    told: dict[str, dict[str, int]] = {}
    for pod, node in went:
        where = told.setdefault(pod.name, {})
        where[node.name] = where.get(node.name, 0) + 1
    return Witness(tuple((name, tuple(where.items())) for name, where in told.items()), ranks=True)


def _told(gang: pb.Gang, pods: Pods) -> Mapping[str, int]:
    """By node, how many of the pods are said to go there."""
    return {one.node: one.pods for one in gang.where if one.pod_set == pods.name}


def _fill(
    pods: Pods, nodes: list[Node], told: Mapping[str, int] = MappingProxyType({})
) -> list[tuple[Pods, Node]]:
    """Put as many of the pods as fit where they are ``told``, then on the fullest nodes; which went where."""
    left = pods.count
    went = []
    for node in nodes:
        for _ in range(min(left, told.get(node.name, 0))):
            if node.fits(pods.request) > 0 and node.takes(pods.spec):
                node.hold(pods.request)
                went.append((pods, node))
                left -= 1
    for node in sorted(nodes, key=lambda node: [node.free.get(name, 0) for name, _ in pods.request]):
        while left and node.fits(pods.request) > 0 and node.takes(pods.spec):
            node.hold(pods.request)
            went.append((pods, node))
            left -= 1
    return went


def _size(pods: Pods) -> int:
    return max((amount for name, amount in pods.request if "/" in name), default=0)


def _why(pods: Sequence[Pods], nodes: list[Node]) -> str:
    for one in pods:
        room = sum(node.fits(one.request) for node in nodes if node.takes(one.spec))
        if room < one.count:
            return f"needs {one.count} pods a set, {room} fit at all"
    return "all its pods together fit nowhere"


def _pods_of_gang(gang: pb.Gang) -> list[Pods]:
    if gang.workload_json:
        return list(_pods_of_workload(gang.workload_json))
    return [
        Pods(one.count, *_pods_of_template(one.template_json or b"{}"), one.name) for one in gang.pod_sets
    ]


@lru_cache(maxsize=10_000)
def _pods_of_workload(text: bytes) -> tuple[Pods, ...]:
    workload: Obj = msgspec.json.decode(text)
    return tuple(
        Pods(one.count, one.request, one.template.get("spec") or {}, one.name) for one in pod_sets(workload)
    )


@lru_cache(maxsize=10_000)
def _pods_of_template(text: bytes) -> tuple[Request, Obj]:
    template: Obj = msgspec.json.decode(text)
    return request_of(template), template.get("spec") or {}


def _pods_of_requirements(requirements: Obj, count: int) -> Pods:
    claim: Obj = requirements.get("nodeClaim") or {}
    template = pod_template(requirements.get("resourceRequest") or {}, **claim)
    return Pods(count, request_of(template), template["spec"])
