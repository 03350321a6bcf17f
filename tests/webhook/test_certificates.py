"""The rotation of our own certificates, step by step: at no moment can a call fail."""

import ssl
from datetime import UTC, datetime, timedelta

import pytest
from cryptography import x509
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.certs import Authority
from webhook.certificates import (
    AUTHORITY_LIFE,
    AUTHORITY_RENEWAL,
    CERTIFICATE_LIFE,
    CERTIFICATE_RENEWAL,
    OVERLAP,
    CertificateError,
    Issued,
    renewed,
    split_bundle,
)

HOST = "fairway-webhook.fairway-system.svc"
NOW = datetime(2026, 11, 20, 12, tzinfo=UTC)
MINUTE = timedelta(minutes=1)


def leaf(issued: Issued) -> x509.Certificate:
    return x509.load_pem_x509_certificate(issued.certificate)


def newest(issued: Issued) -> x509.Certificate:
    return x509.load_pem_x509_certificate(issued.authorities[-1])


def verifies(issued: Issued, bundle: bytes, at: datetime) -> bool:
    """Whether a caller that trusts this bundle accepts what is served at that time."""
    certificate = leaf(issued)
    if not certificate.not_valid_before_utc <= at <= certificate.not_valid_after_utc:
        return False
    for authority in x509.load_pem_x509_certificates(bundle):
        if authority.subject == certificate.issuer and at <= authority.not_valid_after_utc:
            certificate.verify_directly_issued_by(authority)
            return True
    return False


def test_the_first_pair_serves_at_once_under_its_name() -> None:
    issued = renewed(None, HOST, NOW)
    assert len(issued.authorities) == 1
    assert verifies(issued, issued.bundle, NOW)
    names = leaf(issued).extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    assert names.get_values_for_type(x509.DNSName) == [HOST]
    assert leaf(issued).not_valid_after_utc == NOW + CERTIFICATE_LIFE
    # OpenSSL takes the bundle, too.
    ssl.create_default_context(cadata=issued.bundle.decode())


@pytest.mark.parametrize("host", ["10.0.0.7", "fd00::7"])
def test_an_address_is_a_name_of_its_kind(host: str) -> None:
    names = (
        leaf(renewed(None, host, NOW)).extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    )
    assert [str(address) for address in names.get_values_for_type(x509.IPAddress)] == [host]


@pytest.mark.parametrize("later", [timedelta(0), MINUTE, OVERLAP, CERTIFICATE_LIFE - CERTIFICATE_RENEWAL])
def test_nothing_is_due_for_long(later: timedelta) -> None:
    issued = renewed(None, HOST, NOW)
    assert renewed(issued, HOST, NOW + later) is issued


def test_a_certificate_is_renewed_under_the_same_authority() -> None:
    old = renewed(None, HOST, NOW)
    due = NOW + CERTIFICATE_LIFE - CERTIFICATE_RENEWAL + MINUTE
    new = renewed(old, HOST, due)
    assert new.authorities == old.authorities
    assert new.certificate != old.certificate
    assert verifies(new, old.bundle, due)
    assert renewed(new, HOST, due + MINUTE) is new


def test_an_authority_is_known_before_it_is_used_and_trusted_after_it_was() -> None:
    due = NOW + AUTHORITY_LIFE - AUTHORITY_RENEWAL + MINUTE
    # The last certificate of the old authority, so that nothing else is due.
    old = renewed(renewed(None, HOST, NOW), HOST, due - timedelta(days=1))
    first = renewed(old, HOST, due)
    assert len(first.authorities) == 2
    assert first.certificate == old.certificate
    assert renewed(first, HOST, due + OVERLAP - MINUTE) is first

    second = renewed(first, HOST, due + OVERLAP)
    assert second.authorities == first.authorities
    assert second.certificate != first.certificate
    assert verifies(second, first.bundle, due + OVERLAP)
    assert verifies(first, second.bundle, due + OVERLAP)
    assert renewed(second, HOST, due + 2 * OVERLAP - MINUTE) is second

    third = renewed(second, HOST, due + 2 * OVERLAP)
    assert third.authorities == second.authorities[1:]
    assert third.certificate == second.certificate
    assert verifies(third, third.bundle, due + 2 * OVERLAP)


def test_another_host_needs_another_certificate_at_once() -> None:
    old = renewed(None, HOST, NOW)
    new = renewed(old, "webhook.example", NOW + MINUTE)
    assert new.authorities == old.authorities
    assert new.certificate != old.certificate


def test_what_has_expired_is_replaced_at_once() -> None:
    old = renewed(None, HOST, NOW)
    after = NOW + AUTHORITY_LIFE + MINUTE
    new = renewed(old, HOST, after)
    assert set(new.authorities).isdisjoint(old.authorities)
    assert verifies(new, new.bundle, after)


def test_a_key_that_does_not_fit_its_authority_begins_a_new_one_beside_it() -> None:
    old, other = renewed(None, HOST, NOW), renewed(None, HOST, NOW)
    mixed = Issued(old.authorities, other.authority_key, old.certificate, old.key)
    new = renewed(mixed, HOST, NOW + MINUTE)
    assert new.authorities[0] == old.authorities[0]
    assert len(new.authorities) == 2
    assert new.certificate == old.certificate


def test_a_key_that_does_not_fit_its_certificate_is_replaced_at_once() -> None:
    old, other = renewed(None, HOST, NOW), renewed(None, HOST, NOW)
    new = renewed(Issued(old.authorities, old.authority_key, old.certificate, other.key), HOST, NOW)
    assert new.certificate != old.certificate
    assert verifies(new, old.bundle, NOW)


@pytest.mark.parametrize("part", ["authorities", "authority_key", "certificate", "key"])
@pytest.mark.parametrize(
    "garbage", [b"", b"garbage", b"-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n"]
)
def test_garbage_is_told(part: str, garbage: bytes) -> None:
    stored = renewed(None, HOST, NOW)
    parts = {name: getattr(stored, name) for name in ("authorities", "authority_key", "certificate", "key")}
    parts[part] = (garbage,) if part == "authorities" else garbage
    with pytest.raises(CertificateError, match="expected PEM"):
        renewed(Issued(**parts), HOST, NOW)


def test_a_bundle_is_split_oldest_first() -> None:
    old = renewed(None, HOST, NOW)
    new = renewed(old, HOST, NOW + AUTHORITY_LIFE - AUTHORITY_RENEWAL + MINUTE)
    assert split_bundle(new.bundle) == new.authorities
    assert split_bundle(Authority("a").pem)
    with pytest.raises(CertificateError, match="authorities: expected PEM certificates"):
        split_bundle(b"garbage")


@settings(max_examples=15)
@given(st.lists(st.integers(1, 60 * 24 * 40), min_size=1, max_size=12), st.booleans())
def test_a_caller_with_the_last_bundle_always_reaches_a_replica_with_the_last_pair(
    gaps_minutes: list[int], stays_up: bool
) -> None:
    """Looks come at any pace; a caller or a replica is one look behind, an hour at most."""
    now, issued = NOW, renewed(None, HOST, NOW)
    for gap in gaps_minutes:
        step = min(gap, 50) if stays_up else gap
        now += timedelta(minutes=step)
        before, issued = issued, renewed(issued, HOST, now)
        assert verifies(issued, issued.bundle, now)
        if step < OVERLAP / MINUTE and before.certificate != issued.certificate:
            assert verifies(issued, before.bundle, now)
        if verifies(before, before.bundle, now):
            assert verifies(before, issued.bundle, now)
