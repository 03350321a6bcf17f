"""One TLS context whose certificate is replaced while it serves: new handshakes get the new one.

Established connections keep what they have. A pair that does not work is refused before the context is
touched, since a context that failed half way has no certificate at all.
"""

import ssl
from dataclasses import dataclass
from typing import Final

from fairway.service.certificates import TlsError, expiry_s
from fairway.service.https import as_files

_END: Final = "-----END CERTIFICATE-----"


@dataclass(frozen=True, slots=True)
class Serving:
    """What to serve with and whom callers should trust for it, PEM.

    ``authorities`` is None where that is not ours to say. ``expires_s`` is since the epoch.
    """

    certificate: bytes
    key: bytes
    authorities: bytes | None

    @property
    def expires_s(self) -> float:
        """When the certificate expires. Raises TlsError."""
        try:
            leaf = self.certificate.decode("ascii").partition(_END)[0] + _END
            return expiry_s(ssl.PEM_cert_to_DER_cert(leaf.strip()))
        except ValueError as error:
            raise TlsError(f"the certificate cannot be read: {error}") from None


def install(context: ssl.SSLContext, serving: Serving) -> None:
    """Serve with this from the next handshake on. Raises TlsError, and then nothing has changed."""
    with as_files(serving.certificate, serving.key) as (certificate, key):
        _load(ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER), certificate, key)
        _load(context, certificate, key)


def _load(context: ssl.SSLContext, certificate: str, key: str) -> None:
    try:
        # The empty password keeps OpenSSL from asking for one on the terminal.
        context.load_cert_chain(certificate, key, password="")
    except (OSError, ValueError) as error:
        reason = error.reason if isinstance(error, ssl.SSLError) else str(error)
        raise TlsError(f"the certificate and its key cannot be used: {reason}") from None
