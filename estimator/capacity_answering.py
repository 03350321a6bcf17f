"""Fairway's own questions answered: gangs placed, refusals explained, clusters summed up; always on a thread.

Each cluster is asked on a snapshot of its own. One that is not known well enough answers with a doubt beside
the others' true answers; nobody throws anything away for it, so there is no number to guess here.

Searches are long and copies of clusters large, so one cluster is searched at a time, and one summed up, and
calls take turns. The time of a call is shared out evenly to the clusters that are left, and a cluster whose
turn comes too late is in doubt.
"""

import asyncio
import math
import time
from collections.abc import Awaitable, Callable, Iterable, Mapping
from concurrent.futures import Executor
from contextlib import suppress
from dataclasses import replace
from functools import partial
from typing import TypeVar

from estimator.capacity.answer import NO_BOUND, Answer, unsure
from estimator.capacity.assumed import OutOfTime, bound_pods, outstanding
from estimator.capacity.bound import ClusterBound, WorkloadPods
from estimator.capacity.budget import Budget
from estimator.capacity.explain.explain import explain
from estimator.capacity.gangs.gang_replicas import Topology
from estimator.capacity.gangs.placements import (
    ClusterExplanation,
    ClusterPlacement,
    Explanation,
    Placed,
    told,
)
from estimator.capacity.gangs.placing import place
from estimator.capacity.local import Local, left_out
from estimator.capacity.promises import Promises
from estimator.capacity.request import Component
from estimator.capacity.room import Room
from estimator.capacity.sets import integer_program
from estimator.capacity.summary import Summary
from estimator.capacity.survey.stock import overdrawn
from estimator.capacity.survey.survey import survey
from estimator.capacity_requests import CapacityQuestion, ClusterWorkloads
from estimator.cluster.quotas import Quota
from estimator.cluster.users import Users
from estimator.fair_queue import FairQueue
from estimator.gone_pods import GonePods
from estimator.member import (
    NAMESPACES,
    NODE_DEVICES,
    NODES,
    PODS,
    QUOTAS,
    REPLICA_SETS,
    MemberCluster,
    out_of_date,
    unknown_cluster,
)
from estimator.promise_requests import PromiseQuestion
from estimator.reasons import Reason, in_doubt
from estimator.shared_usage import SharedUsage
from estimator.usage_wire import encode_pages
from fairway.accelerators.catalogue import Catalogue
from fairway.workloads.workload_name import WorkloadName

DEFAULT_SEARCH_S = 0.25
"""How long the search for a proof may take where the caller does not say."""

_T = TypeVar("_T")
WithClaims = Callable[[tuple[Component, ...]], tuple[Component, ...]]
_KEPT_FOR_THE_REST_S = 0.05
# What who-uses-what gains by besides nodes and pods is waited for so long, and may be so old.
_OF_USERS = (NODE_DEVICES, NAMESPACES)
_MOST_TO_WAIT_S, _STALE_S = 1.0, 5.0
# Of a call's time, for a state that may come yet; the rest is for the answer.
_SHARE_FOR_WAITING = 0.8
# And so much beyond it, for answers that are on their way by then.
_GRACE = 0.1


