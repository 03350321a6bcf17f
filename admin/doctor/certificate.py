"""Certificates as the doctor looks at them: names, expiry, who signed them. Keys are never looked at."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from ipaddress import ip_address
from typing import Final

from cryptography import x509
from cryptography.exceptions import InvalidSignature, UnsupportedAlgorithm

_DAY_MS: Final = 86_400_000
WARN_BEFORE_DAYS: Final = 21
"""What renews itself has been renewed long before; what people renew needs some days."""


class BadCertificate(ValueError):
    """Text that holds no usable certificate; the message says why."""


@dataclass(frozen=True, slots=True)
class Certificate:
    """One certificate. ``names``: DNS names and addresses it is made out to. Times in epoch milliseconds."""

    subject: str
    names: tuple[str, ...]
    not_before_ms: int
    not_after_ms: int
    parsed: x509.Certificate

    @property
    def is_authority(self) -> bool:
        """Whether it may sign others."""
        try:
            return self.parsed.extensions.get_extension_for_class(x509.BasicConstraints).value.ca
        except (x509.ExtensionNotFound, ValueError):
            return False

    def covers(self, host: str) -> bool:
        """Whether a client that dials ``host`` accepts the name; ``*`` stands for the leftmost label."""
        return covers(self.names, host)

    def is_signed_by(self, authorities: Iterable["Certificate"]) -> bool:
        """Whether one of them issued it, or is it."""
        return any(_issued(self.parsed, each.parsed) for each in authorities)


def read_certificates(pem: bytes) -> tuple[Certificate, ...]:
    """All certificates of a PEM text, in order. Raises BadCertificate."""
    try:
        return tuple(_certificate(each) for each in x509.load_pem_x509_certificates(pem))
    except (ValueError, UnsupportedAlgorithm) as error:
        raise BadCertificate(f"expected PEM certificates: {error}") from None


def read_der(der: bytes) -> Certificate:
    """A certificate as TLS delivers it. Raises BadCertificate."""
    try:
        return _certificate(x509.load_der_x509_certificate(der))
    except (ValueError, UnsupportedAlgorithm) as error:
        raise BadCertificate(f"expected a certificate in DER: {error}") from None


def covers(names: Sequence[str], host: str) -> bool:
    """Whether one of the names of a certificate is ``host``'s."""
    wanted = host.lower().rstrip(".")
    try:
        return str(ip_address(wanted.strip("[]"))) in names
    except ValueError:
        first, _, rest = wanted.partition(".")
        return any(name in (wanted, f"*.{rest}" if first else "") for name in map(str.lower, names))


def days_left(not_after_ms: int, now_ms: int) -> int:
    """Whole days, rounded down; negative once it has expired."""
    return (not_after_ms - now_ms) // _DAY_MS


def day(moment_ms: int) -> str:
    """``2026-11-22``, UTC."""
    return f"{datetime.fromtimestamp(moment_ms / 1000, UTC):%Y-%m-%d}"


def _certificate(parsed: x509.Certificate) -> Certificate:
    return Certificate(
        parsed.subject.rfc4514_string(),
        _names(parsed),
        int(parsed.not_valid_before_utc.timestamp() * 1000),
        int(parsed.not_valid_after_utc.timestamp() * 1000),
        parsed,
    )


def _names(parsed: x509.Certificate) -> tuple[str, ...]:
    try:
        stated = parsed.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    except (x509.ExtensionNotFound, ValueError):
        return ()
    names = stated.get_values_for_type(x509.DNSName)
    addresses = stated.get_values_for_type(x509.IPAddress)
    return (*names, *(str(address) for address in addresses))


def _issued(certificate: x509.Certificate, authority: x509.Certificate) -> bool:
    if certificate == authority:
        return True
    try:
        certificate.verify_directly_issued_by(authority)
    except (ValueError, TypeError, InvalidSignature, UnsupportedAlgorithm):
        return False
    return True
