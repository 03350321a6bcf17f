"""Certificate authorities and certificates for tests, quick to make and valid for localhost."""

import ipaddress
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat
from cryptography.x509.oid import NameOID

NOW = datetime.now(UTC).replace(microsecond=0)
DAY = timedelta(days=1)


def _name(common_name: str) -> x509.Name:
    return x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, common_name)])


@dataclass(frozen=True, slots=True)
class Pair:
    """A certificate and its key, PEM."""

    certificate: bytes
    key: bytes

    def write(self, directory: Path, stem: str) -> tuple[Path, Path]:
        """Write ``STEM.crt`` and ``STEM.key`` and return their paths."""
        certificate, key = directory / f"{stem}.crt", directory / f"{stem}.key"
        certificate.write_bytes(self.certificate)
        key.write_bytes(self.key)
        return certificate, key

    @property
    def der(self) -> bytes:
        """The certificate in DER."""
        return x509.load_pem_x509_certificate(self.certificate).public_bytes(Encoding.DER)


class Authority:
    """A self-signed authority."""

    def __init__(self, name: str, *, expires: datetime = NOW + 30 * DAY) -> None:
        self._name = _name(name)
        self._key = ec.generate_private_key(ec.SECP256R1())
        self._certificate = (
            x509.CertificateBuilder()
            .subject_name(self._name)
            .issuer_name(self._name)
            .public_key(self._key.public_key())
            .serial_number(x509.random_serial_number())
            .not_valid_before(NOW - DAY)
            .not_valid_after(expires)
            .add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
            .sign(self._key, hashes.SHA256())
        )

    @property
    def pem(self) -> bytes:
        """The authority's certificate, PEM."""
        return self._certificate.public_bytes(Encoding.PEM)

    def issue(
        self, common_name: str, *, expires: datetime = NOW + DAY, names: Iterable[str] = ("localhost",)
    ) -> Pair:
        """A certificate for these names and 127.0.0.1, good for servers and clients."""
        key = ec.generate_private_key(ec.SECP256R1())
        alternatives: list[x509.GeneralName] = [x509.DNSName(name) for name in names]
        alternatives.append(x509.IPAddress(ipaddress.ip_address("127.0.0.1")))
        certificate = (
            x509.CertificateBuilder()
            .subject_name(_name(common_name))
            .issuer_name(self._name)
            .public_key(key.public_key())
            .serial_number(x509.random_serial_number())
            .not_valid_before(min(NOW, expires) - DAY)
            .not_valid_after(expires)
            .add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
            .add_extension(x509.SubjectAlternativeName(alternatives), critical=False)
            .sign(self._key, hashes.SHA256())
        )
        return Pair(
            certificate.public_bytes(Encoding.PEM),
            key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()),
        )
