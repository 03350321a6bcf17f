"""Asks the estimators what turns want to know, a few questions at a time, and tells what they said."""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Iterable, Mapping
from typing import Protocol

from fairway.capacity.v1 import capacity_pb2 as pb
from fairway.kube.errors import KubeError
from queue_dispatcher.bindings.binding import Binding
from queue_dispatcher.cycle.snapshot import Verdict
from queue_dispatcher.estimates.cluster_room import ClusterRoom
from queue_dispatcher.estimates.estimates import Answered, Estimates, Probing
from queue_dispatcher.estimates.questions import (
    Question,
    StatedBinding,
    growth_question_of,
    question_of,
    verdict_of,
)

logger = logging.getLogger(__name__)

AT_ONCE = 16

Ask = Callable[[tuple[str, ...], pb.Gang, Mapping[str, list[pb.Gang]]], Awaitable[tuple[ClusterRoom, ...]]]


class Source(Protocol):
    """Where the objects are that questions are made of. Raises KubeError."""

    async def template(self, binding: Binding) -> bytes | StatedBinding:
        """The workload's own object where its kind is known, else the binding as it is stated."""


class Asking:
    """What one dispatcher asks. ``elapsed_ms`` is monotonic; ``tell`` hears each answer."""

    def __init__(
        self,
        estimates: Estimates,
        ask: Ask,
        source: Source,
        elapsed_ms: Callable[[], int],
        tell: Callable[[Answered], None],
    ) -> None:
        self._estimates = estimates
        self._ask = ask
        self._source = source
        self._elapsed_ms = elapsed_ms
        self._tell = tell
        self._waiting: asyncio.Queue[Probing] = asyncio.Queue()

    def submit(self, probings: Iterable[Probing]) -> None:
        """Ask these, after those before."""
        for probing in probings:
            self._waiting.put_nowait(probing)

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
            probing = await self._waiting.get()
            started_ms = self._elapsed_ms()
            try:
                answered = await self._answer(probing, started_ms)
            except Exception:
                logger.exception("question %s failed", probing.probe)
                told = ("a defect of the dispatcher; see its log",)
                answered = Answered(probing, unknown=told, ends="that defect is mended")
            self._tell(answered)

    async def _answer(self, probing: Probing, started_ms: int) -> Answered:
        try:
            questions = await self._questions_of(probing)
        except KubeError as error:
            return Answered(probing, unknown=(str(error),), ends="karmada-apiserver answers")
        verdicts: list[Verdict] = []
        assumed, releases = self._estimates.assumed(self._elapsed_ms()), self._estimates.releases
        unknown: tuple[str, ...] = ()
        for question in questions:
            rooms = await self._ask(question.clusters, question.gang, assumed)
            verdict, unknown = verdict_of(question, rooms)
            if verdict is None:
                break
            verdicts.append(verdict)
            if verdict.fits <= 0:
                break
            # Of a group, the next is asked about beside those before.
            for cluster in _taking(question, rooms):
                assumed.setdefault(cluster, []).append(question.gang)
        ends = "that estimator answers" if len(unknown) == 1 else "one of those estimators answers"
        took_ms = self._elapsed_ms() - started_ms
        ends = ends if unknown else ""
        return Answered(probing, questions, tuple(verdicts), unknown, ends, took_ms, releases)

    async def _questions_of(self, probing: Probing) -> tuple[Question, ...]:
        known = self._estimates.questions(probing.probe)
        if known is not None:
            return known
        questions = []
        for subject in probing.subjects:
            source = await self._source.template(subject.binding)
            ask = growth_question_of if subject.is_growth else question_of
            question = ask(subject.binding, subject.permitted, subject.copies, source)
            if question is not None:
                questions.append(question)
        return tuple(questions)


def _taking(question: Question, rooms: Iterable[ClusterRoom]) -> list[str]:
    """The clusters that a workload is thought to go to: the first with room, or all where it is spread."""
    there = [room.cluster for room in rooms if room.fits > 0]
    return there if question.adds_up else there[: question.clusters_needed]
