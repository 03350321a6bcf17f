"""RBAC as kube-apiserver decides it: who may do what by the roles and bindings of some manifests.

Users are told apart by their bearer token, which here *is* the name: that of a user, or
``system:serviceaccount:NAMESPACE:NAME``. Discovery and versions are for everybody who is known, as the
default roles of a real server have it. Mirrors plugin/pkg/auth/authorizer/rbac of Kubernetes v1.36, with the
messages of k8s.io/apiserver.
"""

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace

from sandbox.fakeapi.seen import Seen
from sandbox.fakeapi.store import ApiFault, Obj

_VERBS = {"POST": "create", "PUT": "update", "PATCH": "patch", "DELETE": "delete"}
_PUBLIC = ("/api", "/apis", "/healthz", "/livez", "/openapi", "/readyz", "/version", "/fake")


@dataclass(frozen=True, slots=True)
class Attributes:
    """What a request wants; ``resource`` has its subresource after a slash, and is empty for other paths."""

    verb: str
    path: str
    group: str = ""
    resource: str = ""
    namespace: str = ""
    name: str = ""


@dataclass(frozen=True, slots=True)
class Rule:
    """A PolicyRule of a Role or ClusterRole; ``namespace`` is empty where it holds everywhere.

    ``source``: the role it stands in, for people.
    """

    source: str
    namespace: str
    verbs: tuple[str, ...]
    groups: tuple[str, ...] = ()
    resources: tuple[str, ...] = ()
    names: tuple[str, ...] = ()
    urls: tuple[str, ...] = ()

    def allows(self, asked: Attributes) -> bool:
        """Whether it grants the request."""
        if not _has(self.verbs, asked.verb):
            return False
        if not asked.resource:
            return any(_matches_url(url, asked.path) for url in self.urls)
        return (
            self.namespace in ("", asked.namespace)
            and _has(self.groups, asked.group)
            and self._has_resource(asked.resource)
            and (not self.names or asked.name in self.names)
        )

    def _has_resource(self, resource: str) -> bool:
        part = resource.partition("/")[2]
        return _has(self.resources, resource) or (bool(part) and f"*/{part}" in self.resources)

    def atoms(self) -> list["Rule"]:
        """The rule in its smallest parts: one verb on one resource of one group each."""
        return [
            replace(self, verbs=(verb,), groups=(group,), resources=(resource,))
            for verb in self.verbs
            for group in self.groups
            for resource in self.resources
        ]


class Authorization:
    """The roles and bindings among ``objects``; take away from ``rules`` what is to be missing.

    Rules of aggregated ClusterRoles are gathered by label, as the controller manager does.
    """

    def __init__(self, objects: Iterable[Obj]) -> None:
        listed = list(objects)
        roles = {
            (obj["kind"], obj["metadata"].get("namespace", ""), obj["metadata"]["name"]): obj
            for obj in listed
            if obj["kind"] in ("Role", "ClusterRole")
        }
        self.rules: dict[str, list[Rule]] = {}
        for binding in listed:
            if binding["kind"] not in ("RoleBinding", "ClusterRoleBinding"):
                continue
            namespace = binding["metadata"].get("namespace", "")
            reference = binding["roleRef"]
            role_namespace = namespace if reference["kind"] == "Role" else ""
            role = roles[reference["kind"], role_namespace, reference["name"]]
            rules = [_rule(role, stated, namespace) for stated in _rules_of(role, roles.values())]
            for subject in binding["subjects"]:
                self.rules.setdefault(_name_of(subject), []).extend(rules)

    def check(self, seen: Seen) -> None:
        """Raises ApiFault where the request is not allowed."""
        asked = attributes(seen)
        if not self.allows(seen.user, asked):
            raise ApiFault(403, "Forbidden", _message(seen.user, asked))

    def allows(self, user: str, asked: Attributes) -> bool:
        """Whether any rule of the user grants the request."""
        if not asked.resource and any(
            asked.path == root or asked.path.startswith(f"{root}/") for root in _PUBLIC
        ):
            return True
        return any(rule.allows(asked) for rule in self.rules.get(user, ()))

    def without(self, user: str, atom: Rule) -> None:
        """Take one verb on one resource away from a user; raises ValueError if no rule gave it."""
        atoms = [each for rule in self.rules[user] for each in rule.atoms() or [rule]]
        kept = [each for each in atoms if each != atom]
        if len(kept) == len(atoms):
            raise ValueError(f"{user} has no {atom}")
        self.rules[user] = kept


def attributes(seen: Seen) -> Attributes:
    """What a request wants, as kube-apiserver reads it."""
    segments = seen.path.strip("/").split("/")
    if segments[0] == "api" and len(segments) > 2:
        group, rest = "", segments[2:]
    elif segments[0] == "apis" and len(segments) > 3:
        group, rest = segments[1], segments[3:]
    else:
        return Attributes(seen.method.lower(), seen.path)
    namespace = ""
    if rest[0] == "namespaces" and len(rest) > 1:
        namespace = rest[1]
        if len(rest) > 2 and rest[2] not in ("status", "finalize"):
            rest = rest[2:]
    name = rest[1] if len(rest) > 1 else ""
    resource = "/".join((rest[0], *rest[2:3]))
    verb = _VERBS.get(seen.method, "get")
    if verb == "get" and not name:
        verb = "list"
    if verb == "delete" and not name:
        verb = "deletecollection"
    if seen.is_watch:
        verb = "watch"
    return Attributes(verb, seen.path, group, resource, namespace, name)


def _message(user: str, asked: Attributes) -> str:
    who = f"User {json.dumps(user)} cannot {asked.verb}"
    if not asked.resource:
        return f"forbidden: {who} path {json.dumps(asked.path)}"
    plural = asked.resource.partition("/")[0]
    qualified = f"{plural}.{asked.group}" if asked.group else plural
    named = f" {json.dumps(asked.name)}" if asked.name else ""
    scope = f"in the namespace {json.dumps(asked.namespace)}" if asked.namespace else "at the cluster scope"
    return (
        f"{qualified}{named} is forbidden: {who} resource {json.dumps(asked.resource)} "
        f"in API group {json.dumps(asked.group)} {scope}"
    )


def _rules_of(role: Obj, roles: Iterable[Obj]) -> list[Obj]:
    aggregation = role.get("aggregationRule")
    if aggregation is None:
        return list(role.get("rules") or ())
    wanted: list[Mapping[str, str]] = [each["matchLabels"] for each in aggregation["clusterRoleSelectors"]]
    return [
        stated
        for other in roles
        if other["kind"] == "ClusterRole"
        and any(labels.items() <= (other["metadata"].get("labels") or {}).items() for labels in wanted)
        for stated in other.get("rules") or ()
    ]


def _rule(role: Obj, stated: Obj, namespace: str) -> Rule:
    return Rule(
        f"{role['kind']} {role['metadata']['name']}",
        namespace,
        tuple(stated["verbs"]),
        tuple(stated.get("apiGroups") or ()),
        tuple(stated.get("resources") or ()),
        tuple(stated.get("resourceNames") or ()),
        tuple(stated.get("nonResourceURLs") or ()),
    )


def _name_of(subject: Mapping[str, str]) -> str:
    if subject["kind"] == "ServiceAccount":
        return f"system:serviceaccount:{subject['namespace']}:{subject['name']}"
    return subject["name"]


def _has(stated: tuple[str, ...], wanted: str) -> bool:
    return "*" in stated or wanted in stated


def _matches_url(stated: str, path: str) -> bool:
    if stated.endswith("*"):
        return path.startswith(stated[:-1])
    return stated == path
