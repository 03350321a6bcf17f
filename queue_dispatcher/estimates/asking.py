"""Asks the estimators what turns want to know, a few questions at a time, and tells what they said.

A question goes to a few clusters first, then to ever more, until enough of them have room. After each such
round it goes behind those that wait, so that a question to hundreds of clusters holds up nobody. When a
workload fits at the earliest, all clusters are asked, unless some have room for it now.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Final, Protocol

from fairway.capacity.v1 import capacity_pb2 as pb
from fairway.kube.errors import KubeError
from queue_dispatcher.bindings.binding import Binding
from queue_dispatcher.cycle.snapshot import Verdict
from queue_dispatcher.cycle.witness import Witness
from queue_dispatcher.estimates.answers import Plan
from queue_dispatcher.estimates.budget import Budget
from queue_dispatcher.estimates.cluster_room import ClusterRoom
from queue_dispatcher.estimates.earliest import cannot_be_told, fits_now
from queue_dispatcher.estimates.estimates import Answered, Departures, Estimates, Probing
from queue_dispatcher.estimates.questions import (
    Question,
    StatedBinding,
    verdict_of,
)
from queue_dispatcher.estimates.subjects import question_about

logger = logging.getLogger(__name__)

AT_ONCE: Final = 16
FIRST_CLUSTERS: Final = 16
MOST_CLUSTERS: Final = 64
"""Of one round."""
CALLS_PER_S: Final = 500
BURST: Final = 2_000


class Ask(Protocol):
    """Asks the estimators of some clusters."""

    async def __call__(
        self,
        clusters: tuple[str, ...],
        gang: pb.Gang,
        assumed: Mapping[str, list[pb.Gang]],
        want_placement: bool,
        endings: Departures | None = None,
        of_choice: bool = False,
        /,
    ) -> tuple[ClusterRoom, ...]:
        """A room for each cluster.

        ``gang``: what is asked about; ``assumed``: by cluster, what is on its way, and what room is held for;
        ``want_placement``: whether to say where pods would go. ``endings``: whether to say when it fits, and
        by cluster what of that which runs there ends until when; ``of_choice``: and which of these have to,
        as they can be ended, the earlier the rather.
        """


class Source(Protocol):
    """Where the objects are that questions are made of. Raises KubeError."""

    async def template(self, binding: Binding) -> bytes | StatedBinding:
        """The workload's own object where its kind is known, else the binding as it is stated."""


@dataclass(slots=True)
class _Asked:
    """A probing that is being asked.

    ``verdicts``: of the questions before the present one, of which ``plan`` says whom to ask yet, and what
    those have said that are not asked, ``heard`` what the others have, and ``next_round`` how many are asked
    next. ``busy``: where something is on its way that may go elsewhere.
    """

    probing: Probing
    started_ms: int
    releases: int = 0
    assumed: dict[str, list[pb.Gang]] = field(default_factory=dict)
    busy: frozenset[str] = frozenset()
    questions: tuple[Question, ...] | None = None
    verdicts: list[Verdict] = field(default_factory=list)
    plan: Plan | None = None
    heard: list[ClusterRoom] = field(default_factory=list)
    next_round: int = FIRST_CLUSTERS

    def go_on_with(self, plan: Plan) -> None:
        """Others are asked next, and more of them at once."""
        self.plan = plan
        self.next_round = min(MOST_CLUSTERS, 2 * self.next_round)


