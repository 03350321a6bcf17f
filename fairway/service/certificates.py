"""Certificate files of a TLS server or client: one consistent, checked set of bytes, and when it expires.

Cert-manager, kubelet and people replace such files one after the other, so a reader may meet a new
certificate beside the old key. ``load`` and ``load_client`` return only what belongs together; everything
else is a TlsError that names the file and the problem, for the caller to keep what it has and try again.
"""

import os
import ssl
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Protocol

_BEGIN = "-----BEGIN CERTIFICATE-----"
_END = "-----END CERTIFICATE-----"
_SEQUENCE, _EXPLICIT_VERSION = 0x30, 0xA0
_TIME_FORMATS = {0x17: "%y%m%d%H%M%SZ", 0x18: "%Y%m%d%H%M%SZ"}


class TlsError(ValueError):
    """Certificate files that cannot be used; the message names the file and the problem."""


class Files(Protocol):
    """Files that are read together."""

    def paths(self) -> tuple[Path, ...]:
        """Every file of the set."""


@dataclass(frozen=True, slots=True)
class TlsFiles:
    """Where a server's certificate material lives, PEM throughout.

    ``certificate`` holds the server's chain, leaf first. With ``client_ca``, clients must present a
    certificate signed by one of its authorities, unless ``verify_clients`` is false.
    """

    certificate: Path
    key: Path
    client_ca: Path | None
    verify_clients: bool

    def paths(self) -> tuple[Path, ...]:
        """Every file of the set."""
        return (self.certificate, self.key, *([self.client_ca] if self.client_ca else []))


@dataclass(frozen=True, slots=True)
class ClientFiles:
    """Where a client's certificate material lives, PEM throughout.

    ``ca`` holds the authorities of servers. ``certificate`` and ``key``: None for a client that shows none.
    """

    ca: Path
    certificate: Path | None = None
    key: Path | None = None

    def paths(self) -> tuple[Path, ...]:
        """Every file of the set."""
        return tuple(path for path in (self.ca, self.certificate, self.key) if path is not None)


@dataclass(frozen=True, slots=True)
class ClientSet:
    """Contents of `ClientFiles` that were read together and belong together."""

    ca_pem: bytes
    certificate_pem: bytes | None
    key_pem: bytes | None


@dataclass(frozen=True, slots=True)
class CertificateSet:
    """File contents that were read together and belong together; expiry in seconds since the epoch."""

    certificate_pem: bytes
    key_pem: bytes
    client_ca_pem: bytes | None
    certificate_expires_s: float
    client_ca_expires_s: float | None


@dataclass(frozen=True, slots=True)
class CertificateReading:
    """The state of a server's certificates: times in seconds since the epoch, counts since the start."""

    certificate_expires_s: float
    client_ca_expires_s: float | None
    reloads: int
    failures: int


def fingerprint(files: Files) -> tuple[tuple[int, int, int, int], ...]:
    """What changes when any file is replaced or rewritten: device, inode, size and mtime (ns) of each.

    Follows symbolic links, which is how mounted Secrets are swapped. Costs one ``stat`` a file.
    Raises TlsError.
    """
    marks = []
    for path in files.paths():
        try:
            status = os.stat(path)
        except OSError as error:
            raise TlsError(f"{path}: cannot be read: {error.strerror}") from error
        marks.append((status.st_dev, status.st_ino, status.st_size, status.st_mtime_ns))
    return tuple(marks)


def load(files: TlsFiles) -> CertificateSet:
    """Read and check the set: the key fits the leaf, every certificate parses, nothing changed meanwhile.

    Raises TlsError.
    """
    before = fingerprint(files)
    certificate, key, *client_ca = (_read(path) for path in files.paths())
    _check_pair(files.certificate, files.key)
    certificate_expires_s = _expiry(files.certificate, certificate)[0]
    client_ca_expires_s = min(_expiry(files.client_ca, client_ca[0])) if files.client_ca else None
    if files.client_ca:
        _check_authorities(files.client_ca)
    if fingerprint(files) != before:
        raise TlsError(f"{files.certificate}: changed while being read, with its key or the client CA")
    return CertificateSet(
        certificate, key, client_ca[0] if client_ca else None, certificate_expires_s, client_ca_expires_s
    )


def load_client(files: ClientFiles) -> ClientSet:
    """Read and check the set: the key fits the certificate, the authorities parse, nothing changed meanwhile.

    Raises TlsError.
    """
    before = fingerprint(files)
    ca = _read(files.ca)
    certificate = None if files.certificate is None else _read(files.certificate)
    key = None if files.key is None else _read(files.key)
    if files.certificate is not None and files.key is not None:
        _check_pair(files.certificate, files.key)
    _expiry(files.ca, ca)
    _check_authorities(files.ca)
    if fingerprint(files) != before:
        raise TlsError(f"{files.ca}: changed while being read, or the certificate and key beside it did")
    return ClientSet(ca, certificate, key)


def _read(path: Path) -> bytes:
    try:
        return path.read_bytes()
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


def _expiry(path: Path, pem: bytes) -> list[float]:
    try:
        expiries = [expiry_s(der) for der in _certificates(pem)]
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
    """The ``notAfter`` of an X.509 certificate in DER, in seconds since the epoch.

    The standard library shows this field for authorities only (``SSLContext.get_ca_certs``), not for a
    server's own certificate; the walk to it is short: Certificate, tbsCertificate, over version, serial
    number, signature algorithm and issuer, to the second time of validity (RFC 5280, section 4.1).
    Raises ValueError.
    """
    certificate = _expect(der, 0, _SEQUENCE)
    tbs = _expect(der, certificate[0], _SEQUENCE)
    position = tbs[0]
    if der[position : position + 1] == bytes([_EXPLICIT_VERSION]):
        position = _element(der, position)[2]
    for _ in ("serial number", "signature algorithm", "issuer"):
        position = _element(der, position)[2]
    validity = _expect(der, position, _SEQUENCE)
    not_after = _element(der, validity[0])[2]
    tag, start, end = _element(der, not_after)
    if tag not in _TIME_FORMATS:
        raise ValueError(f"expected a time at byte {not_after}, found tag {tag:#x}")
    moment = datetime.strptime(der[start:end].decode("ascii"), _TIME_FORMATS[tag])
    if tag == 0x17 and moment.year >= 2050:
        moment = moment.replace(year=moment.year - 100)
    return moment.replace(tzinfo=UTC).timestamp()


def _expect(der: bytes, position: int, tag: int) -> tuple[int, int]:
    found, start, end = _element(der, position)
    if found != tag:
        raise ValueError(f"expected tag {tag:#x} at byte {position}, found {found:#x}")
    return start, end


def _element(der: bytes, position: int) -> tuple[int, int, int]:
    """Tag, first byte of the content and first byte after it."""
    if position + 2 > len(der):
        raise ValueError(f"cut off at byte {position}")
    tag, length, start = der[position], der[position + 1], position + 2
    if length & 0x80:
        size = length & 0x7F
        length = int.from_bytes(der[start : start + size], "big")
        start += size
    if start + length > len(der):
        raise ValueError(f"an element at byte {position} reaches past the end")
    return tag, start, start + length
