"""Summaries, placements and explanations to protobuf and back, for fairway.capacity.v1.

A message and the value that it carries have fields of the same names, and those are the description of both
ways: the server encodes, the ``fairway`` command decodes, and what was encoded comes back equal. Numbers
beyond a field's width saturate instead of failing, in one place. Requests are read in
`estimator.capacity_requests`.
"""

from collections.abc import Callable, Sequence
from functools import cache, partial
from operator import attrgetter
from typing import Final, TypeVar, cast, get_args, get_type_hints

from google.protobuf.descriptor import Descriptor, FieldDescriptor
from google.protobuf.message import Message

from estimator.capacity.bound import ClusterBound
from estimator.capacity.gangs.placements import ClusterExplanation, ClusterPlacement
from estimator.capacity.summary import Summary
from fairway.capacity.v1 import capacity_pb2 as pb

MAX_INT32, MAX_INT64 = 2**31 - 1, 2**63 - 1
NOT_WORKED_OUT = -1
"""What ``spread_fits`` is on the wire where nobody worked it out."""

_M = TypeVar("_M", bound=Message)
_T = TypeVar("_T")
_LARGEST: Final = {FieldDescriptor.TYPE_INT32: MAX_INT32, FieldDescriptor.TYPE_INT64: MAX_INT64}
_OTHER_NAMES: Final = {"fairway.capacity.v1.Blocked.reason": "cause"}
"""Of values' fields, by the full names of the messages' fields."""


def encode_summary(summary: Summary) -> pb.ClusterSummary:
    """One cluster's summary as a message; counts saturate at the width of their fields."""
    return _encoded(pb.ClusterSummary, summary)


def summary_of(message: pb.ClusterSummary) -> Summary:
    """The summary that a message carries."""
    return _decoded(Summary, message)


def encode_bound(bound: ClusterBound) -> pb.ClusterBound:
    """What is told of one cluster's workloads as a message."""
    return _encoded(pb.ClusterBound, bound)


def bound_of(message: pb.ClusterBound) -> ClusterBound:
    """What a message tells."""
    return _decoded(ClusterBound, message)


def encode_placement(placement: ClusterPlacement) -> pb.ClusterPlacement:
    """A verdict as a message; a ``spread_fits`` that is None becomes `NOT_WORKED_OUT`, an
    ``empty_bound`` or ``earliest`` that is None is left out.
    """
    return _encoded(pb.ClusterPlacement, placement)


def placement_of(message: pb.ClusterPlacement) -> ClusterPlacement:
    """The verdict that a message carries."""
    return _decoded(ClusterPlacement, message)


def encode_explanation(explanation: ClusterExplanation) -> pb.ClusterExplanation:
    """A verdict and its explanation as a message."""
    return _encoded(pb.ClusterExplanation, explanation)


def explanation_of(message: pb.ClusterExplanation) -> ClusterExplanation:
    """The explanation that a message carries."""
    return _decoded(ClusterExplanation, message)


def _encoded(message: type[_M], value: object) -> _M:
    return message(**_encoder(cast("Descriptor", message.DESCRIPTOR))(value))


@cache
def _encoder(descriptor: Descriptor) -> Callable[[object], dict[str, object]]:
    """What makes the fields of a message of this type of a value."""
    rows = tuple(
        (field.name, _OTHER_NAMES.get(field.full_name, field.name), _writer(field))
        for field in descriptor.fields
    )
    return lambda value: {
        name: getattr(value, own) if write is None else write(getattr(value, own))
        for name, own, write in rows
    }


def _writer(field: FieldDescriptor) -> Callable[..., object] | None:
    if field.message_type is not None:
        write = _encoder(field.message_type)
        if field.is_repeated:
            return partial(map, write)
        return lambda value: None if value is None else write(value)
    largest = _LARGEST.get(field.type)
    if field.is_repeated and largest is not None:
        return partial(map, partial(_bounded, largest))
    if field.has_presence and largest is not None:
        return lambda value: None if value is None else _bounded(largest, value)
    return None if largest is None else partial(_bounded, largest)


def _bounded(largest: int, value: int | None) -> int:
    return NOT_WORKED_OUT if value is None else max(-largest - 1, min(largest, value))


def _decoded(value: Callable[..., _T], message: Message) -> _T:
    decode: Callable[[Message], _T] = _decoder(value, cast("Descriptor", message.DESCRIPTOR))
    return decode(message)


@cache
def _decoder(value: Callable[..., _T], descriptor: Descriptor) -> Callable[[Message], _T]:
    """What makes a value of a message of this type."""
    fields = {_OTHER_NAMES.get(field.full_name, field.name): field for field in descriptor.fields}
    own = {name: hint for name, hint in get_type_hints(value).items() if name in fields}
    get = _getter(tuple((fields[name], type(None) in get_args(hint)) for name, hint in own.items()))
    readers = tuple(_reader(name, hint, fields[name].message_type) for name, hint in own.items())
    if not any(readers):
        return lambda message: value(*get(message))
    return lambda message: value(
        *(found if read is None else read(found) for read, found in zip(readers, get(message), strict=True))
    )


def _getter(fields: Sequence[tuple[FieldDescriptor, bool]]) -> Callable[[Message], tuple[object, ...]]:
    """What reads these fields of a message; None of what may be absent, by its value's type, and is."""
    asked = tuple((field.name, may_be_none and field.has_presence) for field, may_be_none in fields)
    if not any(is_optional for _, is_optional in asked):
        return attrgetter(*(name for name, _ in asked))
    return lambda message: tuple(
        None if is_optional and not message.HasField(name) else getattr(message, name)
        for name, is_optional in asked
    )


def _reader(own: str, hint: object, descriptor: Descriptor | None) -> Callable[..., object] | None:
    if own == "spread_fits":
        return lambda number: None if number < 0 else number
    if own == "advertised_per_device":
        # Absent from a server that does not tell: then every device is advertised once.
        return lambda number: number or 1
    of, *several = get_args(hint) or (hint,)
    read = None if descriptor is None else _decoder(of, descriptor)
    if type(None) in several:
        return None if read is None else lambda message: None if message is None else read(message)
    if several:
        return tuple if read is None else lambda messages: tuple(map(read, messages))
    return read
