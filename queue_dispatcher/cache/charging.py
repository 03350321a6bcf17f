"""Charging: what an entry is charged with, and to which queue; an admission under way counts as made."""

from collections.abc import Mapping

from queue_dispatcher.api.cluster_queue import ClusterQueue
from queue_dispatcher.bindings.admission import admitted_to, components_of, flavors_of
from queue_dispatcher.bindings.binding import Binding, InPlace
from queue_dispatcher.bindings.charged import is_charged, reserved
from queue_dispatcher.bindings.pods import counted, counted_record
from queue_dispatcher.bindings.record import AdmissionRecord
from queue_dispatcher.bindings.state import Admitted, Adopted, Growing, Pending, Shrinking
from queue_dispatcher.cache.entry import Entry
from queue_dispatcher.cache.fleet import Fleet
from queue_dispatcher.cache.queues import QueueCache
from queue_dispatcher.cache.shapes import Shapes
from queue_dispatcher.ledger.cells import CellTable, Charge
from queue_dispatcher.workloads.charge import NOWHERE, AdmittedTo, Copies, charge_of
from queue_dispatcher.workloads.demand import Placed, Requests, beyond
from queue_dispatcher.workloads.flavors import offered, offered_by_all
from queue_dispatcher.workloads.queue_of import Resolved
from queue_dispatcher.workloads.reclaimable import still_to_run


class Charging:
    """Works out charges; keeps nothing but the flavors that queues offer."""

    def __init__(self, queues: QueueCache, fleet: Fleet, shapes: Shapes, table: CellTable) -> None:
        self._queues = queues
        self._fleet = fleet
        self._shapes = shapes
        self._table = table
        self._offered: dict[str, Mapping[str, tuple[str, ...]]] = {}

    def forget_queue(self, queue: str) -> None:
        """The flavors of a queue have changed."""
        self._offered.pop(queue, None)

    def charge(self, entry: Entry) -> tuple[str, Charge]:
        """The queue, empty for none, and the charge, empty for nothing."""
        state = entry.state
        record = entry.effective_record
        if entry.record is None and not is_charged(state, entry.binding):
            return "", ()
        if entry.record is None and entry.binding.suspended is not None:
            return self._leaving(entry, entry.binding.suspended)
        queue = entry.record.queue if entry.record is not None else entry.charged_queue
        known = self._queues.queues.cluster_queues.get(queue)
        offers = self._offers(known) if known is not None else {}
        binding = counted(entry.binding, offers)
        if entry.record is not None:
            reserve = counted_record(entry.record, offers).requests
        else:
            reserve = reserved(state, binding)
        placed = to_run(entry, binding)
        if placed is not binding.placed:
            done = beyond(binding.demand.held(binding.placed), binding.demand.held(placed))
            reserve = beyond(reserve, done)
        if record is not None:
            flavors = admitted_to(record)
        elif known is not None:
            flavors = self._best(entry, known, reserve)
        else:
            flavors = NOWHERE
            held = (*reserve, *binding.demand.held(binding.placed))
            offers = offered_by_all(held, self._fleet.reaches)
        charge = charge_of(
            reserve,
            flavors,
            binding.demand,
            placed,
            binding.finished,
            offers,
            self._fleet.reaches,
            self._table,
            self._copies(entry, record) if known is not None else None,
        )
        return queue, charge

    def of_pod(self, entry: Entry, cluster: str) -> Charge:
        """What each pod of an elastic workload is charged that it runs in the cluster."""
        record, known = entry.binding.record, self._queues.queues.cluster_queues.get(entry.charged_queue)
        if record is None or known is None:
            return ()
        offers, there = self._offers(known), (Placed(cluster, 1),)
        demand = counted(entry.binding, offers).demand
        flavors, reaches = admitted_to(record), self._fleet.reaches
        return charge_of((), flavors, demand, there, (), offers, reaches, self._table, None)

    def _leaving(self, entry: Entry, stay: InPlace) -> tuple[str, Charge]:
        """What is suspended is charged until its pods are gone."""
        queue, binding = entry.charged_queue, entry.binding
        known = self._queues.queues.cluster_queues.get(queue)
        offers, reaches = self._offers(known) if known is not None else {}, self._fleet.reaches
        demand = counted(binding, offers).demand
        if known is None:
            offers = offered_by_all(demand.total(), reaches)
        there = (Placed(stay.by.cluster, min(stay.leaving, demand.replicas)),)
        flavors = AdmittedTo(dict(stay.by.flavors))
        return queue, charge_of((), flavors, demand, there, (), offers, reaches, self._table, None)

    def _copies(self, entry: Entry, record: AdmissionRecord | None) -> Copies | None:
        """How many clusters get all of the workload, and which may; None where it is one at most."""
        binding, state = entry.binding, entry.state
        stated = state.copies if isinstance(state, Admitted | Adopted | Growing | Shrinking) else 1
        count = binding.copies(max(stated, record.copies if record is not None else 1))
        if count == 1 or binding.placement is None:
            return None
        return Copies(count, self._fleet.permitted(binding.placement))

    def _best(self, entry: Entry, queue: ClusterQueue, reserve: Requests) -> AdmittedTo:
        """The flavors of what was never admitted, as if it were now."""
        state = entry.state
        if not (isinstance(state, Adopted) and isinstance(entry.queue, Resolved)):
            return NOWHERE
        wanted = Pending(entry.queue, reserve, state.copies, 0)
        shape = self._shapes.of(wanted, entry.binding, queue, "")
        best = shape.preferred
        if best is None:
            return NOWHERE
        components = {name: dict(flavors) for name, flavors in components_of(best)}
        return AdmittedTo(dict(flavors_of(best)), components)

    def _offers(self, queue: ClusterQueue) -> Mapping[str, tuple[str, ...]]:
        found = self._offered.get(queue.name)
        if found is None:
            found = self._offered[queue.name] = offered(queue)
        return found


def to_run(entry: Entry, binding: Binding) -> tuple[Placed, ...]:
    """What is placed, but for what has done its work."""
    placement = binding.placement
    is_divided = placement is None or not placement.is_duplicated
    done, completions = binding.progress.done, entry.facts.completions
    return still_to_run(binding.placed, done, completions, is_divided=is_divided)
