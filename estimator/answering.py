"""From a question to an answer: which cluster, is it known well enough, work it out, here or on a thread.

An answer always comes, and in time: what cannot be known becomes an explicit doubt. Work that would hold
the event loop for more than about two milliseconds is done on a thread, on a copy of the columns.
"""

import asyncio
import logging
from collections.abc import Callable, Iterable, Mapping
from concurrent.futures import Executor
from dataclasses import dataclass, replace
from functools import partial

from estimator.capacity.answer import Answer, Doubt, exactly, lowest, misread
from estimator.capacity.assumed import OutOfTime, bound_pods, hold, outstanding
from estimator.capacity.budget import Budget, Expired
from estimator.capacity.devices.dra_demand import draws
from estimator.capacity.doubt import OnDoubt, doubtful
from estimator.capacity.gangs.gang_replicas import Topology, gang_replicas, gang_sets
from estimator.capacity.gangs.workload_gang import WorkloadGang
from estimator.capacity.quota import quota_sets
from estimator.capacity.replicas import max_replicas
from estimator.capacity.request import (
    AssumedWorkload,
    Component,
    Question,
    ReplicasQuestion,
    SetsQuestion,
    UnschedulableQuestion,
    WorkloadReference,
)
from estimator.capacity.room import Room
from estimator.capacity.sets.component_sets import max_sets
from estimator.capacity.topology.gang_fit import place_gang
from estimator.capacity.topology.whole_slices import asks_tpu, keep_to_whole_slices
from estimator.capacity.unschedulable import unschedulable_replicas
from estimator.cluster.quotas import Quota
from estimator.feature_gates import Gates
from estimator.karmada.templates import NOTHING, Found, Lookup
from estimator.member import (
    DEPLOYMENTS,
    NODES,
    PODS,
    QUOTAS,
    REPLICA_SETS,
    MemberCluster,
    out_of_date,
    unknown_cluster,
)
from estimator.metrics import EstimatorMetrics, ExtensionPoint

logger = logging.getLogger(__name__)

NODE_PLUGIN, QUOTA_PLUGIN = "NodeResourceEstimator", "ResourceQuotaEstimator"

# Measured: microseconds for each row that a component visits, and for each that an assumed one is laid over.
_US_PER_COMPONENT_ROW = 0.4
_US_PER_GANG_ROW = 0.1
_US_PER_ASSUMED_ROW = 0.02
_US_PER_ASSUMED = 10.0
# As long as nothing is remembered of what the devices of a node serve.
_US_PER_CLAIMING_ROW = 100.0
_INLINE_US = 2000.0
# The search for a proof ends well before karmada-scheduler's three seconds: its worker waits for the answer.
_SEARCH_S = 0.2
_KEPT_FOR_THE_REST_S = 0.05


@dataclass(frozen=True, slots=True)
class Policy:
    """What the operator chose: the gates, when knowledge is too old, and what to say then."""

    gates: Gates
    on_doubt: OnDoubt
    stale_after_s: float


