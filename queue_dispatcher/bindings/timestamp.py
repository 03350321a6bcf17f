"""Points in time as Kubernetes writes them, in epoch milliseconds."""

from datetime import UTC, datetime, timedelta

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
LATEST_MS = 253_402_300_799_999
"""The last millisecond of the year 9999, beyond which RFC 3339 has no words."""


def parse_ms(text: str) -> int | None:
    """The milliseconds of an RFC 3339 timestamp, finer digits cut off; None where the text is none.

    A timestamp without an offset says no point in time, and one before 1970 is no answer to when something
    happened here: both are None.
    """
    if len(text) > 64:
        return None
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        return None
    if moment.tzinfo is None or "T" not in text.upper():
        return None
    milliseconds = (moment - _EPOCH) // timedelta(milliseconds=1)
    return milliseconds if milliseconds >= 0 else None


def format_ms(milliseconds: int) -> str:
    """RFC 3339 in UTC with milliseconds; what is out of range is taken for the nearest that is not."""
    moment = _EPOCH + timedelta(milliseconds=max(0, min(milliseconds, LATEST_MS)))
    return f"{moment:%Y-%m-%dT%H:%M:%S}.{moment.microsecond // 1000:03d}Z"
