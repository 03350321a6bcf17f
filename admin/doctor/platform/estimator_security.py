"""Whether karmada-scheduler and the estimators agree on TLS, and whether their certificates fit.

As in Karmada's pkg/util/grpcconnection (1.12 to 1.19): a server with certificate and key speaks TLS, with a
client CA it asks for certificates; a client without CA speaks plaintext. The files come from Secrets, whose
names differ between Karmada's three ways of being installed, so each is followed from the flag over the mount
to the Secret.
"""

from collections.abc import Iterable
from typing import Final

from admin.doctor.certificate import BadCertificate, Certificate, read_certificates
from admin.doctor.check import Check
from admin.doctor.estimator_address import BadService, addresses, discovery_of, services_on_karmada
from admin.doctor.evidence import Evidence, NotRead, Plane
from admin.doctor.finding import Finding, Verdict
from admin.doctor.kinds import SECRETS
from admin.doctor.program import (
    DISPATCHER,
    ESTIMATORS,
    SCHEDULER,
    Program,
    asks_estimators,
    needed,
    programs,
    secret_of,
)

_SERVER_CERTIFICATE: Final = "grpc-auth-cert-file"
_SERVER_KEY: Final = "grpc-auth-key-file"
_SERVER_CLIENTS_CA: Final = "grpc-client-ca-file"
_CLIENT_CERTIFICATE: Final = "scheduler-estimator-cert-file"
_CLIENT_KEY: Final = "scheduler-estimator-key-file"
_CLIENT_CA: Final = "scheduler-estimator-ca-file"


def _flags(evidence: Evidence) -> Iterable[Finding]:
    host = evidence.on_host()
    estimators = programs(host, ESTIMATORS)
    dispatchers = [each for each in programs(host, (DISPATCHER,)) if asks_estimators(each)]
    for client in (*needed(host, SCHEDULER), *dispatchers):
        ours = client.arguments
        speaks_tls = bool(ours.text(_CLIENT_CA)) or ours.switch("insecure-skip-estimator-verify")
        shows = bool(ours.text(_CLIENT_CERTIFICATE) and ours.text(_CLIENT_KEY))
        if bool(ours.text(_CLIENT_CERTIFICATE)) != bool(ours.text(_CLIENT_KEY)):
            yield Finding(
                Verdict.ERROR,
                client.subject,
                f"--{_CLIENT_CERTIFICATE} and --{_CLIENT_KEY} belong together: one is missing, so that no "
                "certificate is shown",
                "state both",
            )
        if not speaks_tls and not estimators:
            yield Finding(
                Verdict.WARNING,
                client.subject,
                "asks estimators in plaintext: anybody on the way can answer in their place",
                f"state --{_CLIENT_CA}, --{_CLIENT_CERTIFICATE} and --{_CLIENT_KEY}",
            )
        for estimator in estimators:
            yield from _agree(client, estimator, speaks_tls=speaks_tls, shows=shows)


def _agree(client: Program, estimator: Program, *, speaks_tls: bool, shows: bool) -> Iterable[Finding]:
    flags = estimator.arguments
    serves_tls = bool(flags.text(_SERVER_CERTIFICATE) and flags.text(_SERVER_KEY))
    demands = bool(flags.text(_SERVER_CLIENTS_CA)) and not flags.switch("insecure-skip-grpc-client-verify")
    if serves_tls and not speaks_tls:
        yield Finding(
            Verdict.ERROR,
            estimator.subject,
            f"serves TLS, and {client.name} asks in plaintext: no call succeeds",
            f"run {client.name} with --{_CLIENT_CA}, --{_CLIENT_CERTIFICATE} and --{_CLIENT_KEY}",
        )
    elif speaks_tls and not serves_tls:
        yield Finding(
            Verdict.ERROR,
            estimator.subject,
            f"serves plaintext, and {client.name} asks over TLS: no call succeeds",
            f"run it with --{_SERVER_CERTIFICATE} and --{_SERVER_KEY}",
        )
    elif serves_tls and demands and not shows:
        yield Finding(
            Verdict.ERROR,
            estimator.subject,
            f"wants a certificate of its clients, and {client.name} shows none: no call succeeds",
            f"run {client.name} with --{_CLIENT_CERTIFICATE} and --{_CLIENT_KEY}",
        )
    elif serves_tls and not demands and client.name == SCHEDULER:
        yield Finding(
            Verdict.WARNING,
            estimator.subject,
            "takes calls of anybody: it tells what the cluster has, and its work can be wasted",
            f"run it with --{_SERVER_CLIENTS_CA}, without --insecure-skip-grpc-client-verify",
        )
    elif not serves_tls and client.name == SCHEDULER:
        yield Finding(
            Verdict.WARNING,
            estimator.subject,
            "serves plaintext: anybody on the way can answer in its place",
            f"run it with --{_SERVER_CERTIFICATE}, --{_SERVER_KEY} and --{_SERVER_CLIENTS_CA}",
        )


