"""One item of a dump: from its JSON to a typed object, or to a sentence about what is wrong with it."""

import json
import re
from collections.abc import Container, Mapping
from dataclasses import dataclass
from typing import Generic, TypeVar

import msgspec

from fairway.kube.decoding import NAMED, UNDECODABLE
from fairway.kube.dump_document import JsonText
from fairway.kube.node_devices import NodeDevices
from fairway.kube.objects import Deployment, KubeStruct, ReplicaSet
from fairway.kube.resource import KubeObjectLike

T = TypeVar("T", bound=KubeObjectLike)
_Owner = TypeVar("_Owner", bound=Deployment | ReplicaSet)

_SKIPPED = "the item is skipped"
_AT = re.compile(r"(?P<what>.*?)(?: - at `(?P<path>[^`]*)`)?", re.DOTALL)
_TEXTS_AT = re.compile(r"\$\.metadata\.(labels|annotations)\[\.\.\.\]")
_STEP = re.compile(r"\.(\w+)|\[(\d+)\]")
_TEMPLATE_HEADROOM = 100
_MAX_NAME_LENGTH = 253


@dataclass(frozen=True, slots=True)
class Flaw:
    """What is wrong with an item, and at which field (empty for the item as a whole)."""

    field: str
    detail: str


class ItemHead(KubeStruct, frozen=True):
    """What an item says it is."""

    kind: str = ""
    api_version: str = ""


_HEADS = msgspec.json.Decoder(ItemHead)
# As kubectl writes every object: the only decoding of a large file is then that of the objects themselves.
_HEAD_FIRST = re.compile(rb'\{\s*"apiVersion": ?"([\w./-]+)",\s*"kind": ?"(\w+)",')


def read_head(text: JsonText, known: Container[str] = ()) -> ItemHead | Flaw:
    """What the item says it is. One of the ``known`` kinds may be broken after that: its reader tells."""
    first = _HEAD_FIRST.match(text)
    if first and (kind := first[2].decode()) in known:
        return ItemHead(kind, first[1].decode())
    try:
        return _HEADS.decode(text)
    except UNDECODABLE as error:
        return _flaw(text, error)


def title(kind: str, text: JsonText) -> str:
    """``Pod team-a/x``, or as much of it as can be read and shown."""
    try:
        names = NAMED.decode(text).metadata
    except UNDECODABLE:
        return shown(kind)
    name = f"{names.namespace}/{names.name}" if names.namespace else names.name
    return shown(f"{kind} {name}".strip())


class ItemReader(Generic[T]):
    """Reads items of one kind."""

    def __init__(self, kind: type[T]) -> None:
        self._decoder = msgspec.json.Decoder(kind)

    def read(self, text: JsonText) -> tuple[T | None, list[Flaw]]:
        """The object where it can be read, and everything that is wrong with it."""
        read, flaws = self._read(text)
        if isinstance(read, NodeDevices):
            return msgspec.structs.replace(read, days=msgspec.Raw(bytes(read.days))), flaws
        if isinstance(read, Deployment | ReplicaSet):
            try:
                return _with_own_template(read), flaws
            except RecursionError:
                return None, [*flaws, Flaw("spec.template", f"nested too deeply; {_SKIPPED}")]
        return read, flaws

    def _read(self, text: JsonText) -> tuple[T | None, list[Flaw]]:
        try:
            return self._decoder.decode(text), []
        except msgspec.ValidationError as error:
            match = _AT.fullmatch(str(error))
            if not (match and match["path"] and _TEXTS_AT.fullmatch(match["path"])):
                return None, [_flaw(text, error)]
        except UNDECODABLE as error:
            return None, [_flaw(text, error)]
        try:
            text, flaws = _with_texts(text)
            return self._decoder.decode(text), flaws
        except UNDECODABLE as error:
            return None, [_flaw(text, error)]


def _with_own_template(owner: _Owner) -> _Owner:
    """The same object with a pod template that no longer keeps the whole file in memory.

    Raises RecursionError where the template is nested too deeply for whoever decodes it later.
    """
    template = bytes(owner.spec.template)
    msgspec.json.decode(b"[" * _TEMPLATE_HEADROOM + template + b"]" * _TEMPLATE_HEADROOM, type=msgspec.Raw)
    return msgspec.structs.replace(
        owner, spec=msgspec.structs.replace(owner.spec, template=msgspec.Raw(template))
    )


def _with_texts(text: JsonText) -> tuple[bytes, list[Flaw]]:
    """The item with labels and annotations that are all text, and what had to be made text for that."""
    item = msgspec.json.decode(text)
    as_written = json.loads(bytes(text), parse_int=str, parse_float=str)
    flaws: list[Flaw] = []
    for part in ("labels", "annotations"):
        values = item["metadata"].get(part)
        if isinstance(values, dict):
            texts = as_written["metadata"][part]
            keys = [key for key, value in values.items() if not isinstance(value, str)]
            flaws += [_make_text(values, key, texts[key], part) for key in keys]
    return msgspec.json.encode(item), flaws


def _make_text(values: dict[str, object], key: str, written: object, part: str) -> Flaw:
    found = _json_type(values[key])
    match written:
        case None:
            values[key] = ""
        case bool():
            values[key] = str(written).lower()
        case str():
            values[key] = written
        case _:
            del values[key]
    made = f"read as {shown(repr(values[key]))}" if key in values else "it is left out"
    return Flaw(f"metadata.{part}[{shown(key)}]", f"expected text, got {found}; {made}")


def _flaw(text: JsonText, error: Exception) -> Flaw:
    if isinstance(error, RecursionError):
        return Flaw("", f"nested too deeply; {_SKIPPED}")
    if isinstance(error, UnicodeDecodeError):
        return Flaw("", f"expected UTF-8, found the byte 0x{error.object[error.start]:02x}; {_SKIPPED}")
    match = _AT.fullmatch(str(error))
    if match is None:
        return Flaw("", f"{error}; {_SKIPPED}")
    what = match["what"].replace("`", "").replace(" | null", "")
    return Flaw(_field(text, match["path"] or "$"), f"{what[:1].lower()}{what[1:]}; {_SKIPPED}")


def _field(text: JsonText, path: str) -> str:
    """The path as people write it; the decoder leaves out the key of a map, so that is looked up."""
    if path.endswith("[...]"):
        path = path.removesuffix("[...]")
        try:
            entries = _follow(msgspec.json.decode(text), path)
        except UNDECODABLE:
            entries = {}
        key = next((k for k, v in entries.items() if isinstance(v, bool | list | dict)), "...")
        path = f"{path}[{shown(key)}]"
    return path.removeprefix("$").removeprefix(".")


def _follow(value: object, path: str) -> Mapping[str, object]:
    for name, index in _STEP.findall(path):
        if isinstance(value, dict):
            value = value.get(name)
        elif isinstance(value, list) and index:
            value = value[int(index)]
    return value if isinstance(value, dict) else {}


def _json_type(value: object) -> str:
    match value:
        case None:
            return "null"
        case bool():
            return "bool"
        case int() | float():
            return "number"
        case list():
            return "array"
        case _:
            return "object"


def shown(text: str) -> str:
    """A text out of a dump as a message may carry it: on one line and not endless."""
    text = text if len(text) <= _MAX_NAME_LENGTH else text[: _MAX_NAME_LENGTH - 3] + "..."
    return text if text.isprintable() else ascii(text)[1:-1]
