"""From a state to what its admission may be charged to, and on to the record that it leaves.

A record names one list of flavors for a resource, so growth keeps to the flavors of what it is the growth of:
were the record to name others, what stands there already would move with it, to where nobody looked for room.
Karmada may place it elsewhere all the same, and then it is charged there.
"""

from collections.abc import Callable

from queue_dispatcher.api.cluster_queue import ClusterQueue
from queue_dispatcher.bindings.binding import Binding
from queue_dispatcher.bindings.record import AdmissionRecord, Flavors
from queue_dispatcher.bindings.state import Adopted, Growing, Pending
from queue_dispatcher.cycle.items import Alternative
from queue_dispatcher.cycle.reasons import Reason, never_fits
from queue_dispatcher.ledger.cells import CellTable, Charge
from queue_dispatcher.workloads.charge import Copies, charge_of
from queue_dispatcher.workloads.flavors import Reaches, alternatives, offered


def alternatives_of(
    state: Pending | Growing,
    binding: Binding,
    queue: ClusterQueue,
    reaches: Reaches,
    permitted: frozenset[str],
    is_accelerator: Callable[[str], bool],
    table: CellTable,
) -> tuple[Alternative, ...] | Reason:
    """The ways to charge the admission that the state asks for: of all of it, or of the growth alone."""
    if isinstance(state, Pending):
        found = alternatives(binding.demand, state.copies, queue, reaches, permitted, is_accelerator, table)
        if isinstance(found, Reason) or state.copies == 1:
            return found
        among = Copies(state.copies, permitted)
        return tuple(_as_charged(one, state, binding, queue, reaches, among, table) for one in found)
    keeps_to, offers = dict(growth_flavors(state, binding, queue, reaches, table)), offered(queue)
    pairs: list[tuple[str, str]] = []
    charge: list[tuple[int, int]] = []
    for resource, amount in state.need:
        flavors = keeps_to.get(resource) or offers.get(resource, ())[:1]
        if not flavors and is_accelerator(resource):
            return never_fits(f"queue {queue.name} has no quota for {resource}")
        pairs += ((resource, flavor) for flavor in flavors)
        charge += ((table.cell(flavor, resource), amount) for flavor in flavors)
    return (Alternative(tuple(pairs), tuple(sorted(charge))),)


def _as_charged(
    alternative: Alternative,
    state: Pending,
    binding: Binding,
    queue: ClusterQueue,
    reaches: Reaches,
    copies: Copies,
    table: CellTable,
) -> Alternative:
    """The alternative with what it will be charged: no flavor gets more copies than it has clusters for."""
    charge = charge_of(
        state.demand,
        dict(flavors_of(alternative)),
        binding.demand,
        (),
        (),
        offered(queue),
        reaches,
        table,
        copies,
    )
    return Alternative(alternative.flavors, charge)


def growth_flavors(
    state: Growing, binding: Binding, queue: ClusterQueue, reaches: Reaches, table: CellTable
) -> Flavors:
    """The flavors that growth keeps to: those of the record, or where an adopted workload is placed."""
    if state.record is not None:
        return state.record.flavors
    return placed_flavors(binding, queue, reaches, table)


def placed_flavors(binding: Binding, queue: ClusterQueue, reaches: Reaches, table: CellTable) -> Flavors:
    """The queue's flavors in which an adopted workload runs, by resource, in the queue's order."""
    offers = offered(queue)
    charge = charge_of((), {}, binding.demand, binding.placed, binding.finished, offers, reaches, table)
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
    found: dict[str, tuple[str, ...]] = {}
    for resource, flavor in alternative.flavors:
        found[resource] = (*found.get(resource, ()), flavor)
    return tuple(sorted({**dict(record.flavors if record else ()), **found}.items()))


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
    group: str = "",
) -> AdmissionRecord:
    """The record that an admission leaves; ``flavors`` by `flavors_of`, or `flavors_of_placed`."""
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
        group=group,
        tries=state.tries if isinstance(state, Pending | Growing) else 0,
    )
