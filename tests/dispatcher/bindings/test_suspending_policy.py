"""The OverridePolicy that suspends a workload in its cluster, and how it is found again."""

import json
from dataclasses import replace
from typing import Any

import msgspec
import pytest

from fairway.kube.objects import ObjectMeta
from queue_dispatcher.bindings.override_policy import is_ours
from queue_dispatcher.bindings.override_policy import policy_name as guiding_name
from queue_dispatcher.bindings.suspending_policy import (
    binding_key,
    may_have_policy,
    policy_name,
    policy_path,
    suspending_policy,
)
from queue_dispatcher.workloads.pausing import RUN_POLICY, SUSPEND, WHOLE_RUN_POLICY, Switch
from sandbox.fakeapi.patching import json_patch
from tests.dispatcher.bindings.builders import UID, binding


def stated(switch: Switch) -> dict[str, Any]:
    policy = msgspec.to_builtins(suspending_policy(binding(), "east", switch))
    made: dict[str, Any] = json.loads(json.dumps(policy))
    return made


def test_the_whole_policy() -> None:
    made = binding()
    workload = made.workload
    owner = {
        "apiVersion": "work.karmada.io/v1alpha2",
        "kind": "ResourceBinding",
        "name": made.name,
        "uid": UID,
    }
    assert stated(SUSPEND) == {
        "apiVersion": "policy.karmada.io/v1alpha1",
        "kind": "OverridePolicy",
        "metadata": {
            "name": f"suspended-by-fairway-{made.name}",
            "namespace": made.namespace,
            "labels": {"fairway.dev/guidance": "true", "fairway.dev/suspended": "true"},
            "ownerReferences": [owner],
        },
        "spec": {
            "resourceSelectors": [
                {
                    "apiVersion": workload.api_version,
                    "kind": workload.kind,
                    "namespace": workload.namespace,
                    "name": workload.name,
                }
            ],
            "overrideRules": [
                {
                    "targetCluster": {"clusterNames": ["east"]},
                    "overriders": {
                        "plaintext": [{"path": "/spec/suspend", "operator": "add", "value": True}]
                    },
                }
            ],
        },
    }
    assert is_ours(msgspec.convert(stated(SUSPEND)["metadata"], ObjectMeta))


@pytest.mark.parametrize(
    ("switch", "before", "after"),
    [
        (SUSPEND, {}, {"suspend": True}),
        (SUSPEND, {"suspend": False}, {"suspend": True}),
        (RUN_POLICY, {"runPolicy": {"ttl": 1}}, {"runPolicy": {"ttl": 1, "suspend": True}}),
        (WHOLE_RUN_POLICY, {}, {"runPolicy": {"suspend": True}}),
    ],
)
def test_what_karmada_makes_of_the_object(
    switch: Switch, before: dict[str, Any], after: dict[str, Any]
) -> None:
    (rule,) = stated(switch)["spec"]["overrideRules"]
    entries = [{**entry, "op": entry["operator"]} for entry in rule["overriders"]["plaintext"]]
    assert json_patch({"spec": before}, entries) == {"spec": after}


def test_it_is_found_by_its_name_and_never_taken_for_the_one_that_guides() -> None:
    made = binding()
    name = policy_name(made)
    assert policy_path(made).endswith(f"/namespaces/{made.namespace}/overridepolicies/{name}")
    assert binding_key(f"{made.namespace}/{name}") == made.key
    assert binding_key(f"{made.namespace}/{guiding_name(made)}") == ""
    # Whatever the other binding is called.
    for other in ("suspended-by-train", name, f"suspended-by-fairway-{name}"):
        assert guiding_name(replace(made, name=other)) != name


def test_what_is_called_too_long_or_is_in_no_namespace_can_have_none() -> None:
    made = binding()
    assert may_have_policy(made)
    assert may_have_policy(replace(made, name="x" * 232))
    assert len(policy_name(replace(made, name="x" * 232))) == 253
    assert not may_have_policy(replace(made, name="x" * 233))
    assert not may_have_policy(replace(made, namespace=""))
