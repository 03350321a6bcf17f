"""Fields of workload objects, read so that a broken one costs as little as possible and is named.

A count that is no count is a located problem with a safe reading beside it; a structure of the wrong type
makes the whole object `Unreadable`, because nobody can say what it would have asked for. Counts are therefore
kept undecoded in the object types and read one by one, everything else is decoded by type in one pass.
"""

from collections.abc import Mapping
from typing import TypeVar

import msgspec

from fairway.kube.objects import KubeStruct
from fairway.kube.templates import PodTemplate, TemplateMeta, TemplateSpec

MAX_COUNT = 2**31 - 1
"""The largest count that Kubernetes can hold; no cluster has room for as many pods."""

RawCount = msgspec.Raw
"""A count as it stands in the object, any JSON at all."""

ABSENT: RawCount = msgspec.Raw(b"null")

Problems = list[str]
"""Where readers put what they could not understand: field, what was found, how it is read."""

_T = TypeVar("_T")
_COUNTS: msgspec.json.Decoder[int | None] = msgspec.json.Decoder(int | None)
_SHOWN = 40


class Unreadable(ValueError):
    """The object cannot be read at all; the message says which field, and what was expected."""


class WorkloadMeta(KubeStruct, frozen=True):
    """What Fairway looks at in the metadata of a workload."""

    name: str = ""
    namespace: str = ""
    labels: dict[str, str] | None = None
    annotations: dict[str, str] | None = None


class TemplateFields(KubeStruct, frozen=True):
    """A pod template whose parts may be null, as hand-written manifests have them."""

    metadata: TemplateMeta | None = None
    spec: TemplateSpec | None = None


def decode(decoder: msgspec.json.Decoder[_T], raw: bytes, field: str = "") -> _T:
    """The value in ``raw``, which stands at ``field`` of the object. Raises Unreadable."""
    try:
        return decoder.decode(raw)
    except msgspec.ValidationError as error:
        what, _, path = str(error).partition(" - at `$")
        raise Unreadable(f"{located(field + path.rstrip('`'))}: {what.lower()}; correct the object") from None
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise Unreadable(f"{located(field)}: {error}; expected JSON in UTF-8") from None
    except RecursionError:
        raise Unreadable(f"{located(field)}: nested too deeply to be read") from None


def located(field: str) -> str:
    """The field without a leading dot, or what to call the object as a whole."""
    return field.removeprefix(".") or "the object"


def read_count(raw: RawCount, field: str, default: int, problems: Problems) -> int:
    """The count at ``field``, or where it is missing the kind's own ``default``.

    A count above what Kubernetes can hold is read as `MAX_COUNT`, so that it fits nowhere; one that is
    negative or no number at all is read as the default. Both are told.
    """
    try:
        value = _COUNTS.decode(raw)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        value = MAX_COUNT + 1 if bytes(raw).strip().isdigit() else -1
    if value is None:
        return default
    if 0 <= value <= MAX_COUNT:
        return value
    reading = MAX_COUNT if value > MAX_COUNT else default
    problems.append(f"{field}: {shown(raw)} is no count: expected 0 to {MAX_COUNT}; read as {reading}")
    return reading


def product(field: str, problems: Problems, *counts: int) -> int:
    """The product of counts, kept within `MAX_COUNT`; ``field`` says what it is the number of pods of."""
    total = 1
    for count in counts:
        total *= count
    if total > MAX_COUNT:
        problems.append(f"{field}: {total} pods in all: expected at most {MAX_COUNT}; read as {MAX_COUNT}")
        return MAX_COUNT
    return total


def template_at(fields: TemplateFields | None, field: str, labels: Mapping[str, str]) -> PodTemplate:
    """The pod template at ``field``, with the labels that the kind's controller will add to its pods.

    Raises Unreadable where there is none: a pod that asks for nothing would fit anywhere.
    """
    if fields is None or fields.spec is None or not fields.spec.containers:
        raise Unreadable(f"{field}: expected a pod template with containers, found none")
    metadata = fields.metadata or TemplateMeta()
    own = metadata.labels or {}
    added = TemplateMeta({**own, **{k: v for k, v in labels.items() if v}}, metadata.annotations)
    return PodTemplate(added, fields.spec)


def shown(value: str | msgspec.Raw) -> str:
    """The value as it may stand in a message: short, and on one line."""
    if isinstance(value, str):
        text = repr(value[: 2 * _SHOWN])
    else:
        text = " ".join(bytes(value)[: 4 * _SHOWN].decode(errors="replace").split())
    return text if len(text) <= _SHOWN else text[: _SHOWN - 3] + "..."