class Asking:
    """What one dispatcher asks. ``elapsed_ms`` is monotonic; ``tell`` hears each answer."""

    def __init__(
        self,
        estimates: Estimates,
        ask: Ask,
        source: Source,
        elapsed_ms: Callable[[], int],
        tell: Callable[[Answered], None],
        *,
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
    ) -> None:
        self._estimates = estimates
        self._ask = ask
        self._source = source
        self._elapsed_ms = elapsed_ms
        self._tell = tell
        self._sleep = sleep
        self._budget = Budget(CALLS_PER_S, BURST)
        self._waiting: asyncio.Queue[_Asked] = asyncio.Queue()

    def submit(self, probings: Iterable[Probing]) -> None:
        """Ask these, after those before."""
        for probing in probings:
            self._waiting.put_nowait(_Asked(probing, self._elapsed_ms()))

    async def run(self) -> None:
        """Ask until cancelled; what was being asked then is forgotten."""
        try:
            async with asyncio.TaskGroup() as group:
                for number in range(AT_ONCE):
                    group.create_task(self._work(), name=f"questions/{number}")
        finally:
            self._waiting = asyncio.Queue()

    async def _work(self) -> None:
        while True:
            asked = await self._waiting.get()
            try:
                answered = await self._go_on(asked)
            except Exception:
                logger.exception("question %s failed", asked.probing.probe)
                told = ("a defect of the dispatcher; see its log",)
                answered = Answered(asked.probing, unknown=told, ends="that defect is mended")
            if answered is None:
                self._waiting.put_nowait(asked)
            else:
                self._tell(answered)

    async def _go_on(self, asked: _Asked) -> Answered | None:
        """Ask one round more; None if there is another to follow."""
        probing, estimates = asked.probing, self._estimates
        if asked.questions is None:
            try:
                asked.questions = await self._questions_of(probing)
            except KubeError as error:
                # Its address is nothing for those who submit workloads.
                logger.warning("question %s: the workload cannot be read: %s", probing.probe, error)
                told = f"the workload's own object cannot be read from karmada-apiserver ({error.label})"
                return Answered(probing, unknown=(told,), ends="karmada-apiserver answers")
            asked.assumed = estimates.assumed(self._elapsed_ms(), probing.uses)
            asked.releases = estimates.releases
            # What waits goes nowhere; and where room is not held for it any more, that is told as room given.
            asked.busy = frozenset(
                name for name, of in asked.assumed.items() if not all(gang.waits for gang in of)
            )
        if probing.endings is not None:
            return await self._go_on_when(asked, asked.questions, probing.endings)
        if len(asked.verdicts) == len(asked.questions):
            return self._answered(asked, ())
        question = asked.questions[len(asked.verdicts)]
        if asked.plan is None:
            # Of a group each is asked about beside those before: what was said earlier says nothing of that.
            is_alone = len(asked.questions) == 1
            asked.plan = Plan(question.clusters)
            if is_alone:
                asked.plan = estimates.answers.plan(probing.probe, question.clusters, self._elapsed_ms())
            asked.heard, asked.next_round = [], FIRST_CLUSTERS
        now, later = asked.plan.ask[: asked.next_round], asked.plan.ask[asked.next_round :]
        await self._within_budget(len(now))
        for clusters, gang in question.by_gang(now):
            asked.heard += await self._ask(clusters, gang, asked.assumed, question.is_guided)
        rooms = (*asked.heard, *asked.plan.known)
        verdict, unknown = verdict_of(question, rooms)
        if later and (verdict is None or verdict.fits <= 0):
            asked.go_on_with(Plan(later, asked.plan.known))
            return None
        if verdict is None:
            return self._answered(asked, unknown)
        if verdict.fits > 0:
            # Karmada may place it as well where nobody was asked, or nobody has answered.
            silent = (room.cluster for room in rooms if room.unknown)
            verdict = replace(verdict, clusters=verdict.clusters.union(later, silent))
        if verdict.fits <= 0:
            counted = estimates.counted(probing.clusters, self._elapsed_ms(), probing.uses)
            verdict = replace(verdict, reasons=(*verdict.reasons, *counted))
        asked.verdicts.append(verdict)
        if verdict.fits <= 0 or len(asked.verdicts) == len(asked.questions):
            return self._answered(asked, ())
        # Of a group, the next is asked about beside those before; so those can go nowhere else.
        subjects = probing.subjects
        number = len(asked.verdicts) - 1
        preferred = subjects[number].preferred if len(subjects) == len(asked.questions) else ()
        taking = tuple(_taking(question, rooms, preferred))
        for cluster, gang in taking:
            asked.assumed.setdefault(cluster, []).append(gang)
        if verdict.rooms is not None:
            goes = tuple((cluster, gang.copies if question.adds_up else 1) for cluster, gang in taking)
            asked.verdicts[-1] = replace(verdict, rooms=goes)
        asked.plan = None
        return None

    async def _go_on_when(
        self, asked: _Asked, questions: Sequence[Question], endings: Departures
    ) -> Answered | None:
        """The same when it fits, or who has to end, of which no earlier answer says anything."""
        why = cannot_be_told(questions)
        if why:
            return self._answered(asked, (why,))
        question = questions[0]
        if question.adds_up:
            # Of an elastic workload, when as few fit as it needs.
            question = question.with_copies(question.needed)
        ask = (asked.plan or Plan(question.clusters)).ask
        now, later = ask[: asked.next_round], ask[asked.next_round :]
        await self._within_budget(len(now))
        for clusters, gang in question.by_gang(now):
            asked.heard += await self._ask(
                clusters, gang, asked.assumed, False, endings, asked.probing.of_choice
            )
        if later and not fits_now(question, asked.heard):
            asked.go_on_with(Plan(later))
            return None
        return self._answered(asked, ())

    async def _within_budget(self, calls: int) -> None:
        wait_ms = self._budget.take(calls, self._elapsed_ms()) if calls else 0
        if wait_ms:
            await self._sleep(wait_ms / 1000)

    def _answered(self, asked: _Asked, unknown: tuple[str, ...]) -> Answered:
        ends = "that estimator answers" if len(unknown) == 1 else "one of those estimators answers"
        is_alone = asked.questions is not None and len(asked.questions) == 1
        return Answered(
            asked.probing,
            asked.questions,
            tuple(asked.verdicts),
            unknown,
            ends if unknown else "",
            self._elapsed_ms() - asked.started_ms,
            asked.releases,
            tuple(asked.heard) if is_alone else (),
            asked.busy,
        )

    async def _questions_of(self, probing: Probing) -> tuple[Question, ...]:
        known = self._estimates.questions(probing.probe)
        if known is not None:
            return known
        questions = []
        for subject in probing.subjects:
            source = await self._source.template(subject.binding)
            question = question_about(subject, source)
            if question is not None:
                questions.append(question)
        return tuple(questions)


