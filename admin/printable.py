"""Text and amounts as the commands show them: short, and fit for eyes."""

from datetime import datetime

from fairway.printable import printable as escaped

_LIMIT = 120


def printable(text: str, limit: int = _LIMIT) -> str:
    """The text on one line, unprintable characters as escapes, cut to ``limit`` characters with ``...``."""
    shown = escaped(text)
    return shown if len(shown) <= limit else shown[: limit - 3] + "..."


def counted(count: int, noun: str) -> str:
    """``1 node``, ``2 nodes``: the noun's plural is its singular with an s."""
    return f"{count:,} {noun}" if count == 1 else f"{count:,} {noun}s"


def signed(change: int) -> str:
    """``+8``, ``-3`` or ``0``."""
    return f"{change:+,}" if change else "0"


def short_key(label: str) -> str:
    """The part of a label key that people say: ``rack`` of ``topology.example.com/rack``."""
    return label.rpartition("/")[2] or label


def age(seconds: float) -> str:
    """How long ago in the largest unit that keeps it above one: ``3 s``, ``12 min``, ``5 h``, ``9 d``."""
    for unit, length_s in (("d", 86_400), ("h", 3_600), ("min", 60)):
        if seconds >= length_s:
            return f"{seconds / length_s:.0f} {unit}"
    return f"{max(0.0, seconds):.0f} s"


def since(iso: str, now: datetime) -> str:
    """How long before ``now`` an RFC 3339 moment was: ``45s``, ``3m``, ``5h``, ``9d``; ``-`` for none."""
    try:
        seconds = max(0, int((now - datetime.fromisoformat(iso)).total_seconds()))
    except (ValueError, TypeError):
        return "-"
    for unit, length_s in (("d", 86_400), ("h", 3_600), ("m", 60)):
        if seconds >= 2 * length_s:
            return f"{seconds // length_s}{unit}"
    return f"{seconds}s"


def milli_text(milli: int) -> str:
    """Thousandths of a device as devices: ``9.4``, ``0.25``, ``7``."""
    whole, part = divmod(milli, 1000)
    return f"{whole:,}.{part:03}".rstrip("0").rstrip(".")


def counted_devices(milli: int) -> str:
    """``8 devices``, ``0.5 devices``."""
    return f"{milli_text(milli)} device{'' if milli == 1000 else 's'}"


def timestamp(now: datetime) -> str:
    """``2026-03-14T09:26:53Z``, of a moment in UTC."""
    return now.strftime("%Y-%m-%dT%H:%M:%SZ")


def moment(iso: str) -> str:
    """``2026-03-14T09:26:53Z`` as ``2026-03-14 09:26 UTC``."""
    return f"{iso[:10]} {iso[11:16]} UTC" if len(iso) >= 16 else iso
