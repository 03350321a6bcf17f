"""What the node agent asks to be allowed in its cluster, and why."""

from typing import Final

from fairway.kube.permissions import Permission

_MANIFEST: Final = "manifests/member/node-agent/rbac.yaml"
_NOT_WRITTEN: Final = "nothing of this node is written; metrics are served all the same"

PERMISSIONS: Final[tuple[Permission, ...]] = (
    Permission("nodedevices.fairway.dev", ("create",), _NOT_WRITTEN, _MANIFEST),
    Permission("nodedevices.fairway.dev", ("patch",), _NOT_WRITTEN, _MANIFEST),
    Permission(
        "nodedevices.fairway.dev",
        ("get",),
        "a restarted agent forgets who held its devices for how long, what XIDs said before, and since when "
        "devices are idle",
        _MANIFEST,
    ),
    Permission(
        "pods",
        ("list", "watch"),
        "holders have no owner, and those that only a process shows have nothing but a uid",
        _MANIFEST,
    ),
    Permission(
        "resourceslices.resource.k8s.io",
        ("list", "watch"),
        "who holds a device by a claim is known only while a process of theirs runs on it",
        _MANIFEST,
    ),
)