class Answering:
    """Answers questions about the member clusters of this process.

    ``clock`` is monotonic and ``wall_clock`` counts from the epoch, both in seconds. ``templates`` finds what
    the workload's template says beyond the request; None where nobody reads templates.
    """

    def __init__(
        self,
        members: Iterable[MemberCluster],
        policy: Policy,
        metrics: EstimatorMetrics,
        executor: Executor,
        *,
        clock: Callable[[], float],
        wall_clock: Callable[[], float],
        templates: Lookup | None = None,
    ) -> None:
        self._templates = templates
        self._members: Mapping[str, MemberCluster] = {member.name: member for member in members}
        self._policy = policy
        self._metrics = metrics
        self._executor = executor
        self._clock = clock
        self._wall_clock = wall_clock

    async def answer(self, question: Question, within_s: float) -> Answer:
        """The answer, after at most about ``within_s``."""
        deadline_s = self._clock() + within_s
        member = self._members.get(question.cluster)
        if member is None:
            return self.doubt(question, unknown_cluster(question.cluster, self._members))
        stale = await member.settle(self._needs(question), self._policy.stale_after_s, within_s)
        if stale is not None:
            return self.doubt(question, out_of_date(stale))
        if isinstance(question, UnschedulableQuestion):
            return self._unschedulable(member, question)
        found = await self._template(question, deadline_s - self._clock())
        if found.doubt and question.names_device:
            return self.doubt(question, Doubt("template_unknown", found.doubt))
        try:
            match question:
                case ReplicasQuestion():
                    return await self._replicas(member, question, found.gang, deadline_s)
                case SetsQuestion():
                    return await self._sets(member, question, found.gang, deadline_s)
        except OutOfTime as error:
            return self.doubt(question, Doubt("late", str(error)))

    def doubt(self, question: Question, doubt: Doubt) -> Answer:
        """The answer when the true one is not known."""
        return doubtful(self._policy.on_doubt, doubt, question.names_device)

    def _needs(self, question: Question) -> tuple[str, ...]:
        if isinstance(question, UnschedulableQuestion):
            workload = question.workload
            is_deployment = (workload.kind, workload.group) == ("Deployment", "apps")
            return (PODS, DEPLOYMENTS, REPLICA_SETS) if is_deployment else (PODS,)
        return (NODES, PODS, QUOTAS) if self._heeds_quotas(question) else (NODES, PODS)

    def _heeds_quotas(self, question: ReplicasQuestion | SetsQuestion) -> bool:
        return self._policy.gates.resource_quota_estimate and question.namespace != ""

    def _assumed(self, member: MemberCluster, question: ReplicasQuestion | SetsQuestion) -> "_Assumed":
        if not self._policy.gates.scheduling_overcommit_protection or not question.assumed:
            return tuple
        now_bound = bound_pods(question.assumed, member.bound_pods)
        return partial(outstanding, question.assumed, now_bound, question.workload)

    async def _template(self, question: ReplicasQuestion | SetsQuestion, within_s: float) -> Found:
        workload = question.workload
        if self._templates is None or workload is None:
            return NOTHING
        return await self._templates.find(workload.kind, workload.namespace, workload.name, within_s)

    async def _replicas(
        self,
        member: MemberCluster,
        question: ReplicasQuestion,
        gang: WorkloadGang | None,
        deadline_s: float,
    ) -> Answer:
        one = (Component("", 1, question.shape),)
        fit: _Fit
        if gang is None:
            fit, cost_us = partial(_fit_replicas, question), 0.0
            if draws(member.mirror.columns.dra, question.shape):
                cost_us = _US_PER_CLAIMING_ROW * member.mirror.columns.node_count
        else:
            bound = _bound_pods(member, question.workload)
            fit = partial(_fit_gang, question, gang, bound)
            cost_us = _US_PER_GANG_ROW * member.mirror.columns.node_count * len(gang.components)
            if any(len(c.shape.containers) > 1 or c.shape.claims for c in gang.components):
                # Shares for each container by itself: tens of milliseconds where many nodes share devices.
                cost_us = max(cost_us, 2 * _INLINE_US)
        return await self._run(member, question, fit, one, "estimate_replicas", cost_us, deadline_s)

    async def _sets(
        self,
        member: MemberCluster,
        question: SetsQuestion,
        gang: WorkloadGang | None,
        deadline_s: float,
    ) -> Answer:
        fit = partial(_fit_sets, question, gang)
        nodes = member.mirror.columns.node_count
        cost_us = _US_PER_COMPONENT_ROW * nodes * len(question.components)
        shapes = [component.shape for component in (*question.components, *(gang.components if gang else ()))]
        if any(draws(member.mirror.columns.dra, shape) for shape in shapes):
            cost_us += _US_PER_CLAIMING_ROW * nodes
        return await self._run(
            member, question, fit, question.components, "estimate_components", cost_us, deadline_s
        )

    async def _run(
        self,
        member: MemberCluster,
        question: ReplicasQuestion | SetsQuestion,
        fit: "_Fit",
        components: tuple[Component, ...],
        point: ExtensionPoint,
        cost_us: float,
        deadline_s: float,
    ) -> Answer:
        heeds_quotas = self._heeds_quotas(question)
        work = _Work(
            fit,
            self._assumed(member, question),
            tuple(member.mirror.quotas.of(question.namespace)) if heeds_quotas else (),
            components,
            question.namespace,
            self._clock,
            deadline_s,
        )
        if self._policy.gates.scheduling_overcommit_protection:
            laid = sum(len(workload.components) for workload in question.assumed)
            cost_us += (_US_PER_ASSUMED_ROW * member.mirror.columns.node_count + _US_PER_ASSUMED) * laid
        done = work.do(member.room(), member.topology(), 0.0) if cost_us <= _INLINE_US else None
        # What greedy placements cannot prove is worth a search; replicas of one pod are always proven.
        if done is None or (isinstance(question, SetsQuestion) and not done.nodes.proven):
            loop = asyncio.get_running_loop()
            done = await loop.run_in_executor(
                self._executor, work.do, member.snapshot(), member.topology_of_snapshot(), _SEARCH_S
            )
        self._metrics.plugin(NODE_PLUGIN, point, done.nodes_s)
        if not heeds_quotas:
            return done.nodes
        self._metrics.plugin(QUOTA_PLUGIN, point, done.quotas_s)
        return lowest(done.quotas, done.nodes)

    def _unschedulable(self, member: MemberCluster, question: UnschedulableQuestion) -> Answer:
        workload = question.workload
        since_s = member.mirror.controllers.unschedulable_since_s(
            workload.namespace, workload.name, workload.kind, workload.group or ""
        )
        return exactly(unschedulable_replicas(since_s, self._wall_clock(), question.threshold_s))


