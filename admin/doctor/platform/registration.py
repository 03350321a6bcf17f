"""Whether something holds bindings, and whether it is what this release of Fairway registers."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Final
from urllib.parse import urlsplit

from admin.doctor.admission import is_about_bindings
from admin.doctor.check import Check
from admin.doctor.evidence import Evidence
from admin.doctor.finding import Finding, Verdict, does_not_apply
from admin.doctor.kinds import MUTATING
from admin.doctor.program import DISPATCHER, OUR_WEBHOOK, Program, needed, programs
from admin.doctor.registration import (
    APPLY_POLICIES,
    REPAIR,
    Wanted,
    different_conditions,
    is_ours,
    registered,
    replacement,
    wanted,
)
from fairway.scope_flags import KIND, NAMESPACES, OBSERVE
from webhook.configuration import Webhook

_SCOPE: Final = (NAMESPACES.name, KIND.name, OBSERVE.name)


def _admission(evidence: Evidence) -> Iterable[Finding]:
    found = registered(evidence)
    if not found.configurations and not found.in_force:
        yield Finding(
            Verdict.ERROR,
            "karmada API server",
            "neither a webhook configuration nor admission policies of Fairway: nothing is held, and every "
            "workload starts at once",
            "run fairway-webhook, or " + APPLY_POLICIES,
        )
    elif found.configurations and found.in_force:
        yield Finding(
            Verdict.NOTE,
            "karmada API server",
            "both the webhook and the admission policies hold bindings: one does what the other does, "
            "and both must be kept up to date",
            "keep one of them",
        )
    for policy in found.policies:
        if policy not in found.in_force:
            yield Finding(
                Verdict.ERROR,
                f"MutatingAdmissionPolicy {policy.metadata.name}",
                "no MutatingAdmissionPolicyBinding names it, so that it does nothing",
                APPLY_POLICIES,
            )


def _entries(evidence: Evidence) -> Iterable[Finding]:
    want = wanted(evidence)
    for configuration in registered(evidence).configurations:
        ours = tuple(entry for entry in configuration.webhooks or () if is_ours(entry))
        expected = want.entries(ours)
        patch = replacement(configuration, expected)
        subject = f"MutatingWebhookConfiguration {configuration.metadata.name}"
        there = {entry.name: entry for entry in ours}
        for entry in expected:
            existing = there.pop(entry.name, None)
            if existing is None:
                yield Finding(
                    Verdict.ERROR,
                    subject,
                    f"webhooks: no entry {entry.name}: what it is for is not held",
                    REPAIR,
                    patch,
                )
                continue
            for verdict, what in _differences(existing, entry, want):
                told = f"webhooks[name={entry.name}].{what}"
                yield Finding(verdict, subject, told, REPAIR, patch)
        for name in there:
            yield Finding(
                Verdict.WARNING,
                subject,
                f"webhooks: this release knows no entry {name}",
                REPAIR,
                patch,
            )


def _differences(found: Webhook, expected: Webhook, want: Wanted) -> Iterable[tuple[Verdict, str]]:
    if found.rules != expected.rules:
        yield Verdict.ERROR, "rules: not what this release registers: bindings are missed"
    if found.namespace_selector != expected.namespace_selector:
        yield Verdict.ERROR, "namespaceSelector: not what this release registers: namespaces are missed"
    if found.object_selector != expected.object_selector:
        yield Verdict.ERROR, "objectSelector: expected none: bindings are missed"
    if found.failure_policy != expected.failure_policy:
        yield (
            Verdict.WARNING,
            f"failurePolicy: expected {expected.failure_policy}, found {found.failure_policy or 'nothing'}: "
            + (
                "bindings wait for a webhook that only observes"
                if want.observes
                else "workloads start unheld while the webhook does not answer"
            ),
        )
    yield from different_conditions(found.match_conditions or (), expected.match_conditions or (), want)
    path, own = (urlsplit(each.client_config.url or "").path for each in (found, expected))
    if path != own:
        yield Verdict.ERROR, f"clientConfig.url: expected the path {own}, found {path or 'none'}"
    rest = ("match_policy", "reinvocation_policy", "side_effects", "timeout_seconds")
    for field in rest:
        if getattr(found, field) != getattr(expected, field):
            first, *others = field.split("_")
            name = first + "".join(map(str.title, others))
            yield (
                Verdict.WARNING,
                f"{name}: expected {getattr(expected, field)}, found {getattr(found, field) or 'nothing'}",
            )


def _others(evidence: Evidence) -> Iterable[Finding]:
    configurations = sorted(evidence.on_karmada().listed(MUTATING), key=lambda each: each.metadata.name)
    for configuration in configurations:
        for entry in configuration.webhooks or ():
            if is_ours(entry) or not is_about_bindings(entry) or entry.name.endswith(".karmada.io"):
                continue
            subject = f"MutatingWebhookConfiguration {configuration.metadata.name}"
            if "volcano.sh" in entry.name:
                yield Finding(
                    Verdict.ERROR,
                    subject,
                    f"webhooks[name={entry.name}]: volcano-global holds and releases bindings as well: what "
                    "Fairway holds it releases",
                    "keep one of the two: remove volcano-global, or Fairway's webhook and dispatcher",
                )
            else:
                yield Finding(
                    Verdict.NOTE,
                    subject,
                    f"webhooks[name={entry.name}]: changes bindings beside Fairway; ours are asked again "
                    "after it, so that what it takes from spec.suspension is put back",
                    "make sure that it leaves spec.suspension alone",
                )


def _scopes(evidence: Evidence) -> Iterable[Finding]:
    """What holds and what releases have to be told the same."""
    host = evidence.on_host()
    there = {program.name for program in programs(host, (OUR_WEBHOOK, DISPATCHER))}
    if not there:
        yield does_not_apply(f"nothing runs {OUR_WEBHOOK} or {DISPATCHER}")
        return
    releases = _scope_of(needed(host, DISPATCHER)[-1])
    if OUR_WEBHOOK not in there and registered(evidence).in_force:
        yield from _scope_of_policies(releases)
        return
    holds = _scope_of(needed(host, OUR_WEBHOOK)[-1])
    for name in _SCOPE:
        if sorted(holds[name]) != sorted(releases[name]):
            shown = [", ".join(values[name]) or "nothing" for values in (holds, releases)]
            yield Finding(
                Verdict.ERROR,
                f"Deployment {DISPATCHER}",
                f"--{name}: fairway-webhook is told {shown[0]}, the dispatcher {shown[1]}: what one holds "
                "the other lets go, or charges what was never held",
                "give both the same: run fairway install again",
            )


def _scope_of(program: Program) -> dict[str, tuple[str, ...]]:
    return {name: program.arguments.values.get(name, ()) for name in _SCOPE}


def _scope_of_policies(releases: Mapping[str, Sequence[str]]) -> Iterable[Finding]:
    """Policies do not say by which flags they were made; `policy-entries` expects those of no flags."""
    stated = [f"--{name}={value}" for name in _SCOPE for value in releases[name]]
    if stated:
        yield Finding(
            Verdict.UNKNOWN,
            f"Deployment {DISPATCHER}",
            f"is told {' '.join(stated)}, and admission policies hold in place of {OUR_WEBHOOK}: they do not "
            "say by which flags they were made",
            f"compare them with the output of: {OUR_WEBHOOK} policies {' '.join(stated)}",
        )


CHECKS: Final = (
    Check(
        "binding-admission",
        "Does the webhook or do admission policies hold bindings?",
        "bindings are held when they are made and when they grow",
        _admission,
    ),
    Check(
        "webhook-entries",
        "Is the webhook configuration what this release registers?",
        "the webhook configuration is what this release registers, or there is none",
        _entries,
    ),
    Check(
        "scope-agrees",
        "Are the webhook and the dispatcher told the same of what waits in queues?",
        "the webhook and the dispatcher are told the same of what waits in queues",
        _scopes,
    ),
    Check(
        "other-webhooks",
        "Does another program change bindings as they are made?",
        "nobody else changes bindings as they are made, but Karmada itself",
        _others,
    ),
)
