"""What the estimators have said, what they are being asked, and what is on its way to the clusters. Pure.

What we have released and the estimators cannot see yet is told them as on its way: where it goes, or where
Karmada chooses to every cluster that it may go to, but no longer than that takes; and once it is placed until
its pods have nodes there, as the estimators count them. Where nobody counts, that is until pods are reported
there, or for a few times as long as that takes others. What Karmada has put aside,
or does not look at, is not on its way anywhere.

Room that is reserved for what waits is told them beside that, but for questions about what may use it.

An estimator that does not answer is no reason to release, nor to wait for ever. While others say there is
room, that counts. If none does, the workload waits, and after ``wait_s`` it goes without: Karmada decides
then, as it does where there are no estimators.
"""

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import TypeVar

from fairway.capacity.v1 import capacity_pb2 as pb
from queue_dispatcher.bindings.binding import Binding
from queue_dispatcher.cache.leaving import Departure
from queue_dispatcher.cycle.displacement import Pods
from queue_dispatcher.cycle.earliest import Earliest
from queue_dispatcher.cycle.items import (
    asked_now,
    earliest_probe,
    is_everywhere,
    plain_probe,
    victims_probe,
    workload_of,
)
from queue_dispatcher.cycle.keeping import Keeping
from queue_dispatcher.cycle.snapshot import Verdict
from queue_dispatcher.estimates.answers import Answers
from queue_dispatcher.estimates.cluster_room import ClusterRoom
from queue_dispatcher.estimates.earliest import MAX_EARLIEST, EarliestAnswer, answer_of
from queue_dispatcher.estimates.held_rooms import HeldRoom, HeldRooms, held_room_of
from queue_dispatcher.estimates.on_its_way import NEVER, NOWHERE, OnItsWay, Where, at_most, gangs_of
from queue_dispatcher.estimates.questions import Question, pods_of
from queue_dispatcher.estimates.verdicts import Verdicts
from queue_dispatcher.estimates.victims import MAX_VICTIMS, VictimsAnswer, victims_of
from queue_dispatcher.workloads.demand import Placed
from queue_dispatcher.workloads.fleet import ANYTHING
from queue_dispatcher.workloads.pod_template import PodTemplateFacts

SETTLES_MS = 15_000
"""How long the pods of a placed workload may take to be reported, before that has been seen of any."""
LEAST_SETTLES_MS, MOST_SETTLES_MS = 5_000, 60_000
"""Bounds of the same, after it has been."""
MAX_QUESTIONS = 4_096


Departures = Mapping[str, Sequence[Departure]]
"""By cluster, of workloads that run there."""
_Answer = TypeVar("_Answer")


@dataclass(frozen=True, slots=True)
class Subject:
    """One binding that is asked about: where it may go, and on how many clusters at once.

    ``is_growth``: part of it runs already, and the rest is asked about. ``preferred``: of a member of a
    group, where it would go first. ``templates``: those of its pods, as far as they can be told anything.
    ``keeps``: on which nodes they will be kept. ``most``: of an elastic workload, whose ``binding`` is of as
    few pods as are needed, how many are asked about; ``in_one``: all of them in one cluster.
    """

    binding: Binding
    permitted: frozenset[str]
    copies: int
    is_growth: bool = False
    preferred: Sequence[frozenset[str]] = ()
    templates: tuple[PodTemplateFacts, ...] = ()
    keeps: tuple[Keeping, ...] = ()
    most: int = 0
    in_one: bool = False

    @property
    def is_guided(self) -> bool:
        """Whether its pods can be told where to go in a cluster: what runs may not change its templates, and
        what may become more or fewer is not packed.
        """
        return bool(self.templates) and not (self.binding.placed or self.most)


