"""Which bindings an event concerns: by namespace, by template, by the ClusterQueue that they lead to."""

from collections.abc import Collection, Iterable, Iterator
from typing import TypeVar

from queue_dispatcher.cache.entry import Entry
from queue_dispatcher.cache.templates import Kind, template_key
from queue_dispatcher.cycle.items import Shape
from queue_dispatcher.workloads.placement import Placement
from queue_dispatcher.workloads.queue_of import Resolved

K = TypeVar("K")
_NONE: frozenset[str] = frozenset()
_NOTHING: tuple[Placement | None, tuple[Shape, ...]] = (None, ())


class Indexes:
    """Uids by what may change for them."""

    def __init__(self) -> None:
        self._namespaces: dict[str, set[str]] = {}
        self._templates: dict[tuple[Kind, str], set[str]] = {}
        self._kinds: set[Kind] = set()
        self._queues: dict[str, set[str]] = {}
        self._queue_of: dict[str, tuple[str, ...]] = {}
        self._placements: dict[Placement, set[str]] = {}
        self._shapes: dict[Shape, set[str]] = {}
        self._reads: dict[str, tuple[Placement | None, tuple[Shape, ...]]] = {}

    def add(self, entry: Entry) -> None:
        """The entry is there."""
        self._namespaces.setdefault(entry.binding.namespace, set()).add(entry.uid)
        template = _template(entry)
        self._kinds.add(template[0])
        self._templates.setdefault(template, set()).add(entry.uid)

    def remove(self, entry: Entry) -> tuple[Shape, ...]:
        """The entry goes; which shapes it depended on."""
        _discard(self._namespaces, entry.binding.namespace, entry.uid)
        _discard(self._templates, _template(entry), entry.uid)
        for queue in self._queue_of.pop(entry.uid, ()):
            _discard(self._queues, queue, entry.uid)
        return self.reads(entry, None, ())

    def reads(self, entry: Entry, placement: Placement | None, shapes: Iterable[Shape]) -> tuple[Shape, ...]:
        """What is known of the entry depends on where this placement lets it go, and on these shapes.

        On which shapes it depended before.
        """
        uid, now = entry.uid, (placement, tuple(dict.fromkeys(shapes)))
        before = self._reads.get(uid, _NOTHING)
        if now == before:
            return before[1]
        if before[0] is not None:
            _discard(self._placements, before[0], uid)
        for shape in before[1]:
            _discard(self._shapes, shape, uid)
        if placement is not None:
            self._placements.setdefault(placement, set()).add(uid)
        for shape in now[1]:
            self._shapes.setdefault(shape, set()).add(uid)
        if now == _NOTHING:
            del self._reads[uid]
        else:
            self._reads[uid] = now
        return before[1]

    def of_placement(self, placement: Placement) -> Collection[str]:
        """Those that depend on how many clusters the placement permits."""
        return self._placements.get(placement, _NONE)

    def of_shape(self, shape: Shape) -> Collection[str]:
        """Those that wait with the shape, or are charged by it."""
        return self._shapes.get(shape, _NONE)

    def leads_to(self, entry: Entry) -> None:
        """The entry may lead to another queue than before, or be charged to one."""
        record = entry.binding.record
        stated = record.queue if record is not None else ""
        names = dict.fromkeys(filter(None, (queue_name(entry), charged_name(entry), stated)))
        queues = tuple(names)
        before = self._queue_of.get(entry.uid, ())
        if queues == before:
            return
        for queue in before:
            _discard(self._queues, queue, entry.uid)
        for queue in queues:
            self._queues.setdefault(queue, set()).add(entry.uid)
        self._queue_of[entry.uid] = queues

    def in_namespace(self, namespace: str) -> Collection[str]:
        """Those of a namespace; empty for the cluster-scoped ones."""
        return self._namespaces.get(namespace, _NONE)

    def namespaces(self) -> Collection[str]:
        """The namespaces of bindings; empty for the cluster-scoped ones."""
        return self._namespaces.keys()

    def of_workload(self, namespace: str, name: str) -> Iterator[str]:
        """Those about a workload of any kind."""
        key = f"{namespace}/{name}" if namespace else name
        for kind in self._kinds:
            yield from self.of_template(kind, key)

    def of_template(self, kind: Kind, key: str) -> Collection[str]:
        """Those about a template."""
        return self._templates.get((kind, key), _NONE)

    def of_queue(self, queue: str) -> Collection[str]:
        """Those that lead or are charged to a ClusterQueue."""
        return self._queues.get(queue, _NONE)


def queue_name(entry: Entry) -> str:
    """The ClusterQueue that the entry leads to; empty if none can be told."""
    return entry.queue.cluster_queue if isinstance(entry.queue, Resolved) else ""


def charged_name(entry: Entry) -> str:
    """The ClusterQueue that its record, made or being made, is charged to; empty without one."""
    if entry.record is not None:
        return entry.record.queue
    return entry.charged_queue if entry.binding.record is not None else ""


def charged_local(entry: Entry) -> str:
    """The LocalQueue, in the binding's namespace, through which it is charged if it is; empty for none."""
    record = entry.effective_record
    if record is not None:
        return record.local_queue
    return entry.queue.local_queue if isinstance(entry.queue, Resolved) else ""


def _template(entry: Entry) -> tuple[Kind, str]:
    workload = entry.binding.workload
    return ((workload.group, workload.kind), template_key(workload))


def _discard(index: dict[K, set[str]], key: K, uid: str) -> None:
    uids = index.get(key)
    if uids is not None:
        uids.discard(uid)
        if not uids:
            del index[key]
