"""Cache: what is watched, and all that follows from it, kept up to date binding by binding.

The one idea: everything that is known of a binding follows from what is written on it and from the queues,
flavors and clusters there are; so an event only marks whom it concerns, and `settle` derives those anew. The
sole additions are the admissions under way: from the decision until the server has answered they count as
made. Nothing is counted by adding and subtracting over time: a binding has one state, one charge, one place.
"""

from collections import ChainMap
from collections.abc import Callable, Iterable

from fairway.scope import Scope
from queue_dispatcher.api.objects import ResourceFlavorObject
from queue_dispatcher.api.reading.resource_flavor import read_resource_flavor
from queue_dispatcher.api.resource_flavor import ResourceFlavor
from queue_dispatcher.api.volcano import FLAVOR
from queue_dispatcher.bindings.binding import Binding
from queue_dispatcher.bindings.cluster import ClusterObject, read_cluster
from queue_dispatcher.bindings.objects import ResourceBinding
from queue_dispatcher.bindings.phase import Moment, phase
from queue_dispatcher.bindings.reading import BindingReader
from queue_dispatcher.bindings.record import AdmissionRecord
from queue_dispatcher.bindings.state import (
    Admitted,
    Adopted,
    Finished,
    Foreign,
    HeldWithin,
    Pending,
    Reassert,
    Shrinking,
    State,
)
from queue_dispatcher.cache.binding_table import BindingTable
from queue_dispatcher.cache.charges import Charges
from queue_dispatcher.cache.charging import Charging
from queue_dispatcher.cache.entry import (
    Admission,
    Entry,
    FinishedNotice,
    GroupKey,
    Notice,
    PlacedNotice,
    RestartedNotice,
)
from queue_dispatcher.cache.fleet import Fleet
from queue_dispatcher.cache.indexes import Indexes, charged_name, queue_name
from queue_dispatcher.cache.interpreter import Interpreter
from queue_dispatcher.cache.items import Items, promised_to
from queue_dispatcher.cache.lost import charged_on
from queue_dispatcher.cache.pending_queues import PendingQueues
from queue_dispatcher.cache.queues import QueueCache
from queue_dispatcher.cache.roll_forward import forward_record
from queue_dispatcher.cache.running import RunningSet, is_placed, phase_of
from queue_dispatcher.cache.shapes import Shapes
from queue_dispatcher.cache.table import Table
from queue_dispatcher.cache.templates import Kind, Templates
from queue_dispatcher.ledger.cells import Cell, CellTable
from queue_dispatcher.ledger.resolve import resolve
from queue_dispatcher.workloads.fleet import Cluster

_FEW_SHAPES = 1_000


