"""From a question to an answer: which cluster, is it known well enough, work it out, here or on a thread.

An answer always comes, and in time: what cannot be known becomes an explicit doubt. Work that would hold
the event loop for more than about two milliseconds is done on a thread, on a copy of the columns.
"""

import asyncio
import logging
from collections.abc import Callable, Iterable, Mapping
from concurrent.futures import Executor
from dataclasses import dataclass
from functools import partial

from estimator.capacity.answer import Answer, Doubt, exactly, lowest
from estimator.capacity.assumed import hold, outstanding
from estimator.capacity.component_sets import max_sets
from estimator.capacity.doubt import OnDoubt, doubtful
from estimator.capacity.first_fit import Expired
from estimator.capacity.quota import quota_sets
from estimator.capacity.replicas import max_replicas
from estimator.capacity.request import (
    AssumedWorkload,
    Component,
    Question,
    ReplicasQuestion,
    SetsQuestion,
    UnschedulableQuestion,
)
from estimator.capacity.room import Room
from estimator.capacity.unschedulable import unschedulable_replicas
from estimator.feature_gates import Gates
from estimator.member import DEPLOYMENTS, NODES, PODS, QUOTAS, REPLICA_SETS, MemberCluster
from estimator.metrics import EstimatorMetrics, ExtensionPoint

logger = logging.getLogger(__name__)

NODE_PLUGIN, QUOTA_PLUGIN = "NodeResourceEstimator", "ResourceQuotaEstimator"

# Measured: microseconds for each row that a component visits, and for each that an assumed one is laid over.
_US_PER_COMPONENT_ROW = 0.4
_US_PER_ASSUMED_ROW = 0.02
_INLINE_US = 2000.0


@dataclass(frozen=True, slots=True)
class Policy:
    """What the operator chose: the gates, when knowledge is too old, and what to say then."""

    gates: Gates
    on_doubt: OnDoubt
    stale_after_s: float


class Answering:
    """Answers questions about the member clusters of this process.

    ``clock`` is monotonic and ``wall_clock`` counts from the epoch, both in seconds.
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
    ) -> None:
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
            return self.doubt(question, self._unknown(question.cluster))
        stale = await member.settle(self._needs(question), self._policy.stale_after_s, within_s)
        if stale is not None:
            cause = "stale" if stale.synced else "not_synced"
            return self.doubt(question, Doubt(cause, stale.detail))
        match question:
            case ReplicasQuestion():
                return await self._replicas(member, question)
            case SetsQuestion():
                return await self._sets(member, question, lambda: self._clock() >= deadline_s)
            case UnschedulableQuestion():
                return self._unschedulable(member, question)

    def doubt(self, question: Question, doubt: Doubt) -> Answer:
        """The answer when the true one is not known."""
        return doubtful(self._policy.on_doubt, question, doubt)

    def _needs(self, question: Question) -> tuple[str, ...]:
        if isinstance(question, UnschedulableQuestion):
            workload = question.workload
            is_deployment = (workload.kind, workload.group) == ("Deployment", "apps")
            return (PODS, DEPLOYMENTS, REPLICA_SETS) if is_deployment else (PODS,)
        return (NODES, PODS, QUOTAS) if self._heeds_quotas(question) else (NODES, PODS)

    def _heeds_quotas(self, question: ReplicasQuestion | SetsQuestion) -> bool:
        return self._policy.gates.resource_quota_estimate and question.namespace != ""

    def _outstanding(
        self, member: MemberCluster, question: ReplicasQuestion | SetsQuestion
    ) -> tuple[AssumedWorkload, ...]:
        if not self._policy.gates.scheduling_overcommit_protection or not question.assumed:
            return ()
        return outstanding(question.assumed, member.mirror.controllers.bound_pods, question.workload)

    async def _replicas(self, member: MemberCluster, question: ReplicasQuestion) -> Answer:
        assumed = self._outstanding(member, question)
        work = partial(_fit_replicas, question=question, assumed=assumed)
        nodes = await self._run(
            member, work, NODE_PLUGIN, "estimate_replicas", self._cost_us(member, assumed)
        )
        one = (Component("", 1, question.shape),)
        return self._with_quota(member, question, nodes, one, "estimate_replicas")

    async def _sets(self, member: MemberCluster, question: SetsQuestion, expired: Expired) -> Answer:
        assumed = self._outstanding(member, question)
        work = partial(_fit_sets, question=question, assumed=assumed, expired=expired)
        cost_us = self._cost_us(member, assumed)
        cost_us += _US_PER_COMPONENT_ROW * member.mirror.columns.node_count * len(question.components)
        nodes = await self._run(member, work, NODE_PLUGIN, "estimate_components", cost_us)
        return self._with_quota(member, question, nodes, question.components, "estimate_components")

    def _with_quota(
        self,
        member: MemberCluster,
        question: ReplicasQuestion | SetsQuestion,
        nodes: Answer,
        components: tuple[Component, ...],
        point: ExtensionPoint,
    ) -> Answer:
        if not self._heeds_quotas(question):
            return nodes
        started_s = self._clock()
        quotas = member.mirror.quotas.of(question.namespace)
        # A quota counts pods from their creation, so this may charge one that is not bound yet twice for
        # the moment until it is: too little is promised then, never too much.
        limit = quota_sets(quotas, components, question.namespace, self._outstanding(member, question))
        self._metrics.plugin(QUOTA_PLUGIN, point, self._clock() - started_s)
        return lowest(limit, nodes)

    async def _run(
        self,
        member: MemberCluster,
        work: Callable[[Room], Answer],
        plugin: str,
        point: ExtensionPoint,
        cost_us: float,
    ) -> Answer:
        started_s = self._clock()
        if cost_us <= _INLINE_US:
            answer = work(member.room())
        else:
            loop = asyncio.get_running_loop()
            answer = await loop.run_in_executor(self._executor, work, member.snapshot())
        self._metrics.plugin(plugin, point, self._clock() - started_s)
        return answer

    def _unschedulable(self, member: MemberCluster, question: UnschedulableQuestion) -> Answer:
        workload = question.workload
        since_s = member.mirror.controllers.unschedulable_since_s(
            workload.namespace, workload.name, workload.kind, workload.group or ""
        )
        return exactly(unschedulable_replicas(since_s, self._wall_clock(), question.threshold_s))

    def _cost_us(self, member: MemberCluster, assumed: tuple[AssumedWorkload, ...]) -> float:
        laid = sum(len(workload.components) for workload in assumed)
        return _US_PER_ASSUMED_ROW * member.mirror.columns.node_count * laid

    def _unknown(self, cluster: str) -> Doubt:
        known = ", ".join(sorted(self._members))
        shown = cluster if len(cluster) <= 63 else cluster[:60] + "..."
        return Doubt("unknown_cluster", f"this estimator serves {known}; it was asked about {shown!r}")


def _fit_replicas(room: Room, question: ReplicasQuestion, assumed: tuple[AssumedWorkload, ...]) -> Answer:
    held = hold(room, assumed)
    answer = max_replicas(room, question.shape)
    return Answer(answer.value, answer.upper_bound, answer.proven, (*answer.reasons, *held))


def _fit_sets(
    room: Room, question: SetsQuestion, assumed: tuple[AssumedWorkload, ...], expired: Expired
) -> Answer:
    held = hold(room, assumed)
    answer = max_sets(room, question.components, expired).answer
    return Answer(answer.value, answer.upper_bound, answer.proven, (*answer.reasons, *held))
