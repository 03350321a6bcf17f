"""Whether karmada-apiserver can find the webhook, and trusts whoever signed its certificate."""

from collections.abc import Iterable, Sequence
from typing import Final
from urllib.parse import urlsplit

import msgspec

from admin.doctor.certificate import BadCertificate, read_certificates
from admin.doctor.check import Check
from admin.doctor.evidence import Evidence, NotRead
from admin.doctor.finding import Finding, Verdict
from admin.doctor.kinds import KARMADA_NAMESPACE, OUR_NAMESPACE, SECRETS
from admin.doctor.registration import REPAIR, is_ours, registered, replacement
from admin.doctor.running import Secret
from webhook.configuration import Webhook

_SECRET: Final = "fairway-webhook"
_CLUSTER_DOMAINS: Final = (".svc", ".cluster.local", ".local")


def _authority(evidence: Evidence) -> Iterable[Finding]:
    own = own_authorities(evidence)
    for configuration in registered(evidence).configurations:
        ours = tuple(entry for entry in configuration.webhooks or () if is_ours(entry))
        bundle = own[0].data["ca.crt"] if own and own[0].data else None
        patch = replacement(
            configuration,
            tuple(
                msgspec.structs.replace(
                    each, client_config=msgspec.structs.replace(each.client_config, ca_bundle=bundle)
                )
                for each in ours
            ),
        )
        problems: dict[str, list[str]] = {}
        for entry in ours:
            if problem := bundle_problem(entry, own):
                problems.setdefault(problem, []).append(entry.name)
        for problem, names in problems.items():
            yield Finding(
                Verdict.ERROR,
                f"MutatingWebhookConfiguration {configuration.metadata.name}",
                f"webhooks[name={', '.join(names)}].clientConfig.{problem}",
                REPAIR,
                patch if bundle else None,
            )


def bundle_problem(entry: Webhook, own: Sequence[Secret]) -> str:
    """What is wrong with whom the API server is to trust, empty where nothing is."""
    client = entry.client_config
    if client.service is not msgspec.UNSET:
        return (
            "service: karmada-apiserver has no Services of its own to resolve, so that every call fails: "
            "expected a url"
        )
    if not client.url:
        return "url: expected https://HOST:PORT, found none: every call fails"
    host = urlsplit(client.url).hostname or ""
    if not client.ca_bundle:
        if "." not in host or host.endswith(_CLUSTER_DOMAINS) or not host.rpartition(".")[2].isalpha():
            return f"caBundle: missing, and no public authority signs for {host}: every call fails"
        return ""
    try:
        trusted = read_certificates(client.ca_bundle)
    except BadCertificate as error:
        return f"caBundle: {error}: every call fails"
    for secret in own:
        try:
            serving = read_certificates((secret.data or {}).get("tls.crt", b""))
        except BadCertificate:
            continue
        if serving and not serving[0].is_signed_by(trusted):
            return (
                "caBundle: has no authority that signed the certificate in Secret "
                f"{secret.metadata.namespace}/{secret.metadata.name}: every call fails"
            )
    return ""


def own_authorities(evidence: Evidence) -> list[Secret]:
    """The Secret in which the webhook keeps its certificates, where it can be read."""
    try:
        secrets = evidence.on_karmada().listed(SECRETS)
    except NotRead:
        return []
    return [
        secret
        for secret in secrets
        if secret.metadata.name == _SECRET
        and secret.metadata.namespace in (OUR_NAMESPACE, KARMADA_NAMESPACE)
        and {"ca.crt", "tls.crt"} <= set(secret.data or {})
    ]


CHECKS: Final = (
    Check(
        "webhook-authority",
        "Does karmada-apiserver know where the webhook is and whom to trust?",
        "karmada-apiserver trusts the authority of the webhook's certificate",
        _authority,
    ),
)
