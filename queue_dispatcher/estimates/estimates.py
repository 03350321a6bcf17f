"""What the estimators have said, what they are being asked, and what is on its way to the clusters. Pure.

What we have released and the estimators cannot see yet is told them as on its way: where it goes, or where
Karmada chooses to every cluster that it may go to, but no longer than that takes; and once it is placed until
its pods have nodes there, as the estimators count them. Where nobody counts, that is until pods are reported
there, or for a few times as long as that takes others. What Karmada has put aside,
or does not look at, is not on its way anywhere.

An estimator that does not answer is no reason to release, nor to wait for ever. While others say there is
room, that counts. If none does, the workload waits, and after ``wait_s`` it goes without: Karmada decides
then, as it does where there are no estimators.
"""

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from types import MappingProxyType

from fairway.capacity.v1 import capacity_pb2 as pb
from queue_dispatcher.bindings.binding import Binding
from queue_dispatcher.cycle.displacement import Pods
from queue_dispatcher.cycle.items import is_everywhere, workload_of
from queue_dispatcher.cycle.keeping import Keeping
from queue_dispatcher.cycle.snapshot import Verdict
from queue_dispatcher.estimates.answers import Answers
from queue_dispatcher.estimates.cluster_room import ClusterRoom
from queue_dispatcher.estimates.questions import Question, pods_of
from queue_dispatcher.estimates.verdicts import Verdicts
from queue_dispatcher.workloads.demand import Placed
from queue_dispatcher.workloads.pod_template import PodTemplateFacts

SETTLES_MS = 15_000
"""How long the pods of a placed workload may take to be reported, before that has been seen of any."""
LEAST_SETTLES_MS, MOST_SETTLES_MS = 5_000, 60_000
"""Bounds of the same, after it has been."""
MAX_QUESTIONS = 4_096
_NEVER = 1 << 62
Where = Mapping[str, tuple[tuple[str, str, int], ...]]
"""By cluster: pod set, node, and how many pods."""
NOWHERE: Where = MappingProxyType({})


@dataclass(frozen=True, slots=True)
class Subject:
    """One binding that is asked about: where it may go, and on how many clusters at once.

    ``is_growth``: part of it runs already, and the rest is asked about. ``preferred``: of a member of a
    group, where it would go first. ``templates``: those of its pods, as far as they can be told anything.
    ``keeps``: on which nodes they will be kept.
    """

    binding: Binding
    permitted: frozenset[str]
    copies: int
    is_growth: bool = False
    preferred: Sequence[frozenset[str]] = ()
    templates: tuple[PodTemplateFacts, ...] = ()
    keeps: tuple[Keeping, ...] = ()

    @property
    def is_guided(self) -> bool:
        """Whether its pods can be told where to go in a cluster: what runs may not change its templates."""
        return bool(self.templates) and not self.binding.placed


@dataclass(frozen=True, slots=True)
class Probing:
    """What the estimators are to be asked: of a group, about each member beside those before."""

    probe: str
    subjects: tuple[Subject, ...]

    @property
    def clusters(self) -> frozenset[str]:
        """All clusters that any of it may go to."""
        return frozenset().union(*(subject.permitted for subject in self.subjects))

    @property
    def pods(self) -> Pods:
        """All pods of it, those of growth that run already included."""
        return tuple(pods for subject in self.subjects for pods in pods_of(subject.binding, subject.copies))


@dataclass(frozen=True, slots=True)
class Answered:
    """What came of it. ``questions``: as they were asked; None where they could not be made.

    ``verdicts``: of each question, up to the first that was refused. ``unknown``: why nobody can tell, empty
    where the verdicts do; ``ends``: what would end that. ``releases``: how many the estimators knew of, by
    `Estimates.releases`, when they were asked. ``rooms``: of a single question, what those clusters
    said that were asked; to those ``busy`` something was on its way.
    """

    probing: Probing
    questions: tuple[Question, ...] | None = None
    verdicts: tuple[Verdict, ...] = ()
    unknown: tuple[str, ...] = ()
    ends: str = ""
    took_ms: int = 0
    releases: int | None = None
    rooms: tuple[ClusterRoom, ...] = ()
    busy: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True)
