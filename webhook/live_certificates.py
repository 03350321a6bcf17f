"""The certificate in force: follows its source, and keeps the last good one whatever happens to that."""

import asyncio
import logging
import ssl
from collections.abc import Awaitable, Callable
from typing import Final, Protocol

from fairway.kube.errors import KubeError
from fairway.service.certificates import CertificateReading, TlsError
from fairway.service.https import serving_context
from webhook.tls import Serving, install

logger = logging.getLogger(__name__)

LOOK_EVERY_S: Final = 10.0


class CertificateSource(Protocol):
    """Where certificates come from."""

    async def read(self) -> Serving:
        """The newest. Raises TlsError or KubeError."""


class LiveCertificates:
    """``context`` serves with the newest certificate of the source; `ready` is set once it has one."""

    def __init__(
        self, source: CertificateSource, *, sleep: Callable[[float], Awaitable[None]] = asyncio.sleep
    ) -> None:
        self.context: Final[ssl.SSLContext] = serving_context()
        self.ready = asyncio.Event()
        self.problem = "not read yet"
        self._source = source
        self._sleep = sleep
        self._serving: Serving | None = None
        self._reloads = 0
        self._failures = 0

    @property
    def authorities(self) -> bytes | None:
        """Whom callers should trust, PEM; None before `ready`, and where the system's authorities count."""
        return None if self._serving is None else self._serving.authorities

    async def run(self) -> None:
        """Follow the source until cancelled."""
        while True:
            try:
                await self.look()
            except Exception:  # The root of a task: one bad look must not end the webhook.
                self._failures += 1
                logger.exception("certificates not looked at")
            await self._sleep(LOOK_EVERY_S)

    async def look(self) -> None:
        """Take what the source has now, if it can be used."""
        try:
            serving = await self._source.read()
            if serving != self._serving:
                self._take(serving)
        except (TlsError, KubeError) as error:
            self._failures += 1
            if str(error) != self.problem:
                kept = "the old ones stay in force" if self._serving else "nothing is served yet"
                logger.error("certificates not loaded, %s: %s", kept, error)
            self.problem = str(error)
            return
        self.problem = ""

    def reading(self) -> CertificateReading:
        """What to measure; an expiry of 0 stands for none."""
        expires_s = 0.0 if self._serving is None else self._serving.expires_s
        return CertificateReading(expires_s, None, self._reloads, self._failures)

    def _take(self, serving: Serving) -> None:
        expires_s = serving.expires_s
        before = self._serving
        if before is None or (before.certificate, before.key) != (serving.certificate, serving.key):
            install(self.context, serving)
            logger.info("serving with a new certificate", extra={"expires_s": expires_s})
            self._reloads += before is not None
        self._serving = serving
        self.ready.set()
