"""Policies and configuration as YAML, for `kubectl apply` and for keeping them under version control.

The files of ``manifests/webhook`` are what these functions make of the packaged catalogue.
"""

from collections.abc import Iterable
from typing import Final

import msgspec
import yaml

from fairway.scope import Scope
from webhook.configuration import API_VERSION, KIND, NAME, FailurePolicy, webhooks
from webhook.cron_jobs import cron_job_policy
from webhook.policies import policies

_POLICIES_HEAD: Final = """\
# Holds accelerator workloads at their creation and when they grow, without any process: apply this to
# karmada-apiserver (Kubernetes 1.36 or newer), or run fairway-webhook. Both together do what one does.
# Made by `fairway-webhook policies`; with --catalogue or --hold-kind make your own.
"""
_CONFIGURATION_HEAD: Final = """\
# What fairway-webhook registers with karmada-apiserver by itself. Apply it only with --register=false, with
# your own url, and with a clientConfig.caBundle in every entry: the authority's PEM in base64.
# Made by `fairway-webhook configuration`; with --catalogue, --hold-kind or --url make your own.
"""
_CRON_JOBS_HEAD: Final = """\
# Refuses CronJobs that ask for accelerators: apply it to member clusters (Kubernetes 1.30 or newer), where
# their Jobs would run past all queues. Made by `fairway-webhook cronjobs`; with --catalogue make your own.
"""


class _Dumper(yaml.SafeDumper):
    """Texts of several lines as blocks, and lists indented as people write them."""

    def increase_indent(self, flow: bool = False, indentless: bool = False) -> None:
        del indentless
        super().increase_indent(flow, False)


def _text(dumper: yaml.SafeDumper, text: str) -> yaml.ScalarNode:
    return dumper.represent_scalar("tag:yaml.org,2002:str", text, style="|" if "\n" in text else None)


_Dumper.add_representer(str, _text)


def policies_yaml(scope: Scope) -> str:
    """The MutatingAdmissionPolicies and their bindings."""
    return _POLICIES_HEAD + _documents(policies(scope))


def cron_jobs_yaml(scope: Scope) -> str:
    """The ValidatingAdmissionPolicy for member clusters and its binding."""
    return _CRON_JOBS_HEAD + _documents(cron_job_policy(scope))


def configuration_yaml(
    scope: Scope, url: str, authorities_pem: bytes | None, failure_policy: FailurePolicy
) -> str:
    """The MutatingWebhookConfiguration; without authorities to be completed."""
    entries = msgspec.to_builtins(webhooks(scope, url, authorities_pem, failure_policy))
    obj = {"apiVersion": API_VERSION, "kind": KIND, "metadata": {"name": NAME}, "webhooks": entries}
    return _CONFIGURATION_HEAD + _documents([obj])


def _documents(objects: Iterable[object]) -> str:
    return yaml.dump_all(objects, Dumper=_Dumper, sort_keys=False, width=200, explicit_start=True)
