"""When the certificates in Karmada's and our Secrets end, and those of the running servers.

Every key ``*.crt`` of a Secret is looked at, whichever way Karmada was installed: ``tls.crt`` and ``ca.crt``
of hack/ scripts, ``karmada.crt`` of karmadactl and the operator, ``server-ca.crt`` of the chart.
"""

from collections.abc import Iterable
from typing import Final

from admin.doctor.certificate import (
    WARN_BEFORE_DAYS,
    BadCertificate,
    Certificate,
    day,
    days_left,
    read_certificates,
)
from admin.doctor.check import Check
from admin.doctor.evidence import Evidence, NotRead, Plane
from admin.doctor.finding import Finding, Verdict
from admin.doctor.kinds import SECRETS
from admin.doctor.registration import server_of
from fairway.kube.objects import object_key

_RENEW: Final = "issue it anew; Karmada's own are made by its installer and not renewed by themselves"


def _expiry(evidence: Evidence) -> Iterable[Finding]:
    planes = [plane for plane in (evidence.host, evidence.karmada) if plane is not None]
    if not planes:
        evidence.on_host()
    for plane in planes:
        try:
            yield from _of_secrets(plane, evidence.now_ms)
        except NotRead as reason:
            yield Finding(Verdict.UNKNOWN, plane.name, reason.why, reason.remedy)
    if evidence.host is None:
        yield Finding(
            Verdict.UNKNOWN,
            "host",
            "the host API server was not given, so that Karmada's own certificates were not seen",
            "add --host KUBECONFIG",
        )
    for what, not_after_ms in _served(evidence).items():
        left = days_left(not_after_ms, evidence.now_ms)
        yield from _judged(what, "the certificate that it serves with", not_after_ms, left)


def _served(evidence: Evidence) -> dict[str, int]:
    """When what servers show ends, once for each server, however many webhooks are at it."""
    found: dict[str, int] = {}
    for what, reached in (
        *((f"estimator of Cluster {name}", each) for name, each in evidence.estimators.items()),
        *((f"webhook {server_of(url)}", each) for url, each in evidence.webhooks.items()),
    ):
        if reached.not_after_ms:
            found[what] = min(reached.not_after_ms, found.get(what, reached.not_after_ms))
    return found


def _of_secrets(plane: Plane, now_ms: int) -> Iterable[Finding]:
    for secret in plane.listed(SECRETS):
        subject = f"Secret {object_key(secret.metadata)}"
        for key, value in sorted((secret.data or {}).items()):
            if not key.endswith(".crt") or not value:
                continue
            try:
                certificates = read_certificates(value)
            except BadCertificate as error:
                yield Finding(
                    Verdict.WARNING,
                    subject,
                    f"{key} on {plane.name}: {error}",
                    "put a certificate there, in PEM, or rename the key",
                )
                continue
            yield from _of_key(subject, f"{key} on {plane.name}", certificates, now_ms)


def _of_key(subject: str, key: str, certificates: tuple[Certificate, ...], now_ms: int) -> Iterable[Finding]:
    """The leaf of a chain, or the last to end of a bundle of authorities, whose others may be leaving."""
    if not certificates:
        return
    leaf = certificates[0]
    bundle = all(each.is_authority for each in certificates)
    meant = max(certificates, key=lambda each: each.not_after_ms) if bundle else leaf
    if meant.not_before_ms > now_ms:
        yield Finding(
            Verdict.ERROR,
            subject,
            f"{key} is valid from {day(meant.not_before_ms)} on only",
            "set the clock right, or issue it anew",
        )
    yield from _judged(subject, key, meant.not_after_ms, days_left(meant.not_after_ms, now_ms))


def _judged(subject: str, what: str, not_after_ms: int, left: int) -> Iterable[Finding]:
    if left < 0:
        yield Finding(Verdict.ERROR, subject, f"{what} expired on {day(not_after_ms)}", _RENEW)
    elif left < WARN_BEFORE_DAYS:
        yield Finding(
            Verdict.WARNING, subject, f"{what} expires on {day(not_after_ms)}, in {left} days", _RENEW
        )


CHECKS: Final = (
    Check(
        "certificate-expiry",
        "Do the certificates of Karmada and of Fairway last?",
        f"all certificates last {WARN_BEFORE_DAYS} days and more",
        _expiry,
    ),
)
