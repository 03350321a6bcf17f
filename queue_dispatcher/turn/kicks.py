"""When to wake a released workload that Karmada has put aside as unschedulable.

karmada-scheduler looks again after five minutes, and no new capacity makes it look sooner; suspending the
binding and releasing it again does, within a tenth of a second. So when room appears that a parked workload
may use, it is kicked. The room may be too small, and each kick costs the scheduler a try: a workload that is
kicked in vain is kicked less often.
"""

from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Final

FIRST_PAUSE_MS: Final = 2_000
MAX_PAUSE_MS: Final = 240_000


@dataclass(frozen=True, slots=True)
class Parked:
    """One released workload that Karmada found unschedulable.

    ``since_ms``: since when it is parked. ``kicked_ms``: when it was last kicked, 0 for never, ``kicks`` how
    often. ``room_ms``: when room last appeared where it may go, 0 for never. ``fits``: the estimators say
    so, which is news whatever was noticed of the room. ``order``: the smaller the sooner.
    """

    uid: str
    since_ms: int
    room_ms: int
    order: tuple[int, int, str]
    kicked_ms: int = 0
    kicks: int = 0
    fits: bool = False

    def fitting(self) -> "Parked":
        """The same, now that the estimators say that it fits."""
        return replace(self, fits=True)

    @property
    def pause_ends_ms(self) -> int:
        """Before then it is not kicked, whatever there is to hope."""
        if self.kicks == 0:
            return self.since_ms
        return self.kicked_ms + min(MAX_PAUSE_MS, FIRST_PAUSE_MS << min(self.kicks - 1, 30))

    def due_ms(self) -> int | None:
        """When it may be kicked; None while nothing gives hope."""
        if not self.fits and self.room_ms <= max(self.since_ms, self.kicked_ms):
            return None
        return self.pause_ends_ms


def due_kicks(parked: Iterable[Parked], now_ms: int, limit: int) -> list[str]:
    """The uids to kick now, at most ``limit``, in order."""
    due = [one for one in parked if (at_ms := one.due_ms()) is not None and at_ms <= now_ms]
    due.sort(key=lambda one: one.order)
    return [one.uid for one in due[: max(0, limit)]]
