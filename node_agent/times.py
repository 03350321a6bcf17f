"""Moments as Kubernetes writes them; `fairway.moments` reads them."""

from datetime import UTC, datetime


def rfc3339(wall_s: float) -> str:
    """Seconds since the epoch, down to the second and in UTC: ``2026-01-01T00:00:00Z``."""
    return datetime.fromtimestamp(int(wall_s), UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
