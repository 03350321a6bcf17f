"""What the owner of a workload is told: one sentence after the other, none of them from anything unmeasured.

What is found is what `fairway.usage` finds; this only says it. Throttled devices are not told of: the owner
can do nothing about heat or power.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime

from admin.listings.usage import duration, tenths
from admin.printable import counted_devices, milli_text, printable
from fairway.kube.event_series import EventType, Regarding
from fairway.usage.definitions import THRESHOLDS, Finding, Thresholds
from fairway.usage.groups import Group

_MOST_NAMED = 3
_NAME_BYTES = 40
_LONG_NAME_BYTES = 63
"""As long as a namespace may be."""


@dataclass(frozen=True, slots=True)
class Told:
    """A finding as an Event: its reason, how serious it is, and of how much of a group it is true.

    ``lasts``: it is true for longer than the window of some minutes that the others are about.
    """

    finding: Finding
    reason: str
    type: EventType
    lasts: bool
    milli: Callable[[Group], int]


TOLD: tuple[Told, ...] = (
    # Broken hardware may break the workload; of the others only the fleet suffers.
    Told(Finding.FAILING, "FailingDevices", EventType.WARNING, True, lambda sums: sums.failing_milli),
    Told(Finding.IDLE, "IdleDevices", EventType.NORMAL, True, lambda sums: sums.idle_milli),
    Told(Finding.UNDER_USED, "UnderUsedDevices", EventType.NORMAL, False, lambda sums: sums.under_used_milli),
    Told(Finding.OVERSIZED, "OversizedDevices", EventType.NORMAL, False, lambda sums: sums.oversized_milli),
)
"""In the order in which the first that is true gives an Event its reason."""


@dataclass(frozen=True, slots=True)
class Notice:
    """What an Event says; the message is shorter than 1,024 bytes.

    ``lasts``: it may be said at once. Otherwise it is said when it is found a second time, in another hour:
    what a few minutes show is no reason to take devices away.
    """

    reason: str
    type: EventType
    message: str
    lasts: bool = True


@dataclass(frozen=True, slots=True)
class Target:
    """An object, the key of `admin.notify.record.key_of` under which it is kept, and what is said of it."""

    key: str
    regarding: Regarding
    notice: Notice


def notice(
    sums: Group,
    namespace: str,
    products: Sequence[str],
    clusters: Sequence[str],
    now_s: float,
    limits: Thresholds = THRESHOLDS,
) -> Notice | None:
    """What is to be said of a workload; None where nothing is.

    ``products`` and ``clusters``: of its devices, the most important first. ``now_s``: since the epoch.
    """
    found = [told for told in TOLD if told.milli(sums)]
    if not found:
        return None
    product = _named(products) or "of a product that is not known"
    parts = [
        f"Of {counted_devices(sums.allocated_milli)} ({product}) in {_named(clusters)}:",
        "; ".join(part for told in found for part in _said(told, sums, now_s, limits)) + ".",
    ]
    if sums.wasted_milli:
        parts.append(f"Unused now: {tenths(sums.wasted_milli)} device-hours each hour.")
    parts.append(
        f"To look: fairway top -n {_cut(namespace, _LONG_NAME_BYTES)} --by pod. Told once a day at most."
    )
    return Notice(found[0].reason, found[0].type, " ".join(parts), found[0].lasts)


def _said(told: Told, sums: Group, now_s: float, limits: Thresholds) -> Iterator[str]:
    amount = milli_text(told.milli(sums))
    match told.finding:
        case Finding.FAILING:
            yield f"{amount} unhealthy or lost: delete the pods that hold them, for others to start elsewhere"
        case Finding.IDLE:
            since = datetime.fromtimestamp(now_s - sums.idle_s, UTC)
            yield (
                f"{amount} idle for up to {duration(sums.idle_s)} (since {since:%Y-%m-%d %H:%M} UTC), "
                f"{sums.idle_device_seconds / 3600:,.1f} device-hours so far: end it or ask for fewer"
            )
            if sums.idle_holding_memory_milli:
                held = milli_text(sums.idle_holding_memory_milli)
                yield f"on {held} of the idle ones memory stays in use: something is still loaded"
        case Finding.UNDER_USED:
            most = limits.under_used_percent
            yield f"{amount} held by pods that at present use at most {most} % of theirs: ask for fewer"
        case Finding.OVERSIZED:
            yield (
                f"{amount} too large (at present below {limits.oversized_memory_percent} % of memory and "
                f"{limits.oversized_busy_percent} % of time): ask for smaller ones or slices"
            )
        case _:
            raise AssertionError(told.finding)


def _named(names: Sequence[str]) -> str:
    more = len(names) - _MOST_NAMED
    shown = ", ".join(_cut(name, _NAME_BYTES) for name in names[:_MOST_NAMED])
    return f"{shown} and {more:,} more" if more > 0 else shown


def _cut(name: str, most_bytes: int) -> str:
    """The name on one line, in so many bytes."""
    text = printable(name, most_bytes).encode("utf-8", "replace")
    return (
        text.decode() if len(text) <= most_bytes else text[: most_bytes - 3].decode("utf-8", "ignore") + "..."
    )
