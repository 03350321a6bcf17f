"""An authority and a serving certificate of our own, renewed in steps between which no call can fail.

The one idea: the API server must trust an authority before anybody serves with a certificate of it. So a new
authority joins the bundle first; an hour later, when every replica has seen it and every registration carries
it, a certificate of it takes over; and another hour later the old authority leaves. `renewed` makes whatever
step is due, from what is stored and the time alone, so that replicas agree on the step and only one of them
needs to make it.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from ipaddress import ip_address
from typing import Final

from cryptography import x509
from cryptography.exceptions import InvalidSignature, UnsupportedAlgorithm
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import (
    Encoding,
    NoEncryption,
    PrivateFormat,
    PublicFormat,
    load_pem_private_key,
)
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

AUTHORITY_LIFE: Final = timedelta(days=730)
AUTHORITY_RENEWAL: Final = timedelta(days=240)
"""An authority is replaced when less than this is left, which is more than any certificate of it has."""
CERTIFICATE_LIFE: Final = timedelta(days=90)
CERTIFICATE_RENEWAL: Final = timedelta(days=30)
OVERLAP: Final = timedelta(hours=1)
"""How long each step of a rotation lasts: far more than any replica takes to look at what is stored."""
_BACKDATED: Final = timedelta(hours=1)


class CertificateError(ValueError):
    """Stored certificates that cannot be used; the message says which part and why."""


@dataclass(frozen=True, slots=True)
class Issued:
    """What is stored, PEM throughout: authorities oldest first, the key of the newest, what to serve with."""

    authorities: tuple[bytes, ...]
    authority_key: bytes
    certificate: bytes
    key: bytes

    @property
    def bundle(self) -> bytes:
        """All authorities to trust, the newest first."""
        return b"".join(reversed(self.authorities))


@dataclass(frozen=True, slots=True)
class _Authority:
    certificate: x509.Certificate
    key: ec.EllipticCurvePrivateKey | None

    @property
    def pem(self) -> bytes:
        return self.certificate.public_bytes(Encoding.PEM)


def split_bundle(pem: bytes) -> tuple[bytes, ...]:
    """Each certificate of a bundle, oldest first. Raises CertificateError."""
    try:
        certificates = x509.load_pem_x509_certificates(pem)
    except ValueError as error:
        raise CertificateError(f"authorities: expected PEM certificates: {error}") from None
    certificates.sort(key=lambda each: each.not_valid_before_utc)
    return tuple(each.public_bytes(Encoding.PEM) for each in certificates)


def renewed(stored: Issued | None, host: str, now: datetime) -> Issued:
    """What to store and serve from ``now`` on; ``stored`` itself where nothing is due.

    ``host`` is the DNS name or IP address by which the API server calls us. Raises CertificateError where
    what is stored cannot be read; the caller may then begin anew, with ``None``.
    """
    authorities = [] if stored is None else _authorities(stored, now)
    newest = authorities[-1] if authorities and authorities[-1].key is not None else None
    certificate = None if stored is None else _usable(stored, authorities, host, now)
    key = b"" if stored is None else stored.key
    # First with the authority that is known, so that one made now is not needed for an hour.
    if newest is not None and (certificate is None or _is_due(certificate, newest, now)):
        certificate, key = _new_certificate(newest, host, now)
    if newest is None or _left(newest, now) < AUTHORITY_RENEWAL:
        newest = _new_authority(now)
        authorities.append(newest)
    if certificate is None:
        certificate, key = _new_certificate(newest, host, now)
    if _is_signed_by(certificate, newest) and _age(certificate, now) >= OVERLAP:
        authorities = [newest]
    result = Issued(
        tuple(each.pem for each in authorities),
        _key_pem(newest.key) if newest.key is not None else b"",
        certificate.public_bytes(Encoding.PEM),
        key,
    )
    return stored if stored is not None and result == stored else result


def _authorities(stored: Issued, now: datetime) -> list[_Authority]:
    """Those that have not expired; the key is that of the last, where it fits."""
    try:
        certificates = [x509.load_pem_x509_certificate(pem) for pem in stored.authorities]
        key = load_pem_private_key(stored.authority_key, None)
    except (ValueError, TypeError, UnsupportedAlgorithm) as error:
        raise CertificateError(f"the authority or its key: expected PEM: {error}") from None
    alive = [each for each in certificates if each.not_valid_after_utc > now]
    return [
        _Authority(each, key if isinstance(key, ec.EllipticCurvePrivateKey) and _fits(each, key) else None)
        for each in alive
    ]


def _usable(
    stored: Issued, authorities: Sequence[_Authority], host: str, now: datetime
) -> x509.Certificate | None:
    """The serving certificate, if a call that trusts these authorities succeeds with it."""
    try:
        certificate = x509.load_pem_x509_certificate(stored.certificate)
        key = load_pem_private_key(stored.key, None)
    except (ValueError, TypeError, UnsupportedAlgorithm) as error:
        raise CertificateError(f"the serving certificate or its key: expected PEM: {error}") from None
    serves = (
        isinstance(key, ec.EllipticCurvePrivateKey)
        and _fits(certificate, key)
        and certificate.not_valid_before_utc <= now < certificate.not_valid_after_utc
        and _names(certificate) == [_general_name(host)]
        and any(_is_signed_by(certificate, authority) for authority in authorities)
    )
    return certificate if serves else None


def _is_due(certificate: x509.Certificate, newest: _Authority, now: datetime) -> bool:
    """Whether another one should be issued, by an authority that everybody knows by now."""
    if _age(newest.certificate, now) < OVERLAP:
        return False
    left = certificate.not_valid_after_utc - now
    return left < CERTIFICATE_RENEWAL or not _is_signed_by(certificate, newest)


def _is_signed_by(certificate: x509.Certificate, authority: _Authority) -> bool:
    try:
        certificate.verify_directly_issued_by(authority.certificate)
    except (ValueError, TypeError, InvalidSignature):
        return False
    return True


def _fits(certificate: x509.Certificate, key: ec.EllipticCurvePrivateKey) -> bool:
    form = Encoding.DER, PublicFormat.SubjectPublicKeyInfo
    return certificate.public_key().public_bytes(*form) == key.public_key().public_bytes(*form)


def _left(authority: _Authority, now: datetime) -> timedelta:
    return authority.certificate.not_valid_after_utc - now


def _age(certificate: x509.Certificate, now: datetime) -> timedelta:
    """Since it was issued, which is later than it says."""
    return now - certificate.not_valid_before_utc - _BACKDATED


def _names(certificate: x509.Certificate) -> list[x509.GeneralName]:
    try:
        return list(certificate.extensions.get_extension_for_class(x509.SubjectAlternativeName).value)
    except (x509.ExtensionNotFound, ValueError):
        return []


def _general_name(host: str) -> x509.GeneralName:
    try:
        return x509.IPAddress(ip_address(host))
    except ValueError:
        return x509.DNSName(host)


def _new_authority(now: datetime) -> _Authority:
    key = ec.generate_private_key(ec.SECP256R1())
    # A name of its own, so that two authorities in a bundle are told apart.
    name = _name(f"fairway-webhook-ca {now.astimezone(UTC):%Y-%m-%dT%H:%M:%SZ}")
    certificate = (
        _builder(name, name, key, now, now + AUTHORITY_LIFE)
        .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
        .add_extension(_usage(signs_certificates=True), critical=True)
        .add_extension(x509.SubjectKeyIdentifier.from_public_key(key.public_key()), critical=False)
        .sign(key, hashes.SHA256())
    )
    return _Authority(certificate, key)


def _new_certificate(authority: _Authority, host: str, now: datetime) -> tuple[x509.Certificate, bytes]:
    assert authority.key is not None
    key = ec.generate_private_key(ec.SECP256R1())
    issuer = authority.certificate
    expires = min(now + CERTIFICATE_LIFE, issuer.not_valid_after_utc)
    certificate = (
        _builder(_name("fairway-webhook"), issuer.subject, key, now, expires)
        .add_extension(x509.SubjectAlternativeName([_general_name(host)]), critical=False)
        .add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
        .add_extension(_usage(signs_certificates=False), critical=True)
        .add_extension(x509.ExtendedKeyUsage([ExtendedKeyUsageOID.SERVER_AUTH]), critical=False)
        .add_extension(
            x509.AuthorityKeyIdentifier.from_issuer_public_key(authority.key.public_key()), critical=False
        )
        .sign(authority.key, hashes.SHA256())
    )
    return certificate, _key_pem(key)


def _builder(
    subject: x509.Name,
    issuer: x509.Name,
    key: ec.EllipticCurvePrivateKey,
    now: datetime,
    expires: datetime,
) -> x509.CertificateBuilder:
    return (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(issuer)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        # Clocks differ.
        .not_valid_before(now.replace(microsecond=0) - _BACKDATED)
        .not_valid_after(expires)
    )


def _usage(*, signs_certificates: bool) -> x509.KeyUsage:
    return x509.KeyUsage(
        digital_signature=not signs_certificates,
        content_commitment=False,
        key_encipherment=False,
        data_encipherment=False,
        key_agreement=False,
        key_cert_sign=signs_certificates,
        crl_sign=signs_certificates,
        encipher_only=False,
        decipher_only=False,
    )


def _name(common_name: str) -> x509.Name:
    return x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, common_name)])


def _key_pem(key: ec.EllipticCurvePrivateKey) -> bytes:
    return key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())
