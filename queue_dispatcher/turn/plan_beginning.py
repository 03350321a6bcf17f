"""A plan begins: its victims are marked, each with why, and the room that they leave is kept from now on."""

from dataclasses import replace

from queue_dispatcher.bindings.phase import Moment
from queue_dispatcher.cache.cache import Cache
from queue_dispatcher.cache.ends import Displaced
from queue_dispatcher.cycle.earliest import Earliest
from queue_dispatcher.cycle.items import Alternative, Item
from queue_dispatcher.cycle.reservation import own_probe
from queue_dispatcher.preemption.candidates import Candidate
from queue_dispatcher.preemption.planning import Plan
from queue_dispatcher.preemption.victims import Relation
from queue_dispatcher.turn.places import fewer_of, places_of
from queue_dispatcher.turn.state import Displacement, Place, TurnState


def begin_plan(
    state: TurnState, item: Item, way: Alternative, plan: Plan, before: Displacement | None, now: Moment
) -> None:
    """Others go for the item, that is to be charged that way; ``before``: the plan that it had."""
    cache = state.cache
    stopped = places_of(cache, [one.candidate for one in plan.victims if not one.candidate.pods])
    places = tuple(Place(cluster, entry.uid, entry.binding.workload) for cluster, entry, _ in stopped)
    made = Displacement(item, way.charge, plan, now.elapsed_ms, places=places)
    if before is not None:
        made = replace(made, tries=before.tries + 1, places=before.places + places, avoids=before.avoids)
    state.displacements[item.id] = made
    state.unclaimed.discard(item.id)
    _mark(cache, item, plan)
    _keep_room(state, item, way, plan, now)


def _mark(cache: Cache, item: Item, plan: Plan) -> None:
    fewer: dict[str, list[tuple[str, int]]] = {}
    for one in plan.victims:
        if one.candidate.pods:
            of = fewer.setdefault(one.candidate.members[0], [])
            of.append(fewer_of(cache, one.candidate))
    for one in plan.victims:
        why = _why(one.relation, item, one.candidate)
        for uid in one.candidate.members:
            cache.ends.displace(uid, Displaced(item.id, why, tuple(fewer.get(uid, ()))))


def _keep_room(state: TurnState, item: Item, way: Alternative, plan: Plan, now: Moment) -> None:
    probe, estimates = own_probe(item, way), state.estimates
    if estimates is None or not probe:
        return
    known = estimates.victims.get(probe)
    room = known.rooms.get(plan.cluster) if known is not None else None
    if room is None and known is not None and plan.cluster in known.fits:
        # It has room there and lacks quota: as that comes back for it, the room has to be there still.
        room = Earliest(plan.cluster, now.day_ms, 0)
    estimates.forget_victims(probe)
    if room is not None:
        told = estimates.foretell(probe, room, elapsed_ms=now.elapsed_ms, day_ms=now.day_ms)
        # At once: what others were told before might let them start as soon as quota comes back.
        estimates.reserve(item.id, state.cache.entries[item.id].binding.workload.name, probe, told)


def _why(relation: Relation, item: Item, victim: Candidate) -> str:
    """What the owner of a victim is told: not whose workload it is, where that is none of its queue."""
    what = "gave pods up" if victim.pods else "displaced"
    match relation:
        case Relation.PRIORITY:
            is_lower = victim.priority < item.priority
            than = "of higher priority" if is_lower else "that has waited for longer"
            return f"{what} for a workload of its queue {than}"
        case Relation.RECLAIM:
            return f"{what}: queue {item.queue} takes back what it owns, and this one's queue borrowed"
        case Relation.SHARE:
            return f"{what}: queue {item.queue} has the smaller share of what is borrowed"