def _taking(
    question: Question, rooms: Iterable[ClusterRoom], preferred: Sequence[frozenset[str]]
) -> Iterator[tuple[str, pb.Gang]]:
    """What each cluster is thought to get of a workload: the preferred first, then those with most room; one
    that takes all of it, or each what it has.
    """
    rank = {cluster: place for place, clusters in reversed([*enumerate(preferred)]) for cluster in clusters}
    there = sorted(
        (room for room in rooms if room.fits > 0),
        key=lambda room: (rank.get(room.cluster, len(preferred)), -room.fits, room.cluster),
    )
    needed = max(1, question.needed)
    enough = [room for room in there if room.fits >= needed]
    if not question.adds_up:
        for room in enough[: question.clusters_needed]:
            gang = question.gang_at(room.cluster)
            yield room.cluster, _going(gang, room.witnesses, gang.copies)
        return
    left = needed
    for room in enough[:1] or there:
        part = _going(question.gang_at(room.cluster), room.witnesses, min(room.fits, left))
        left -= part.copies
        if part.copies:
            yield room.cluster, part


def _going(gang: pb.Gang, witnesses: Sequence[Witness], copies: int) -> pb.Gang:
    """So many copies of the gang, and which nodes their pods are going to be told."""
    going = pb.Gang()
    going.CopyFrom(gang)
    going.copies = copies
    for pod_set, nodes in witnesses[0].nodes if witnesses else ():
        going.where.extend(pb.Assignment(pod_set=pod_set, node=node, pods=pods) for node, pods in nodes)
    return going
