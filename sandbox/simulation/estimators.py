"""The estimators of the members, as they answer the dispatcher and karmada-scheduler, and how they go wrong.

What they say is worked out from the nodes as they are, by means of their own: pods of one shape are counted,
gangs are packed big pods first, and once more with a little search where that fails; when there would be room
is found by trying one end after the other, and so is who has to end. Faults make an answer late, old, too
high, or none.
"""

import random
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache, partial

import msgspec

from fairway.capacity.v1 import capacity_pb2 as pb
from fairway.resources import ResourceError
from queue_dispatcher.bindings.binding import WorkloadReference
from queue_dispatcher.cache.leaving import Departure
from queue_dispatcher.estimates.cluster_room import ClusterRoom
from queue_dispatcher.estimates.estimates import Departures
from queue_dispatcher.estimates.promise_requests import name_of
from queue_dispatcher.estimates.promised import HOLDS_S, Lists, Promised
from sandbox.simulation.coming_room import Choice, RunningPod, earliest_room, victims_room
from sandbox.simulation.member import Member
from sandbox.simulation.nodes import Node
from sandbox.simulation.objects import Obj
from sandbox.simulation.packing import (
    Pods,
    copies_that_fit,
    fill,
    hold_free,
    told_nodes,
    why_none,
    witnesses_of,
)
from sandbox.simulation.pods import Owner, Phase, Pod
from sandbox.simulation.templates import Request, pod_sets, pod_template, request_of

MOST_COPIES = 1_000
SKIP = -1


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
        endings: Departures | None = None,
        of_choice: bool = False,
    ) -> tuple[ClusterRoom, ...]:
        """How many copies of ``gang`` fit each cluster, beside what is ``assumed`` to be on its way there.

        ``endings``: and when, if what runs there ends so; ``of_choice``: and which of these have to end.
        """
        self.asked += 1
        rooms = (
            self._room(
                cluster,
                gang,
                assumed.get(cluster, ()),
                None if endings is None else endings.get(cluster, ()),
                of_choice,
            )
            for cluster in clusters
        )
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
                found[cluster] = tuple(_bound(owners.get(_key(one))) for one in workloads)
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
        for one in sorted(promised, key=lambda one: one.gang.waits):
            key = _key(one.workload)
            if key == asking:
                continue
            pods = _pods_of_gang(one.gang)
            copies = max(1, one.gang.copies)
            lacking = sum(part.count for part in pods) * copies - _bound(member.owners.get(key))
            for part in pods:
                left = replace(part, count=max(0, min(part.count * copies, lacking)))
                (hold_free if one.gang.waits else fill)(left, nodes, told_nodes(one.gang, part))

    def _room(
        self,
        cluster: str,
        gang: pb.Gang,
        assumed: Sequence[pb.Gang],
        endings: Sequence[Departure] | None,
        of_choice: bool,
    ) -> ClusterRoom:
        free = self._free(cluster)
        if free is None:
            return ClusterRoom(cluster, 0, unknown=f"estimator of {cluster}: unavailable")
        try:
            pods = _pods_of_gang(gang)
            for one in assumed:
                if not one.waits:
                    self._assume(cluster, free, one)
            waiting = [one for one in assumed if one.waits]
            now = [node.copied() for node in free]
            self._hold_waiting(cluster, free, waiting)
        except (ResourceError, msgspec.DecodeError) as error:
            return ClusterRoom(cluster, 0, unknown=str(error))
        wanted = gang.copies or MOST_COPIES
        is_held = any(node.free != before.free for node, before in zip(free, now, strict=True))
        witnesses = witnesses_of(pods, free, gang.copies or 1, is_held=is_held)
        fits = copies_that_fit(pods, free, MOST_COPIES if len(pods) == 1 else wanted)
        failing = self.failing.get(cluster)
        if failing is not None:
            fits = max(0, fits + failing.extra)
        earliest = None
        if endings is not None and fits < (gang.copies or 1):
            hold = partial(self._hold_waiting, cluster, gangs=waiting)
            asked = cluster, pods, gang.copies or 1, now
            if of_choice:
                leaving = self._running(cluster, (), is_leaving=True)
                earliest = victims_room(*asked, leaving, self._choices(cluster, endings), hold)
            else:
                earliest = earliest_room(*asked, self._running(cluster, endings), hold)
        if fits >= (gang.copies or 1):
            return ClusterRoom(cluster, fits, witnesses=witnesses)
        empty = [node.renewed() for node in self._members[cluster].nodes.values()]
        most = max(fits, copies_that_fit(pods, empty, wanted))
        why = "" if fits else why_none(pods, free)
        return ClusterRoom(cluster, fits, why=why, most=most, witnesses=witnesses, earliest=earliest)

    def _running(
        self, cluster: str, endings: Sequence[Departure], *, is_leaving: bool = False
    ) -> list[RunningPod]:
        """Pods with nodes, and until when they have them: those on their way out until their grace is over.

        Only these if ``is_leaving``.
        """
        ends = {_key(one.workload): one.at_ms for one in endings}
        return [
            RunningPod(
                pod.node.name,
                pod.request,
                pod.timer.at_ms if pod.phase is Phase.TERMINATING and pod.timer else ends.get(pod.owner.key),
            )
            for pod in self._members[cluster].pods()
            if pod.node is not None and (pod.phase is Phase.TERMINATING or not is_leaving)
        ]

    def _choices(self, cluster: str, endings: Sequence[Departure]) -> list[Choice]:
        """The workloads that may be ended, each with its pods that have nodes and are not leaving anyway; and
        those that may give pods up, with each of these.
        """
        owners, found = self._members[cluster].owners, list[Choice]()
        for one in endings:
            owner, name = owners.get(_key(one.workload)), name_of(one.workload)
            live = owner.by_removal() if owner is not None else []
            if not one.surplus:
                found.append(Choice(name, one.at_ms, _running_of(live)))
            # What is not there of as many as there are to be goes first; what is beyond it, with the first.
            missing = one.kept - len(live)
            for step in range(max(0, missing) + 1, one.surplus + 1):
                before = 0 if step == 1 else step - missing - 1
                going = _running_of(live[before : step - missing])
                found.append(Choice(name, one.at_ms, going, step))
        return found

    def _hold_waiting(self, cluster: str, nodes: list[Node], gangs: Sequence[pb.Gang]) -> None:
        """What waits for room holds as much of its nodes as is free there."""
        for gang in gangs:
            self._assume(cluster, nodes, gang)

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
            (hold_free if gang.waits else fill)(left, free, told_nodes(gang, one))

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


def _key(workload: WorkloadReference) -> str:
    return f"{workload.kind}/{workload.namespace}/{workload.name}"


def _running_of(pods: Iterable[Pod]) -> tuple[RunningPod, ...]:
    return tuple(RunningPod(pod.node.name, pod.request, None) for pod in pods if pod.node is not None)


def _bound(owner: Owner | None) -> int:
    if owner is None:
        return 0
    return sum(pod.node is not None for pod in owner.pods)


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
