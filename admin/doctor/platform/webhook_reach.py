"""Whether the webhooks of karmada-apiserver answer, as far as that can be tried from here."""

from collections.abc import Iterable
from typing import Final

from admin.doctor.check import Check
from admin.doctor.evidence import Evidence, NotRead
from admin.doctor.finding import Finding, Verdict, does_not_apply
from admin.doctor.kinds import MUTATING, VALIDATING
from admin.doctor.platform.webhook_authority import bundle_problem, own_authorities
from admin.doctor.registration import is_ours, server_of
from webhook.configuration import Webhook

_INSIDE: Final = (
    "run the doctor where karmada-apiserver's names resolve, such as in a pod of the host cluster, and "
    "without --offline"
)


def _reach(evidence: Evidence) -> Iterable[Finding]:
    karmada = evidence.on_karmada()
    own = own_authorities(evidence)
    entries = [
        entry
        for configurations in (karmada.listed(MUTATING), karmada.listed(VALIDATING))
        for configuration in configurations
        for entry in configuration.webhooks or ()
        if entry.client_config.url
    ]
    if not entries:
        yield does_not_apply("no webhook is registered by a URL")
        return
    # A call that cannot succeed by what is registered is told of where that is checked.
    told = {each.client_config.url for each in entries if is_ours(each) and bundle_problem(each, own)}
    entries = [entry for entry in entries if entry.client_config.url not in told]
    if entries and not evidence.webhooks:
        raise NotRead("webhooks", "no webhook was called, or none can be found from here", _INSIDE)
    servers: dict[str, list[Webhook]] = {}
    for entry in entries:
        servers.setdefault(server_of(entry.client_config.url or ""), []).append(entry)
    for server, of_server in servers.items():
        yield from _server(evidence, server, of_server)


def _server(evidence: Evidence, server: str, entries: list[Webhook]) -> Iterable[Finding]:
    """What is wrong with a server, once for all entries that call it."""
    problems: dict[str, list[Webhook]] = {}
    for entry in entries:
        reached = evidence.webhooks.get(entry.client_config.url or "")
        if reached is None:
            problems.setdefault("", []).append(entry)
        elif reached.problem:
            problems.setdefault(reached.problem, []).append(entry)
    for problem, of_problem in problems.items():
        names = ", ".join(dict.fromkeys(entry.name for entry in of_problem))
        if not problem:
            yield Finding(
                Verdict.UNKNOWN,
                f"webhook {server}",
                f"its address cannot be found from here ({names})",
                _INSIDE,
            )
            continue
        fails = any(entry.failure_policy != "Ignore" for entry in of_problem)
        yield Finding(
            Verdict.ERROR if fails else Verdict.WARNING,
            f"webhook {server}",
            f"{problem} ({names}): "
            + ("requests that it is to review are refused" if fails else "requests pass it by"),
            "see that it runs, and that caBundle is of the authority that signed its certificate",
        )


CHECKS: Final = (
    Check(
        "webhook-reach",
        "Do the webhooks of karmada-apiserver answer, with certificates that it trusts?",
        "the webhooks of karmada-apiserver answer with certificates that it trusts",
        _reach,
    ),
)
