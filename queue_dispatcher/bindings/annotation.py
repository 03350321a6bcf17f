"""Annotations that hold JSON of ours: read as hostile input, written in one canonical form.

Anybody who may edit a binding may edit what we wrote on it. What cannot be understood is a value of its own,
`Malformed`, that says where it stands and what was expected.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TypeVar

import msgspec

MAX_TEXT = 262_144
"""Characters; Kubernetes takes no more of all annotations of an object together."""

_T = TypeVar("_T")
_ENCODER = msgspec.json.Encoder(order="sorted")


@dataclass(frozen=True, slots=True)
class Malformed:
    """An annotation that is there and says nothing; ``problem`` names it, what was found and expected."""

    problem: str


class AnnotationError(ValueError):
    """What is wrong with an annotation's value: the field within it, what was found and expected."""


def location(key: str) -> str:
    """How messages call the annotation."""
    return f"metadata.annotations[{key}]"


def decode(decoder: msgspec.json.Decoder[_T], text: str) -> _T:
    """The JSON value in an annotation. Raises AnnotationError."""
    if len(text) > MAX_TEXT:
        raise AnnotationError(f"{len(text)} characters: expected at most {MAX_TEXT}")
    try:
        return decoder.decode(text)
    except msgspec.ValidationError as error:
        what, _, path = str(error).partition(" - at `$")
        raise AnnotationError(
            f"{path.rstrip('`').lstrip('.') or 'the value'}: {what[:1].lower()}{what[1:]}"
        ) from None
    except (msgspec.DecodeError, UnicodeError, RecursionError) as error:
        raise AnnotationError(f"{error}; expected JSON as Fairway writes it") from None


def encode(value: Mapping[str, object]) -> str:
    """Compact JSON with sorted keys: equal values give equal text."""
    return _ENCODER.encode(value).decode()


def in_range(field: str, value: int, least: int, most: int) -> int:
    """The number, if it is between both. Raises AnnotationError."""
    if not least <= value <= most:
        raise AnnotationError(f"{field}: {value}: expected {least} to {most}")
    return value
