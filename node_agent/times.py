"""Moments as Kubernetes writes them; `fairway.moments` reads them."""

from datetime import UTC, datetime

_LATEST_S = 253_402_300_799
"""The end of the year 9999, beyond which RFC 3339 has no words."""


def rfc3339(wall_s: float) -> str:
    """Seconds since the epoch, down to the second and in UTC: ``2026-01-01T00:00:00Z``.

    What is out of range, by a clock that is wrong, is the nearest that is not.
    """
    return datetime.fromtimestamp(max(0, min(int(wall_s), _LATEST_S)), UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
