"""Which of two states of one object is the newer, when one is an answer to our own write.

An answer arrives before the watch tells of it, and the watch may still bring states from before. Those must
not undo what we know; but a server that was restored from a backup goes back for good, so what is held back
is taken after all if nothing newer comes.
"""

from queue_dispatcher.bindings.binding import Binding
from queue_dispatcher.cache.entry import Entry


def is_older(one: str, other: str) -> bool:
    """Whether resourceVersion ``one`` is before ``other``; versions that are no numbers tell nothing."""
    if one.isdecimal() and other.isdecimal():
        return int(one) < int(other)
    return False


def watched(entry: Entry, binding: Binding) -> bool:
    """Whether what the watch says of the binding is to be taken; else it is held back."""
    if entry.written and binding.uid == entry.uid and is_older(binding.resource_version, entry.written):
        entry.held_back = binding
        return False
    entry.written = ""
    entry.held_back = None
    return True


def answered(entry: Entry, binding: Binding) -> bool:
    """Whether the answer to a write or a read is to be taken; not if the watch was faster."""
    if binding.uid == entry.uid and is_older(binding.resource_version, entry.binding.resource_version):
        return False
    entry.written = binding.resource_version
    entry.written_ms = 0
    entry.held_back = None
    return True