def _certificates(evidence: Evidence) -> Iterable[Finding]:
    host = evidence.on_host()
    host.listed(SECRETS)
    for scheduler in needed(host, SCHEDULER):
        authorities = _read(host, scheduler, _CLIENT_CA)
        shown = _read(host, scheduler, _CLIENT_CERTIFICATE)
        for estimator in programs(host, ESTIMATORS):
            certificate = _read(host, estimator, _SERVER_CERTIFICATE)
            clients = _read(host, estimator, _SERVER_CLIENTS_CA)
            for each in (authorities, shown, certificate, clients):
                if isinstance(each, Finding):
                    yield each
            if isinstance(certificate, tuple):
                yield from _named(evidence, scheduler, estimator, certificate[0])
                if isinstance(authorities, tuple) and not certificate[0].is_signed_by(
                    (*authorities, *certificate[1:])
                ):
                    yield _unsigned(estimator, _SERVER_CERTIFICATE, scheduler, _CLIENT_CA)
            if (
                isinstance(shown, tuple)
                and isinstance(clients, tuple)
                and not shown[0].is_signed_by((*clients, *shown[1:]))
            ):
                yield _unsigned(scheduler, _CLIENT_CERTIFICATE, estimator, _SERVER_CLIENTS_CA)


def _named(
    evidence: Evidence, scheduler: Program, estimator: Program, certificate: Certificate
) -> Iterable[Finding]:
    """Whether the certificate names what the scheduler dials, for the clusters that the estimator names."""
    by = discovery_of(scheduler)
    for cluster in estimator.clusters:
        try:
            dialled = addresses(cluster, by, services_on_karmada(evidence))
        except (NotRead, BadService):
            # Without karmada-apiserver the usual names count; a bad Service is told of by itself.
            dialled = addresses(cluster, by, ())
        if not any(certificate.covers(address.host) for address in dialled):
            yield Finding(
                Verdict.ERROR,
                estimator.subject,
                f"--{_SERVER_CERTIFICATE}: made out to {', '.join(certificate.names) or 'nobody'}, and "
                f"{SCHEDULER} dials {' or '.join(address.host for address in dialled)}",
                f"issue it for *.{by.namespace}.svc and *.{by.namespace}.svc.cluster.local",
            )


def _unsigned(of: Program, flag: str, by: Program, authority: str) -> Finding:
    return Finding(
        Verdict.ERROR,
        of.subject,
        f"--{flag}: signed by none of the authorities that {by.name} trusts (--{authority} of {by.subject})",
        "issue both from the same authority, or give the other the authority's certificate",
    )


def _read(host: Plane, program: Program, flag: str) -> tuple[Certificate, ...] | Finding | None:
    """The certificates behind a flag; a finding where they are missing; None where no Secret is behind it."""
    file = program.file(flag)
    if file is None:
        return None
    secret = secret_of(host, program, file)
    problem = ""
    if secret is None:
        # A missing Secret is told of by the check of mounted Secrets.
        return None
    if file.key not in (secret.data or {}):
        problem = f"has no key {file.key}"
    else:
        try:
            return _some(read_certificates((secret.data or {})[file.key]))
        except BadCertificate as error:
            problem = f"key {file.key}: {error}"
    return Finding(
        Verdict.ERROR,
        f"Secret {program.namespace}/{file.secret}",
        f"{problem}; --{flag} of {program.subject} points there",
        "put the certificate there, in PEM",
    )


def _some(found: tuple[Certificate, ...]) -> tuple[Certificate, ...]:
    if not found:
        raise BadCertificate("expected PEM certificates, found none")
    return found


CHECKS: Final = (
    Check(
        "estimator-tls",
        "Do karmada-scheduler and the estimators agree on TLS?",
        "karmada-scheduler and the estimators prove to each other who they are",
        _flags,
    ),
    Check(
        "estimator-certificates",
        "Do the certificates of estimators name what is dialled, and do both sides trust each other's?",
        "certificates name what is dialled and are signed by whom the other side trusts",
        _certificates,
    ),
)
