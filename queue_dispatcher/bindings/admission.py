"""From a state to what its admission may be charged to, and on to the record that it leaves.

A record names one list of flavors for a resource, so growth keeps to the flavors of what it is the growth of:
were the record to name others, what stands there already would move with it, to where nobody looked for room.
Karmada may place it elsewhere all the same, and then it is charged there.
"""

from collections.abc import Callable, Iterable
from dataclasses import replace

from queue_dispatcher.api.cluster_queue import ClusterQueue
from queue_dispatcher.bindings.binding import Binding
from queue_dispatcher.bindings.decision import Decision
from queue_dispatcher.bindings.pods import counted, counted_need
from queue_dispatcher.bindings.record import MAX_TRIES, AdmissionRecord, Flavors
from queue_dispatcher.bindings.requeue import RequeueRecord
from queue_dispatcher.bindings.state import Adopted, Growing, Pending
from queue_dispatcher.cycle.items import Alternative, joined
from queue_dispatcher.cycle.keeping import Keeping
from queue_dispatcher.cycle.reasons import Reason, never_fits
from queue_dispatcher.ledger.cells import CellTable, Charge
from queue_dispatcher.workloads.charge import (
    NOWHERE,
    AdmittedTo,
    Copies,
    FlavorsByResource,
    charge_of,
    still_there,
)
from queue_dispatcher.workloads.demand import Demand
from queue_dispatcher.workloads.flavors import Parts, Reaches, alternatives, keeping_of, offered


def alternatives_of(
    state: Pending | Growing,
    binding: Binding,
    queue: ClusterQueue,
    reaches: Reaches,
    permitted: frozenset[str],
    is_accelerator: Callable[[str], bool],
    table: CellTable,
    *,
    is_preplaced: bool = False,
    told: frozenset[str] = frozenset(),
) -> Parts | Reason:
    """The ways to charge the admission that the state asks for: of all of it, or of the growth alone.

    ``is_preplaced``: its release states where to. ``told``: the components whose pods can be told on which
    nodes to stay; those of growth have been, as what it grows beside.
    """
    offers = offered(queue)
    binding = counted(binding, offers)
    if isinstance(state, Pending):
        found = alternatives(
            binding.demand,
            state.copies,
            queue,
            reaches,
            permitted,
            is_accelerator,
            table,
            is_preplaced=is_preplaced,
            told=told,
        )
        if isinstance(found, Reason) or state.copies == 1:
            return found
        among = Copies(state.copies, permitted)
        return tuple(
            tuple(_as_charged(one, binding.demand, offers, reaches, among, table) for one in options)
            for options in found
        )
    keeps_to = dict(growth_flavors(state, binding, queue, reaches, table))
    pairs: list[tuple[str, str]] = []
    charge: list[tuple[int, int]] = []
    within = permitted
    for resource, amount in counted_need(state, binding):
        flavors = keeps_to.get(resource) or offers.get(resource, ())[:1]
        if not flavors and is_accelerator(resource):
            return never_fits(f"queue {queue.name} has no quota for {resource}")
        pairs += ((resource, flavor) for flavor in flavors)
        charge += ((table.cell(flavor, resource), amount) for flavor in flavors)
        within &= frozenset[str]().union(*(reaches[one].clusters for one in flavors if one in reaches))
    grown = Alternative(
        tuple(pairs), tuple(sorted(charge)), keeps=_kept(pairs, binding.demand, reaches, permitted, told)
    )
    if is_preplaced and within and within != permitted:
        # Where nobody can tell, Karmada chooses, and may leave the flavors of the record.
        grown = replace(grown, places=(grown,), clusters=within)
    return ((grown,),)


def _kept(
    pairs: Iterable[tuple[str, str]],
    demand: Demand,
    reaches: Reaches,
    permitted: frozenset[str],
    told: frozenset[str],
) -> tuple[Keeping, ...]:
    """What keeps the pods of a workload whose resources come from these flavors."""
    if len(demand.components) != 1 or demand.components[0].name not in told:
        return ()
    component = demand.components[0]
    groups = dict.fromkeys(flavors for _, flavors in _by_resource(pairs))
    found = (keeping_of(component, flavors, reaches, permitted) for flavors in groups)
    return tuple(keeping for keeping in found if keeping is not None)


def _as_charged(
    alternative: Alternative,
    demand: Demand,
    offers: FlavorsByResource,
    reaches: Reaches,
    copies: Copies,
    table: CellTable,
) -> Alternative:
    """The alternative with what it will be charged: no flavor gets more copies than it has clusters for."""
    if alternative.parts:
        return joined(
            [_as_charged(part, demand, offers, reaches, copies, table) for part in alternative.parts]
        )
    flavors = dict(_by_resource(alternative.flavors))
    component = tuple(
        replace(one, requests=tuple(pair for pair in one.requests if pair[0] in flavors))
        for one in demand.components
        if one.name == alternative.component
    )
    own = Demand(component, demand.is_set)
    charge = charge_of(
        own.total(copies.count), AdmittedTo(flavors), own, (), (), offers, reaches, table, copies
    )
    return replace(alternative, charge=charge)