class Cache:
    """The state of one dispatcher; on the event loop, one writer.

    ``scope`` says what is to wait. ``changed`` is called when something may have to be decided anew. With
    ``probes`` estimators are asked. ``read`` reduces bindings, if not as they are; ``forget`` is told the uid
    of one that is gone.
    Sinks for reflectors: ``bindings``, ``cluster_bindings``, ``clusters``, ``flavors``, the tables of
    ``queues``, and the kinds of ``templates``.
    """

    def __init__(
        self,
        scope: Scope,
        changed: Callable[[], None],
        *,
        probes: bool = False,
        volcano: bool = False,
        read: Callable[[ResourceBinding], Binding] | None = None,
        forget: Callable[[str], None] | None = None,
    ) -> None:
        self._changed = changed
        self._forget = forget
        read = read or BindingReader().read
        self.bindings = BindingTable(read, self._add, self._replace, self._remove)
        self.cluster_bindings = BindingTable(read, self._add, self._replace, self._remove)
        self.fleet = Fleet(self._places_moved, self._room_appeared, self._amounts_changed)
        self.clusters = Table[ClusterObject, Cluster](read_cluster, self.fleet.cluster_changed)
        self.flavors = Table[ResourceFlavorObject, ResourceFlavor](
            read_resource_flavor, self.fleet.flavor_changed
        )
        self.fleet.clusters = self.clusters.values
        self.fleet.flavors = ChainMap(self.flavors.values, {FLAVOR.name: FLAVOR} if volcano else {})
        self.queues = QueueCache(changed, lambda: self.fleet.capacity(FLAVOR.name) or {})
        self.templates = Templates(self._template_changed, digests=probes)
        self.table = CellTable()
        self.shapes = Shapes(self.fleet, self.table, scope.is_accelerator, probes=probes)
        self.pending = PendingQueues(self.shapes)
        self.resolved = resolve((), {}, self.table)
        self.charges = Charges(self.resolved.tree)
        self.entries: dict[str, Entry] = {}
        """By uid."""
        self.running = RunningSet()
        self.duties: set[str] = set()
        """Those whose state calls for a write, whatever is decided."""
        self.guarded: set[str] = set()
        """Those of which the watch has not told yet what our last write made of them."""
        self.forward: set[str] = set()
        """Members of half released groups, charged and to be released before anything else."""
        self.notices: list[Notice] = []
        """What happened since somebody last looked; whoever looks empties it."""
        self.room: set[str] = set()
        """Clusters where room may have appeared since somebody last looked; likewise."""
        self._changes = 0
        self._moment = Moment()
        self._interpreter = Interpreter(self.queues, self.templates, self.fleet, scope)
        self._charging = Charging(self.queues, self.fleet, self.shapes, self.table)
        self._items = Items(self.queues, self.templates, self.shapes)
        self._indexes = Indexes()
        self._dirty: dict[str, Entry] = {}
        self._has_moved = False
        self._most_shapes = _FEW_SHAPES

    # What the sinks tell.

    def _add(self, entry: Entry) -> None:
        self.entries[entry.uid] = entry
        self._indexes.add(entry)
        # Before anything is derived: what is derived without its template has to be derived once more.
        self._interpreter.expect(entry.binding)
        self.mark(entry)

    def _replace(self, entry: Entry, binding: Binding) -> None:
        if entry.binding.workload != binding.workload:
            self._indexes.remove(entry)
            entry.binding = binding
            self._indexes.add(entry)
        entry.binding = binding
        if entry.written:
            self.guarded.add(entry.uid)
        self.mark(entry)

    def _remove(self, entry: Entry) -> None:
        uid = entry.uid
        self.entries.pop(uid, None)
        self._indexes.remove(entry)
        self._dirty.pop(uid, None)
        self.pending.drop(entry)
        if self.charges.drop(uid):
            self._changes += 1
            self._room_of(entry)
        for collection in (self.duties, self.forward):
            collection.discard(uid)
        self.running.drop(uid)
        entry.record = None
        if self._forget is not None:
            self._forget(uid)
        self._changed()

    def _template_changed(self, kind: Kind, key: str) -> None:
        for uid in self._indexes.of_template(kind, key):
            self.mark(self.entries[uid])

    def kind_in_trouble(self, kind: Kind, trouble: str) -> None:
        """Templates of the kind cannot be read, for this reason; with an empty one they can be again."""
        known = self.templates.kinds[kind]
        if known.trouble != trouble:
            known.trouble = trouble
            for entry in self.entries.values():
                workload = entry.binding.workload
                if (workload.group, workload.kind) == kind:
                    self.mark(entry)

    def _places_moved(self) -> None:
        self._has_moved = True
        self._changed()

    def _room_appeared(self, clusters: frozenset[str]) -> None:
        self.room |= clusters
        self._changed()

    def _amounts_changed(self) -> None:
        self.queues.capacity_changed()
        self._changed()

    def take_held_back(self, elapsed_ms: int, expiry_ms: int) -> list[Entry]:
        """Let what is older than a write of ours count if nothing newer has come for so long; whose it is."""
        taken = []
        for uid in list(self.guarded):
            entry = self.entries.get(uid)
            if entry is None or not entry.written:
                self.guarded.discard(uid)
            elif not entry.written_ms:
                entry.written_ms = elapsed_ms
            elif elapsed_ms - entry.written_ms >= expiry_ms:
                self.guarded.discard(uid)
                if entry.held_back is not None:
                    taken.append(entry)
                table = self.bindings if entry.binding.namespace else self.cluster_bindings
                table.take_held_back(entry)
        return taken

    # Bringing everything up to date.

    def advance(self, moment: Moment) -> None:
        """It is that late: what has become of releases is derived anew where time alone changes it."""
        self._moment = moment
        for uid in list(self.running.in_flight):
            entry = self.entries[uid]
            known = phase_of(entry)
            if known is not None and known != phase(entry.binding, entry.seen, moment):
                self.mark(entry)

    def mark(self, entry: Entry) -> None:
        """Derive the entry anew."""
        self._dirty[entry.uid] = entry
        self._changed()

    def settle(self, budget: int = 1 << 62) -> bool:
        """Derive anew what has changed, at most ``budget`` bindings; whether all is up to date then."""
        self._settle_queues()
        while self._dirty and budget > 0:
            _, entry = self._dirty.popitem()
            self._derive(entry)
            budget -= 1
        if self._dirty:
            return False
        for entry in self.pending.settle():
            self._roll_forward(entry)
        if len(self.shapes) > self._most_shapes:
            self.shapes.retain(self.pending.shapes())
            self._most_shapes = max(_FEW_SHAPES, 2 * len(self.shapes))
        return True

    def refresh(self, entry: Entry) -> None:
        """Derive one entry, if something about it has changed."""
        if self._dirty.pop(entry.uid, None) is not None:
            self._derive(entry)

    def _settle_queues(self) -> None:
        queues = self.queues
        cluster_queues = queues.queues.cluster_queues
        if queues.is_tree_stale:
            capacities = {
                name: capacity
                for name in self.fleet.flavors
                if (capacity := self.fleet.capacity(name)) is not None
            }
            self.resolved = resolve(cluster_queues.values(), capacities, self.table)
            self.charges.move_to(self.resolved.tree)
            self._changes += 1
        for name in queues.reshaped:
            self.shapes.forget_queue(name)
            self._charging.forget_queue(name)
            self._mark_all(self._indexes.of_queue(name))
        if self._has_moved:
            self._has_moved = False
            self.shapes.forget_places()
            queues.all_bindings = True
        if queues.all_bindings:
            self._mark_all(self.entries)
        else:
            for namespace in queues.namespaces:
                self._mark_all(self._indexes.in_namespace(namespace))
        queues.taken()

    def _mark_all(self, uids: Iterable[str]) -> None:
        for uid in uids:
            self._dirty[uid] = self.entries[uid]

    def _derive(self, entry: Entry) -> None:
        before, seen = entry.state, entry.seen
        entry.state = self._interpreter.read(entry, self._moment)
        made = entry.binding.record
        # Also what another leader made of it counts, if it is not older.
        if entry.record is not None and made is not None and made.admitted_ms >= entry.record.admitted_ms:
            entry.record = None
        self._indexes.leads_to(entry)
        self._charge(entry)
        self._stand(entry)
        running, uid = self.running, entry.uid
        was_starting, was_in_flight = running.is_starting(uid), uid in running.in_flight
        self._classify(entry, before)
        if was_starting and is_placed(entry):
            self.notices.append(PlacedNotice(uid, charged_name(entry), seen, was_in_flight))

    def _charge(self, entry: Entry) -> None:
        before = self.charges.get(entry.uid)
        queue, charge = self._charging.charge(entry)
        if self.charges.put(entry.uid, queue, charge):
            self._changes += 1
        if before is not None and sum(a for _, a in charge) < sum(a for _, a in before.charge):
            self._room_of(entry)

    def _room_of(self, entry: Entry) -> None:
        self.room.update(share.cluster for share in entry.binding.placed)

    def _stand(self, entry: Entry) -> None:
        """Put the entry where it waits, if it does."""
        item, entry.waits = self._items.item(entry)
        self.pending.put(entry, item, _group(entry))

    def _classify(self, entry: Entry, before: State) -> None:
        """Note what the state means for the release window and for writes, and what has just happened."""
        uid, state = entry.uid, entry.state
        is_assumed = entry.record is not None
        self.running.put(entry, self.charges.get(uid), promised_to(entry))
        is_duty = isinstance(state, HeldWithin | Shrinking | Reassert) or (
            isinstance(state, Adopted) and state.restore
        )
        _keep(self.duties, uid, is_duty and not is_assumed)
        if isinstance(state, Finished) and not isinstance(before, Finished | Foreign):
            self.notices.append(FinishedNotice(uid, charged_name(entry) or queue_name(entry)))
        if isinstance(before, Finished) and isinstance(state, Admitted):
            self.notices.append(RestartedNotice(entry, state.record.queue))

    @property
    def changes(self) -> int:
        """Grows whenever who waits, what is charged, or what the queues allow has changed."""
        return self._changes + self.pending.changes

    def envelope(self) -> dict[Cell, int]:
        """What is physically left of each cell whose capacity is known."""
        lost = charged_on(self.fleet.lost, self.charges, self.entries, self.fleet.reaches, self.table)
        return self.fleet.envelope(self.table, self.charges.ledger, lost)

    # Admissions under way.

    def assume(self, entry: Entry, admission: Admission, record: AdmissionRecord) -> None:
        """The entry is being admitted with ``record``, which counts as made from now on."""
        entry.admission, entry.record = admission, record
        self._indexes.leads_to(entry)
        self._charge(entry)
        self._stand(entry)
        self._classify(entry, entry.state)

    def forget(self, entry: Entry) -> None:
        """The entry is not being admitted any more, because it is admitted or because it cannot be."""
        entry.admission = entry.record = None
        self.forward.discard(entry.uid)
        self.mark(entry)

    def _roll_forward(self, entry: Entry) -> None:
        """Charge the member of a half released group as part of it; its release is to be written next."""
        record = forward_record(entry, self.pending.group_of(entry))
        if record is not None and entry.item is not None:
            self.forward.add(entry.uid)
            self.assume(entry, Admission(entry.item, {entry.uid: record}), record)


def _group(entry: Entry) -> GroupKey | None:
    """The group that the entry waits with, or was released with."""
    record = entry.record or entry.binding.record
    if record is not None:
        return (record.queue, entry.binding.namespace, record.group) if record.group else None
    if isinstance(entry.state, Pending) and entry.facts.group:
        return (entry.state.queue.cluster_queue, entry.binding.namespace, entry.facts.group)
    return None


def _keep(uids: set[str], uid: str, is_in: bool) -> None:
    if is_in:
        uids.add(uid)
    else:
        uids.discard(uid)
