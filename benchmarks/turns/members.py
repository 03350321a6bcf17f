"""The members of a full fleet: how many GPUs each has free, what runs there, and what their estimators say.

They know nothing of nodes: what fits is what there are GPUs for.
"""

from collections.abc import Mapping
from dataclasses import replace

from benchmarks.turns.fleet import CLUSTERS, EPOCH_MS
from fairway.workloads.workload_name import WorkloadName
from queue_dispatcher.cycle.earliest import Earliest
from queue_dispatcher.cycle.snapshot import Verdict
from queue_dispatcher.estimates.cluster_room import ClusterRoom
from queue_dispatcher.estimates.estimates import Answered, Probing
from queue_dispatcher.estimates.promise_requests import name_of
from queue_dispatcher.estimates.questions import Question, verdict_of
from queue_dispatcher.estimates.subjects import question_about


class Members:
    """All of them; what is there at the beginning just fills them."""

    def __init__(self) -> None:
        self._places: dict[str, Mapping[str, int]] = {}
        self._free = dict.fromkeys(CLUSTERS, 0)

    def hold(self, uid: str, pods: Mapping[str, int]) -> None:
        """So many of its pods have been in these clusters from the beginning."""
        self._places[uid] = pods

    def place(self, uid: str, pods: Mapping[str, int]) -> bool:
        """So many of its pods are in these clusters from now on; whether there are GPUs for all of them."""
        for cluster, before in self._places.pop(uid, {}).items():
            self._free[cluster] += before
        for cluster, more in pods.items():
            self._free[cluster] -= more
        if pods:
            self._places[uid] = pods
        return min(self._free.values()) >= 0

    def answered(self, probing: Probing, source: bytes, releases: int) -> Answered:
        """What the estimators say to that about a workload, of which ``source`` is the object; ``releases``:
        as of `Estimates.releases`.
        """
        (subject,) = probing.subjects
        question = question_about(subject, source)
        assert question is not None
        wanted = question.needed if question.adds_up else question.needed * subject.binding.demand.replicas
        rooms = tuple(self._room(question, cluster, wanted, probing) for cluster in question.clusters)
        verdict, unknown = verdict_of(question, rooms)
        verdicts: tuple[Verdict, ...] = () if verdict is None or probing.endings is not None else (verdict,)
        return Answered(probing, (question,), verdicts, unknown, "", 0, releases, rooms)

    def _room(self, question: Question, cluster: str, wanted: int, probing: Probing) -> ClusterRoom:
        free = self._free[cluster]
        fits = free if question.adds_up else question.needed * int(free >= wanted)
        endings = (probing.endings or {}).get(cluster, ())
        if probing.endings is None or free >= wanted:
            return ClusterRoom(cluster, fits, why="no GPU is free" if free < wanted else "")
        lacking, last_ms = wanted - free, EPOCH_MS
        # Of each that has to go, how many of its pods, 0 for all.
        gives: dict[WorkloadName, int] = {}
        for one in sorted(endings, key=lambda ending: ending.at_ms):
            if lacking <= 0:
                break
            name = name_of(one.workload)
            pods = self._places.get(one.workload.name, {}).get(cluster, 0) - gives.get(name, 0)
            if pods > 0:
                gives[name] = min(one.surplus, lacking)
                lacking -= gives[name] or pods
                last_ms = one.at_ms
        if lacking > 0:
            return ClusterRoom(cluster, fits, why="no GPU is free")
        found = Earliest(cluster, last_ms, wanted)
        if probing.of_choice:
            found = replace(found, workloads=tuple(gives), gives=tuple(gives.values()))
        return ClusterRoom(cluster, fits, why="no GPU is free", earliest=found)
