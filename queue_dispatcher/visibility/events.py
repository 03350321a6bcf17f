"""Kubernetes Events on bindings: admitted, taken back, why a workload waits, and once when it can start.

Events are for people and cost writes, so of all that wait only those are told of that stand for others: the
first of each class, and whatever cannot be admitted at all; and each only when the kind of its reason has
changed and stayed for a while. The rates of `fairway.kube.events` bound the rest.
"""

import asyncio
import time
from collections.abc import Awaitable, Callable, Iterator

from fairway.kube.event_series import EventType, Regarding
from fairway.kube.events import EventWriter
from fairway.kube.pace import Pace
from queue_dispatcher.bindings.timestamp import format_ms
from queue_dispatcher.cache.entry import Entry
from queue_dispatcher.cycle.reasons import Reason, told_to
from queue_dispatcher.dispatcher import Dispatcher
from queue_dispatcher.visibility.waiting import waiting_of

API_VERSION = "work.karmada.io/v1alpha2"
LOOK_EVERY_S = 15.0
STAYS_MS = 30_000


class BindingEvents:
    """Tells of bindings through ``writer``; ``elapsed_ms`` and ``now_ms`` as everywhere."""

    def __init__(
        self,
        writer: EventWriter,
        elapsed_ms: Callable[[], int],
        now_ms: Callable[[], int],
        *,
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
    ) -> None:
        self._writer = writer
        self._elapsed_ms = elapsed_ms
        self._now_ms = now_ms
        self._sleep = sleep
        # By uid: the kind of reason last seen, since when, and whether it has been told.
        self._seen: dict[str, tuple[str, int, bool]] = {}
        # The items with a reservation of which it was told when they can start.
        self._expected: frozenset[str] = frozenset()

    def tell(self, entry: Entry, reason: str, message: str, *, is_warning: bool = False) -> None:
        """See `queue_dispatcher.dispatcher.Teller`."""
        binding = entry.binding
        kind = "ResourceBinding" if binding.namespace else "ClusterResourceBinding"
        self._writer.record(
            Regarding(API_VERSION, kind, binding.namespace, binding.name, binding.uid),
            EventType.WARNING if is_warning else EventType.NORMAL,
            reason,
            message,
        )

    async def watch(self, dispatcher: Dispatcher) -> None:
        """Tell why workloads wait, until cancelled."""
        while True:
            await self._sleep(LOOK_EVERY_S)
            await dispatcher.controller.settled()
            await self.look(dispatcher)

    async def look(self, dispatcher: Dispatcher) -> None:
        """Look once, and let others run meanwhile."""
        pace = Pace(time.monotonic)
        now_ms, seen = self._elapsed_ms(), self._seen
        self._seen = {}
        for entry, reason in self._standing(dispatcher):
            if pace.is_due():
                await pace.pause()
            kind, since_ms, is_told = seen.get(entry.uid, ("", now_ms, False))
            if kind != reason.kind:
                since_ms, is_told = now_ms, False
            if not is_told and now_ms - since_ms >= STAYS_MS and not reason.passes:
                # Whoever reads the Events of this namespace may know nothing of others.
                told = told_to(entry.binding.namespace.__eq__, reason)
                self.tell(entry, told.kind, f"{told.text}; {told.unblock}")
                is_told = True
            self._seen[entry.uid] = (reason.kind, since_ms, is_told)
        self._tell_starts(dispatcher)

    def _tell_starts(self, dispatcher: Dispatcher) -> None:
        """Tell those that have room reserved when they can start, once it is known; not each change of it."""
        cache, before = dispatcher.cache, self._expected
        reserved = dispatcher.state.reservations.made
        still = before & {one.item.id for one in reserved}
        known = {one.item.id: one.starts_ms for one in reserved if one.starts_ms is not None}
        self._expected = still | known.keys()
        for one in reserved:
            starts_ms = known.get(one.item.id)
            if starts_ms is None or one.item.id in before:
                continue
            at = format_ms(starts_ms)
            told = f"it can start about {at}, if what is in its way runs for as long as it may"
            for uid in one.item.members:
                if (entry := cache.present(uid)) is not None:
                    self.tell(entry, "StartExpected", told)

    def _standing(self, dispatcher: Dispatcher) -> Iterator[tuple[Entry, Reason]]:
        """Those that are told of, with their reasons."""
        cache, view, now_ms = dispatcher.cache, dispatcher.controller.view, self._now_ms()
        for entry in list(cache.tally.stuck.values()):
            if entry.waits is not None:
                yield entry, entry.waits
        for line in list(cache.pending.queues.values()):
            for first in [pending.items[0] for pending in line.classes(now_ms)]:
                # It may have gone since.
                known = cache.present(first.members[0])
                reason = waiting_of(cache, view, known, now_ms) if known is not None else None
                if known is not None and reason is not None and known.waits is None:
                    yield known, reason