class CapacityAnswering:
    """Answers about the member clusters of this process. ``clock`` is monotonic, in seconds.

    ``wall_clock``: seconds since the epoch.

    ``promises`` is where to note what is promised, None where nobody heeds it.

    ``with_claims`` adds what pods claim of devices to their components; None where nobody knows.
    Two threads of ``executor`` are used at most, but for what nobody waits for any more, which ends soon.
    """

    def __init__(
        self,
        members: Iterable[MemberCluster],
        catalogue: Catalogue,
        stale_after_s: float,
        executor: Executor,
        *,
        heeds_quotas: bool,
        clock: Callable[[], float],
        with_claims: WithClaims | None = None,
        wall_clock: Callable[[], float] = time.time,
        promises: Promises | None = None,
    ) -> None:
        self._promises = Promises() if promises is None else promises
        self._with_claims = with_claims
        self._heeds_quotas = heeds_quotas
        self._members: Mapping[str, MemberCluster] = {member.name: member for member in members}
        self._catalogue = catalogue
        self._stale_after_s = stale_after_s
        self._clock = clock
        self._searches = FairQueue(executor, 1)
        self._surveys = FairQueue(executor, 1)
        self._usages = SharedUsage()
        self._wall_clock = wall_clock

    async def place(self, question: CapacityQuestion, within_s: float) -> list[ClusterPlacement]:
        """How many copies of the gang fit in each cluster, in the order asked, or by name if none was."""
        gang = partial(self._gang, self._completed(question), with_causes=False)
        found = await self._each(question.clusters, within_s, gang)
        return [explanation.placement for explanation in found]

    async def explain(self, question: CapacityQuestion, within_s: float) -> list[ClusterExplanation]:
        """The same, with what keeps more of it out."""
        gang = partial(self._gang, self._completed(question), with_causes=True)
        return await self._each(question.clusters, within_s, gang)

    async def usages(
        self, clusters: tuple[str, ...], within_s: float, tell: "Callable[[list[bytes]], Awaitable[None]]"
    ) -> None:
        """Who uses what in each cluster: ``tell`` gets the pages of one after the other, as they are known.

        A cluster is worked out once for all who ask at about the same time: see `SharedUsage`. Raises an
        ExceptionGroup with CrowdedError.
        """
        telling = asyncio.Lock()

        async def ask(call: _Call, name: str) -> None:
            member, doubt, age_s = await self._member(name, call)
            if member is None or (doubt is not None and not member.freshness((NODES, PODS)).synced):
                call.leave()
                doubt = doubt or unknown_cluster(name, self._members)
                async with telling:
                    return await tell(encode_pages(name, (), age_s, doubt.detail))
            # Where these are not served or cannot be had now, what is known without them is told.
            await member.settle(_OF_USERS, _STALE_S, min(_MOST_TO_WAIT_S, call.left_s() * _SHARE_FOR_WAITING))
            known, why = member, "" if doubt is None else doubt.detail

            async def gather(begun: Callable[[], None]) -> list[bytes]:
                def start() -> Callable[[], list[bytes]]:
                    begun()
                    parts = Users.of(known.mirror).usage_parts(
                        name, self._catalogue, self._wall_clock(), age_s
                    )
                    return partial(encode_pages, name, parts, age_s, why)

                return await self._surveys.run((SharedUsage, name), start)

            async with telling, self._usages.pages(name, gather, call.left_s()) as shared:
                call.leave()
                try:
                    pages = await call.wait(shared)
                except OutOfTime as error:
                    pages = encode_pages(name, (), age_s, why or str(error))
                await tell(pages)

        await self._each(clusters, within_s, ask)

    async def bound(self, asked: tuple[ClusterWorkloads, ...], within_s: float) -> list[ClusterBound]:
        """How many pods of each workload have nodes, cluster by cluster, in the order asked."""
        return await self._bound({of.cluster: of.workloads for of in asked}, within_s)

    async def promise(self, question: PromiseQuestion, within_s: float) -> list[ClusterBound]:
        """Note what is promised, and count its pods, cluster by cluster, in the order told.

        Raises Outranked. What is promised in clusters that this process does not serve is not noted.
        """
        lists = {name: promises for name, promises in question.lists.items() if name in self._members}
        if self._with_claims is not None:
            of = self._with_claims
            lists = {
                name: tuple(replace(one, components=of(one.components)) for one in promises)
                for name, promises in lists.items()
            }
        self._promises.put(question.holder, question.ttl_s, lists, self._clock())
        for name, promises in lists.items():
            # What the cluster makes of such pods is read from now on; nobody waits for it here.
            self._members[name].prepare(component for one in promises for component in one.components)
        workloads = {
            name: tuple(
                WorkloadName(named.namespace, named.name, named.kind, named.group or "")
                for named in (one.workload for one in promises)
            )
            for name, promises in question.lists.items()
        }
        return await self._bound(workloads, within_s)

    async def _bound(
        self, workloads: Mapping[str, tuple[WorkloadName, ...]], within_s: float
    ) -> list[ClusterBound]:
        async def count(call: _Call, name: str) -> ClusterBound:
            member = self._members.get(name)
            if member is None:
                call.leave()
                return ClusterBound(name, (), unknown_cluster(name, self._members).detail)
            kinds = {of.kind for of in workloads[name]}
            needs = (PODS, REPLICA_SETS) if "Deployment" in kinds else (PODS,)
            stale = await member.settle(needs, self._stale_after_s, call.left_s() * _SHARE_FOR_WAITING)
            call.leave()
            age_s = member.freshness(needs).lost_s or 0.0
            if stale is not None:
                return ClusterBound(name, (), out_of_date(stale).detail, age_s)
            counts = (member.pods_of(*of) for of in workloads[name])
            found = tuple(
                WorkloadPods(one is not None, one.bound if one else 0, one.waiting if one else 0)
                for one in counts
            )
            return ClusterBound(name, found, "", age_s)

        return await self._each(tuple(workloads), within_s, count) if workloads else []

    async def summaries(self, clusters: tuple[str, ...], within_s: float) -> list[Summary]:
        """What each cluster has and what of it is free."""
        return await self._each(clusters, within_s, self._summary)

    def _completed(self, question: CapacityQuestion) -> CapacityQuestion:
        """The question with what its pods, and those on their way, claim of devices."""
        with_claims = self._with_claims
        if with_claims is None:
            return question
        gang = question.gang
        assumed = tuple(replace(one, components=with_claims(one.components)) for one in gang.assumed)
        return replace(question, gang=replace(gang, components=with_claims(gang.components), assumed=assumed))

    async def _each(
        self,
        clusters: tuple[str, ...],
        within_s: float,
        ask: "Callable[[_Call, str], asyncio._CoroutineLike[_T]]",
    ) -> list[_T]:
        names = clusters or sorted(self._members)
        call = _Call(len(names), self._clock() + within_s, self._clock)
        try:
            async with asyncio.TaskGroup() as group:
                tasks = [group.create_task(ask(call, name)) for name in names]
        finally:
            call.end()
        return [task.result() for task in tasks]

    async def _gang(
        self, question: CapacityQuestion, call: "_Call", name: str, *, with_causes: bool
    ) -> ClusterExplanation:
        member, doubt, age_s = await self._member(name, call, _more_needs(question))
        if member is None or doubt is not None:
            call.leave()
            return _in_doubt(name, doubt or unknown_cluster(name, self._members), age_s)
        known = member
        unknown = await known.learn(question.gang.components, call.left_s() * _SHARE_FOR_WAITING)
        ranks = question.placements > 0 and await known.ranks_by_size(call.left_s() * _SHARE_FOR_WAITING)

        def start() -> Callable[[], tuple[Placed, tuple[Explanation, ...]]]:
            share_s = call.leave()
            if share_s <= 0:
                raise OutOfTime(_LATE)
            quotas = tuple(known.mirror.quotas.of(question.gang.namespace)) if self._heeds_quotas else ()
            asked = _without_bound(question, known)
            here = known.local(asked.gang.components)
            gone = GonePods.of(question, known.mirror, int(self._wall_clock() * 1000))
            work = partial(
                _place_and_explain, asked, here, unknown, with_causes, quotas, gone, call.clock, share_s
            )
            return partial(work, known.snapshot(here.around), known.topology_of_snapshot())

        try:
            placed, causes = await call.turn(self._searches, start)
        except OutOfTime as error:
            return _in_doubt(name, in_doubt("late", str(error)), age_s)
        return ClusterExplanation(told(name, placed, age_s, ranks_by_size=ranks), causes)

    async def _summary(self, call: "_Call", name: str) -> Summary:
        member, doubt, age_s = await self._member(name, call)
        if member is None:
            call.leave()
            return Summary(name, 0, 0, doubt=unknown_cluster(name, self._members).detail)
        known = member

        def start() -> Callable[[], Summary]:
            call.leave()
            columns = known.mirror.columns
            return partial(
                survey,
                columns.copy(),
                self._catalogue,
                known.topology().levels,
                cluster=name,
                pods=len(known.mirror.pods.keys()),
                overdrawn=overdrawn(columns),
                age_s=age_s,
                doubt="" if doubt is None else doubt.detail,
                policy=known.tolerations,
            )

        try:
            return await call.turn(self._surveys, start)
        except OutOfTime as error:
            return Summary(name, 0, 0, age_s=age_s, doubt=str(error) if doubt is None else doubt.detail)

    async def _member(
        self, name: str, call: "_Call", more: tuple[str, ...] = ()
    ) -> tuple[MemberCluster | None, Reason | None, float]:
        """The cluster, why its state may not be true, and how old that state is in seconds.

        ``more``: which resources are needed besides nodes, pods and perhaps quotas.
        """
        member = self._members.get(name)
        if member is None:
            return None, None, 0.0
        within_s = call.left_s() * _SHARE_FOR_WAITING
        needs = (NODES, PODS, *((QUOTAS,) if self._heeds_quotas else ()), *more)
        stale = await member.settle(needs, self._stale_after_s, within_s)
        freshness = member.freshness(needs)
        age_s = freshness.lost_s or 0.0
        return member, None if stale is None else out_of_date(stale), age_s


