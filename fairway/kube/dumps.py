"""Dumps of a cluster: what ``kubectl get ... -A -o json|yaml`` wrote, read without a cluster.

Takes a ``List``, lists of one kind (``PodList``), single objects, several documents in one file, and gzip of
any of these. A file that cannot be read at all is an error; a broken object among good ones is a `Problem`.
"""

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Generic, TypeVar

from fairway.kube.dump_document import Document, JsonText, MalformedDump, kind_of_items
from fairway.kube.dump_documents import documents_in
from fairway.kube.dump_items import Flaw, ItemReader, read_head, shown, title
from fairway.kube.dump_text import dump_text
from fairway.kube.member_kinds import (
    CsiNode,
    LimitRange,
    Namespace,
    PersistentVolume,
    PersistentVolumeClaim,
    PriorityClass,
    RuntimeClass,
    StorageClass,
)
from fairway.kube.node_devices import NodeDevices
from fairway.kube.objects import Deployment, Node, Pod, ReplicaSet, ResourceQuota, object_key
from fairway.kube.resource import KubeObjectLike
from fairway.kube.resource_slices import DeviceClass, ResourceClaim, ResourceClaimTemplate, ResourceSlice
from fairway.kube.topologies import KueueTopology
from fairway.moments import moment_s
from fairway.names import DUMPED

T = TypeVar("T", bound=KubeObjectLike)

_REMEDY = (
    f"write it with: kubectl get {DUMPED} -A -o json, and with nodedevices where Fairway's node agent runs"
)
_WHOLE_FILE = -1
_SHOWN_KINDS = 8


class DumpError(ValueError):
    """Nothing can be read from a file; the message names it, says why and what to do."""


@dataclass(frozen=True, slots=True)
class Problem:
    """Something in a dump that could not be taken as it is.

    ``index`` counts the items of the file from 0 and is -1 for the file as a whole; ``object`` is the kind
    and name where they can be read; ``field`` is a path such as ``spec.containers[0].resources``, or empty;
    ``detail`` says what was expected and what is made of it.
    """

    file: str
    index: int
    object: str
    field: str
    detail: str

    @property
    def told(self) -> str:
        """The problem without the file."""
        name = f" ({self.object})" if self.object else ""
        where = [] if self.index == _WHOLE_FILE else [f"item {self.index}{name}"]
        return ": ".join([*where, *([self.field] if self.field else []), self.detail])

    def __str__(self) -> str:
        name = f" ({self.object})" if self.object and self.index == _WHOLE_FILE else ""
        return f"{self.file}{name}: {self.told}"


@dataclass(frozen=True, slots=True)
class Dump:
    """The objects of one cluster that Fairway reads, in the order of the file.

    ``others``: by type those that are neither nodes nor pods; see `of`. Of a type that is not in it, it is
    not known whether the cluster has any. Every cluster has namespaces: a file with some tells of all types.
    ``unread``: types that an API server did not let be read; ``read_at_s``: when it was asked, in seconds
    since the epoch, None for a file, which does not say.
    """

    nodes: tuple[Node, ...] = ()
    pods: tuple[Pod, ...] = ()
    problems: tuple[Problem, ...] = ()
    others: Mapping[type[KubeObjectLike], tuple[KubeObjectLike, ...]] = field(default_factory=dict)
    unread: frozenset[type[KubeObjectLike]] = frozenset()
    read_at_s: float | None = None

    def of(self, kind: type[T]) -> tuple[T, ...]:
        """All objects of a type."""
        return tuple(one for one in self.others.get(kind, ()) if isinstance(one, kind))

    def with_others(self, kind: type[T], objects: Iterable[T]) -> "Dump":
        """The same with these objects of a type."""
        return replace(self, others={**self.others, kind: tuple(objects)})

    @property
    def has_objects(self) -> bool:
        """Whether there is any object at all."""
        return bool(self.nodes or self.pods or any(self.others.values()))


