"""Cache: what is watched, and all that follows from it, kept up to date binding by binding.

The one idea: everything that is known of a binding follows from what is written on it and from the queues,
flavors and clusters there are; so an event only marks whom it concerns, and `settle` derives those anew. The
sole additions are the admissions under way: from the decision until the server has answered they count as
made. Nothing is counted by adding and subtracting over time: a binding has one state, one charge, one place.
"""

from collections import ChainMap
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from itertools import chain

from fairway.scope import Scope
from queue_dispatcher.api.cluster_queue import ClusterQueue, StopPolicy
from queue_dispatcher.api.objects import ResourceFlavorObject
from queue_dispatcher.api.reading.resource_flavor import read_resource_flavor
from queue_dispatcher.api.resource_flavor import ResourceFlavor
from queue_dispatcher.api.volcano import FLAVOR
from queue_dispatcher.bindings.binding import Binding
from queue_dispatcher.bindings.cluster import ClusterObject, read_cluster
from queue_dispatcher.bindings.objects import ResourceBinding
from queue_dispatcher.bindings.phase import Moment, Seen, began_day_ms, phase
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
    Unresolved,
)
from queue_dispatcher.bindings.suspending_policy import calls_for_policy
from queue_dispatcher.cache.binding_table import BindingTable
from queue_dispatcher.cache.charges import Charges
from queue_dispatcher.cache.charging import Charging
from queue_dispatcher.cache.checks import Checks
from queue_dispatcher.cache.claims import Claims
from queue_dispatcher.cache.ends import Ends
from queue_dispatcher.cache.entry import (
    Admission,
    Entry,
    FinishedNotice,
    GroupKey,
    Notice,
    PlacedNotice,
    Reached,
    ReachedNotice,
    RestartedNotice,
)
from queue_dispatcher.cache.excess import Excess
from queue_dispatcher.cache.fleet import Fleet
from queue_dispatcher.cache.indexes import Indexes, charged_local, charged_name, queue_name
from queue_dispatcher.cache.interpreter import Interpreter
from queue_dispatcher.cache.items import Items, promised_to
from queue_dispatcher.cache.lost import charged_on, charged_there
from queue_dispatcher.cache.max_waits import MaxWaits
from queue_dispatcher.cache.overrides import Overrides
from queue_dispatcher.cache.pending_queues import PendingQueues
from queue_dispatcher.cache.precedences import Precedences
from queue_dispatcher.cache.queues import QueueCache
from queue_dispatcher.cache.roll_forward import forward_keeps, forward_record
from queue_dispatcher.cache.running import RunningSet, is_placed, phase_of
from queue_dispatcher.cache.shapes import EVERYWHERE, Shapes
from queue_dispatcher.cache.table import Table
from queue_dispatcher.cache.tally import Tally
from queue_dispatcher.cache.templates import Kind, Templates
from queue_dispatcher.cache.usages import Usages
from queue_dispatcher.cycle.items import Item, Shape
from queue_dispatcher.cycle.keeping import Keeping
from queue_dispatcher.cycle.run_history import RunHistory
from queue_dispatcher.ledger.cells import Cell, CellTable, Charge
from queue_dispatcher.ledger.resolve import Capacities, Resolved, resolve, resolving
from queue_dispatcher.workloads.fleet import Cluster
from queue_dispatcher.workloads.keeping import Kept, kept
from queue_dispatcher.workloads.placement import Placement

_FEW_SHAPES = 1_000
_STEP = 100
"""What a step of `resolving` takes of a budget that counts bindings."""
_MOST_RESTARTS = 3
"""After so many changes of queues in the midst of it, a tree is resolved at once."""


