"""Certificate files of a TLS server or client: one consistent, checked set of bytes, and when it expires.

Cert-manager, kubelet and people replace such files one after the other, so a reader may meet a new
certificate beside the old key. ``load`` returns only what belongs together; everything
else is a TlsError that names the file and the problem, and `Certificates` keeps what it has and tries again.
"""

import logging
import os
import ssl
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final

logger = logging.getLogger(__name__)

CHECK_INTERVAL_S: Final = 1.0
_BEGIN = "-----BEGIN CERTIFICATE-----"
_END = "-----END CERTIFICATE-----"


class TlsError(ValueError):
    """Certificate files that cannot be used; the message names the file and the problem."""


@dataclass(frozen=True, slots=True)
class TlsFiles:
    """Where a server's certificate material lives, PEM throughout.

    ``certificate`` holds the server's chain, leaf first. With ``authorities``, clients must present a
    certificate signed by one of them, unless ``verify_clients`` is false.
    """

    certificate: Path
    key: Path
    authorities: Path | None
    verify_clients: bool


@dataclass(frozen=True, slots=True)
class ClientFiles:
    """Where a client's certificate material lives, PEM throughout.

    ``authorities`` are those of servers. ``certificate`` and ``key``: None for a client that shows none.
    """

    authorities: Path
    certificate: Path | None = None
    key: Path | None = None


Files = TlsFiles | ClientFiles


@dataclass(frozen=True, slots=True)
class CertificateSet:
    """File contents that were read together and belong together; None for a file that there is none of.

    Expiries are in seconds since the epoch: that of the leaf, and the first one of an authority.
    """

    certificate_pem: bytes | None
    key_pem: bytes | None
    authorities_pem: bytes | None
    certificate_expires_s: float | None
    authorities_expire_s: float | None


@dataclass(frozen=True, slots=True)
class CertificateReading:
    """The state of a server's certificates: times in seconds since the epoch, counts since the start."""

    certificate_expires_s: float
    client_ca_expires_s: float | None
    reloads: int
    failures: int


