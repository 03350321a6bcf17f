"""Where a Prometheus is, and what is shown to it."""

from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urlsplit

from fairway.prometheus.answer import PrometheusError


@dataclass(frozen=True, slots=True)
class Server:
    """Where a Prometheus is, and what is shown to it: the files are read when it is asked."""

    url: str
    token_file: Path | None = None
    ca_file: Path | None = None

    def __str__(self) -> str:
        return f"Prometheus {self.url}"


def checked_url(text: str) -> str:
    """The URL of a Prometheus, without a slash at its end. Raises PrometheusError for what is none."""
    try:
        parts = urlsplit(text)
        is_usable = parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0
    except ValueError:
        is_usable = False
    if not is_usable:
        raise PrometheusError(f"{_plain(text)!r}: expected http(s)://HOST[:PORT][/PATH] of a Prometheus")
    if parts.username is not None or parts.query or parts.fragment:
        raise PrometheusError(
            f"{_plain(text)!r}: expected http(s)://HOST[:PORT][/PATH] alone; credentials go into a file, see "
            "--prometheus-token-file"
        )
    return text.rstrip("/")


def _plain(text: str) -> str:
    """The text without what may be a password."""
    scheme, _, rest = text.rpartition("://")
    return f"{scheme}://{rest.rpartition('@')[2]}" if scheme else text
