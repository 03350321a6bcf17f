"""Structs out of JSON that may be broken: what can be read is read, what cannot is named.

The whole is decoded in one go; only where that fails is it taken apart, so that a field of the wrong type
costs that field. A null is the same as a field left out, as everywhere in Kubernetes.
"""

from typing import TypeVar

import msgspec

T = TypeVar("T", bound=msgspec.Struct)
V = TypeVar("V")

_BROKEN = (msgspec.DecodeError, UnicodeDecodeError, RecursionError)
_FIELDS = msgspec.json.Decoder(dict[str, msgspec.Raw])
_ABSENT = (b"", b"null")


def salvage(
    raw: msgspec.Raw, decoder: msgspec.json.Decoder[T], empty: T, path: str, problems: list[str]
) -> T:
    """The struct that ``raw`` holds at ``path``; fields that cannot be read are as in ``empty``, and told."""
    if bytes(raw).strip() in _ABSENT:
        return empty
    whole = _decoded(decoder, raw)
    if whole is not None:
        return whole
    stated = _decoded(_FIELDS, raw)
    if stated is None:
        problems.append(f"{path}: expected an object that can be read; correct it")
        return empty
    found: dict[str, object] = {}
    for field in msgspec.structs.fields(empty):
        value = stated.get(field.encode_name)
        if value is None or bytes(value).strip() in _ABSENT:
            continue
        try:
            found[field.name] = msgspec.json.decode(value, type=field.type)
        except _BROKEN as error:
            problems.append(_told(f"{path}.{field.encode_name}", error))
    return msgspec.structs.replace(empty, **found)


def _decoded(decoder: msgspec.json.Decoder[V], raw: msgspec.Raw) -> V | None:
    try:
        return decoder.decode(raw)
    except _BROKEN:
        return None


def _told(path: str, error: Exception) -> str:
    if isinstance(error, RecursionError):
        return f"{path}: nested too deeply to be read"
    what, _, below = str(error).partition(" - at `$")
    return f"{path}{below.rstrip('`')}: {what[:1].lower()}{what[1:]}; correct the field"
