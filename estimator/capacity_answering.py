"""Fairway's own questions answered: gangs placed, refusals explained, clusters summed up; always on a thread.

Each cluster is asked on a snapshot of its own. One that is not known well enough answers with a doubt beside
the others' true answers; nobody throws anything away for it, so there is no number to guess here.
"""

import asyncio
from collections.abc import Callable, Iterable, Mapping
from concurrent.futures import Executor
from functools import partial
from typing import TypeVar

from estimator.capacity.answer import UNBOUNDED, Answer, Doubt, Misread
from estimator.capacity.assumed import OutOfTime
from estimator.capacity.budget import Budget
from estimator.capacity.explain import explain
from estimator.capacity.first_fit import Expired
from estimator.capacity.gang_replicas import Topology
from estimator.capacity.gangs import Placed
from estimator.capacity.placements import ClusterExplanation, ClusterPlacement, Explanation, told
from estimator.capacity.placing import place
from estimator.capacity.room import Room
from estimator.capacity.stock import overdrawn
from estimator.capacity.summary import Summary
from estimator.capacity.survey import survey
from estimator.capacity_requests import CapacityQuestion
from estimator.cluster.freshness import Freshness
from estimator.member import NODES, PODS, MemberCluster
from fairway.accelerators.catalogue import Catalogue

DEFAULT_SEARCH_S = 0.25
"""How long the search for a proof may take where the caller does not say."""

_T = TypeVar("_T")
_KEPT_FOR_THE_REST_S = 0.05


class CapacityAnswering:
    """Answers about the member clusters of this process. ``clock`` is monotonic, in seconds."""

    def __init__(
        self,
        members: Iterable[MemberCluster],
        catalogue: Catalogue,
        stale_after_s: float,
        executor: Executor,
        *,
        clock: Callable[[], float],
    ) -> None:
        self._members: Mapping[str, MemberCluster] = {member.name: member for member in members}
        self._catalogue = catalogue
        self._stale_after_s = stale_after_s
        self._executor = executor
        self._clock = clock

    async def place(self, question: CapacityQuestion, within_s: float) -> list[ClusterPlacement]:
        """How many copies of the gang fit in each cluster, in the order asked, or by name if none was."""
        return await self._each(question.clusters, partial(self._place, question, self._clock() + within_s))

    async def explain(self, question: CapacityQuestion, within_s: float) -> list[ClusterExplanation]:
        """The same, with what keeps more of it out."""
        return await self._each(question.clusters, partial(self._explain, question, self._clock() + within_s))

    async def summaries(self, clusters: tuple[str, ...], within_s: float) -> list[Summary]:
        """What each cluster has and what of it is free."""
        return await self._each(clusters, partial(self._summary, self._clock() + within_s))

    async def _each(
        self, clusters: tuple[str, ...], ask: "Callable[[str], asyncio._CoroutineLike[_T]]"
    ) -> list[_T]:
        async with asyncio.TaskGroup() as group:
            tasks = [group.create_task(ask(name)) for name in clusters or sorted(self._members)]
        return [task.result() for task in tasks]

    async def _place(self, question: CapacityQuestion, deadline_s: float, name: str) -> ClusterPlacement:
        return (await self._gang(question, deadline_s, name, with_causes=False)).placement

    async def _explain(self, question: CapacityQuestion, deadline_s: float, name: str) -> ClusterExplanation:
        return await self._gang(question, deadline_s, name, with_causes=True)

    async def _gang(
        self, question: CapacityQuestion, deadline_s: float, name: str, *, with_causes: bool
    ) -> ClusterExplanation:
        member, doubt, age_s = await self._member(name, deadline_s)
        if member is None or doubt is not None:
            return _in_doubt(name, doubt or _unknown(name, self._members), age_s)
        search_s = question.search_s or DEFAULT_SEARCH_S
        ends_s = min(self._clock() + search_s, deadline_s - _KEPT_FOR_THE_REST_S)
        work = partial(
            _place_and_explain,
            question,
            with_causes,
            lambda: self._clock() >= deadline_s,
            Budget(self._clock, ends_s),
        )
        try:
            placed, causes = await self._on_thread(work, member.snapshot(), member.topology_of_snapshot())
        except OutOfTime as error:
            return _in_doubt(name, Doubt("late", str(error)), age_s)
        return ClusterExplanation(told(name, placed, age_s), causes)

    async def _summary(self, deadline_s: float, name: str) -> Summary:
        member, doubt, age_s = await self._member(name, deadline_s)
        if member is None:
            return Summary(name, 0, 0, doubt=str(doubt or _unknown(name, self._members)))
        columns = member.mirror.columns
        work = partial(
            survey,
            columns.copy(),
            self._catalogue,
            member.topology().levels,
            cluster=name,
            pods=len(member.mirror.pods.keys()),
            overdrawn=overdrawn(columns),
            age_s=age_s,
            doubt="" if doubt is None else doubt.detail,
        )
        return await self._on_thread(work)

    async def _on_thread(self, work: Callable[..., _T], *arguments: object) -> _T:
        return await asyncio.get_running_loop().run_in_executor(self._executor, work, *arguments)

    async def _member(self, name: str, deadline_s: float) -> tuple[MemberCluster | None, Doubt | None, float]:
        """The cluster, why its state may not be true, and how old that state is in seconds."""
        member = self._members.get(name)
        if member is None:
            return None, None, 0.0
        within_s = max(0.0, deadline_s - self._clock())
        stale = await member.settle((NODES, PODS), self._stale_after_s, within_s)
        freshness = member.freshness((NODES, PODS))
        age_s = freshness.lost_s or 0.0
        return member, None if stale is None else _stale(stale), age_s


def _stale(freshness: Freshness) -> Doubt:
    return Doubt("stale" if freshness.synced else "not_synced", freshness.detail)


def _unknown(name: str, members: Mapping[str, MemberCluster]) -> Doubt:
    known = ", ".join(sorted(members))
    shown = name if len(name) <= 63 else name[:60] + "..."
    return Doubt("unknown_cluster", f"this estimator serves {known}; it was asked about {shown!r}")


def _in_doubt(name: str, doubt: Doubt, age_s: float) -> ClusterExplanation:
    return ClusterExplanation(told(name, Placed(Answer(0, UNBOUNDED - 1, False, (doubt,))), age_s))


def _place_and_explain(
    question: CapacityQuestion,
    with_causes: bool,
    expired: Expired,
    search: Budget,
    room: Room,
    topology: Topology,
) -> tuple[Placed, tuple[Explanation, ...]]:
    placed = place(room, question.gang, topology, expired, search)
    if question.problems:
        answer = placed.answer
        reasons = (*answer.reasons, Misread(question.problems))
        answer = Answer(answer.value, answer.upper_bound, answer.proven, reasons)
        placed = Placed(answer, placed.spread_fits, placed.level, placed.placement)
    if not question.want_placement:
        placed = Placed(placed.answer, placed.spread_fits, placed.level)
    return placed, explain(room, question.gang.components, expired) if with_causes else ()
