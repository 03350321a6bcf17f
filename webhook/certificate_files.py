"""Certificates that somebody else renews, in files: a mounted Secret, cert-manager, a person.

Files are looked at by their marks and read when one changes. The bundle that callers should trust keeps the
authorities of the last hour, so that a new authority and a new certificate may come in any order, and at
other times on other replicas.
"""

from collections.abc import Callable
from pathlib import Path
from typing import Final

from fairway.service.certificates import TlsFiles, fingerprint, load
from webhook.tls import Serving

REMEMBERED_S: Final = 3600.0


class CertificateFiles:
    """Files as a source of certificates; ``clock`` is monotonic.

    Without ``authorities`` callers are left to trust the authorities of their system.
    """

    def __init__(
        self, certificate: Path, key: Path, authorities: Path | None, clock: Callable[[], float]
    ) -> None:
        self._files = TlsFiles(certificate, key, authorities, verify_clients=False)
        self._clock = clock
        self._mark: object = None
        self._loaded: Serving | None = None
        self._seen_s: dict[bytes, float] = {}

    async def read(self) -> Serving:
        """What to serve with now. Raises TlsError that names the file."""
        mark = fingerprint(self._files)
        if self._loaded is None or mark != self._mark:
            found = load(self._files)
            self._mark = mark
            self._loaded = Serving(found.certificate_pem or b"", found.key_pem or b"", found.authorities_pem)
        loaded = self._loaded
        return Serving(loaded.certificate, loaded.key, self._bundle(loaded.authorities))

    def _bundle(self, authorities: bytes | None) -> bytes | None:
        if authorities is None:
            return None
        now_s = self._clock()
        current = authorities.strip() + b"\n"
        self._seen_s[current] = now_s
        self._seen_s = {pem: seen_s for pem, seen_s in self._seen_s.items() if now_s - seen_s < REMEMBERED_S}
        return current + b"".join(pem for pem in self._seen_s if pem != current)
