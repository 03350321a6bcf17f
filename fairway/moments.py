"""Moments as Kubernetes objects state them."""

from datetime import UTC, datetime


def moment_s(text: str | None) -> float | None:
    """Seconds since the epoch of a time in RFC 3339, UTC where it names no zone; None for what is none."""
    try:
        moment = datetime.fromisoformat(text or "")
        return moment.replace(tzinfo=moment.tzinfo or UTC).timestamp()
    except (ValueError, OverflowError):
        return None