class OnItsWay:
    """One released workload. ``gangs``: by cluster, what of it may come there; ``name``: empty for growth."""

    probe: str
    name: str
    question: Question
    gangs: Mapping[str, pb.Gang]
    until_ms: int
    placed_ms: int | None = None

    @property
    def is_growth(self) -> bool:
        """Whether part of it runs already, and the rest is on its way."""
        return not self.name


class Estimates:
    """The estimates of one dispatcher; times are monotonic."""

    def __init__(self, wait_s: float) -> None:
        self.verdicts = Verdicts()
        self.answers = Answers()
        self._wait_ms = int(wait_s * 1000)
        # The questions that are being asked, and where room has appeared since.
        self._open: dict[str, list[Mapping[str, Mapping[str, int]]]] = {}
        # By workload, since when nobody knows an answer about it, and which questions that are.
        self._unanswered: dict[str, tuple[int, frozenset[str]]] = {}
        self._questions: dict[str, tuple[Question, ...]] = {}
        self._on_its_way: dict[str, OnItsWay] = {}
        self._reported_ms = 0.0

    def ask(self, probe: str, subjects: Iterable[Subject]) -> Probing | None:
        """What to ask to learn whether a workload of that question fits; None if that is being asked."""
        if probe in self._open:
            return None
        self._open[probe] = []
        return Probing(probe, tuple(subjects))

    def questions(self, probe: str) -> tuple[Question, ...] | None:
        """The questions of an earlier asking; None where they have to be made."""
        return self._questions.get(probe)

    def answered(self, event: Answered, elapsed_ms: int) -> str:
        """Take in what was said; ``fits``, ``waits``, ``unknown``, or ``without`` if it goes without."""
        probe = event.probing.probe
        answer = self._take_in(event, elapsed_ms)
        for room in self._open.pop(probe, ()):
            self.answers.room_given(room, only=probe)
            self.verdicts.room_given(room, only=probe)
        return answer

    def _take_in(self, event: Answered, elapsed_ms: int) -> str:
        probe = event.probing.probe
        if event.questions is not None:
            if len(self._questions) >= MAX_QUESTIONS:
                self._questions.clear()
            self._questions[probe] = event.questions
        if event.rooms:
            self.answers.put(probe, event.probing.pods, event.rooms, event.busy, elapsed_ms)
        if event.unknown:
            return self._nobody_knows(event, elapsed_ms)
        verdict = replace(_together(event.verdicts), pods=event.probing.pods)
        self._known(probe, fits=verdict.fits > 0)
        since = self.verdicts.releases if event.releases is None else event.releases
        self.verdicts.put(probe, verdict, event.probing.clusters, elapsed_ms, since)
        return "fits" if verdict.fits > 0 else "waits"

    @property
    def releases(self) -> int:
        """How many workloads have been released; the next question tells the estimators of all of them."""
        return self.verdicts.releases

    def passed(self, subjects: Iterable[Subject]) -> None:
        """Workloads that need no estimate are released; their pods take room all the same."""
        for subject in subjects:
            self.verdicts.room_taken(subject.permitted, pods_of(subject.binding, subject.copies))

    def room_given(self, room: Mapping[str, Mapping[str, int]]) -> None:
        """By cluster, what more may fit there, as of `grown`."""
        for since in self._open.values():
            since.append(room)
        self.answers.room_given(room)
        self.verdicts.room_given(room)

    def abandon(self) -> None:
        """What is being asked has no answer any more."""
        self._open.clear()

    def released(
        self,
        probe: str,
        members: Mapping[str, str],
        until_ms: int,
        places: Mapping[str, Sequence[Placed]],
        taken: Mapping[str, int],
        where: Mapping[str, Where] = MappingProxyType({}),
    ) -> None:
        """A workload that was asked about is released; its pods are on their way, until then at the latest.

        ``members``: names of the workloads by the uid of their bindings. By these the estimators know which
        of the pods they see already; empty for growth, of which nobody can tell the pods from those before.
        ``places``: by uid, where to, and ``taken``: as of `Verdicts.admitted`; empty where Karmada chooses.
        ``where``: by uid, on which nodes its pods are going to be, as far as they are told.
        What says where is on its way there until it is placed or called off, however long the write takes.
        """
        nodes: dict[str, set[str]] = {}
        for cluster, told in (pair for of in where.values() for pair in of.items()):
            nodes.setdefault(cluster, set()).update(node for _, node, _ in told)
        self.verdicts.admitted(probe, taken if places else None, nodes)
        for (uid, name), question in zip(members.items(), self._questions.get(probe, ()), strict=False):
            anywhere = [Placed(cluster) for cluster in question.clusters]
            gangs = _gangs(question, name, places.get(uid, anywhere), where.get(uid, NOWHERE))
            self._on_its_way[uid] = OnItsWay(probe, name, question, gangs, _NEVER if places else until_ms)

    def placed(self, uid: str, places: Sequence[Placed] | None, elapsed_ms: int) -> None:
        """It is placed, with None for ``places`` as it was released; soon its pods show."""
        known = self._on_its_way.get(uid)
        if known is not None:
            until_ms = elapsed_ms + self.settles_ms
            gangs = known.gangs if places is None else _gangs(known.question, known.name, places)
            self._on_its_way[uid] = replace(known, gangs=gangs, until_ms=until_ms, placed_ms=elapsed_ms)

    @property
    def settles_ms(self) -> int:
        """How long the pods of what is placed may take to be reported, where nobody counts them."""
        if not self._reported_ms:
            return SETTLES_MS
        return min(MOST_SETTLES_MS, max(LEAST_SETTLES_MS, 4 * int(self._reported_ms)))

    def settling(self) -> list[str]:
        """The uids of what is placed, and whose pods are not known to have nodes."""
        return [uid for uid, way in self._on_its_way.items() if way.placed_ms is not None]

    def counted_pods(self, uid: str, lacking: int) -> None:
        """Of what is placed so many pods lack nodes, as its clusters count: on its way until none does."""
        if not lacking:
            self.called_off(uid)
            return
        way = self._on_its_way[uid]
        gangs = way.gangs
        if way.is_growth:
            # Nobody can tell its pods from those before; but no more of it can be on its way than lack nodes.
            gangs = {cluster: _at_most(gang, lacking) for cluster, gang in gangs.items()}
        self._on_its_way[uid] = replace(way, gangs=gangs, until_ms=_NEVER)

    def called_off(self, uid: str) -> None:
        """It is placed no more, or has arrived."""
        self._on_its_way.pop(uid, None)

    def is_on_its_way(self, uid: str) -> bool:
        """Whether it has been released and may not have arrived."""
        return uid in self._on_its_way

    def on_their_way(self, elapsed_ms: int) -> Iterator[tuple[str, OnItsWay]]:
        """By uid, what the estimators do not see yet."""
        return ((uid, way) for uid, way in self._on_its_way.items() if way.until_ms > elapsed_ms)

    def adopt(
        self, uid: str, name: str, question: Question, places: Sequence[Placed], elapsed_ms: int
    ) -> None:
        """It was released and placed by another leader, and lacks nodes."""
        if uid not in self._on_its_way:
            gangs = _gangs(question, name, places)
            until_ms = elapsed_ms + self.settles_ms
            self._on_its_way[uid] = OnItsWay("", name, question, gangs, until_ms, elapsed_ms)

    def reported(self, uid: str, unseen: frozenset[str], elapsed_ms: int) -> None:
        """Of what is placed, all clusters but the ``unseen`` report pods.

        For clusters whose estimators do not count pods; of growth it says nothing, see `released`.
        """
        way = self._on_its_way[uid]
        if way.placed_ms is None or way.is_growth:
            return
        left = {cluster: gang for cluster, gang in way.gangs.items() if cluster in unseen}
        if left:
            self._on_its_way[uid] = replace(way, gangs=left)
            return
        took_ms = max(1, elapsed_ms - way.placed_ms)
        self._reported_ms += (took_ms - self._reported_ms) / 8 if self._reported_ms else took_ms
        del self._on_its_way[uid]

    def kicked(self, uid: str, until_ms: int) -> None:
        """Karmada is given it once more; it is on its way again, until then at the latest."""
        known = self._on_its_way.get(uid)
        if known is not None:
            self._on_its_way[uid] = replace(known, until_ms=until_ms)

    def retain(self, in_flight: Collection[str], put_aside: Collection[str], elapsed_ms: int) -> None:
        """Of what has been released these are still to be placed, and those are not being placed for now.

        On whose word that was released is not to be trusted any more.
        """
        for uid, way in list(self._on_its_way.items()):
            if way.placed_ms is not None:
                is_kept = way.until_ms > elapsed_ms
            else:
                is_kept = uid in in_flight or uid in put_aside
                if uid in put_aside and way.until_ms:
                    self._on_its_way[uid] = replace(way, until_ms=0)
                    self.verdicts.drop(way.probe)
            if not is_kept:
                del self._on_its_way[uid]

    def assumed(self, elapsed_ms: int) -> dict[str, list[pb.Gang]]:
        """By cluster, what the estimators do not see yet."""
        assumed: dict[str, list[pb.Gang]] = {}
        for _, way in self.on_their_way(elapsed_ms):
            for cluster, gang in way.gangs.items():
                assumed.setdefault(cluster, []).append(gang)
        return assumed

    def counted(self, clusters: Collection[str], elapsed_ms: int) -> tuple[str, ...]:
        """What is to be told with a refusal by these clusters: how much was counted that may go elsewhere."""
        count = sum(
            way.placed_ms is None and way.until_ms > elapsed_ms and not way.gangs.keys().isdisjoint(clusters)
            for way in self._on_its_way.values()
        )
        if not count:
            return ()
        return (f"{count} released before and not placed yet are counted as if they went there",)

    def _known(self, probe: str, *, fits: bool) -> None:
        """The question has an answer; what may go elsewhere waits on while nobody knows about that."""
        workload = workload_of(probe)
        since_ms, probes = self._unanswered.pop(workload, (0, frozenset[str]()))
        if not fits and (left := probes - {probe}):
            self._unanswered[workload] = (since_ms, left)

    def _nobody_knows(self, event: Answered, elapsed_ms: int) -> str:
        probe, clusters = event.probing.probe, event.probing.clusters
        workload = workload_of(probe)
        since_ms, probes = self._unanswered.get(workload, (elapsed_ms, frozenset[str]()))
        self._unanswered[workload] = (since_ms, probes | {probe})
        left_ms = self._wait_ms - (elapsed_ms - since_ms)
        if left_ms <= 0 and is_everywhere(probe):
            verdict = Verdict(1, clusters, pods=event.probing.pods)
            self.verdicts.put(probe, verdict, clusters, elapsed_ms)
            return "without"
        why = "; ".join(event.unknown[:2])
        # Only to anywhere it goes without: here that is as good as a refusal, and holds as one.
        told = f"whether it fits is not known ({why}); goes without in {max(0, left_ms) // 1000} s"
        verdict = Verdict(0, reasons=(told,), unanswered=event.ends, pods=event.probing.pods)
        self.verdicts.put(probe, verdict, clusters, elapsed_ms)
        return "unknown"


