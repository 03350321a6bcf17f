"""When things happened: the trace counts seconds from a start that it does not date, so it is given one."""

from datetime import UTC, datetime, timedelta

_START = datetime(2023, 1, 1, tzinfo=UTC)
_LONGEST_S = 10 * 365 * 86400


def moment(seconds: int) -> datetime:
    """The moment so many seconds into the trace; ten years at the most."""
    return _START + timedelta(seconds=min(seconds, _LONGEST_S))


def timestamp(seconds: int) -> str:
    """The same as Kubernetes writes it."""
    return f"{moment(seconds):%Y-%m-%dT%H:%M:%SZ}"
