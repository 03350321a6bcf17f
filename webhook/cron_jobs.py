"""A policy for member clusters that refuses CronJobs which ask for accelerators.

The Jobs of a CronJob are made in the members. They have no bindings, so nothing on Karmada's side can hold
them, and whoever propagates a CronJob uses accelerators beside all quotas. Where that is not wanted, the
member's API server refuses the CronJob, unless it is suspended, with a message that says what to do; Karmada
tells it where the workload was propagated from.

A ValidatingAdmissionPolicy of admissionregistration.k8s.io/v1, which Kubernetes serves since 1.30. Never
installed by itself.
"""

from textwrap import indent
from typing import Final

from fairway.names import QUEUEING
from fairway.scope import Queueing, Scope
from webhook.accelerator_expression import accelerator_expression
from webhook.configuration import API_VERSION
from webhook.match_conditions import positive
from webhook.policies import Manifest

_NAME: Final = "fairway-accelerator-cronjobs"
_MESSAGE: Final = (
    "the Jobs of a CronJob are made in this cluster, past Fairway's queues: have Jobs that ask for "
    "accelerators made on Karmada's API server instead, or suspend this CronJob"
)


def cron_job_policy(scope: Scope) -> list[Manifest]:
    """The policy and the binding that puts it in force."""
    policy: Manifest = {
        "apiVersion": API_VERSION,
        "kind": "ValidatingAdmissionPolicy",
        "metadata": {"name": _NAME},
        "spec": {
            "failurePolicy": "Fail",
            "matchConstraints": {
                "namespaceSelector": {
                    "matchExpressions": [
                        {"key": QUEUEING, "operator": "NotIn", "values": [Queueing.DISABLED.value]}
                    ]
                },
                "resourceRules": [
                    {
                        "operations": ["CREATE", "UPDATE"],
                        "apiGroups": ["batch"],
                        "apiVersions": ["v1"],
                        "resources": ["cronjobs"],
                    }
                ],
            },
            "validations": [
                {
                    "expression": f"object.spec.?suspend.orValue(false) || !(\n{indent(_asks(scope), '  ')})",
                    "message": _MESSAGE,
                    "reason": "Forbidden",
                }
            ],
        },
    }
    binding: Manifest = {
        "apiVersion": API_VERSION,
        "kind": "ValidatingAdmissionPolicyBinding",
        "metadata": {"name": _NAME},
        "spec": {"policyName": _NAME, "validationActions": ["Deny"]},
    }
    return [policy, binding]


def _asks(scope: Scope) -> str:
    pod = "object.spec.jobTemplate.spec.template.spec"
    return f"""\
({pod}.containers + {pod}.?initContainers.orValue([])).exists(c,
  [c.?resources.?limits.orValue({{}}), c.?resources.?requests.orValue({{}})].exists(r, r.exists(k,
  {positive("r[k]")} &&
{indent(accelerator_expression(scope.catalogue, "k"), "  ")})))"""
