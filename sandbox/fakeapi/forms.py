"""The two forms in which objects are told: whole, and metadata alone (PartialObjectMetadata)."""

from collections.abc import Mapping
from dataclasses import dataclass

import msgspec

from sandbox.fakeapi.store import Collection, Record

_META_VERSION = "meta.k8s.io/v1"
_PARTIAL = b'{"kind":"PartialObjectMetadata","apiVersion":"meta.k8s.io/v1","metadata":%s}'


class _Metadata(msgspec.Struct):
    metadata: msgspec.Raw


_DECODER = msgspec.json.Decoder(_Metadata)


@dataclass(frozen=True, slots=True)
class Form:
    """What a client accepts."""

    metadata_only: bool

    def single(self, collection: Collection, record: Record) -> bytes:
        """An object with its kind, as the body of an answer and as the object of an event."""
        return _partial(record) if self.metadata_only else collection.typed(record)

    def item(self, record: Record) -> bytes:
        """An object as lists carry it."""
        return _partial(record) if self.metadata_only else record.raw

    def single_type(self, collection: Collection) -> tuple[str, str]:
        """Kind and apiVersion of objects."""
        if self.metadata_only:
            return "PartialObjectMetadata", _META_VERSION
        return collection.kind, collection.api_version

    def list_type(self, collection: Collection) -> tuple[str, str]:
        """Kind and apiVersion of lists."""
        kind, api_version = self.single_type(collection)
        return f"{kind}List", api_version


WHOLE, METADATA = Form(metadata_only=False), Form(metadata_only=True)


def form_of(headers: Mapping[str, str]) -> Form:
    """The first form that is accepted."""
    first = headers.get("Accept", "").partition(",")[0]
    return METADATA if ";as=PartialObjectMetadata" in first else WHOLE


def _partial(record: Record) -> bytes:
    return _PARTIAL % _DECODER.decode(record.raw).metadata
