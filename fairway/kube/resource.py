"""Which objects a reflector follows: where they are served, how they are typed, which of them are wanted."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Generic, Protocol, TypeVar

from fairway.kube.objects import Deployment, Node, ObjectMeta, Pod, ReplicaSet, ResourceQuota
from fairway.kube.topologies import KueueTopology


class KubeObjectLike(Protocol):
    """Anything with object metadata."""

    @property
    def metadata(self) -> ObjectMeta:
        """Name, namespace and resourceVersion are what reading a list or a watch needs."""


T = TypeVar("T", bound=KubeObjectLike)


@dataclass(frozen=True, slots=True)
class ResourceKind(Generic[T]):
    """One resource of one API server.

    ``name`` is its plural (metric label, messages), ``path`` the URL path of the collection (of all
    namespaces), ``params`` the query parameters that select objects (``fieldSelector``, ``labelSelector``).
    ``metadata_only``: the server leaves everything but the metadata out (PartialObjectMetadata).
    """

    name: str
    path: str
    type: type[T]
    params: Mapping[str, str] = field(default_factory=dict)
    metadata_only: bool = False

    def object_path(self, name: str, namespace: str = "") -> str:
        """The URL path of one object; ``namespace`` is empty for a cluster-scoped one."""
        if not namespace:
            return f"{self.path}/{name}"
        group_version, _, plural = self.path.rpartition("/")
        return f"{group_version}/namespaces/{namespace}/{plural}/{name}"


NODES = ResourceKind("nodes", "/api/v1/nodes", Node)
PODS = ResourceKind(
    # A finished pod holds nothing any more, and clusters keep thousands of them.
    "pods",
    "/api/v1/pods",
    Pod,
    {"fieldSelector": "status.phase!=Succeeded,status.phase!=Failed"},
)
RESOURCE_QUOTAS = ResourceKind("resourcequotas", "/api/v1/resourcequotas", ResourceQuota)
DEPLOYMENTS = ResourceKind("deployments", "/apis/apps/v1/deployments", Deployment)
REPLICA_SETS = ResourceKind("replicasets", "/apis/apps/v1/replicasets", ReplicaSet)
KUEUE_TOPOLOGIES = tuple(
    ResourceKind("topologies.kueue.x-k8s.io", f"/apis/kueue.x-k8s.io/{version}/topologies", KueueTopology)
    for version in ("v1beta2", "v1beta1", "v1alpha1")
)
"""The same objects by version, the newest first; a server has those of its Kueue, or none."""