def _together(verdicts: tuple[Verdict, ...]) -> Verdict:
    """What the answers about all members of a group mean for it; no question is no doubt."""
    if not verdicts:
        return Verdict(1)
    refusal = next((verdict for verdict in verdicts if verdict.fits <= 0), None)
    if refusal is not None:
        return refusal
    if len(verdicts) == 1:
        return verdicts[0]
    return Verdict(1, frozenset().union(*(verdict.clusters for verdict in verdicts)), members=verdicts)


def _gangs(
    question: Question, name: str, places: Iterable[Placed], where: Where = NOWHERE
) -> dict[str, pb.Gang]:
    """By cluster, what of a workload comes there: its share, if that is known and one of alike pods."""
    named: dict[int, pb.Gang] = {}
    gangs = {}
    for place in places:
        asked = question.gang_at(place.cluster)
        whole = named.get(id(asked))
        if whole is None:
            whole = named[id(asked)] = pb.Gang()
            whole.CopyFrom(asked)
            whole.name = name
        gangs[place.cluster] = whole
        if question.adds_up and place.replicas > 0:
            gangs[place.cluster] = _at_most(whole, place.replicas)
        if place.cluster in where:
            part = pb.Gang()
            part.CopyFrom(gangs[place.cluster])
            part.where.extend(
                pb.Assignment(pod_set=pod_set, node=node, pods=pods)
                for pod_set, node, pods in where[place.cluster]
            )
            gangs[place.cluster] = part
    return gangs


def _at_most(gang: pb.Gang, copies: int) -> pb.Gang:
    """The gang, or one of so many copies where it has more."""
    if gang.copies <= copies:
        return gang
    part = pb.Gang()
    part.CopyFrom(gang)
    part.copies = copies
    return part