class _Call:
    """The time of one call, shared out to the clusters that are left as their turns come."""

    def __init__(self, clusters: int, deadline_s: float, clock: Callable[[], float]) -> None:
        self._left = clusters
        self._grace_s = _GRACE * max(0.0, deadline_s - clock())
        self._deadline_s = deadline_s
        self._clock = clock
        self._ended = False

    async def turn(self, queue: FairQueue, start: Callable[[], Callable[[], _T]]) -> _T:
        """The result of a cluster's work once its turn has come. Raises OutOfTime where that is too late."""
        if self.left_s() > 0:
            return await self.wait(queue.run(self, start))
        raise OutOfTime(_LATE)

    async def wait(self, result: Awaitable[_T]) -> _T:
        """The result. Raises OutOfTime where it comes too late."""
        with suppress(TimeoutError):
            # Work ends by its own clock; this is for what waits, or looks at its clock too seldom.
            async with asyncio.timeout(self.left_s() + self._grace_s):
                return await result
        raise OutOfTime(_LATE)

    def clock(self) -> float:
        """The time in seconds: the end of it once nobody waits for the answer, so that all searches stop."""
        return math.inf if self._ended else self._clock()

    def left_s(self) -> float:
        """Seconds until the deadline, never negative."""
        return max(0.0, self._deadline_s - self._clock())

    def leave(self) -> float:
        """One cluster fewer is left; its share of the time, in seconds."""
        share_s = self.left_s() / self._left
        self._left -= 1
        return share_s

    def end(self) -> None:
        """The call is over, with an answer or without."""
        self._ended = True


