"""Asks the estimators about queue heads, and keeps what they say while it holds.

What we have released and the estimators cannot see yet is told them as on its way: to every cluster that it
may go to until Karmada has placed it, and to its own for a few seconds more, in which its pods come up.

An estimator that does not answer is no reason to release, nor to wait for ever. While others say there is
room, that counts. If none does, the workload waits, and after ``wait_s`` it goes without: Karmada decides
then, as it does where there are no estimators.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Protocol

from fairway.capacity.v1 import capacity_pb2 as pb
from fairway.kube.errors import KubeError
from queue_dispatcher.bindings.binding import Binding
from queue_dispatcher.cycle.items import Item
from queue_dispatcher.cycle.snapshot import Verdict
from queue_dispatcher.estimates.estimators import ClusterRoom
from queue_dispatcher.estimates.questions import (
    Question,
    StatedBinding,
    growth_question_of,
    question_of,
    verdict_of,
)
from queue_dispatcher.estimates.verdicts import Verdicts

logger = logging.getLogger(__name__)

AT_ONCE = 16
SETTLES_MS = 5_000
"""How long the pods of a placed workload may take to show in the estimators' numbers."""
MAX_QUESTIONS = 4_096

Ask = Callable[[tuple[str, ...], pb.Gang, Mapping[str, list[pb.Gang]]], Awaitable[tuple[ClusterRoom, ...]]]


class Source(Protocol):
    """Where the objects are that questions are made of. Raises KubeError."""

    async def template(self, binding: Binding) -> bytes | StatedBinding:
        """The workload's own object where its kind is known, else the binding as it is stated."""


@dataclass(frozen=True, slots=True)
class Subject:
    """One binding that is asked about: where it may go, and on how many clusters at once.

    ``is_growth``: part of it runs already, and the rest is asked about.
    """

    binding: Binding
    permitted: frozenset[str]
    copies: int
    is_growth: bool = False


@dataclass(frozen=True, slots=True)
class _OnItsWay:
    gang: pb.Gang
    clusters: frozenset[str]
    until_ms: int | None


