"""What holds bindings on karmada-apiserver, as it is and as this release would have it.

One of two things holds them, or both: a MutatingWebhookConfiguration that calls fairway-webhook, or
MutatingAdmissionPolicies. What this release would register is made by the same code as the webhook's own
registration (`webhook.configuration`, `webhook.policies`), for the kinds that a running webhook was told to
hold. With a catalogue of the administrator's own, the expressions cannot be known from here.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Final

import msgspec

from admin.doctor.admission import MutatingConfiguration, Policy, PolicyBinding
from admin.doctor.evidence import Evidence, NotRead
from admin.doctor.finding import Patch, Verdict
from admin.doctor.kinds import MUTATING, POLICIES, POLICY_BINDINGS
from admin.doctor.program import OUR_WEBHOOK, Program, programs
from fairway.accelerators.builtin import builtin_catalogue
from fairway.scope import Scope, WorkloadKind, parse_workload_kind
from fairway.scope_flags import NAMESPACES, OBSERVE
from webhook.configuration import Expression, Webhook, webhooks
from webhook.policies import policies

_SUFFIX: Final = ".fairway.dev"
REPAIR: Final = (
    "fairway-webhook puts it right within seconds where it runs and registers itself: see its log; else "
    "apply the output of: fairway-webhook configuration"
)
APPLY_POLICIES: Final = "apply the output of: fairway-webhook policies"
_ANY_URL: Final = "https://fairway-webhook.fairway-system.svc:443"


@dataclass(frozen=True, slots=True)
class Registered:
    """What of ours is there: configurations, policies, and the bindings that put policies in force."""

    configurations: tuple[MutatingConfiguration, ...]
    policies: tuple[Policy, ...]
    bindings: tuple[PolicyBinding, ...]

    @property
    def in_force(self) -> tuple[Policy, ...]:
        """Policies that a binding names."""
        named = {binding.spec.policy_name for binding in self.bindings}
        return tuple(policy for policy in self.policies if policy.metadata.name in named)


@dataclass(frozen=True, slots=True)
class Wanted:
    """What this release registers. ``assumed``: why its expressions may rightly be others, empty if not.

    ``observes``: the webhook holds nothing, and nobody is to wait for it.
    """

    scope: Scope
    assumed: str = ""
    observes: bool = False

    def entries(self, existing: tuple[Webhook, ...]) -> tuple[Webhook, ...]:
        """Our entries with the address and the authorities of those that are there."""
        url, authorities = _ANY_URL, None
        for entry in existing:
            if entry.client_config.url:
                url = server_of(entry.client_config.url)
                authorities = entry.client_config.ca_bundle
                break
        return webhooks(self.scope, url, authorities, "Ignore" if self.observes else "Fail")

    def policies(self) -> tuple[Policy, ...]:
        """Our policies."""
        made = policies(self.scope)
        return tuple(msgspec.convert(each, Policy) for each in made if "Binding" not in str(each["kind"]))


def registered(evidence: Evidence) -> Registered:
    """What of ours is on karmada-apiserver. Raises NotRead."""
    karmada = evidence.on_karmada()
    names = {policy.metadata.name for policy in Wanted(Scope(builtin_catalogue())).policies()}
    found = tuple(policy for policy in karmada.listed(POLICIES) if policy.metadata.name in names)
    return Registered(
        tuple(each for each in karmada.listed(MUTATING) if any(map(is_ours, each.webhooks or ()))),
        found,
        tuple(each for each in karmada.listed(POLICY_BINDINGS) if each.spec.policy_name in names),
    )


def server_of(url: str) -> str:
    """The URL without its path: several webhooks may be at one server."""
    return "/".join(url.split("/", 3)[:3])


def is_ours(entry: Webhook) -> bool:
    """Whether an entry of a configuration is one of Fairway's."""
    return entry.name.endswith(_SUFFIX)


def wanted(evidence: Evidence) -> Wanted:
    """What this release would register, by what the running webhook was told."""
    program = _program(evidence)
    if program is None:
        scope = Scope(builtin_catalogue(), only_enabled=_is_for_enabled(registered(evidence)))
        return Wanted(scope, "the flags of fairway-webhook cannot be seen")
    arguments = program.arguments
    assumed = "fairway-webhook has a --catalogue of its own" if arguments.is_set("catalogue") else ""
    only_enabled = arguments.text(NAMESPACES.name, NAMESPACES.default) == NAMESPACES.default
    scope = Scope(builtin_catalogue(), _kinds(program), only_enabled)
    return Wanted(scope, assumed, arguments.switch(OBSERVE.name))


def scope_in_force(evidence: Evidence) -> Scope:
    """What waits in queues, as far as that can be seen."""
    try:
        return wanted(evidence).scope
    except NotRead:
        return Scope(builtin_catalogue())


def _is_for_enabled(found: Registered) -> bool:
    """Whether what is registered selects namespaces that say so, and not all but some."""
    selectors = [
        entry.namespace_selector
        for configuration in found.configurations
        for entry in configuration.webhooks or ()
        if is_ours(entry)
    ]
    constraints = [policy.spec.match_constraints for policy in found.policies]
    selectors += [each.namespace_selector for each in constraints if each is not None]
    stated = [one for each in selectors if each is not None for one in each.match_expressions or ()]
    return bool(stated) and all(one.operator == "In" for one in stated)


def different_conditions(
    found: Sequence[Expression], expected: Sequence[Expression], want: Wanted
) -> Iterable[tuple[Verdict, str]]:
    """How the conditions of an entry or a policy differ from ours, and how bad that is."""
    there = {each.name: _squeezed(each.expression) for each in found}
    for each in expected:
        text = there.pop(each.name, None)
        if text is None:
            yield (
                Verdict.WARNING,
                f"matchConditions: no condition {each.name}: more is asked about than needed",
            )
        elif text != _squeezed(each.expression):
            if want.assumed and each.name == "in-scope":
                yield (
                    Verdict.NOTE,
                    f"matchConditions[name={each.name}]: not what this release registers by itself; "
                    f"{want.assumed}",
                )
            else:
                yield Verdict.WARNING, f"matchConditions[name={each.name}]: not what this release registers"
    for name in there:
        yield (
            Verdict.ERROR,
            f"matchConditions[name={name}]: is none of Fairway's, and may keep anything from being held",
        )


def replacement(configuration: MutatingConfiguration, entries: Sequence[Webhook]) -> Patch:
    """The whole list of entries, since a merge patch knows no single ones; others of the list are kept."""
    kept = [entry for entry in configuration.webhooks or () if not is_ours(entry)]
    body = msgspec.json.encode({"webhooks": [*entries, *kept]}).decode()
    return Patch("karmada", body, f"mutatingwebhookconfiguration/{configuration.metadata.name}")


def _program(evidence: Evidence) -> Program | None:
    if evidence.host is None:
        return None
    try:
        found = programs(evidence.host, (OUR_WEBHOOK,))
    except NotRead:
        return None
    return found[0] if found else None


def _kinds(program: Program) -> frozenset[WorkloadKind]:
    found = set()
    for text in program.arguments.values.get("hold-kind", ()):
        try:
            found.add(parse_workload_kind(text))
        except ValueError:
            # The webhook refuses to start with it, which shows elsewhere.
            continue
    return frozenset(found)


def _squeezed(expression: str) -> str:
    return "".join(expression.split())
