"""From a question to an answer: which cluster, is it known well enough, work it out, here or on a thread.

An answer always comes, and in time: what cannot be known becomes an explicit doubt. What is a closed form is
worked out at once; everything else is a problem for `estimator.anytime`, on a copy of the columns.
"""

import logging
from collections.abc import Callable, Iterable, Iterator, Mapping
from concurrent.futures import Executor
from dataclasses import dataclass, replace
from functools import partial

from estimator.anytime import Anytime, Problem, Solver, Terms
from estimator.capacity.answer import Answer, best, exactly, lowest, unsure
from estimator.capacity.assumed import BoundPods, OutOfTime, bound_pods, hold, outstanding
from estimator.capacity.budget import NO_BUDGET, Budget, Expired
from estimator.capacity.devices.dra_demand import draws
from estimator.capacity.doubt import OnDoubt, doubtful
from estimator.capacity.gangs.gang_replicas import Topology, gang_replicas, gang_sets, of_template
from estimator.capacity.gangs.workload_gang import WorkloadGang
from estimator.capacity.holding import Held
from estimator.capacity.local import Local, left_out
from estimator.capacity.promised_pods import beyond
from estimator.capacity.promises import Promises
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
from estimator.capacity.room import Around, Room
from estimator.capacity.sets.component_sets import improving_sets
from estimator.capacity.topology.gang_fit import place_gang
from estimator.capacity.topology.slices import asks_tpu, keep_to_whole_slices
from estimator.capacity.topology.spreading import keeps_distance
from estimator.capacity.unschedulable import unschedulable_replicas
from estimator.cluster.quotas import Quota
from estimator.feature_gates import Gates
from estimator.fit.pod_shape import PodShape
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
from estimator.reasons import Reason, in_doubt

logger = logging.getLogger(__name__)

NODE_PLUGIN, QUOTA_PLUGIN = "NodeResourceEstimator", "ResourceQuotaEstimator"


@dataclass(frozen=True, slots=True)
class Policy:
    """What the operator chose: the gates, when knowledge is too old, and what to say then."""

    gates: Gates
    on_doubt: OnDoubt
    stale_after_s: float


