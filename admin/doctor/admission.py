"""Webhook configurations and admission policies on karmada-apiserver: admissionregistration.k8s.io/v1."""

from typing import Final

from fairway.kube.objects import KubeStruct, ObjectMeta
from webhook.bindings import CLUSTER_SCOPED, GROUP, NAMESPACED
from webhook.configuration import Expression, LabelSelector, Rule, Webhook

_ANY: Final = "*"


class WebhookConfiguration(KubeStruct, frozen=True):
    """A MutatingWebhookConfiguration or ValidatingWebhookConfiguration."""

    metadata: ObjectMeta = ObjectMeta()
    webhooks: tuple[Webhook, ...] | None = None


class MutatingConfiguration(WebhookConfiguration, frozen=True):
    """A MutatingWebhookConfiguration."""


class ValidatingConfiguration(WebhookConfiguration, frozen=True):
    """A ValidatingWebhookConfiguration."""


class MatchConstraints(KubeStruct, frozen=True):
    """Which requests a policy is about."""

    resource_rules: tuple[Rule, ...] | None = None
    namespace_selector: LabelSelector | None = None
    object_selector: LabelSelector | None = None


class PolicySpec(KubeStruct, frozen=True):
    """The spec of a MutatingAdmissionPolicy."""

    failure_policy: str = ""
    match_constraints: MatchConstraints | None = None
    match_conditions: tuple[Expression, ...] | None = None


class Policy(KubeStruct, frozen=True):
    """A MutatingAdmissionPolicy."""

    metadata: ObjectMeta = ObjectMeta()
    spec: PolicySpec = PolicySpec()


class PolicyBindingSpec(KubeStruct, frozen=True):
    """What puts a policy in force, everywhere where ``match_resources`` is missing."""

    policy_name: str = ""
    match_resources: MatchConstraints | None = None


class PolicyBinding(KubeStruct, frozen=True):
    """A MutatingAdmissionPolicyBinding."""

    metadata: ObjectMeta = ObjectMeta()
    spec: PolicyBindingSpec = PolicyBindingSpec()


def is_about_bindings(webhook: Webhook) -> bool:
    """Whether the webhook is called for ResourceBindings or ClusterResourceBindings."""
    return any(
        {GROUP, _ANY} & set(rule.api_groups)
        and {NAMESPACED, CLUSTER_SCOPED, _ANY, "*/*"} & set(rule.resources)
        for rule in webhook.rules or ()
    )