@dataclass(frozen=True, slots=True)
class Probing:
    """What the estimators are to be asked: of a group, about each member beside those before.

    ``through``: uids of reservations whose room it may use. ``endings``: asked is when it fits at the
    earliest, if these end so, at ``day_ms`` since the epoch, and ``probe`` is an `earliest_probe`.
    ``of_choice``: asked is which of these have to end, the earlier the rather, and it is a `victims_probe`.
    """

    probe: str
    subjects: tuple[Subject, ...]
    through: frozenset[str] = frozenset()
    endings: Departures | None = None
    day_ms: int = 0
    of_choice: bool = False

    @property
    def clusters(self) -> frozenset[str]:
        """All clusters that any of it may go to."""
        return frozenset().union(*(subject.permitted for subject in self.subjects))

    @property
    def uses(self) -> frozenset[str]:
        """Uids of the reservations that are not counted against it. Its own is one of them only if that is
        said, since the answer to the plain question is as good for others that are alike.
        """
        return self.through

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


class Estimates:
    """The estimates of one dispatcher; times are monotonic."""

    def __init__(self, wait_s: float) -> None:
        self.verdicts = Verdicts()
        self.answers = Answers()
        self.earliest: dict[str, EarliestAnswer] = {}
        """By question, as it asks about now: when it would fit, by what was said last."""
        self.victims: dict[str, VictimsAnswer] = {}
        """By question, as it asks about now: who has to end for it, by what was said last."""
        self._reserved = HeldRooms()
        self._wait_ms = int(wait_s * 1000)
        # The questions that are being asked, and where room has appeared since.
        self._open: dict[str, list[Mapping[str, Mapping[str, int]]]] = {}
        # By workload, since when nobody knows an answer about it, and which questions that are.
        self._unanswered: dict[str, tuple[int, frozenset[str]]] = {}
        self._questions: dict[str, tuple[Question, ...]] = {}
        self._on_its_way: dict[str, OnItsWay] = {}
        self._reported_ms = 0.0

    def ask(
        self, probe: str, subjects: Iterable[Subject], through: frozenset[str] = frozenset()
    ) -> Probing | None:
        """What to ask to learn whether a workload of that question fits; None if that is being asked.

        ``through``: the reservations that ``probe`` is through, see `probe_through`.
        """
        if probe in self._open:
            return None
        self._open[probe] = []
        return Probing(probe, tuple(subjects), through)

    def ask_earliest(
        self,
        probe: str,
        subjects: Iterable[Subject],
        endings: Departures,
        *,
        day_ms: int,
        through: frozenset[str] = frozenset(),
    ) -> Probing | None:
        """What to ask to learn when a workload of that question fits; None if that is being asked.

        ``endings``: by cluster, what runs there; of what is left out nobody knows when it ends. ``day_ms``:
        now, since the epoch. The answer is in ``earliest``, by ``probe``, which asks about now.
        """
        when = earliest_probe(probe)
        if when in self._open:
            return None
        self._open[when] = []
        return Probing(when, tuple(subjects), through, endings, day_ms)

    def forget_earliest(self, probe: str) -> None:
        """Nobody wants to know any more when it fits."""
        self.earliest.pop(probe, None)

    def ask_victims(
        self,
        probe: str,
        subjects: Iterable[Subject],
        endings: Departures,
        *,
        day_ms: int,
        through: frozenset[str] = frozenset(),
    ) -> Probing | None:
        """What to ask to learn who has to end for a workload of that question; None if that is being asked.

        ``endings``: by cluster, the workloads that can be ended there, the earlier the rather, and of equally
        early ones those that come first. ``day_ms``: now, since the epoch. The answer is in ``victims``, by
        ``probe``, which asks about now, until `forget_victims`; of too many the oldest are forgotten.
        """
        which = victims_probe(probe)
        if which in self._open:
            return None
        self._open[which] = []
        return Probing(which, tuple(subjects), through, endings, day_ms, of_choice=True)

    def is_asking_victims(self, probe: str) -> bool:
        """Whether that is being asked."""
        return victims_probe(probe) in self._open

    def forget_victims(self, probe: str) -> None:
        """Nobody wants to know any more who has to end for it."""
        self.victims.pop(probe, None)

    def foretell(self, probe: str, room: Earliest, *, elapsed_ms: int, day_ms: int) -> Earliest:
        """Those are being ended that have to be for it: as if the estimators had said that there is room now,
        until they are asked when there is.
        """
        told = replace(room, at_ms=day_ms, workloads=())
        self.earliest[probe] = EarliestAnswer(elapsed_ms, told)
        return told

    def questions(self, probe: str) -> tuple[Question, ...] | None:
        """The questions of an earlier asking; None where they have to be made."""
        return self._questions.get(plain_probe(probe))

    def answered(self, event: Answered, elapsed_ms: int) -> str:
        """Take in what was said; ``fits``, ``waits``, ``unknown``, or ``without`` if it goes without.

        Of what was asked when it fits: ``fits``, ``later`` or ``unknown``; the same of who has to end for it,
        and ``waits`` where no end would help.
        """
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
            self._questions[plain_probe(probe)] = event.questions
        if event.probing.of_choice:
            return self._told_who(event, elapsed_ms)
        if event.probing.endings is not None:
            return self._told_when(event, elapsed_ms)
        if event.rooms:
            self.answers.put(probe, event.probing.pods, event.rooms, event.busy, elapsed_ms)
        if event.unknown:
            return self._nobody_knows(event, elapsed_ms)
        verdict = replace(_together(event.verdicts), pods=event.probing.pods)
        self._known(probe, fits=verdict.fits > 0)
        since = self.verdicts.releases if event.releases is None else event.releases
        self.verdicts.put(probe, verdict, event.probing.clusters, elapsed_ms, since)
        return "fits" if verdict.fits > 0 else "waits"

    def _told_when(self, event: Answered, elapsed_ms: int) -> str:
        probing, asked_ms = event.probing, elapsed_ms - event.took_ms
        probe = asked_now(probing.probe)
        if event.unknown or not event.questions:
            answer = EarliestAnswer(asked_ms, unknown="; ".join(event.unknown[:2]))
        else:
            last, own = self.earliest.get(probe), self.reserved(probing.subjects[0].binding.uid)
            before = own or (last.best if last is not None else None)
            answer = answer_of(event.questions[0], event.rooms, before, probing.day_ms, asked_ms)
        _remember(self.earliest, probe, answer, MAX_EARLIEST)
        if answer.best is not None:
            return "later"
        return "unknown" if answer.unknown else "fits"

    def _told_who(self, event: Answered, elapsed_ms: int) -> str:
        if event.unknown or not event.questions:
            answer = VictimsAnswer(elapsed_ms, unknown="; ".join(event.unknown[:2]))
        else:
            answer = victims_of(event.questions[0], event.rooms, elapsed_ms)
        _remember(self.victims, asked_now(event.probing.probe), answer, MAX_VICTIMS)
        if answer.fits:
            return "fits"
        if answer.rooms:
            return "later"
        return "unknown" if answer.unknown else "waits"

    def reserve(self, uid: str, name: str, probe: str, earliest: Earliest) -> bool:
        """Hold room for what waits, as ``earliest`` says, until `unreserve`; in place of what it had.

        ``uid``: of its binding; ``name``: of the workload, empty for growth. Said again it changes nothing
        but when the room is thought to be free. False, and nothing is changed, where the question ``probe``
        is not known any more: to be asked again.
        """
        before, plain = self._reserved.get(uid), plain_probe(probe)
        if before is not None and before.waiting.probe == plain:
            question = before.waiting.question
        else:
            questions = self.questions(probe) or ()
            if len(questions) != 1:
                return False
            question = questions[0].with_copies(questions[0].needed) if questions[0].adds_up else questions[0]
        made = held_room_of(plain, name, question, earliest)
        self._reserved.put(uid, made)
        if before is not None and made.holds_as(before):
            return True
        if before is not None:
            self._let_go(before)
        # However much room is left, answers from before do not tell pods to keep off the nodes that are held;
        # of pods that are not known all of it is taken.
        self.verdicts.room_taken((earliest.cluster,), ())
        self._room_taken_in((earliest.cluster,))
        return True

    def _room_taken_in(self, clusters: Collection[str]) -> None:
        """Who has to go there was said with the room that is taken now."""
        for one in [one for one, answer in self.victims.items() if answer.is_of(clusters)]:
            self.forget_victims(one)

    def unreserve(self, uid: str) -> None:
        """Hold no room for it any more, if any is held."""
        before = self._reserved.drop(uid)
        if before is not None:
            self._let_go(before)

    def _let_go(self, reservation: HeldRoom) -> None:
        self.room_given({reservation.earliest.cluster: {ANYTHING: 1}})

    def reserved(self, uid: str) -> Earliest | None:
        """Where room is held for it; None where none is."""
        known = self._reserved.get(uid)
        return known.earliest if known is not None else None

    def reservations(self) -> Iterator[tuple[str, HeldRoom]]:
        """By uid, what room is held for, in the order in which that began."""
        return iter(self._reserved)

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
        """What is being asked has no answer any more; nor is any room held, as only a leader does."""
        self._open.clear()
        self._reserved.clear()
        self.earliest.clear()
        self.victims.clear()

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
        No room is held for them besides.
        """
        for uid in members:
            # It may use other room than was held.
            self.unreserve(uid)
        nodes: dict[str, set[str]] = {}
        for cluster, told in (pair for of in where.values() for pair in of.items()):
            nodes.setdefault(cluster, set()).update(node for _, node, _ in told)
        self.verdicts.admitted(probe, taken if places else None, nodes)
        self._room_taken_in({place.cluster for of in places.values() for place in of})
        for (uid, name), question in zip(members.items(), self.questions(probe) or (), strict=False):
            anywhere = [Placed(cluster) for cluster in question.clusters]
            gangs = gangs_of(question, name, places.get(uid, anywhere), where.get(uid, NOWHERE))
            self._on_its_way[uid] = OnItsWay(probe, name, question, gangs, NEVER if places else until_ms)

    def placed(self, uid: str, places: Sequence[Placed] | None, elapsed_ms: int) -> None:
        """It is placed, with None for ``places`` as it was released; soon its pods show."""
        known = self._on_its_way.get(uid)
        if known is not None:
            until_ms = elapsed_ms + self.settles_ms
            gangs = known.gangs if places is None else gangs_of(known.question, known.name, places)
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
            gangs = {cluster: at_most(gang, lacking) for cluster, gang in gangs.items()}
        self._on_its_way[uid] = replace(way, gangs=gangs, until_ms=NEVER)

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
            gangs = gangs_of(question, name, places)
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

    def assumed(self, elapsed_ms: int, without: Collection[str] = ()) -> dict[str, list[pb.Gang]]:
        """By cluster, what the estimators do not see yet, and behind that what room is held for there.

        But for the reservations ``without``, by uid; what is on its way counts against everybody.
        """
        assumed: dict[str, list[pb.Gang]] = {}
        for _, way in self.on_their_way(elapsed_ms):
            for cluster, gang in way.gangs.items():
                assumed.setdefault(cluster, []).append(gang)
        for cluster, gang in self._reserved.against(without):
            assumed.setdefault(cluster, []).append(gang)
        return assumed

    def counted(
        self, clusters: Collection[str], elapsed_ms: int, without: Collection[str] = ()
    ) -> tuple[str, ...]:
        """What is to be told with a refusal by these clusters: how much was counted that may go elsewhere,
        and for how many room is held, but for those ``without``.
        """
        count = sum(
            way.placed_ms is None and way.until_ms > elapsed_ms and not way.gangs.keys().isdisjoint(clusters)
            for way in self._on_its_way.values()
        )
        held = sum(cluster in clusters for cluster, _ in self._reserved.against(without))
        told = []
        if count:
            told.append(f"{count} released before and not placed yet are counted as if they went there")
        if held:
            told.append(f"room is reserved there for {held} that {'wait' if held > 1 else 'waits'} longer")
        return tuple(told)

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


def _remember(answers: dict[str, _Answer], probe: str, answer: _Answer, most: int) -> None:
    """Put it behind all others, and forget the oldest that are too many."""
    answers.pop(probe, None)
    while len(answers) >= most:
        del answers[next(iter(answers))]
    answers[probe] = answer


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