class Answering:
    """Answers questions about the member clusters of this process.

    ``clock`` is monotonic and ``wall_clock`` counts from the epoch, both in seconds. ``templates`` finds what
    the workload's template says beyond the request; None where nobody reads templates. ``promises``: what
    others are promised is left out of the answers; None where nobody promises anything.
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
        promises: Promises | None = None,
    ) -> None:
        self._templates = templates
        self._promises = promises
        self._members: Mapping[str, MemberCluster] = {member.name: member for member in members}
        self._policy = policy
        self._metrics = metrics
        self._anytime = Anytime(executor, clock)
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
        unknown: tuple[str, ...] = (found.doubt,) if found.doubt else ()
        gang = found.gang
        if gang is not None:
            unknown = await member.learn(gang.components, deadline_s - self._clock())
            if isinstance(question, ReplicasQuestion) and len(gang.components) > 1:
                unknown += tuple(_not_asked(gang))
        if found.doubt and question.names_device:
            return self.doubt(question, in_doubt("template_unknown", found.doubt))
        try:
            match question:
                case ReplicasQuestion():
                    return await self._replicas(member, question, gang, unknown, deadline_s)
                case SetsQuestion():
                    return await self._sets(member, question, gang, unknown, deadline_s)
        except OutOfTime as error:
            return self.doubt(question, in_doubt("late", str(error)))

    def doubt(self, question: Question, doubt: Reason) -> Answer:
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
        unknown: tuple[str, ...],
        deadline_s: float,
    ) -> Answer:
        point: ExtensionPoint = "estimate_replicas"
        asked = (Component("", 1, question.shape),) if gang is None else gang.components

        def work(held: Held | None) -> _Work:
            here = member.local(asked)
            if gang is None or len(here.components) != 1:
                counted: tuple[Component, ...] = (Component("", 1, question.shape),)
            else:
                counted = (replace(here.components[0], replicas=1),)
            fit: _Fit = partial(_fit_replicas, here.components[0].shape)
            if gang is not None:
                bound = _bound_pods(member, question.workload)
                fit = partial(_fit_gang, question, replace(gang, components=here.components), bound)
            return self._work(member, question, counted, fit, here, gang, unknown, held)

        is_alone = _is_alone(member, gang, asked)
        held = self._held(member, question)
        is_held = held is None or held.room is not None
        if is_alone and is_held and not question.assumed and not _is_apart(gang, asked):
            known = work(held)
            done = next(known.solve(member.room(known.around), member.topology(), _AT_ONCE))
            return self._told(done, point)
        return await self._solve(member, question, work, point, len(asked), deadline_s, may_be_now=is_alone)

    async def _sets(
        self,
        member: MemberCluster,
        question: SetsQuestion,
        gang: WorkloadGang | None,
        unknown: tuple[str, ...],
        deadline_s: float,
    ) -> Answer:
        def work(held: Held | None) -> _Work:
            here = member.local(question.components if gang is None else gang.components)
            if gang is None:
                counted, known = here.components, None
            else:
                known = replace(gang, components=here.components)
                counted = of_template(question.components, known)
            return self._work(
                member, question, counted, partial(_fit_sets, counted, known), here, gang, unknown, held
            )

        may_be_now = gang is None and not _draws(member, question.components)
        return await self._solve(
            member,
            question,
            work,
            "estimate_components",
            len(question.components),
            deadline_s,
            may_be_now=may_be_now,
        )

    def _work(
        self,
        member: MemberCluster,
        question: ReplicasQuestion | SetsQuestion,
        components: tuple[Component, ...],
        fit: "_Fit",
        here: Local,
        gang: WorkloadGang | None,
        unknown: tuple[str, ...],
        held: Held | None,
    ) -> "_Work":
        heeds_quotas = self._heeds_quotas(question)
        assumed = question.assumed if self._policy.gates.scheduling_overcommit_protection else ()
        return _Work(
            fit,
            here.around,
            left_out(() if gang is None else gang.problems, here, unknown),
            assumed,
            bound_pods(assumed, member.bound_pods),
            question.workload,
            tuple(member.mirror.quotas.of(question.namespace)) if heeds_quotas else None,
            components,
            question.namespace,
            held,
            self._clock,
        )

    def _held(self, member: MemberCluster, question: ReplicasQuestion | SetsQuestion) -> Held | None:
        if self._promises is None:
            return None
        return member.held(self._promises.of(member.name, self._clock()), question.workload)

    async def _solve(
        self,
        member: MemberCluster,
        question: ReplicasQuestion | SetsQuestion,
        work: "Callable[[Held | None], _Work]",
        point: ExtensionPoint,
        shapes: int,
        deadline_s: float,
        *,
        may_be_now: bool,
    ) -> Answer:
        # What the cluster makes of a gang is worked out in the same moment as the copy of its nodes.
        def now(terms: Terms) -> Iterator[_Done]:
            known = work(self._held(member, question))
            return known.solve(member.room(known.around), member.topology(), terms)

        def later() -> Solver[_Done]:
            known = work(self._held(member, question))
            return partial(known.solve, member.snapshot(known.around), member.topology_of_snapshot())

        held = self._held(member, question)
        laid = sum(len(workload.components) for workload in question.assumed)
        laid += len(held.groups) if held is not None and held.room is None else 0
        size = member.mirror.columns.node_count * (shapes + laid)
        problem = Problem(member.name, point, size, now if may_be_now else None, later, _better, _is_final)
        done = await self._anytime.best(problem, deadline_s)
        if done is None:
            raise OutOfTime("the time was up before anything was found")
        if done.is_late:
            raise OutOfTime(_NOTHING_YET)
        answer = self._told(done, point)
        if answer.value or answer.proven or point == "estimate_replicas":
            return answer
        why = _UNPROVEN if done.is_searched else in_doubt("late", _NOTHING_YET)
        return replace(answer, reasons=(*answer.reasons, why))

    def _told(self, done: "_Done", point: ExtensionPoint) -> Answer:
        self._metrics.plugin(NODE_PLUGIN, point, done.nodes_s)
        answer = done.nodes
        if done.quotas is not None:
            self._metrics.plugin(QUOTA_PLUGIN, point, done.quotas_s)
            answer = lowest(done.quotas, answer)
        return unsure(answer, *done.left_out)

    def _unschedulable(self, member: MemberCluster, question: UnschedulableQuestion) -> Answer:
        workload = question.workload
        since_s = member.mirror.controllers.unschedulable_since_s(
            workload.namespace, workload.name, workload.kind, workload.group or ""
        )
        return exactly(unschedulable_replicas(since_s, self._wall_clock(), question.threshold_s))


_Fit = Callable[[Room, Topology, Terms], Iterator[Answer]]
_AT_ONCE = Terms(lambda: False, lambda: NO_BUDGET)


@dataclass(frozen=True, slots=True)
class _Done:
    """What the nodes hold and what the quotas allow, if they are asked, and how long each took to find out.

    ``is_late``: nothing was found, and nothing ruled out, for want of time. ``is_searched``: more than the
    first answer was looked for. ``left_out``: what it leaves out, so that it is not proven.
    """

    nodes: Answer
    quotas: Answer | None
    nodes_s: float
    quotas_s: float
    is_late: bool
    is_searched: bool
    left_out: tuple[Reason, ...]


_NOTHING_YET = "the time was up before a placement was found or ruled out"
_UNPROVEN = in_doubt("unproven", "no placement was found and none ruled out; first-fit finds none either")


def _better(first: _Done, second: _Done) -> _Done:
    return replace(second, nodes=best(first.nodes, second.nodes), is_late=first.is_late and second.is_late)


def _is_final(done: _Done) -> bool:
    return done.nodes.proven or (done.quotas is not None and done.quotas.value <= done.nodes.value)


@dataclass(frozen=True, slots=True)
class _Work:
    """An answer to be worked out from a room, on whatever thread. ``quotas`` None: they are not asked.

    ``around``: what running pods leave to the shapes in question; ``left_out``: what the answer leaves out.
    ``held``: what others are promised; the room is as it was when that was found.
    """

    fit: _Fit
    around: Around
    left_out: tuple[Reason, ...]
    assumed: tuple[AssumedWorkload, ...]
    now_bound: BoundPods
    asking: WorkloadReference | None
    quotas: tuple[Quota, ...] | None
    components: tuple[Component, ...]
    namespace: str
    held: Held | None
    clock: Callable[[], float]

    def solve(self, room: Room, topology: Topology, terms: Terms) -> Iterator[_Done]:
        """Better and better answers; what has been placed elsewhere is taken from the room first."""
        started_s = self.clock()
        on_their_way = outstanding(self.assumed, self.now_bound, self.asking)
        promised: tuple[Reason, ...] = ()
        if self.held is not None:
            promised = self.held.reasons
            on_their_way = beyond(on_their_way, self.held.lacking) if on_their_way else ()
        # A quota counts pods from their creation, so this may charge one that is not bound yet twice for the
        # moment until it is: too little is promised then, never too much.
        quotas = None
        if self.quotas is not None:
            charged = on_their_way if self.held is None else (*on_their_way, *self.held.workloads)
            quotas = quota_sets(self.quotas, self.components, self.namespace, charged)
        allowed_s = self.clock()
        if self.held is not None:
            self.held.take_from(room, terms.expired)
        held = (*promised, *hold(room, on_their_way, terms.expired))
        for number, nodes in enumerate(self.fit(room, topology, terms)):
            is_late = not (nodes.value or nodes.proven or _is_zero(quotas)) and terms.expired()
            told = replace(nodes, reasons=(*nodes.reasons, *held)) if held else nodes
            nodes_s, quotas_s = self.clock() - allowed_s, allowed_s - started_s
            yield _Done(told, quotas, nodes_s, quotas_s, is_late, number > 0, self.left_out)


def _is_zero(quotas: Answer | None) -> bool:
    return quotas is not None and quotas.value == 0


def _draws(member: MemberCluster, components: Iterable[Component]) -> bool:
    """Whether pods claim devices of Dynamic Resource Allocation, which takes long on many nodes."""
    dra = member.mirror.columns.dra
    return any(draws(dra, component.shape) for component in components)


def _is_alone(member: MemberCluster, gang: WorkloadGang | None, components: tuple[Component, ...]) -> bool:
    """Whether it is about pods of one shape that are tied to no topology, and claim no devices."""
    if len(components) != 1 or (gang is not None and gang.topology is not None):
        return False
    (one,) = components
    return one.topology is None and len(one.shape.containers) <= 1 and not _draws(member, components)


def _is_apart(gang: WorkloadGang | None, components: tuple[Component, ...]) -> bool:
    """Whether more than a few operations on whole columns are the answer."""
    return gang is not None and any(
        keeps_distance(one.shape) or one.shape.inter_pod.affinity for one in components
    )


def _not_asked(gang: WorkloadGang) -> Iterator[str]:
    """What a question about pods of one kind leaves out of a gang of several."""
    for component in gang.components:
        if keeps_distance(component.shape) or component.shape.inter_pod.affinity or component.shape.volumes:
            yield f"what pods of {component.name} say of other pods, since Karmada asks for pods of one kind"


def _bound_pods(member: MemberCluster, workload: WorkloadReference | None) -> int:
    """How many pods of the workload hold room on this cluster already."""
    if workload is None:
        return 0
    return member.bound_pods(workload.namespace, workload.name).get(workload.kind, 0)


def _fit_replicas(shape: PodShape, room: Room, topology: Topology, terms: Terms) -> Iterator[Answer]:
    keep_to_whole_slices(room, (shape,))
    yield max_replicas(room, shape)


def _fit_gang(
    question: ReplicasQuestion, gang: WorkloadGang, bound: int, room: Room, topology: Topology, terms: Terms
) -> Iterator[Answer]:
    yield gang_replicas(room, question.shape, gang, bound, topology, terms.expired)


def _fit_sets(
    components: tuple[Component, ...],
    gang: WorkloadGang | None,
    room: Room,
    topology: Topology,
    terms: Terms,
) -> Iterator[Answer]:
    if gang is None and not any(asks_tpu(component.shape) for component in components):
        for sets in improving_sets(room, components, terms.expired, terms.search, with_placement=False):
            yield sets.answer
        return
    fit = partial(gang_sets, gang=gang) if gang is not None else _of_whole_slices
    # Placing takes nothing from the room, but may restrict it.
    first = fit(room.fork(), components, topology=topology, expired=terms.expired)
    yield first
    if not first.proven and not (search := terms.search()).spent:
        yield fit(room, components, topology=topology, expired=terms.expired, search=search)


def _of_whole_slices(
    room: Room,
    components: tuple[Component, ...],
    topology: Topology,
    expired: Expired,
    search: Budget = NO_BUDGET,
) -> Answer:
    levels, domains = topology.levels, topology.domains
    return place_gang(room, components, None, levels, domains, expired, search=search).answer
