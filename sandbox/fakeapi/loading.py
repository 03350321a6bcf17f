"""Objects from files: JSON or YAML, one or many documents, Lists, or one object a line (``.jsonl``)."""

from collections.abc import Iterable, Iterator
from pathlib import Path

import msgspec
import yaml

from sandbox.fakeapi.kinds import collection_path
from sandbox.fakeapi.store import Obj


def objects_in(path: Path) -> Iterator[Obj]:
    """The objects of one file, or of all files in a folder, by name."""
    if path.is_dir():
        for inner in sorted(path.iterdir()):
            if inner.suffix in (".json", ".jsonl", ".yaml", ".yml"):
                yield from objects_in(inner)
    elif path.suffix == ".jsonl":
        with path.open("rb") as lines:
            yield from (msgspec.json.decode(line) for line in lines if line.strip())
    elif path.suffix == ".json":
        yield from _flat([msgspec.json.decode(path.read_bytes())])
    else:
        yield from _flat(yaml.safe_load_all(path.read_text()))


def by_collection(objects: Iterable[Obj]) -> dict[str, list[Obj]]:
    """Objects by the path of their collection, definitions first, because they say what others are called."""
    found: dict[str, list[Obj]] = {}
    for obj in objects:
        found.setdefault(collection_path(obj["apiVersion"], obj["kind"]), []).append(obj)
    definitions = [path for path in found if path.endswith("/customresourcedefinitions")]
    return {path: found[path] for path in sorted(found, key=lambda path: path not in definitions)}


def _flat(documents: Iterable[Obj | None]) -> Iterator[Obj]:
    for document in documents:
        if document is None:
            continue
        if isinstance(document.get("items"), list):
            yield from _flat(document["items"])
        else:
            yield document
