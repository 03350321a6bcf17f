"""What OverridePolicies make of a template for one cluster, when its Work is made. Pure.

As Karmada 1.19 does (pkg/util/overridemanager), for what the dispatcher writes: resources by kind and name,
clusters by name, and plaintext that adds.
"""

from collections.abc import Iterable
from typing import Final

from sandbox.fakeapi.patching import Json
from sandbox.simulation.objects import Obj, at

OVERRIDE_POLICIES: Final = "overridepolicies"


def overridden(template: Obj, cluster: str, policies: Iterable[Obj]) -> Obj:
    """The template as the cluster gets it. Raises KeyError where a path leads nowhere."""
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
                for entry in at(rule, "overriders", "plaintext", default=()):
                    template = _added(template, entry["path"].split("/")[1:], entry["value"])
    return template


def owned_by(policies: Iterable[Obj], uid: str) -> list[Obj]:
    """The policies that garbage collection takes away with the object of this uid."""
    return [
        policy
        for policy in policies
        if uid in (one["uid"] for one in policy["metadata"].get("ownerReferences") or ())
    ]


def _added(value: Json, path: list[str], new: Json) -> Json:
    if not path:
        return new
    name = path[0].replace("~1", "/").replace("~0", "~")
    if isinstance(value, list):
        number = int(name)
        return [*value[:number], _added(value[number], path[1:], new), *value[number + 1 :]]
    if len(path) > 1 and name not in value:
        raise KeyError(name)
    return {**value, name: _added(value.get(name), path[1:], new)}
