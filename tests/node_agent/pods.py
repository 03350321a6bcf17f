"""Pods of a node, as its watch delivers them."""

from collections.abc import Mapping, Sequence

from fairway.kube.objects import ObjectMeta, OwnerReference
from node_agent.local_pods import ContainerId, LocalPods, PodOnNode, StatusOnNode


def owned_by(kind: str, name: str, *, controller: bool | None = None) -> OwnerReference:
    return OwnerReference("apps/v1", kind, name, f"uid-{name}", controller)


def pod(
    key: str,
    uid: str,
    containers: Mapping[str, str] | None = None,
    *,
    annotations: Mapping[str, str] | None = None,
    owners: Sequence[OwnerReference] = (),
    init: Mapping[str, str] | None = None,
) -> PodOnNode:
    """``containers`` and ``init``: ids as the status has them, by name."""
    namespace, _, name = key.partition("/")
    metadata = ObjectMeta(
        name=name,
        namespace=namespace,
        uid=uid,
        annotations=dict(annotations) if annotations is not None else None,
        owner_references=list(owners) or None,
    )
    statuses = [[ContainerId(name, id) for name, id in (of or {}).items()] for of in (containers, init)]
    return PodOnNode(metadata=metadata, status=StatusOnNode(None, *statuses))


def pods(*of: PodOnNode) -> LocalPods:
    found = LocalPods()
    for one in of:
        found.upsert(one)
    return found