def growth_flavors(
    state: Growing, binding: Binding, queue: ClusterQueue, reaches: Reaches, table: CellTable
) -> Flavors:
    """The flavors that growth keeps to: those of the record, or where an adopted workload is placed."""
    if state.record is not None:
        stated = dict(state.record.flavors)
        return tuple(still_there(stated, offered(queue), reaches).items())
    return placed_flavors(binding, queue, reaches, table)


def placed_flavors(binding: Binding, queue: ClusterQueue, reaches: Reaches, table: CellTable) -> Flavors:
    """The queue's flavors in which an adopted workload runs, by resource, in the queue's order."""
    offers = offered(queue)
    binding = counted(binding, offers)
    charge = charge_of((), NOWHERE, binding.demand, binding.placed, binding.finished, offers, reaches, table)
    return tuple(
        (resource, tuple(sorted(flavors, key=offers[resource].index)))
        for resource, flavors in flavors_of_placed(charge, table)
    )


def flavors_of_placed(charge: Charge, table: CellTable) -> Flavors:
    """The flavors by resource that a charge is of: those of a record that is restored."""
    found: dict[str, list[str]] = {}
    for cell, _ in charge:
        name = table.name(cell)
        found.setdefault(name.resource, []).append(name.flavor)
    return tuple((resource, tuple(flavors)) for resource, flavors in sorted(found.items()))


def flavors_of(alternative: Alternative, record: AdmissionRecord | None = None) -> Flavors:
    """The flavors by resource, as a record names them; what the alternative leaves out, as in the old one."""
    found = dict(_by_resource(alternative.flavors))
    return tuple(sorted({**dict(record.flavors if record else ()), **found}.items()))


def components_of(alternative: Alternative) -> tuple[tuple[str, Flavors], ...]:
    """The flavors of each component, by its name, where not all have the same of each resource."""
    together = dict(_by_resource(alternative.flavors))
    found: dict[str, list[tuple[str, str]]] = {}
    for part in alternative.parts:
        found.setdefault(part.component, []).extend(part.flavors)
    own = {name: _by_resource(pairs) for name, pairs in found.items()}
    if all(flavors == together[resource] for of in own.values() for resource, flavors in of):
        return ()
    return tuple(sorted(own.items()))


def _by_resource(pairs: Iterable[tuple[str, str]]) -> Flavors:
    found: dict[str, tuple[str, ...]] = {}
    for resource, flavor in pairs:
        found[resource] = (*found.get(resource, ()), flavor)
    return tuple(sorted(found.items()))


def admitted_to(record: AdmissionRecord) -> AdmittedTo:
    """What the record says is charged."""
    return AdmittedTo(dict(record.flavors), {name: dict(flavors) for name, flavors in record.components})


def admission_record(
    state: Pending | Growing | Adopted,
    binding: Binding,
    *,
    queue: str,
    local_queue: str,
    service_class: str,
    priority: int,
    flavors: Flavors,
    admitted_ms: int,
    components: tuple[tuple[str, Flavors], ...] = (),
    group: str = "",
    decision: Decision | None = None,
    began_ms: int = 0,
) -> AdmissionRecord:
    """The record that an admission leaves.

    ``flavors`` by `flavors_of`, or `flavors_of_placed`; ``components`` by `components_of`.
    """
    enqueued_ms = binding.created_ms if isinstance(state, Adopted) else state.enqueued_ms
    return AdmissionRecord(
        id=binding.uid,
        queue=queue,
        local_queue=local_queue,
        service_class=service_class,
        priority=priority,
        enqueued_ms=enqueued_ms,
        admitted_ms=admitted_ms,
        replicas=binding.demand.replicas,
        copies=state.copies,
        requests=binding.demand.total(state.copies),
        flavors=flavors,
        components=components,
        group=group,
        tries=min(MAX_TRIES, state.tries) if isinstance(state, Pending | Growing) else 0,
        decision=decision,
        grown=isinstance(state, Growing) and bool(binding.placed),
        began_ms=began_ms,
        displaced=_displaced(state, binding),
    )


def _displaced(state: Pending | Growing | Adopted, binding: Binding) -> int:
    if isinstance(state, Growing) and state.record is not None:
        return state.record.displaced
    return min(MAX_TRIES, binding.requeue.displaced) if isinstance(binding.requeue, RequeueRecord) else 0
