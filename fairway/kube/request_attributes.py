"""What a request is to the server that decides whether it is allowed: a verb on a resource.

Mirrors k8s.io/apiserver ``pkg/endpoints/request/requestinfo.go``, v0.36, for the requests that Fairway makes.
"""

from collections.abc import Mapping
from dataclasses import dataclass

_VERBS = {"POST": "create", "PUT": "update", "PATCH": "patch", "DELETE": "delete"}
_OF_NAMESPACES = ("status", "finalize")


@dataclass(frozen=True, slots=True)
class Attributes:
    """``resource``: plural, and its subresource after a slash. ``group``: empty for the core group.

    ``namespace`` is empty at the cluster scope, ``name`` for collections.
    """

    verb: str
    group: str
    resource: str
    namespace: str = ""
    name: str = ""

    @property
    def full_resource(self) -> str:
        """The resource with its group: ``jobs.batch``, ``clusterqueues.fairway.dev/status``."""
        plural, slash, part = self.resource.partition("/")
        return f"{plural}.{self.group}{slash}{part}" if self.group else self.resource

    @property
    def where(self) -> str:
        """The scope, in the words of the API server."""
        return f'in the namespace "{self.namespace}"' if self.namespace else "at the cluster scope"


def attributes(method: str, path: str, params: Mapping[str, str]) -> Attributes | None:
    """The attributes of a request; None if it is about no resource (versions, discovery, health)."""
    match path.strip("/").split("/"):
        case ["api", _, first, *rest]:
            group = ""
        case ["apis", group, _, first, *rest]:
            pass
        case _:
            return None
    namespace = ""
    if first == "namespaces" and rest:
        namespace = rest[0]
        if len(rest) > 1 and rest[1] not in _OF_NAMESPACES:
            first, rest = rest[1], rest[2:]
    name = rest[0] if rest else ""
    resource = f"{first}/{rest[1]}" if len(rest) > 1 else first
    return Attributes(_verb(method, name, params), group, resource, namespace, name)


def _verb(method: str, name: str, params: Mapping[str, str]) -> str:
    if method == "GET":
        if params.get("watch") in ("1", "true"):
            return "watch"
        return "get" if name else "list"
    if method == "DELETE" and not name:
        return "deletecollection"
    return _VERBS.get(method, method.lower())
