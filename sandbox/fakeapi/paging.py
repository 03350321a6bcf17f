"""Lists in pages that all show one moment, as a real server does out of its versioned store."""

from collections.abc import Mapping

import msgspec

from sandbox.fakeapi.forms import Form
from sandbox.fakeapi.selection import Selection
from sandbox.fakeapi.store import ApiFault, Collection, Record, Store

_KEPT = 16


class Pages:
    """Keeps what an unfinished list will still show; a continue token is its name and an offset."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._kept: dict[str, list[Record]] = {}
        self._lists = 0

    def expire(self) -> None:
        """Make every continue token invalid."""
        self._kept.clear()

    def page(self, collection: Collection, form: Form, wanted: Selection, params: Mapping[str, str]) -> bytes:
        """The body of one answer."""
        name, offset, records = self._records(collection, wanted, params.get("continue", ""))
        end = offset + (int(params.get("limit", 0)) or len(records))
        metadata = {"resourceVersion": name.partition("/")[0]}
        if end < len(records):
            metadata["continue"] = f"{name}:{end}"
            self._kept[name] = records
            while len(self._kept) > _KEPT:
                del self._kept[next(iter(self._kept))]
        kind, api_version = form.list_type(collection)
        head = msgspec.json.encode({"kind": kind, "apiVersion": api_version, "metadata": metadata})
        items = b",".join(form.item(record) for record in records[offset:end])
        return b'%s,"items":[%s]}\n' % (head[:-1], items)

    def _records(
        self, collection: Collection, wanted: Selection, token: str
    ) -> tuple[str, int, list[Record]]:
        if not token:
            self._lists += 1
            records = [record for _, record in sorted(collection.records.items()) if wanted.matches(record)]
            return f"{self._store.version}/{self._lists}", 0, records
        name, _, offset = token.partition(":")
        if not offset.isdecimal():
            raise ApiFault(400, "BadRequest", "continue key is not valid")
        if name not in self._kept:
            raise ApiFault(410, "Expired", "The provided continue parameter is too old")
        return name, int(offset), self._kept[name]
