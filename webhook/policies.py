"""The same rules as MutatingAdmissionPolicies: the API server holds bindings itself, without any process.

Four policies with a binding each, entry by entry what `webhook.configuration` registers. What the webhook
decides exactly in the end, the conditions alone decide here, and they may hold a growth that is none, which
the dispatcher gives back. An expression has no clock: when it was held stays empty, and a growth has its
place in the line from the moment when the dispatcher saw it.

Served as ``admissionregistration.k8s.io/v1`` and on by default since 1.36.
"""

from typing import Final

import msgspec

from fairway.names import HELD_AT
from fairway.scope import Scope
from webhook.configuration import API_VERSION, binding_rule, namespaces
from webhook.match_conditions import (
    MatchCondition,
    creation_conditions,
    growth_conditions,
    managed_creation_conditions,
    managed_growth_conditions,
)
from webhook.suspend import CREATE, UPDATE

Manifest = dict[str, object]

_HOLD: Final = f"""\
(has(object.spec.suspension)
  ? [JSONPatch{{op: "add", path: "/spec/suspension/scheduling", value: true}}]
  : [JSONPatch{{op: "add", path: "/spec/suspension", value: {{"scheduling": true}}}}]) +
(has(object.metadata.annotations)
  ? [JSONPatch{{op: "add", path: "/metadata/annotations/{HELD_AT.replace("/", "~1")}", value: ""}}]
  : [JSONPatch{{op: "add", path: "/metadata/annotations", value: {{"{HELD_AT}": ""}}}}])"""


def policies(scope: Scope) -> list[Manifest]:
    """Every policy, followed by the binding that puts it in force."""
    return [
        *_policy(scope, "fairway-creation", CREATE, creation_conditions(scope), managed=False),
        *_policy(scope, "fairway-growth", UPDATE, growth_conditions(scope), managed=False),
        *_policy(scope, "fairway-managed-creation", CREATE, managed_creation_conditions(), managed=True),
        *_policy(scope, "fairway-managed-growth", UPDATE, managed_growth_conditions(), managed=True),
    ]


def _policy(
    scope: Scope, name: str, operation: str, conditions: tuple[MatchCondition, ...], *, managed: bool
) -> tuple[Manifest, Manifest]:
    rule = binding_rule(scope, operation, managed=managed)
    constraints: Manifest = {
        "matchPolicy": "Equivalent",
        "namespaceSelector": {"matchExpressions": [msgspec.to_builtins(namespaces(scope, managed=managed))]},
        "resourceRules": [
            {
                "operations": list(rule.operations),
                "apiGroups": list(rule.api_groups),
                "apiVersions": list(rule.api_versions),
                "resources": list(rule.resources),
                "scope": rule.scope,
            }
        ],
    }
    policy: Manifest = {
        "apiVersion": API_VERSION,
        "kind": "MutatingAdmissionPolicy",
        "metadata": {"name": name},
        "spec": {
            "failurePolicy": "Fail",
            "reinvocationPolicy": "IfNeeded",
            "matchConstraints": constraints,
            "matchConditions": [{"name": each.name, "expression": each.expression} for each in conditions],
            "mutations": [{"patchType": "JSONPatch", "jsonPatch": {"expression": _HOLD}}],
        },
    }
    binding: Manifest = {
        "apiVersion": API_VERSION,
        "kind": "MutatingAdmissionPolicyBinding",
        "metadata": {"name": name},
        "spec": {"policyName": name},
    }
    return policy, binding
