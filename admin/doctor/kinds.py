"""What the doctor reads of each API server.

A kind is read once, whoever looks at it: two kinds of one name and path with different types are two views of
the same objects. What Kubernetes keeps by the thousand on a host cluster is read in Karmada's namespaces and
ours alone.
"""

from collections.abc import Mapping
from typing import Final, Protocol

from admin.doctor.admission import MutatingConfiguration, Policy, PolicyBinding, ValidatingConfiguration
from admin.doctor.definition import CustomResourceDefinition
from admin.doctor.evidence import Role
from admin.doctor.member_cluster import MemberCluster
from admin.doctor.running import Deployment, Pod, Secret, Service
from fairway.kube.member_kinds import PRIORITY_CLASSES
from fairway.kube.resource import NODES, RESOURCE_QUOTAS, KubeObjectLike, ResourceKind
from queue_dispatcher.cache.objects import NAMESPACES

OUR_NAMESPACE: Final = "fairway-system"
KARMADA_NAMESPACE: Final = "karmada-system"

_ADMISSION = "/apis/admissionregistration.k8s.io/v1"

DEPLOYMENTS: Final = ResourceKind("deployments", "/apis/apps/v1/deployments", Deployment)
PODS: Final = ResourceKind("pods", "/api/v1/pods", Pod)
SERVICES: Final = ResourceKind("services", "/api/v1/services", Service)
SECRETS: Final = ResourceKind(
    # Helm keeps its releases, of a megabyte each, as Secrets.
    "secrets",
    "/api/v1/secrets",
    Secret,
    {"fieldSelector": "type!=helm.sh/release.v1"},
)
CLUSTERS: Final = ResourceKind(
    "clusters.cluster.karmada.io", "/apis/cluster.karmada.io/v1alpha1/clusters", MemberCluster
)
DEFINITIONS: Final = ResourceKind(
    "customresourcedefinitions",
    "/apis/apiextensions.k8s.io/v1/customresourcedefinitions",
    CustomResourceDefinition,
)
MUTATING: Final = ResourceKind(
    "mutatingwebhookconfigurations", f"{_ADMISSION}/mutatingwebhookconfigurations", MutatingConfiguration
)
VALIDATING: Final = ResourceKind(
    "validatingwebhookconfigurations",
    f"{_ADMISSION}/validatingwebhookconfigurations",
    ValidatingConfiguration,
)
POLICIES: Final = ResourceKind("mutatingadmissionpolicies", f"{_ADMISSION}/mutatingadmissionpolicies", Policy)
POLICY_BINDINGS: Final = ResourceKind(
    "mutatingadmissionpolicybindings", f"{_ADMISSION}/mutatingadmissionpolicybindings", PolicyBinding
)


class Kind(Protocol):
    """A `ResourceKind` of whatever type."""

    @property
    def name(self) -> str:
        """Its key in `Plane.objects`."""

    @property
    def path(self) -> str:
        """The path of the collection."""

    @property
    def type(self) -> type[KubeObjectLike]:
        """What its objects are read as."""

    @property
    def params(self) -> Mapping[str, str]:
        """What selects the objects."""

    @property
    def metadata_only(self) -> bool:
        """Whether only the metadata is asked for."""


PLATFORM_KINDS: Final[Mapping[Role, tuple[Kind, ...]]] = {
    Role.HOST: (DEPLOYMENTS, PODS, SERVICES, SECRETS),
    Role.KARMADA: (
        CLUSTERS,
        DEFINITIONS,
        MUTATING,
        VALIDATING,
        POLICIES,
        POLICY_BINDINGS,
        SERVICES,
        SECRETS,
    ),
    Role.MEMBER: (NODES, RESOURCE_QUOTAS, PRIORITY_CLASSES),
}

IN_OUR_NAMESPACES: Final = frozenset(kind.name for kind in (DEPLOYMENTS, PODS, SERVICES, SECRETS))
"""Names of the kinds that are read in Karmada's namespace and ours only."""

NEVER_NONE: Final[Mapping[Role, frozenset[str]]] = {
    Role.HOST: frozenset(kind.name for kind in (DEPLOYMENTS, SERVICES, SECRETS)),
    Role.KARMADA: frozenset(kind.name for kind in (CLUSTERS, DEFINITIONS, MUTATING, VALIDATING, NAMESPACES)),
    Role.MEMBER: frozenset({NODES.name, PRIORITY_CLASSES.name}),
}
"""Of these every real API server of the role has some: a dump without any was made without them, and a
server that does not serve them is another than was meant."""