def read_dump(path: Path) -> Dump:
    """Read a dump, in JSON or YAML, plain or gzip, whatever its name says. Blocks; raises DumpError.

    Needs as much memory as the file unpacked, and the result. Objects of other kinds are passed over; of
    two objects of the same kind and name the later counts, of NodeDevices those that were observed last.
    """
    reader = _Reader(str(path))
    try:
        data = dump_text(path)
        for document in documents_in(path, data):
            reader.read(document)
        return reader.dump()
    except MalformedDump as error:
        raise DumpError(f"{path}: {error}; {_REMEDY}") from None


def read_dumps(paths: Iterable[Path]) -> Dump:
    """Several files of one cluster as one, as by `read_dump`.

    An object that is in several files is a `Problem`. Of NodeDevices those count that were observed last; of
    others, whose resourceVersion tells no order, those of the last file.
    """
    found = [(str(path), read_dump(path)) for path in paths]
    problems = [problem for _, dump in found for problem in dump.problems]
    nodes = _once("Node", ((file, dump.nodes) for file, dump in found), problems)
    pods = _once("Pod", ((file, dump.pods) for file, dump in found), problems)
    known = {kind for _, dump in found for kind in dump.others}
    others = {
        kind: _once(name, ((file, dump.of(kind)) for file, dump in found), problems)
        for name, (_, kind) in _KINDS.items()
        if kind in known
    }
    return Dump(nodes, pods, tuple(problems), others)


def _once(kind: str, parts: Iterable[tuple[str, Iterable[T]]], problems: list[Problem]) -> tuple[T, ...]:
    """Each object of the files once; ``problems`` gets those that are in several."""
    counting: dict[str, tuple[str, T]] = {}
    for file, objects in parts:
        for one in objects:
            key = object_key(one.metadata)
            if key in counting:
                other, before = counting[key]
                counts = file if _supersedes(one, before) else other
                detail = (
                    f"expected each object in one file, found it in {other}, too; that of {counts} counts"
                )
                if isinstance(one, NodeDevices):
                    detail += ", observed last"
                problems.append(Problem(file, _WHOLE_FILE, shown(f"{kind} {key}"), "", detail))
                if counts == other:
                    continue
            counting[key] = file, one
    return tuple(one for _, one in counting.values())


def _supersedes(one: KubeObjectLike, before: KubeObjectLike) -> bool:
    """Whether an object counts rather than that of the same name which was read before it."""
    if isinstance(one, NodeDevices) and isinstance(before, NodeDevices):
        at_s, before_s = moment_s(one.observed_at), moment_s(before.observed_at)
        return before_s is None or (at_s is not None and at_s >= before_s)
    return True


class _Shelf(Generic[T]):
    """The objects of one kind, by key, in the order of their first appearance."""

    def __init__(self, kind: type[T]) -> None:
        self._reader = ItemReader(kind)
        self.objects: dict[str, T] = {}

    def add(self, text: JsonText) -> list[Flaw]:
        """Put the object in its place; what is wrong with it."""
        read, flaws = self._reader.read(text)
        if read is None:
            return flaws
        if not read.metadata.name:
            return [*flaws, Flaw("metadata.name", "expected a name, found none; the item is skipped")]
        key = object_key(read.metadata)
        if key in self.objects:
            later = _supersedes(read, self.objects[key])
            which = "the later one" if later else "the one before, observed later,"
            flaws.append(Flaw("", f"expected each object once, found it before; {which} counts"))
            if not later:
                return flaws
        self.objects[key] = read
        return flaws


