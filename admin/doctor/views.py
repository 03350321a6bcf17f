"""The objects of one API server as they come in, sorted into the kinds that the doctor reads.

The same for an API server and for a file. Kinds of one name share a path and are views of the same objects:
each object is decoded once for each. A broken object costs only itself, and is told.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from admin.doctor.kinds import Kind
from fairway.kube.dump_document import JsonText
from fairway.kube.dump_items import Flaw, ItemReader
from fairway.kube.objects import object_key
from fairway.kube.resource import KubeObjectLike

_VOWELS: Final = frozenset("aeiou")


@dataclass(frozen=True, slots=True)
class Coordinates:
    """Where a kind is served: API group, plural in lower case."""

    group: str
    plural: str


def coordinates_of(path: str) -> Coordinates:
    """Of the path of a collection, such as ``/apis/apps/v1/deployments`` or ``/api/v1/pods``."""
    parts = path.strip("/").split("/")
    return Coordinates(parts[1] if parts[0] == "apis" else "", parts[-1])


def coordinates_of_item(api_version: str, kind: str) -> Coordinates:
    """Of an object that says what it is; the plural is guessed as kubectl's libraries guess it."""
    group, slash, _ = api_version.rpartition("/")
    return Coordinates(group if slash else "", _plural(kind.lower()))


class View:
    """All objects of one name."""

    def __init__(self, kinds: Sequence[Kind]) -> None:
        self.first = kinds[0]
        self.coordinates = coordinates_of(self.first.path)
        self._readers = [ItemReader(kind.type) for kind in kinds]
        self._objects: list[dict[str, KubeObjectLike]] = [{} for _ in kinds]

    @property
    def name(self) -> str:
        """The key in `Plane.objects`."""
        return self.first.name

    def add(self, text: JsonText) -> list[Flaw]:
        """Take one object; what is wrong with it. Of two of the same name the later counts."""
        flaws: dict[Flaw, None] = {}
        for reader, objects in zip(self._readers, self._objects, strict=True):
            # What outlives its page or file must not hold on to all of it.
            found, problems = reader.read(bytes(text))
            flaws.update(dict.fromkeys(problems))
            if found is None:
                continue
            if not found.metadata.name:
                flaws[Flaw("metadata.name", "expected a name, found none; the item is skipped")] = None
                continue
            objects[object_key(found.metadata)] = found
        return list(flaws)

    def objects(self) -> tuple[KubeObjectLike, ...]:
        """All of them, in every type asked for."""
        return tuple(one for objects in self._objects for one in objects.values())

    def clear(self) -> None:
        """Forget all objects, to begin anew."""
        for objects in self._objects:
            objects.clear()


def views(kinds: Iterable[Kind]) -> tuple[View, ...]:
    """A view for each name."""
    by_name: dict[str, dict[type[KubeObjectLike], Kind]] = {}
    for kind in kinds:
        by_name.setdefault(kind.name, {}).setdefault(kind.type, kind)
    return tuple(View(tuple(of_name.values())) for of_name in by_name.values())


def by_coordinates(of: Iterable[View]) -> Mapping[Coordinates, View]:
    """The same, to be found by what an object says it is."""
    return {view.coordinates: view for view in of}


def _plural(kind: str) -> str:
    if kind.endswith(("s", "x", "ch", "sh")):
        return f"{kind}es"
    if kind.endswith("y") and kind[-2:-1] not in _VOWELS:
        return f"{kind[:-1]}ies"
    return f"{kind}s"
