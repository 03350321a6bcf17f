"""What OverridePolicies make of a template for one cluster, when its Work is made. Pure.

As Karmada 1.19 does (pkg/util/overridemanager), for what the dispatcher writes: resources by kind and name,
clusters by name, annotations and plaintext that add.
"""

from collections.abc import Iterable
from typing import Final

from sandbox.fakeapi.patching import json_patch
from sandbox.simulation.objects import Obj, at

OVERRIDE_POLICIES: Final = "overridepolicies"


def overridden(template: Obj, cluster: str, policies: Iterable[Obj]) -> Obj:
    """The template as the cluster gets it. Raises PatchFailed where a path leads nowhere."""
    metadata = template["metadata"]
    for policy in policies:
        if policy["metadata"]["namespace"] != metadata.get("namespace"):
            continue
        selectors: Iterable[Obj] = at(policy, "spec", "resourceSelectors", default=())
        if not any(
            (one.get("kind"), one.get("name")) == (template["kind"], metadata["name"]) for one in selectors
        ):
            continue
        rules: Iterable[Obj] = at(policy, "spec", "overrideRules", default=())
        for rule in rules:
            if "targetCluster" not in rule or cluster in at(
                rule, "targetCluster", "clusterNames", default=()
            ):
                annotations: Iterable[Obj] = at(rule, "overriders", "annotationsOverrider", default=())
                for one in annotations:
                    template = _annotated(template, one["value"])
                entries: Iterable[Obj] = at(rule, "overriders", "plaintext", default=())
                template = json_patch(template, [{**entry, "op": entry["operator"]} for entry in entries])
    return template


def _annotated(template: Obj, annotations: Obj) -> Obj:
    metadata = template["metadata"]
    return template | {
        "metadata": metadata | {"annotations": (metadata.get("annotations") or {}) | annotations}
    }


def owned_by(policies: Iterable[Obj], uid: str) -> list[Obj]:
    """The policies that garbage collection takes away with the object of this uid."""
    return [
        policy
        for policy in policies
        if uid in (one["uid"] for one in policy["metadata"].get("ownerReferences") or ())
    ]