_KINDS: dict[str, tuple[str, type[KubeObjectLike]]] = {
    "Node": ("", Node),
    "Pod": ("", Pod),
    "Deployment": ("apps", Deployment),
    "ReplicaSet": ("apps", ReplicaSet),
    "ResourceQuota": ("", ResourceQuota),
    "Topology": ("kueue.x-k8s.io", KueueTopology),
    "NodeDevices": ("fairway.dev", NodeDevices),
    "ResourceSlice": ("resource.k8s.io", ResourceSlice),
    "DeviceClass": ("resource.k8s.io", DeviceClass),
    "ResourceClaim": ("resource.k8s.io", ResourceClaim),
    "ResourceClaimTemplate": ("resource.k8s.io", ResourceClaimTemplate),
    "Namespace": ("", Namespace),
    "LimitRange": ("", LimitRange),
    "RuntimeClass": ("node.k8s.io", RuntimeClass),
    "PersistentVolume": ("", PersistentVolume),
    "PersistentVolumeClaim": ("", PersistentVolumeClaim),
    "StorageClass": ("storage.k8s.io", StorageClass),
    "CSINode": ("storage.k8s.io", CsiNode),
    "PriorityClass": ("scheduling.k8s.io", PriorityClass),
}


class _Reader:
    """Collects the objects of one file."""

    def __init__(self, file: str) -> None:
        self._file = file
        self._shelves = {name: _Shelf(kind) for name, (_, kind) in _KINDS.items()}
        self._index = 0
        self._knows_kind = self._has_empty_list = False
        self._others: Counter[str] = Counter()
        self._problems: list[Problem] = []

    def read(self, document: Document) -> None:
        """Take everything from the next document."""
        if document.item_kind in _KINDS:
            self._knows_kind = True
        elif not document.items and not document.item_kind:
            # So kubectl writes it for several kinds at once, be it of the wrong API server.
            self._has_empty_list = True
        if document.is_partial:
            detail = "expected the whole list, found one page of it; objects are missing"
            self._note(_WHOLE_FILE, f"{shown(document.item_kind)}List", [Flaw("metadata.continue", detail)])
        for text in document.items:
            flaws, kind = self._read_item(document.item_kind, text)
            if flaws:
                self._note(self._index, title(kind, text), flaws)
            self._index += 1

    def dump(self) -> Dump:
        """Everything read. Raises MalformedDump where that is nothing."""
        read = Dump(
            others={kind: tuple(self._shelves[name].objects.values()) for name, (_, kind) in _KINDS.items()}
        )
        others = {
            kind: objects
            for kind, objects in read.others.items()
            if (objects or read.of(Namespace)) and kind not in (Node, Pod)
        }
        dump = Dump(read.of(Node), read.of(Pod), tuple(self._problems), others)
        if self._problems and not dump.has_objects:
            raise MalformedDump(f"no object can be read; the first problem is {self._problems[0].told}")
        if not self._knows_kind and self._has_empty_list and not self._others:
            told = (
                "no object at all, as of a cluster without nodes; if that is wrong, look where it was written"
            )
            return replace(dump, problems=(Problem(self._file, _WHOLE_FILE, "List", "items", told),))
        if not self._knows_kind:
            kinds = ", ".join(f"{kind} ({count})" for kind, count in self._others.most_common(_SHOWN_KINDS))
            raise MalformedDump(f"expected the objects of a cluster, found {kinds or 'none'}")
        return dump

    def _read_item(self, promised_kind: str, text: JsonText) -> tuple[list[Flaw], str]:
        head = read_head(text, _KINDS)
        if isinstance(head, Flaw):
            return [head], promised_kind
        kind = head.kind or promised_kind
        if not kind:
            return [Flaw("kind", "expected the kind of the object, found none; the item is skipped")], ""
        group, _, version = head.api_version.rpartition("/")
        if kind in _KINDS and (group == _KINDS[kind][0] or not version):
            self._knows_kind = True
            return self._shelves[kind].add(text), kind
        if kind_of_items(kind) in (*_KINDS, ""):
            return [
                Flaw("items", "expected objects in an array that is in no other; the item is skipped")
            ], kind
        self._others[shown(f"{head.api_version} {kind}" if kind in _KINDS else kind)] += 1
        return [], kind

    def _note(self, index: int, title_: str, flaws: Iterable[Flaw]) -> None:
        self._problems.extend(Problem(self._file, index, title_, flaw.field, flaw.detail) for flaw in flaws)


# Has msgspec work out all kinds while the module is imported: two threads that do so at once, each with a
# file of its own, crash the process.
_Reader("")
