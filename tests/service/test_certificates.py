import os
import ssl
from datetime import UTC, datetime
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fairway.service.certificates import TlsError, TlsFiles, expiry_s, fingerprint, load
from tests.certs import DAY, NOW, Authority

AUTHORITY = Authority("test authority")
SERVER = AUTHORITY.issue("server")
OTHER = AUTHORITY.issue("other")


@pytest.fixture
def files(tmp_path: Path) -> TlsFiles:
    certificate, key = SERVER.write(tmp_path, "server")
    client_ca = tmp_path / "ca.crt"
    client_ca.write_bytes(AUTHORITY.pem)
    return TlsFiles(certificate, key, client_ca, verify_clients=True)


def test_a_good_set_is_read_with_its_expiry(files: TlsFiles) -> None:
    loaded = load(files)
    assert (loaded.certificate_pem, loaded.key_pem) == (SERVER.certificate, SERVER.key)
    assert loaded.authorities_pem == AUTHORITY.pem
    assert loaded.certificate_expires_s == (NOW + DAY).timestamp()
    assert loaded.authorities_expire_s == (NOW + 30 * DAY).timestamp()


def test_the_expiry_is_the_leaf_s_and_the_first_authority_s_to_end(files: TlsFiles) -> None:
    files.certificate.write_bytes(SERVER.certificate + AUTHORITY.pem)
    assert files.authorities is not None
    files.authorities.write_bytes(AUTHORITY.pem + Authority("short", expires=NOW + 2 * DAY).pem)
    loaded = load(files)
    assert loaded.certificate_expires_s == (NOW + DAY).timestamp()
    assert loaded.authorities_expire_s == (NOW + 2 * DAY).timestamp()


def test_no_client_authority_is_fine(files: TlsFiles) -> None:
    loaded = load(TlsFiles(files.certificate, files.key, None, verify_clients=True))
    assert (loaded.authorities_pem, loaded.authorities_expire_s) == (None, None)


def test_an_expired_certificate_is_loaded_and_its_expiry_told(files: TlsFiles) -> None:
    expired = AUTHORITY.issue("late", expires=NOW - DAY)
    expired.write(files.certificate.parent, "server")
    assert load(files).certificate_expires_s == (NOW - DAY).timestamp()


HALF = SERVER.certificate[: len(SERVER.certificate) // 2]
# Whole up to its validity, broken in the subject behind it.
TORN = ssl.DER_cert_to_PEM_cert(
    SERVER.der.replace(b"\x55\x04\x03\x0c\x06server", b"\x55\x04\x03\xff\x06server")
).encode()


@pytest.mark.parametrize(
    ("name", "content", "problem"),
    [
        ("server.crt", None, "cannot be read: No such file or directory"),
        ("server.crt", b"", "cannot be used with the key"),
        ("server.crt", b"hello", "cannot be used with the key"),
        ("server.crt", HALF, "cannot be used with the key"),
        ("server.crt", OTHER.certificate, "does not belong to the key"),
        ("server.crt", SERVER.certificate + HALF, "server.crt"),
        ("server.key", None, "cannot be read: No such file or directory"),
        ("server.key", b"", "server.key"),
        ("server.key", SERVER.key[:80], "server.key"),
        ("server.key", OTHER.key, "does not belong to the key"),
        ("ca.crt", None, "cannot be read: No such file or directory"),
        ("ca.crt", b"", "holds no certificate"),
        ("ca.crt", b"\xff\xfe", "holds no certificate"),
        ("ca.crt", AUTHORITY.pem + HALF, "cut off"),
        ("ca.crt", HALF + b"\n-----END CERTIFICATE-----\n", "holds a broken certificate"),
        ("ca.crt", TORN, "holds a broken certificate"),
    ],
    # The contents are made anew in each process, the names of the tests must not be.
    ids=lambda value: value if isinstance(value, str) else "content",
)
def test_a_bad_file_is_named_with_the_problem(
    files: TlsFiles, name: str, content: bytes | None, problem: str
) -> None:
    path = files.certificate.parent / name
    if content is None:
        path.unlink()
    else:
        path.write_bytes(content)
    with pytest.raises(TlsError) as caught:
        load(files)
    assert name in str(caught.value)
    assert problem in str(caught.value)


def test_a_pair_replaced_between_two_reads_is_refused(files: TlsFiles) -> None:
    class Replaced(type(files.certificate)):  # type: ignore[misc]  # whatever type it has
        def read_bytes(self) -> bytes:
            content: bytes = super().read_bytes()
            OTHER.write(files.key.parent, "server")
            return content

    torn = TlsFiles(Replaced(files.certificate), files.key, None, verify_clients=True)
    with pytest.raises(TlsError, match=r"server\.crt: changed while being read"):
        load(torn)


def test_an_encrypted_key_is_refused_without_asking_for_a_password(files: TlsFiles) -> None:
    from cryptography.hazmat.primitives import serialization

    key = serialization.load_pem_private_key(SERVER.key, None)
    files.key.write_bytes(
        key.private_bytes(
            serialization.Encoding.PEM,
            serialization.PrivateFormat.PKCS8,
            serialization.BestAvailableEncryption(b"secret"),
        )
    )
    with pytest.raises(TlsError, match="unencrypted PEM key"):
        load(files)


def test_the_fingerprint_sees_a_rewrite_a_replacement_and_a_swapped_link(files: TlsFiles) -> None:
    seen = {fingerprint(files)}
    files.key.write_bytes(SERVER.key + b"\n")
    seen.add(fingerprint(files))

    replacement = files.key.with_name("new")
    replacement.write_bytes(SERVER.key + b"\n")
    os.replace(replacement, files.key)
    seen.add(fingerprint(files))

    directory = files.key.parent
    for version in ("v1", "v2"):
        (directory / version).mkdir()
        SERVER.write(directory / version, "server")
    (directory / "data").symlink_to("v1")
    linked = TlsFiles(directory / "data/server.crt", directory / "data/server.key", None, verify_clients=True)
    before = fingerprint(linked)
    (directory / "next").symlink_to("v2")
    os.replace(directory / "next", directory / "data")

    assert len(seen) == 3
    assert fingerprint(linked) != before


@pytest.mark.parametrize("year", [2026, 2049, 2050, 2068, 2069, 2100, 9999])
def test_the_expiry_is_read_in_every_century(year: int) -> None:
    expires = datetime(year, 12, 31, 23, 59, 59, tzinfo=UTC)
    assert expiry_s(AUTHORITY.issue("x", expires=expires).der) == expires.timestamp()


@given(st.integers(0, 250))
def test_a_certificate_cut_anywhere_before_its_end_is_refused(length: int) -> None:
    with pytest.raises(ValueError, match=r".+"):
        expiry_s(SERVER.der[:length])


@given(st.binary(max_size=80))
def test_bytes_that_are_no_certificate_are_refused(data: bytes) -> None:
    with pytest.raises(ValueError, match=r".+"):
        expiry_s(data)
