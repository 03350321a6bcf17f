"""Plain objects put onto an API server as a cluster would have them, with their status."""

from typing import Final

from fairway.kube.client import KubeClient
from tests.truth.fields import Json, name_of, namespace_of, table, text

_MERGE: Final = "application/merge-patch+json"
PATHS: Final = {
    "Namespace": "/api/v1/namespaces",
    "Node": "/api/v1/nodes",
    "PersistentVolume": "/api/v1/persistentvolumes",
    "StorageClass": "/apis/storage.k8s.io/v1/storageclasses",
    "CSINode": "/apis/storage.k8s.io/v1/csinodes",
    "PriorityClass": "/apis/scheduling.k8s.io/v1/priorityclasses",
    "RuntimeClass": "/apis/node.k8s.io/v1/runtimeclasses",
    "LimitRange": "/api/v1/namespaces/{}/limitranges",
    "PersistentVolumeClaim": "/api/v1/namespaces/{}/persistentvolumeclaims",
    "Pod": "/api/v1/namespaces/{}/pods",
}
"""Where objects of a kind are served, in the order in which they are to be made."""


async def make(client: KubeClient, item: Json) -> None:
    """Create the object with its status; one that has a deletion timestamp is deleted. Raises KubeError."""
    path = PATHS[text(item, "kind")].format(namespace_of(item))
    metadata = table(item, "metadata")
    ends = metadata.pop("deletionTimestamp", None)
    metadata.pop("deletionGracePeriodSeconds", None)
    status = table(item, "status")
    await client.post(path, {**item, "status": {}}, dict)
    path = f"{path}/{name_of(item)}"
    match item["kind"]:
        case "Node":
            ready = {"type": "Ready", "status": "True", "reason": "Made"}
            body = {"capacity": status["allocatable"], **status, "conditions": [ready]}
            await merge(client, f"{path}/status", {"status": body})
        case "PersistentVolume" | "PersistentVolumeClaim":
            await merge(client, f"{path}/status", {"status": status})
        case "Pod":
            if is_at_end(item):
                await merge(client, f"{path}/status", {"status": status})
    if ends:
        await client.delete(path, dict)


async def merge(client: KubeClient, path: str, body: object) -> None:
    """Change what ``body`` says of the object there. Raises KubeError."""
    await client.patch(path, body, dict, content_type=_MERGE)


def is_at_end(item: Json) -> bool:
    """Whether it is a pod that holds nothing any more."""
    return item["kind"] == "Pod" and text(item, "status", "phase") in ("Succeeded", "Failed")
