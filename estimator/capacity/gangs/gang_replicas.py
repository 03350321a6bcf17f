"""How many more pods of a workload fit, for Karmada, when its template says that they form a gang.

Karmada asks for replicas of one pod and never says how many it needs. The template does: a gang that cannot
start whole gets 0, and one that can gets what fits under its topology, all of which is needed to tell
clusters from each other.
"""

from dataclasses import dataclass, replace

from estimator.capacity.answer import Answer
from estimator.capacity.budget import NO_BUDGET, Budget, Expired
from estimator.capacity.gangs.workload_gang import WorkloadGang
from estimator.capacity.replicas import max_replicas
from estimator.capacity.request import Component
from estimator.capacity.room import Room
from estimator.capacity.topology.company import in_company
from estimator.capacity.topology.domains import DomainCache
from estimator.capacity.topology.gang_fit import place_gang
from estimator.capacity.topology.levels import Level, Levels
from estimator.capacity.topology.slices import keep_to_whole_slices
from estimator.capacity.topology.spreading import keeps_distance, spread_replicas
from estimator.fit.pod_shape import PodShape
from estimator.reasons import gang_short
from fairway.workloads.gang import TopologyMode, TopologyRequest


@dataclass(frozen=True, slots=True)
class Topology:
    """The topology of one cluster: its levels, and its domains as they have been worked out."""

    levels: Levels
    domains: DomainCache


def gang_replicas(
    room: Room, asked: PodShape, gang: WorkloadGang, bound: int, topology: Topology, expired: Expired
) -> Answer:
    """How many more pods of the workload fit; none where not all that must still start together do.

    ``asked`` is the pod as Karmada states it, which counts where the gang has pods of several kinds.
    ``bound`` pods of the workload run already. With required topology the answer is that of the best domain.
    """
    missing = max(0, gang.together - bound)
    keep_to_whole_slices(room, (component.shape for component in gang.components))
    if len(gang.components) == 1:
        answer = _of_one_kind(room, gang.components[0], gang, topology, expired)
        return answer if missing <= 1 else whole(answer, missing)
    fit = place_gang(
        room, gang.components, gang.topology, topology.levels, topology.domains, expired, wanted=1
    ).answer
    answer = max_replicas(room, _with_claims(asked, gang))
    if fit.value or not missing:
        return answer
    return Answer(0, answer.upper_bound if fit.upper_bound else 0, fit.upper_bound == 0, fit.reasons)


def gang_sets(
    room: Room,
    asked: tuple[Component, ...],
    gang: WorkloadGang,
    topology: Topology,
    expired: Expired,
    search: Budget = NO_BUDGET,
) -> Answer:
    """How many whole sets of the components fit where the template says how they lie to each other."""
    return place_gang(
        room,
        of_template(asked, gang),
        gang.topology,
        topology.levels,
        topology.domains,
        expired,
        search=search,
    ).answer


def of_template(asked: tuple[Component, ...], gang: WorkloadGang) -> tuple[Component, ...]:
    """The components as Karmada counts them: the template's own pods where it has the one of that name."""
    named = {component.name.lower(): component for component in gang.components}
    return tuple(replace(named.get(one.name.lower(), one), replicas=one.replicas) for one in asked)


def whole(answer: Answer, missing: int) -> Answer:
    """The answer for a gang that still needs ``missing`` pods at once: 0 unless they all fit."""
    if answer.value >= missing:
        return answer
    never = answer.upper_bound < missing
    reasons = (gang_short(missing, answer.value), *answer.reasons)
    return Answer(0, 0 if never else answer.upper_bound, never, reasons)


def pods_alone(room: Room, shape: PodShape, expired: Expired) -> Answer:
    """How many pods of one shape fit that are bound to nothing but each other."""
    return in_company(room, (shape,), lambda inside: (_replicas(inside, shape, expired), None), expired)[0]


def _replicas(room: Room, shape: PodShape, expired: Expired) -> Answer:
    if keeps_distance(shape):
        return spread_replicas(room, shape, expired).answer
    return max_replicas(room, shape)


def _with_claims(asked: PodShape, gang: WorkloadGang) -> PodShape:
    """The pod that is asked about with the claims of the component that it is, or of any that has some."""
    claiming = [component.shape for component in gang.components if component.shape.claims]
    own = [one for one in gang.components if one.shape.requests == asked.requests]
    if not claiming or any(not one.shape.claims for one in own):
        return asked
    return replace(asked, claims=(own[0].shape if own else claiming[0]).claims)


def _of_one_kind(
    room: Room, component: Component, gang: WorkloadGang, topology: Topology, expired: Expired
) -> Answer:
    request = gang.topology or component.topology
    if request is None or request.mode is TopologyMode.PREFERRED:
        return pods_alone(room, component.shape, expired)
    if request.mode is TopologyMode.REQUIRED:
        return _best_domain(room, component, request, topology, expired)
    unit = request.slice_size or component.replicas
    part = replace(component, replicas=unit, topology=None)
    fit = place_gang(room, (part,), request, topology.levels, topology.domains, expired).answer
    return Answer(fit.value * unit, fit.upper_bound * unit, fit.proven, fit.reasons)


def _best_domain(
    room: Room, component: Component, request: TopologyRequest, topology: Topology, expired: Expired
) -> Answer:
    """The most pods of one shape in a single domain."""
    level = topology.levels.resolve(request.level)
    one = replace(component, replicas=1, topology=None)
    if not isinstance(level, Level):
        return place_gang(room, (one,), request, topology.levels, topology.domains, expired).answer
    domains = topology.domains.of(room.nodes, level)
    pods = domains.sums(room.fits(component.shape))
    if not len(pods) or not int(pods.max()):
        return place_gang(room, (one,), request, topology.levels, topology.domains, expired).answer
    found: list[Answer] = []
    for index in (-pods).argsort(kind="stable").tolist():
        if found and int(pods[index]) <= max(answer.value for answer in found):
            break
        found.append(pods_alone(room.within(domains.rows(index)), component.shape, expired))
    best = max(found, key=lambda answer: answer.value)
    bound = max(answer.upper_bound for answer in found)
    return Answer(best.value, bound, best.value == bound, best.reasons)
