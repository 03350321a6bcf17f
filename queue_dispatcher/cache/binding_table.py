"""BindingTable: the reflector's sink for the bindings of one of Karmada's two kinds."""

from collections.abc import Callable, Collection

from queue_dispatcher.bindings.binding import Binding
from queue_dispatcher.bindings.objects import ResourceBinding
from queue_dispatcher.cache.entry import Entry
from queue_dispatcher.cache.versions import answered, watched


class BindingTable:
    """Entries by `object_key`. ``read`` reduces a binding; the others are told what became of an entry."""

    def __init__(
        self,
        read: Callable[[ResourceBinding], Binding],
        added: Callable[[Entry], None],
        replaced: Callable[[Entry, Binding], None],
        removed: Callable[[Entry], None],
    ) -> None:
        self.entries: dict[str, Entry] = {}
        self._read = read
        self._added = added
        self._replaced = replaced
        self._removed = removed

    def keys(self) -> Collection[str]:
        """Keys of all bindings held."""
        return self.entries.keys()

    def upsert(self, obj: ResourceBinding) -> None:
        """The binding exists and looks like this, as the watch tells."""
        binding = self._read(obj)
        entry = self.entries.get(binding.key)
        if not binding.uid:
            # No API server sends one, and nothing could be written to it.
            self.delete(binding.key)
        elif entry is None or entry.uid != binding.uid:
            self.delete(binding.key)
            entry = self.entries[binding.key] = Entry(binding)
            self._added(entry)
        elif watched(entry, binding):
            self._replaced(entry, binding)

    def delete(self, key: str) -> None:
        """The binding is gone."""
        entry = self.entries.pop(key, None)
        if entry is not None:
            self._removed(entry)

    def answer(self, obj: ResourceBinding) -> None:
        """The binding as the server answered a write or a read of ours."""
        binding = self._read(obj)
        entry = self.entries.get(binding.key)
        # Of one that took the place of another, the watch will tell.
        if entry is not None and entry.uid == binding.uid and answered(entry, binding):
            self._replaced(entry, binding)

    def take_held_back(self, entry: Entry) -> None:
        """Nothing newer than our own write has come for too long: what was held back counts after all."""
        binding = entry.held_back
        entry.written, entry.written_ms, entry.held_back = "", 0, None
        if binding is not None:
            self._replaced(entry, binding)