class Certificates:
    """The certificates in force, and the files they follow. Safe to use from any thread.

    Files are looked at when somebody asks, at most once a second; what cannot be used leaves the last good
    set in force, with a log line and a count. The log calls them ``named``, and says what a change leads to.
    """

    def __init__(
        self,
        files: Files,
        *,
        named: str = "certificates",
        leads_to: str = "",
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """Load ``files``; ``clock`` gives seconds and paces the looks at them. Raises TlsError."""
        self._files = files
        self._named, self._leads_to = named, leads_to
        self._clock = clock
        self._lock = threading.Lock()
        self._looked_s = clock()
        self._mark = fingerprint(files)
        self._set = load(files)
        self._problem = ""
        self._reloads = 0
        self._failures = 0

    def current(self) -> CertificateSet:
        """The set in force, after a look at the files if the last one is a second old."""
        with self._lock:
            now_s = self._clock()
            if now_s - self._looked_s >= CHECK_INTERVAL_S:
                self._looked_s = now_s
                self._follow_files()
            return self._set

    def reading(self) -> CertificateReading:
        """What to measure, after a look at the files as in ``current``; an expiry of 0 stands for none."""
        current = self.current()
        return CertificateReading(
            current.certificate_expires_s or 0.0, current.authorities_expire_s, self._reloads, self._failures
        )

    def _follow_files(self) -> None:
        try:
            mark = fingerprint(self._files)
            if mark == self._mark and not self._problem:
                return
            newer = load(self._files)
        except TlsError as error:
            self._failures += 1
            if str(error) != self._problem:
                logger.error("%s not reloaded, the old ones stay in force: %s", self._named, error)
            self._problem = str(error)
            return
        self._mark, self._problem = mark, ""
        if newer != self._set:
            self._set = newer
            self._reloads += 1
            shown = self._files.certificate or self._files.authorities
            logger.info("%s reloaded%s", self._named, self._leads_to, extra={"certificate": str(shown)})


def fingerprint(files: Files) -> tuple[tuple[int, int, int, int], ...]:
    """What changes when any file is replaced or rewritten: device, inode, size and mtime (ns) of each.

    Follows symbolic links, which is how mounted Secrets are swapped. Costs one ``stat`` a file.
    Raises TlsError.
    """
    marks = []
    for path in (files.certificate, files.key, files.authorities):
        if path is None:
            continue
        try:
            status = os.stat(path)
        except OSError as error:
            raise TlsError(f"{path}: cannot be read: {error.strerror}") from error
        marks.append((status.st_dev, status.st_ino, status.st_size, status.st_mtime_ns))
    return tuple(marks)


def load(files: Files) -> CertificateSet:
    """Read and check the set: the key fits the leaf, every certificate parses, nothing changed meanwhile.

    Raises TlsError.
    """
    before = fingerprint(files)
    certificate, key, authorities = map(_read, (files.certificate, files.key, files.authorities))
    certificate_expires_s = authorities_expire_s = None
    if files.certificate is not None and files.key is not None:
        _check_pair(files.certificate, files.key)
        certificate_expires_s = _expiry(files.certificate, certificate)[0]
    if files.authorities is not None:
        authorities_expire_s = min(_expiry(files.authorities, authorities))
        _check_authorities(files.authorities)
    if fingerprint(files) != before:
        first = files.certificate or files.authorities
        raise TlsError(f"{first}: changed while being read, or the files that belong to it did")
    return CertificateSet(certificate, key, authorities, certificate_expires_s, authorities_expire_s)


def _read(path: Path | None) -> bytes | None:
    try:
        return None if path is None else path.read_bytes()
    except OSError as error:
        raise TlsError(f"{path}: cannot be read: {error.strerror}") from error


def _check_pair(certificate: Path, key: Path) -> None:
    try:
        # The empty password keeps OpenSSL from asking for one on the terminal.
        ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER).load_cert_chain(certificate, key, password="")
    except (OSError, ValueError) as error:
        problem = "does not belong to the key" if "MISMATCH" in str(error) else "cannot be used with the key"
        raise TlsError(
            f"{certificate}: {problem} in {key}: {_reason(error)}; "
            "expected a PEM certificate chain and its unencrypted PEM key"
        ) from error


def _check_authorities(path: Path) -> None:
    try:
        ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER).load_verify_locations(path)
    except (OSError, ValueError) as error:
        raise TlsError(f"{path}: {_reason(error)}; expected PEM certificates of authorities") from error


def _reason(error: Exception) -> str:
    reason = error.reason if isinstance(error, ssl.SSLError) else ""
    return reason.replace("_", " ").lower() if reason else str(error)


def _expiry(path: Path, pem: bytes | None) -> list[float]:
    try:
        expiries = [expiry_s(der) for der in _certificates(pem or b"")]
    except ValueError as error:
        raise TlsError(f"{path}: holds a broken certificate: {error}") from error
    if not expiries:
        raise TlsError(f"{path}: holds no certificate; expected {_BEGIN}")
    return expiries


def _certificates(pem: bytes) -> Iterator[bytes]:
    text = pem.decode("ascii", errors="replace")
    for block in text.split(_BEGIN)[1:]:
        body, end, _ = block.partition(_END)
        if not end:
            raise ValueError(f"a certificate is cut off before {_END}")
        yield ssl.PEM_cert_to_DER_cert(_BEGIN + body + _END)


def expiry_s(der: bytes) -> float:
    """The ``notAfter`` of an X.509 certificate in DER, in seconds since the epoch. Raises ValueError.

    The standard library shows this field for authorities only (``SSLContext.get_ca_certs``).
    """
    # Takes a tenth of a second to import, which only those who serve TLS shall wait for.
    from cryptography import x509

    return x509.load_der_x509_certificate(der).not_valid_after_utc.timestamp()
