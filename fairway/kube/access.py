"""The credentials in use, and when they are replaced.

One immutable set at a time. It is loaded anew when it is about to expire, when one of its files changed,
or when the server rejected it. A reload that fails does no harm while the present set is still valid: an
exec plugin may be unable for a minute, a key file may be written a moment after its certificate.
"""

import asyncio
import logging
import ssl
from collections.abc import Callable
from dataclasses import dataclass

from fairway.kube.credentials import (
    Credentials,
    CredentialSource,
    FileSignature,
    file_signature,
    proxy_for,
    refresh_at_s,
    tls_context,
)
from fairway.kube.errors import BadConfig

logger = logging.getLogger(__name__)

_RETRY_LOAD_S = 5.0


@dataclass(frozen=True, slots=True)
class Access:
    """Credentials made ready for connections: TLS context, proxy, and when they become stale."""

    credentials: Credentials
    tls: ssl.SSLContext | None
    proxy: str | None
    signature: FileSignature
    refresh_at_s: float | None

    def is_stale(self, now_s: float) -> bool:
        """Whether they should be replaced: nearly expired, or a file changed."""
        due = self.refresh_at_s is not None and now_s >= self.refresh_at_s
        return due or file_signature(self.credentials.files) != self.signature

    def is_expired(self, now_s: float) -> bool:
        """Whether the server will reject them."""
        return self.credentials.expires_at_s is not None and now_s >= self.credentials.expires_at_s

    def differs_from(self, other: "Access") -> bool:
        """Whether a server that rejected ``other`` might accept this."""
        return self.credentials != other.credentials or self.signature != other.signature


class AccessKeeper:
    """Owns the present `Access` of one client; ``wall_clock`` is in seconds since the epoch."""

    def __init__(self, source: CredentialSource, wall_clock: Callable[[], float]) -> None:
        self._source = source
        self._wall_clock = wall_clock
        self._lock = asyncio.Lock()
        self._present: Access | None = None
        self._next_reload_s = 0.0

    async def usable(self) -> Access:
        """Access that is fresh as far as can be known here; costs a few ``stat`` calls. Raises BadConfig."""
        async with self._lock:
            present, now_s = self._present, self._wall_clock()
            if present is None or present.is_expired(now_s):
                present = await self._load()
            elif now_s >= self._next_reload_s and present.is_stale(now_s):
                try:
                    present = await self._load()
                except BadConfig as error:
                    self._next_reload_s = now_s + _RETRY_LOAD_S
                    logger.warning("keeping the present credentials, which are still valid: %s", error)
            self._present = present
            return present

    async def replacement(self, rejected: Access) -> Access | None:
        """Access other than what the server just rejected, or None if loading anew gives the same."""
        async with self._lock:
            # Another request may have replaced it while this one was under way.
            if self._present is None or self._present is rejected:
                self._present = await self._load()
            return self._present if self._present.differs_from(rejected) else None

    async def _load(self) -> Access:
        loaded_at_s = self._wall_clock()
        credentials = await self._source.load()
        signature = file_signature(credentials.files)
        tls = await asyncio.to_thread(tls_context, credentials)
        expires_at_s = credentials.expires_at_s
        refresh = None if expires_at_s is None else refresh_at_s(expires_at_s, loaded_at_s)
        return Access(credentials, tls, proxy_for(credentials), signature, refresh)
