"""What ``fairway notify`` asks to be allowed, in each member cluster and on Karmada's API server."""

from typing import Final

from fairway.kube.permissions import ANY_RESOURCE, Permission

_TELLING: Final[tuple[tuple[str, tuple[str, ...], str], ...]] = (
    ("events", ("create",), "nobody is told"),
    ("configmaps", ("get", "update"), "who was told already is not known, so that nobody is told"),
    ("configmaps", ("create",), "nobody is told until the records are there"),
)


def _telling(manifest: str) -> tuple[Permission, ...]:
    return tuple(Permission(resource, verbs, lost, manifest) for resource, verbs, lost in _TELLING)


_MEMBER: Final = "manifests/member/notify/rbac.yaml"
_KARMADA: Final = "manifests/karmada/notify/rbac.yaml"

MEMBER: Final[tuple[Permission, ...]] = (
    Permission("nodes", ("list",), "nobody of this cluster is told", _MEMBER),
    Permission("pods", ("list",), "nobody of this cluster is told", _MEMBER),
    Permission("namespaces", ("list",), "who wants to be told is not known, so that nobody is", _MEMBER),
    Permission("nodedevices.fairway.dev", ("list",), "only what Prometheus measures is told of", _MEMBER),
    *_telling(_MEMBER),
    Permission(
        ANY_RESOURCE,
        ("get",),
        "what controls workloads of this kind is not known, nor their template: they are told of themselves",
        _MEMBER,
    ),
)
KARMADA: Final[tuple[Permission, ...]] = (
    *_telling(_KARMADA),
    Permission(ANY_RESOURCE, ("get",), "workloads of templates of this kind are not told of", _KARMADA),
)