@dataclass(frozen=True, slots=True)
class _Means:
    """What an answer is worked out with: the topology, and the time there is."""

    topology: Topology
    expired: Expired
    search: Budget


_Assumed = Callable[[], tuple[AssumedWorkload, ...]]
_Fit = Callable[[Room, _Means], Answer]


@dataclass(frozen=True, slots=True)
class _Done:
    """What the nodes hold and what the quotas allow, and how long each took to find out."""

    nodes: Answer
    quotas: Answer
    nodes_s: float
    quotas_s: float


@dataclass(frozen=True, slots=True)
class _Work:
    """An answer to be worked out from a room, on whatever thread."""

    fit: _Fit
    assumed: _Assumed
    quotas: tuple[Quota, ...]
    components: tuple[Component, ...]
    namespace: str
    clock: Callable[[], float]
    deadline_s: float

    def do(self, room: Room, topology: Topology, search_s: float) -> _Done:
        started_s = self.clock()
        on_their_way = self.assumed()
        search = Budget(self.clock, min(started_s + search_s, self.deadline_s - _KEPT_FOR_THE_REST_S))
        means = _Means(topology, lambda: self.clock() >= self.deadline_s, search)
        held = hold(room, on_their_way, means.expired)
        nodes = self.fit(room, means)
        if held:
            nodes = replace(nodes, reasons=(*nodes.reasons, *held))
        found_s = self.clock()
        # A quota counts pods from their creation, so this may charge one that is not bound yet twice for the
        # moment until it is: too little is promised then, never too much.
        quotas = quota_sets(self.quotas, self.components, self.namespace, on_their_way)
        return _Done(nodes, quotas, found_s - started_s, self.clock() - found_s)


def _bound_pods(member: MemberCluster, workload: WorkloadReference | None) -> int:
    """How many pods of the workload hold room on this cluster already."""
    if workload is None:
        return 0
    return member.bound_pods(workload.namespace, workload.name).get(workload.kind, 0)


def _fit_replicas(question: ReplicasQuestion, room: Room, means: _Means) -> Answer:
    keep_to_whole_slices(room, (question.shape,))
    return max_replicas(room, question.shape)


def _fit_gang(
    question: ReplicasQuestion, gang: WorkloadGang, bound: int, room: Room, means: _Means
) -> Answer:
    answer = gang_replicas(room, question.shape, gang, bound, means.topology, means.expired)
    return misread(answer, gang.problems)


def _fit_sets(question: SetsQuestion, gang: WorkloadGang | None, room: Room, means: _Means) -> Answer:
    if gang is not None:
        answer = gang_sets(room, question.components, gang, means.topology, means.expired, means.search)
        return misread(answer, gang.problems)
    if any(asks_tpu(component.shape) for component in question.components):
        levels, domains = means.topology.levels, means.topology.domains
        return place_gang(
            room, question.components, None, levels, domains, means.expired, search=means.search
        ).answer
    return max_sets(room, question.components, means.expired, search=means.search).answer