class Probes:
    """The questions of one dispatcher. ``elapsed_ms`` is monotonic; ``changed`` is called after an answer."""

    def __init__(
        self,
        ask: Ask,
        source: Source,
        wait_s: float,
        elapsed_ms: Callable[[], int],
        changed: Callable[[], None],
        observe: Callable[[str, float], None] = lambda answer, took_s: None,
    ) -> None:
        self.verdicts = Verdicts()
        self._ask = ask
        self._source = source
        self._wait_ms = int(wait_s * 1000)
        self._elapsed_ms = elapsed_ms
        self._changed = changed
        self._observe = observe
        self._waiting: asyncio.Queue[tuple[str, tuple[Subject, ...]]] = asyncio.Queue()
        self._asked: set[str] = set()
        self._unanswered_ms: dict[str, int] = {}
        self._questions: dict[str, tuple[Question, ...]] = {}
        self._on_its_way: dict[str, _OnItsWay] = {}

    def ask(self, item: Item, subjects: Iterable[Subject]) -> None:
        """Ask whether the item fits, unless that is being asked already."""
        probe = item.shape.probe
        if probe not in self._asked:
            self._asked.add(probe)
            self._waiting.put_nowait((probe, tuple(subjects)))

    def released(self, probe: str, members: Mapping[str, str]) -> None:
        """A workload that was asked about is released; its pods are on their way.

        ``members``: names of the workloads by the uid of their bindings. By these the estimators know which
        of the pods they see already; empty for growth, of which nobody can tell the pods from those before.
        """
        self.verdicts.admitted(probe)
        for (uid, name), question in zip(members.items(), self._questions.get(probe, ()), strict=False):
            gang = pb.Gang()
            gang.CopyFrom(question.gang)
            gang.name = name
            self._on_its_way[uid] = _OnItsWay(gang, frozenset(question.clusters), None)

    def placed(self, uid: str, clusters: Iterable[str]) -> None:
        """Karmada placed it; soon its pods show."""
        known = self._on_its_way.get(uid)
        if known is not None:
            until_ms = self._elapsed_ms() + SETTLES_MS
            self._on_its_way[uid] = _OnItsWay(known.gang, frozenset(clusters), until_ms)

    def retain(self, uids: Iterable[str]) -> None:
        """Of what has been released only these are still to be placed."""
        kept, now_ms = set(uids), self._elapsed_ms()
        self._on_its_way = {
            uid: way
            for uid, way in self._on_its_way.items()
            if (uid in kept if way.until_ms is None else way.until_ms > now_ms)
        }

    async def run(self) -> None:
        """Answer what is asked until cancelled; what was being asked then is asked anew later."""
        try:
            async with asyncio.TaskGroup() as group:
                for number in range(AT_ONCE):
                    group.create_task(self._work(), name=f"probes/{number}")
        finally:
            self._asked.clear()
            self._waiting = asyncio.Queue()

    async def _work(self) -> None:
        while True:
            probe, subjects = await self._waiting.get()
            started_ms = self._elapsed_ms()
            try:
                answer = await self._answer(probe, subjects)
            except Exception:
                logger.exception("question %s failed", probe)
                told = ("a defect of the dispatcher; see its log",)
                answer = self._unanswered(probe, subjects, told, "that defect is mended")
            finally:
                self._asked.discard(probe)
            self._observe(answer, (self._elapsed_ms() - started_ms) / 1000)
            self._changed()

    async def _answer(self, probe: str, subjects: tuple[Subject, ...]) -> str:
        try:
            questions = await self._questions_of(probe, subjects)
        except KubeError as error:
            return self._unanswered(probe, subjects, (str(error),), "karmada-apiserver answers")
        verdicts: list[Verdict] = []
        assumed: dict[str, list[pb.Gang]] = self._assumed()
        for question in questions:
            rooms = await self._ask(question.clusters, question.gang, assumed)
            verdict, unknown = verdict_of(question, rooms)
            if verdict is None:
                ends = "that estimator answers" if len(unknown) == 1 else "one of those estimators answers"
                return self._unanswered(probe, subjects, unknown, ends)
            verdicts.append(verdict)
            if verdict.fits <= 0:
                break
            # Of a group, the next is asked about beside those before.
            for cluster in _taking(question, rooms):
                assumed.setdefault(cluster, []).append(question.gang)
        self._unanswered_ms.pop(probe, None)
        verdict = _together(verdicts)
        self.verdicts.put(probe, verdict, _clusters(subjects), self._elapsed_ms())
        return "fits" if verdict.fits > 0 else "waits"

    async def _questions_of(self, probe: str, subjects: tuple[Subject, ...]) -> tuple[Question, ...]:
        known = self._questions.get(probe)
        if known is not None:
            return known
        questions = []
        for subject in subjects:
            source = await self._source.template(subject.binding)
            ask = growth_question_of if subject.is_growth else question_of
            question = ask(subject.binding, subject.permitted, subject.copies, source)
            if question is not None:
                questions.append(question)
        if len(self._questions) >= MAX_QUESTIONS:
            self._questions.clear()
        self._questions[probe] = tuple(questions)
        return self._questions[probe]

    def _unanswered(
        self, probe: str, subjects: tuple[Subject, ...], unknown: tuple[str, ...], ends: str
    ) -> str:
        now_ms = self._elapsed_ms()
        since_ms = self._unanswered_ms.setdefault(probe, now_ms)
        clusters = _clusters(subjects)
        if now_ms - since_ms >= self._wait_ms:
            logger.warning("released without an estimate: %s", "; ".join(unknown))
            self.verdicts.put(probe, Verdict(1, clusters), clusters, now_ms)
            return "without"
        left_s = (self._wait_ms - (now_ms - since_ms)) // 1000
        told = f"whether it fits is not known ({'; '.join(unknown[:2])}); goes without in {left_s} s"
        self.verdicts.put(probe, Verdict(0, reasons=(told,), unanswered=ends), clusters, now_ms)
        return "unknown"

    def _assumed(self) -> dict[str, list[pb.Gang]]:
        assumed: dict[str, list[pb.Gang]] = {}
        now_ms = self._elapsed_ms()
        for way in self._on_its_way.values():
            if way.until_ms is None or way.until_ms > now_ms:
                for cluster in way.clusters:
                    assumed.setdefault(cluster, []).append(way.gang)
        return assumed


def _clusters(subjects: Iterable[Subject]) -> frozenset[str]:
    return frozenset().union(*(subject.permitted for subject in subjects))


def _taking(question: Question, rooms: Iterable[ClusterRoom]) -> list[str]:
    """The clusters that a workload is thought to go to: the first with room, or all where it is spread."""
    there = [room.cluster for room in rooms if room.fits > 0]
    return there if question.adds_up else there[: question.clusters_needed]


def _together(verdicts: list[Verdict]) -> Verdict:
    """What the answers about all members of a group mean for it; no question is no doubt."""
    if not verdicts:
        return Verdict(1)
    refusal = next((verdict for verdict in verdicts if verdict.fits <= 0), None)
    if refusal is not None:
        return refusal
    if len(verdicts) == 1:
        return verdicts[0]
    return Verdict(1, frozenset().union(*(verdict.clusters for verdict in verdicts)))
