"""The MutatingWebhookConfiguration that makes karmada-apiserver ask us, every field of it said.

Four entries: creation and growth, each for what the expressions find in scope and for all workloads of
namespaces that are held as a whole. What a namespace says only a selector can see, so each pair of entries
has its own, made of the scope. ``Fail``, because a binding that is not held
starts at once; the conditions keep that from ever stopping anything but what would be held.

``IfNeeded``: a webhook after us that replaces the suspension makes the API server ask again, and the
condition ``not-held-yet`` makes that free where nothing of the kind happened. The address is a ``url``, since
karmada-apiserver has no Services of its own to resolve.
"""

from typing import Final, Literal

import msgspec

from fairway.kube.objects import KubeStruct
from fairway.names import QUEUEING
from fairway.scope import Reach, Scope
from webhook.bindings import CLUSTER_SCOPED, GROUP, NAMESPACED, VERSION
from webhook.match_conditions import (
    MatchCondition,
    creation_conditions,
    growth_conditions,
    managed_creation_conditions,
    managed_growth_conditions,
)
from webhook.suspend import CREATE, UPDATE

API_VERSION: Final = "admissionregistration.k8s.io/v1"
KIND: Final = "MutatingWebhookConfiguration"
COLLECTION: Final = f"/apis/{API_VERSION}/mutatingwebhookconfigurations"
NAME: Final = "fairway-webhook"
TIMEOUT_S: Final = 3

BINDINGS_PATH: Final = "/bindings"
MANAGED_PATH: Final = "/bindings/managed"
"""Asked about bindings of namespaces that are held as a whole."""

FailurePolicy = Literal["Fail", "Ignore"]


class ClientConfig(KubeStruct, frozen=True, omit_defaults=True):
    """Where the webhook is; ``service`` is never ours, but somebody may have written it."""

    url: str | None = None
    ca_bundle: bytes | None = None
    service: msgspec.UnsetType | dict[str, str | int] = msgspec.UNSET


class Rule(KubeStruct, frozen=True):
    """Which requests are meant."""

    operations: tuple[str, ...] = ()
    api_groups: tuple[str, ...] = ()
    api_versions: tuple[str, ...] = ()
    resources: tuple[str, ...] = ()
    scope: str = ""


class Expression(KubeStruct, frozen=True):
    """One of the matchConditions."""

    name: str = ""
    expression: str = ""


class Requirement(KubeStruct, frozen=True):
    """One of a selector's matchExpressions."""

    key: str = ""
    operator: str = ""
    values: tuple[str, ...] = ()


class LabelSelector(KubeStruct, frozen=True, omit_defaults=True):
    """Selects everything where it is empty."""

    match_labels: dict[str, str] | None = None
    match_expressions: tuple[Requirement, ...] | None = None


class Webhook(KubeStruct, frozen=True):
    """One entry, with all fields of the API, so that equal entries do the same."""

    name: str
    client_config: ClientConfig = ClientConfig()
    rules: tuple[Rule, ...] | None = None
    match_conditions: tuple[Expression, ...] | None = None
    namespace_selector: LabelSelector | None = None
    object_selector: LabelSelector | None = None
    match_policy: str = ""
    failure_policy: str = ""
    reinvocation_policy: str = ""
    side_effects: str = ""
    timeout_seconds: int = 0
    admission_review_versions: tuple[str, ...] | None = None


def webhooks(
    scope: Scope, url: str, authorities_pem: bytes | None, failure_policy: FailurePolicy
) -> tuple[Webhook, ...]:
    """The entries; ``url`` is that of the server, without a path. Without authorities the system's count."""

    def entry(
        name: str, operation: str, path: str, conditions: tuple[MatchCondition, ...], *, managed: bool
    ) -> Webhook:
        return Webhook(
            name=f"{name}.fairway.dev",
            client_config=ClientConfig(url=f"{url}{path}", ca_bundle=authorities_pem),
            rules=(binding_rule(scope, operation, managed=managed),),
            match_conditions=tuple(Expression(each.name, each.expression) for each in conditions),
            namespace_selector=LabelSelector(match_expressions=(namespaces(scope, managed=managed),)),
            object_selector=LabelSelector(),
            match_policy="Equivalent",
            failure_policy=failure_policy,
            reinvocation_policy="IfNeeded",
            side_effects="None",
            timeout_seconds=TIMEOUT_S,
            admission_review_versions=("v1",),
        )

    return (
        entry("creation", CREATE, BINDINGS_PATH, creation_conditions(scope), managed=False),
        entry("growth", UPDATE, BINDINGS_PATH, growth_conditions(scope), managed=False),
        entry("managed-creation", CREATE, MANAGED_PATH, managed_creation_conditions(), managed=True),
        entry("managed-growth", UPDATE, MANAGED_PATH, managed_growth_conditions(), managed=True),
    )


def namespaces(scope: Scope, *, managed: bool) -> Requirement:
    """Which namespaces an entry is for, by their label."""
    selection = scope.namespaces(whole=managed)
    return Requirement(QUEUEING, selection.operator, selection.values)


def binding_rule(scope: Scope, operation: str, *, managed: bool) -> Rule:
    """Bindings in namespaces, and those in none where they are meant: a selector selects them always."""
    if managed or scope.unstated is Reach.NOTHING:
        return Rule((operation,), (GROUP,), (VERSION,), (NAMESPACED,), "Namespaced")
    return Rule((operation,), (GROUP,), (VERSION,), (NAMESPACED, CLUSTER_SCOPED), "*")
