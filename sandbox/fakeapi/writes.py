"""Every request that changed something: a log, counts, and hooks before and after.

The hooks are where a test kills a process at its n-th write: `before` sees a write that is not applied yet
and may refuse it, `after` one that is applied and not answered yet.
"""

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass

from sandbox.fakeapi.seen import Seen


@dataclass(frozen=True, slots=True)
class Write:
    """``number`` counts all writes from 0; ``resource`` is such as ``pods`` or ``pods/status``."""

    number: int
    seen: Seen
    resource: str
    body: bytes

    @property
    def verb(self) -> str:
        return self.seen.verb

    @property
    def path(self) -> str:
        return self.seen.path

    @property
    def user_agent(self) -> str:
        return self.seen.headers.get("User-Agent", "")


Hook = Callable[[Write], None]


class WriteLog:
    """``entries`` are the writes that succeeded, dry runs left out, with ``keeps_entries``.

    ``counts`` has how many requests of each (user agent, verb, resource, status) there were, failed ones and
    dry runs (resource ``... (dry run)``) included. A hook may raise ApiFault or ConnectionCut; what `after`
    raises does not undo the write.
    """

    def __init__(self, *, keeps_entries: bool = True) -> None:
        self.entries: list[Write] = []
        self.counts: Counter[tuple[str, str, str, int]] = Counter()
        self.total = 0
        self.before: Hook | None = None
        self.after: Hook | None = None
        self._keeps_entries = keeps_entries

    def begin(self, seen: Seen, resource: str, body: bytes) -> Write:
        """A write that is about to be applied."""
        write = Write(self.total, seen, resource, body)
        if self.before is not None and not seen.is_dry_run:
            self.before(write)
        return write

    def applied(self, write: Write) -> None:
        if write.seen.is_dry_run:
            return
        self.total += 1
        if self._keeps_entries:
            self.entries.append(write)
        if self.after is not None:
            self.after(write)

    def count(self, seen: Seen, resource: str, status: int) -> None:
        name = f"{resource} (dry run)" if seen.is_dry_run else resource
        self.counts[seen.headers.get("User-Agent", ""), seen.verb, name, status] += 1