_LATE = "the time for the answer was up before this cluster had its turn; give it more"


def _more_needs(question: CapacityQuestion) -> tuple[str, ...]:
    """What tells whose pods are meant: those of Deployments are their ReplicaSets'."""
    surplus = (one.workload for one in question.surplus)
    named = (*question.without, *(question.endings or ()), *surplus)
    return (REPLICA_SETS,) if any(name.kind == "Deployment" for name in named) else ()


def _without_bound(question: CapacityQuestion, member: MemberCluster) -> CapacityQuestion:
    """The question without those pods on their way that hold room on the cluster already."""
    gang = question.gang
    bound = bound_pods(gang.assumed, member.bound_pods)
    return replace(question, gang=replace(gang, assumed=outstanding(gang.assumed, bound, None)))


def _in_doubt(name: str, doubt: Reason, age_s: float) -> ClusterExplanation:
    return ClusterExplanation(told(name, Placed(Answer(0, NO_BOUND, False, (doubt,))), age_s))


def _place_and_explain(
    question: CapacityQuestion,
    here: Local,
    unknown: tuple[str, ...],
    with_causes: bool,
    quotas: tuple[Quota, ...],
    gone: GonePods | None,
    clock: Callable[[], float],
    within_s: float,
    room: Room,
    topology: Topology,
) -> tuple[Placed, tuple[Explanation, ...]]:
    """What `_gang` tells of one cluster; the time counts from when a thread takes it up."""
    integer_program.load()
    started_s = clock()
    search_s = min(question.search_s or DEFAULT_SEARCH_S, within_s - _KEPT_FOR_THE_REST_S)

    def expired() -> bool:
        return clock() >= started_s + within_s

    search = Budget(clock, started_s + search_s)
    gang = replace(question.gang, components=here.components)
    untold = left_out(question.problems, here, unknown)
    if gone is not None:
        room, others, more = gone.left(room)
        untouched, untold = room.fork(), (*untold, *more)
    placed = place(room, gang, topology, expired, search, quotas, placements=question.placements)
    if gone is not None and placed.answer.value < max(1, gang.wanted):
        soonest = gone.earliest(untouched, others, gang, topology, quotas, expired, clock)
        placed = replace(placed, earliest=soonest)
    placed = replace(placed, answer=unsure(placed.answer, *untold))
    if not question.placements:
        placed = replace(placed, placement=())
    return placed, explain(room, gang.components, expired) if with_causes else ()