class Cache:
    """The state of one dispatcher; on the event loop, one writer.

    ``scope`` says what is to wait. ``changed`` is called when something may have to be decided anew. With
    ``probes`` estimators are asked, and with ``preplaces`` releases say where to, as far as their answers go;
    with ``guides`` also where in a cluster. With ``observes`` no write is really made.
    ``read`` reduces bindings, if not as they are; ``forget`` is told the uid
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
        preplaces: bool = True,
        guides: bool = True,
        volcano: bool = False,
        observes: bool = False,
        read: Callable[[ResourceBinding], Binding] | None = None,
        forget: Callable[[str], None] | None = None,
    ) -> None:
        self._changed = changed
        self._forget = forget
        self.observes = observes
        read = read or BindingReader().read
        self.bindings = BindingTable(read, self._add, self._replace, self._remove)
        self.cluster_bindings = BindingTable(read, self._add, self._replace, self._remove)
        self.fleet = Fleet(self._places_moved, self._room_appeared, self._amounts_changed)
        self.clusters = Table[ClusterObject, Cluster](read_cluster, self._cluster_changed)
        self.flavors = Table[ResourceFlavorObject, ResourceFlavor](read_resource_flavor, self._flavor_changed)
        self.fleet.clusters = self.clusters.values
        self.fleet.flavors = ChainMap(self.flavors.values, {FLAVOR.name: FLAVOR} if volcano else {})
        self.queues = QueueCache(changed, lambda: self.fleet.owned(FLAVOR.name) or {})
        self.overrides = Overrides(self._overridden, self._suspends)
        self.templates = Templates(self._template_changed, digests=probes, guides=guides and preplaces)
        self.table = CellTable()
        self.is_accelerator = scope.is_accelerator
        self.preplaces = probes and preplaces
        """Whether releases say where they go, as far as the estimators' answers go."""
        self.shapes = Shapes(self.fleet, self.table, scope.is_accelerator, probes=probes, preplaces=preplaces)
        self.pending = PendingQueues(self.shapes, self._count)
        self.tally = Tally()
        self.resolved = resolve((), {}, self.table)
        self.charges = Charges(self.resolved.tree)
        self.charged_when_counted: dict[str, Mapping[Cell, int]] = {}
        """By cluster, what was charged there when Karmada last counted what is free; none before it has."""
        self.entries: dict[str, Entry] = {}
        """By uid."""
        self.running = RunningSet()
        self.usages = Usages(self.queues, self.fleet.flavors, self.table, self.is_accelerator)
        self.ends = Ends()
        self.claims = Claims()
        self.precedences = Precedences()
        self.checks = Checks()
        self.max_waits = MaxWaits()
        self.history = RunHistory()
        self.duties: set[str] = set()
        """Those whose state calls for a write, whatever is decided."""
        self.growing: dict[str, Item] = {}
        """Elastic workloads of which a part runs, and what each would grow by."""
        self.guarded: set[str] = set()
        """Those of which the watch has not told yet what our last write made of them."""
        self.suspended: set[str] = set()
        """Those that stand still in a cluster and wait for room there."""
        self.unswitched: set[str] = set()
        """Those of which a policy that suspends them has to come, or to go."""
        self.forward: set[str] = set()
        """Members of half released groups, charged and to be released before anything else."""
        self.notices: list[Notice] = []
        """What happened since somebody last looked; whoever looks empties it."""
        self.room: dict[str, dict[str, int]] = {}
        """By cluster, what more may fit there since somebody last looked, as of `grown`; likewise."""
        self._changes = 0
        self._moment = Moment()
        self._overtaken_ms = 0
        # What is only observed is held by nobody, so no part of it could run.
        states = self.preplaces and not observes
        self._interpreter = Interpreter(self.queues, self.templates, self.fleet, scope, states=states)
        self._charging = Charging(self.queues, self.fleet, self.shapes, self.table)
        self.excess = Excess()
        self._items = Items(self.queues, self.templates, self.shapes, self.overrides)
        self._indexes = Indexes()
        self._dirty: dict[str, Entry] = {}
        self._gone: dict[str, Entry] = {}
        self._have_flavors_moved = False
        self._moved: set[Placement] = set()
        self._elsewhere: set[Placement] = set()
        # The namespaces in which others have come to tell pods something else; empty for all.
        self._told_otherwise: set[str] = set()
        # Shapes that may have become others; one of whom each stands for is looked at first.
        self._doubted: set[Shape] = set()
        self._to_doubt: list[Shape] = []
        self._capacities: Capacities = {}
        self._resolving: Iterator[Resolved | None] | None = None
        self._restarts = 0
        self._are_amounts_stale = False
        self._most_shapes = _FEW_SHAPES
        self._most_placements = _FEW_SHAPES

    # What the sinks tell.

    def present(self, uid: str) -> Entry | None:
        """The entry; None if there is none, or its binding is gone by now."""
        return self.entries.get(uid) if uid not in self._gone else None

    def _add(self, entry: Entry) -> None:
        before = self._gone.pop(entry.uid, None)
        if before is not None:
            self._take_out(before)
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
        # Whoever decides meanwhile goes by what it began with.
        self._gone[entry.uid] = entry
        self._dirty.pop(entry.uid, None)
        self._changed()

    def _take_out(self, entry: Entry) -> None:
        uid = entry.uid
        self.entries.pop(uid, None)
        self.tally.drop(uid)
        self._confirm(self._indexes.remove(entry), ())
        self.pending.drop(entry)
        if self.charges.drop(uid):
            self._changes += 1
            self._room_of(entry)
        for collection in (self.duties, self.forward, self.suspended, self.unswitched):
            collection.discard(uid)
        self.growing.pop(uid, None)
        self.running.drop(uid)
        self.usages.drop(uid, self._moment.day_ms)
        self.ends.drop(uid)
        self.claims.drop(uid)
        self.precedences.drop(uid)
        self.checks.drop(uid)
        self.max_waits.drop(uid)
        entry.record = None
        if self._forget is not None:
            self._forget(uid)

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

    def _places_moved(
        self, placements: Collection[Placement] | None, elsewhere: Collection[Placement]
    ) -> None:
        if placements is None:
            self._have_flavors_moved = True
        else:
            self._moved.update(placements)
            self._elsewhere.update(elsewhere)
        self._changed()

    def _overridden(self, namespace: str) -> None:
        self._told_otherwise.add(namespace)
        self._changed()

    def _suspends(self, key: str) -> None:
        entry = self.bindings.entries.get(key)
        if entry is not None:
            self.mark(entry)

    def _cluster_changed(self, key: str, before: Cluster | None, after: Cluster | None) -> None:
        if after is None:
            self.charged_when_counted.pop(key, None)
        elif before is not None and before.free != after.free:
            self.charged_when_counted[key] = dict(self.charges.on(key))
        if before is None or after is None or (before.place, before.amounts) != (after.place, after.amounts):
            self.precedences.forget()
        self.fleet.cluster_changed(key, before, after)

    def _flavor_changed(self, key: str, before: ResourceFlavor | None, after: ResourceFlavor | None) -> None:
        self.usages.flavor_changed(before, after)
        self.fleet.flavor_changed(key, before, after)

    def _room_appeared(self, cluster: str, growth: Mapping[str, int]) -> None:
        known = self.room.setdefault(cluster, {})
        for resource, amount in growth.items():
            known[resource] = known.get(resource, 0) + amount
        self._changed()

    def _amounts_changed(self) -> None:
        self._are_amounts_stale = True
        self.queues.capacity_changed()
        self._changed()

    def pod_charge(self, entry: Entry, cluster: str) -> Charge:
        """See `Charging.of_pod`."""
        return self._charging.of_pod(entry, cluster)

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

    @property
    def moment(self) -> Moment:
        """How late it was when that was last said."""
        return self._moment

    def advance(self, moment: Moment) -> None:
        """It is that late: what time alone changes is derived anew."""
        self._moment = moment._replace(overtaken_ms=self._overtaken_ms)
        self.fleet.advance(moment, self.running.clusters)
        for uid in self.checks.take_due(moment.elapsed_ms):
            self.mark(self.entries[uid])
        self.notices += self.max_waits.missed(moment.elapsed_ms)
        for uid in list(self.running.in_flight):
            entry = self.entries[uid]
            known = phase_of(entry)
            if known is not None and known != phase(entry.binding, entry.seen, self._moment, entry.counts):
                self.mark(entry)

    def mark(self, entry: Entry) -> None:
        """Derive the entry anew."""
        if entry.uid not in self._gone:
            self._dirty[entry.uid] = entry
            self._changed()

    def start_in(self, uid: str, flavors: tuple[tuple[str, str], ...]) -> None:
        """While it waits it is to start in these flavors, by resource, and in no others; empty for in any."""
        entry = self.entries.get(uid)
        if entry is not None and entry.room_in != flavors:
            entry.room_in = flavors
            self.mark(entry)

    def settle(self, budget: int = 1 << 62) -> bool:
        """Derive anew what has changed, at most ``budget`` bindings; whether all is up to date then."""
        while self._gone and budget > 0:
            self._take_out(self._gone.popitem()[1])
            budget -= 1
        if self._gone:
            return False
        self._settle_queues()
        self.usages.settle(self._moment.day_ms)
        while self._resolving is not None and (budget > 0 or self._restarts > _MOST_RESTARTS):
            self._resolve_on(self._resolving)
            budget -= _STEP
        if self._resolving is not None:
            return False
        while self._to_doubt and budget > 0:
            self._doubt(self._to_doubt.pop())
            budget -= 1
        while self._dirty and budget > 0:
            _, entry = self._dirty.popitem()
            self._derive(entry)
            budget -= 1
        if self._dirty or self._to_doubt:
            return False
        for entry, released in self.pending.settle():
            self._roll_forward(entry, released)
        if len(self.shapes) > self._most_shapes:
            growing = (item.shape for item in self.growing.values())
            self.shapes.retain(chain(self.pending.shapes(), growing))
            # What is found again by itself is as much again.
            self._most_shapes = max(_FEW_SHAPES, 4 * len(self.shapes))
        if self.fleet.placements > self._most_placements:
            self.fleet.retain({entry.binding.placement for entry in self.entries.values()})
            self._most_placements = max(_FEW_SHAPES, 2 * self.fleet.placements)
        return True

    def refresh(self, entry: Entry) -> None:
        """Derive one entry, if something about it has changed."""
        if self._dirty.pop(entry.uid, None) is not None:
            self._derive(entry)

    def _settle_queues(self) -> None:
        self._settle_tree()
        queues = self.queues
        for name in queues.reshaped:
            self.shapes.forget_queue(name)
            self._charging.forget_queue(name)
            self._mark_all(self._indexes.of_queue(name))
        if self._have_flavors_moved:
            self._have_flavors_moved = False
            self._moved.clear()
            self._elsewhere.clear()
            self.shapes.forget_places()
            queues.all_bindings = True
        if self._moved:
            moved, self._moved = self._moved, set()
            elsewhere, self._elsewhere = self._elsewhere, set()
            self._mark_all(uid for placement in moved for uid in self._indexes.of_placement(placement))
            self._to_doubt += self.shapes.doubt(moved, elsewhere)
        otherwise, self._told_otherwise = self._told_otherwise, set()
        if queues.all_bindings or "" in otherwise:
            self._mark_all(self.entries)
        else:
            for namespace in {*queues.namespaces, *otherwise}:
                self._mark_all(self._indexes.in_namespace(namespace))
        queues.taken()

    def _settle_tree(self) -> None:
        queues = self.queues
        cluster_queues = queues.queues.cluster_queues
        if not queues.is_tree_stale and not self._are_amounts_stale:
            return
        self._are_amounts_stale = False
        shares = queues.shares
        capacities = {
            name: {of: amount for of, amount in capacity.items() if (name, of) in shares}
            for name in self.fleet.flavors
            if (capacity := self.fleet.owned(name)) is not None
        }
        # Most of what clusters report is no quota of anybody's.
        if not queues.is_tree_stale and (not shares or capacities == self._capacities):
            return
        self._capacities = capacities
        if self._resolving is not None:
            self._restarts += 1
        self._resolving = resolving(list(cluster_queues.values()), capacities, self.table)

    def _resolve_on(self, resolving: Iterator[Resolved | None]) -> None:
        """One step further towards the tree that is to count next; until then the one before does."""
        found = next(resolving)
        if found is not None:
            self._resolving, self._restarts = None, 0
            before, self.resolved = self.resolved.drained, found
            for queue in before.keys() | found.drained.keys():
                if before.get(queue) != found.drained.get(queue):
                    self._mark_all(self._indexes.of_queue(queue))
            self.charges.move_to(found.tree)
            self.precedences.move_to(found.tree)
            self._changes += 1

    def _mark_all(self, uids: Iterable[str]) -> None:
        for uid in uids:
            self._dirty[uid] = self.entries[uid]

    def _derive(self, entry: Entry) -> None:
        before, seen = entry.state, entry.seen
        self.shapes.read.clear()
        entry.state = self._interpreter.read(entry, self._moment)
        made = entry.binding.record
        # Also what another leader made of it counts, if it is not older.
        if entry.record is not None and made is not None and made.admitted_ms >= entry.record.admitted_ms:
            entry.record = None
        self._indexes.leads_to(entry)
        self._charge(entry)
        self._stand(entry)
        self._note_reads(entry)
        self.precedences.put(entry)
        running, uid = self.running, entry.uid
        was_starting = running.is_starting(uid)
        was_in_flight, was_preplaced = uid in running.in_flight, uid in running.preplaced
        self._classify(entry, before)
        if was_starting and is_placed(entry):
            self.notices.append(PlacedNotice(uid, charged_name(entry), seen, was_in_flight, was_preplaced))
            if seen.is_ours and not was_preplaced:
                self._overtaken_ms = max(self._overtaken_ms, seen.tried_ms)
            entry.stated_ms = seen.tried_ms if seen.is_ours and was_preplaced else 0
        self.notices += _reached(entry, seen, self._moment.day_ms)
        if entry.stated_ms and entry.binding.is_settled:
            self._overtaken_ms = max(self._overtaken_ms, entry.stated_ms)
            entry.stated_ms = 0

    def _note_reads(self, entry: Entry) -> None:
        """Note on what the entry depends of where workloads may land."""
        binding = entry.binding
        placement = binding.placement
        counts = placement is not None and (placement.is_duplicated or binding.demand.is_set)
        before = self._indexes.reads(entry, placement if counts else None, self.shapes.read)
        if self._doubted:
            self._confirm(before, self.shapes.read)

    def _doubt(self, shape: Shape) -> None:
        stands_for = next(iter(self._indexes.of_shape(shape)), None)
        if stands_for is not None:
            self._doubted.add(shape)
            self._mark_all((stands_for,))

    def _confirm(self, before: Iterable[Shape], now: Collection[Shape]) -> None:
        """Of a shape that one was looked at for all: unless it is the same still, the others are as well."""
        for shape in before:
            if shape in self._doubted:
                self._doubted.discard(shape)
                if shape not in now:
                    self._mark_all(self._indexes.of_shape(shape))

    def _charge(self, entry: Entry) -> None:
        before = self.charges.get(entry.uid)
        queue, charge = self._charging.charge(entry)
        there = charged_there(entry.binding, charge, self.table)
        if self.charges.put(entry.uid, queue, charge, there):
            self._changes += 1
        if before is not None and sum(a for _, a in charge) < sum(a for _, a in before.charge):
            self._room_of(entry)

    def _room_of(self, entry: Entry) -> None:
        binding = entry.binding
        ended = dict(binding.demand.total())
        clusters = [share.cluster for share in binding.placed]
        if binding.suspended is not None:
            clusters.append(binding.suspended.by.cluster)
        for cluster in clusters:
            self._room_appeared(cluster, ended)

    def _stand(self, entry: Entry) -> None:
        """Put the entry where it waits, if it does."""
        item, entry.waits = self._items.item(entry)
        state = entry.state
        if item is not None and isinstance(state, Pending):
            asked = self.queues.queues.cluster_queues[item.queue].checks
            entry.waits = self.checks.put(entry, asked, item.due_ms, self._moment)
            if entry.waits is not None:
                item = None
        else:
            self.checks.drop(entry.uid)
        self.max_waits.put(entry, self._moment)
        self.pending.put(entry, item, _group(entry))
        growth = self._items.growth(entry) if entry.elastic is not None else None
        if growth != entry.growth:
            entry.growth = growth
            self._changes += 1
            if growth is not None:
                self.growing[entry.uid] = growth
            else:
                self.growing.pop(entry.uid, None)

    def _classify(self, entry: Entry, before: State) -> None:
        """Note what the state means for the release window and for writes, and what has just happened."""
        uid, state = entry.uid, entry.state
        is_assumed = entry.record is not None
        self.running.put(entry, self.charges.get(uid), self._moment)
        self._note_usage(entry)
        self.ends.put(entry, self._moment, is_drained=bool(self.drained_by(entry)))
        self.claims.put(entry)
        is_duty = isinstance(state, HeldWithin | Shrinking | Reassert) or (
            isinstance(state, Adopted) and state.restore
        )
        _keep(self.duties, uid, is_duty and not is_assumed)
        is_suspended = entry.binding.suspended is not None
        _keep(self.suspended, uid, is_suspended and isinstance(state, Pending | Unresolved))
        is_there = self.overrides.suspend(entry.binding)
        _keep(self.unswitched, uid, calls_for_policy(entry.binding) is not is_there)
        if isinstance(state, Finished) and not isinstance(before, Finished | Foreign):
            queue = charged_name(entry) or queue_name(entry)
            began_ms = began_day_ms(entry.binding, entry.seen, self._moment)
            self.notices.append(FinishedNotice(uid, queue))
            if began_ms is not None:
                ran_ms = max(0, self._moment.day_ms - began_ms)
                self.history.ended((queue, promised_to(entry).name), ran_ms)
        if isinstance(before, Finished) and isinstance(state, Admitted):
            self.notices.append(RestartedNotice(entry, state.record.queue))
        self._count(entry)

    def _note_usage(self, entry: Entry) -> None:
        """Whose use it is what the entry holds, and since when."""
        uid, now_ms = entry.uid, self._moment.day_ms
        running = self.running.get(uid)
        is_going = entry.binding.suspended is not None and entry.record is None
        if running is None or is_going:
            tree, charged = self.charges.ledger.tree, self.usages.queue_of(uid)
            if entry.binding.preempted is not None and charged in tree.paths:
                self.usages.displaced(uid, tree.root_of(charged), now_ms)
            self.usages.drop(uid, now_ms)
            return
        local, (queue, charge, _) = charged_local(entry), running.charged
        key = f"{entry.binding.namespace}/{local}" if local else ""
        self.usages.put(uid, key, queue, charge, running.since_ms, now_ms)

    def _count(self, entry: Entry) -> None:
        self.tally.count(entry, self.charges.get(entry.uid))

    @property
    def changes(self) -> int:
        """Grows whenever who waits, what is charged, or what the queues allow has changed."""
        return self._changes + self.pending.changes

    def idle(self, queue: str) -> Iterator[tuple[Entry, Charge]]:
        """The entries charged to a ClusterQueue itself of which not all is seen to run, and with what."""
        for uid in self.running.idle(queue):
            charged = self.charges.get(uid)
            if charged is not None:
                yield self.entries[uid], charged.charge

    def in_namespace(self, namespace: str) -> Iterator[Entry]:
        """The entries of a namespace; of cluster-scoped bindings those of none."""
        return (self.entries[uid] for uid in self._indexes.in_namespace(namespace))

    def namespaces(self) -> Collection[str]:
        """Where there are bindings; empty for the cluster-scoped ones."""
        return self._indexes.namespaces()

    def named(self, namespace: str, name: str) -> list[Entry]:
        """Those about a workload of that name there, or whose binding has it."""
        found = dict.fromkeys(self._indexes.of_workload(namespace, name))
        table = self.bindings if namespace else self.cluster_bindings
        entry = table.entries.get(f"{namespace}/{name}" if namespace else name)
        if entry is not None and entry.binding.workload.namespace == namespace:
            found[entry.uid] = None
        return [entry for uid in found if (entry := self.present(uid)) is not None]

    def drained_by(self, entry: Entry) -> str:
        """Which queue of those that the entry was admitted through and to is drained; empty for none."""
        record = entry.binding.record
        if record is None:
            return ""
        queue = self.resolved.drained.get(charged_name(entry), "")
        if queue:
            return f"ClusterQueue {queue}"
        local = self.queues.queues.local_queues.get(f"{entry.binding.namespace}/{record.local_queue}")
        is_drained = local is not None and local.stop_policy is StopPolicy.HOLD_AND_DRAIN
        return f"LocalQueue {local.key}" if local is not None and is_drained else ""

    def counted_though_lost(self, queue: ClusterQueue) -> list[str]:
        """The clusters that are not Ready and that the queue's percentages count for a while all the same."""
        excused, shares, reaches = self.fleet.excused, self.queues.shares, self.fleet.reaches
        if not excused:
            return []
        return sorted(
            {
                cluster
                for group in queue.groups
                for flavor in group.flavors
                if any((flavor.flavor, resource) in shares for resource in flavor.quotas)
                and flavor.flavor in reaches
                for cluster in excused & reaches[flavor.flavor].clusters
            }
        )

    def envelope(self) -> dict[Cell, int]:
        """What is physically left of each cell whose capacity is known."""
        lost = charged_on(self.fleet.lost, self.charges, self.fleet.reaches, self.table)
        return self.fleet.envelope(self.table, self.charges.ledger, lost)

    # Admissions under way.

    def kept(self, entry: Entry, keeps: Sequence[Keeping]) -> tuple[Kept, ...]:
        """What keeps the pods of the entry on the nodes of their flavors, wherever it may go."""
        return kept(keeps, entry.facts.pods, self.fleet.permitted(entry.binding.placement or EVERYWHERE))

    def assume(self, entry: Entry, admission: Admission, record: AdmissionRecord) -> None:
        """The entry is being admitted with ``record``, which counts as made from now on."""
        entry.admission, entry.record = admission, record
        self.shapes.read.clear()
        self._charge(entry)
        self._stand(entry)
        self._note_reads(entry)
        self._classify(entry, entry.state)

    def members(self, admission: Admission) -> list[Entry]:
        """Those that are still being admitted by it."""
        found = (self.entries.get(uid) for uid in admission.records)
        return [entry for entry in found if entry is not None and entry.admission is admission]

    def awaits(self, admission: Admission) -> bool:
        """Whether writes under way are still to tell if any of what is called off has been released."""
        is_off = admission.is_off and not admission.released
        return is_off and any(member.is_writing for member in self.members(admission))

    def forget(self, entry: Entry) -> None:
        """The entry is not being admitted any more, because it is admitted or because it cannot be."""
        entry.admission = entry.record = None
        self.forward.discard(entry.uid)
        self.mark(entry)

    def _roll_forward(self, entry: Entry, released: Entry) -> None:
        """Charge the member of a half released group as part of it; its release is to be written next."""
        record = forward_record(entry, released)
        if record is not None and entry.item is not None:
            self.forward.add(entry.uid)
            keeps = {entry.uid: self.kept(entry, forward_keeps(entry.item, record))}
            admission = Admission(entry.item, {entry.uid: record}, kept=keeps, released={released.uid})
            self.assume(entry, admission, record)


def _group(entry: Entry) -> GroupKey | None:
    """The group that the entry waits with, or was released with."""
    record = entry.effective_record
    if record is not None:
        return (record.queue, entry.binding.namespace, record.group) if record.group else None
    if isinstance(entry.state, Pending) and entry.facts.group:
        return (entry.state.queue.cluster_queue, entry.binding.namespace, entry.facts.group)
    return None


def _reached(entry: Entry, before: Seen, day_ms: int) -> Iterator[Notice]:
    """How far the release has come since it was seen so."""
    seen, record = entry.seen, entry.binding.record
    if record is None or not seen.is_ours or seen.was_lost or before.release != seen.release:
        return
    took_ms = max(0, day_ms - record.admitted_ms)
    if seen.was_bound and not before.was_bound:
        yield ReachedNotice(charged_name(entry), Reached.BOUND, took_ms)
    if seen.has_run and not before.has_run and entry.binding.progress.is_told:
        yield ReachedNotice(charged_name(entry), Reached.READY, took_ms)


def _keep(uids: set[str], uid: str, is_in: bool) -> None:
    if is_in:
        uids.add(uid)
    else:
        uids.discard(uid)
