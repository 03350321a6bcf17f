"""Where objects of each kind are served: the kinds that an installation is made of, and no others.

Asking the API server for it would cost a request a group, and would not work for a plan printed offline.
"""

from dataclasses import dataclass
from typing import Final


@dataclass(frozen=True, slots=True)
class Kind:
    """``group``: the API group, empty for the core group. ``plural``: the resource in URLs and in RBAC."""

    group: str
    version: str
    kind: str
    plural: str
    is_namespaced: bool

    @property
    def api_version(self) -> str:
        """``v1`` or ``apps/v1``."""
        return f"{self.group}/{self.version}" if self.group else self.version

    @property
    def root(self) -> str:
        """The URL path of the group and version."""
        return f"/apis/{self.api_version}" if self.group else f"/api/{self.version}"

    @property
    def path(self) -> str:
        """The URL path of the collection, of all namespaces."""
        return f"{self.root}/{self.plural}"


_ADMISSION: Final = "admissionregistration.k8s.io"
_RBAC: Final = "rbac.authorization.k8s.io"

KINDS: Final = (
    Kind("", "v1", "Namespace", "namespaces", False),
    Kind("apiextensions.k8s.io", "v1", "CustomResourceDefinition", "customresourcedefinitions", False),
    Kind("", "v1", "ServiceAccount", "serviceaccounts", True),
    Kind(_RBAC, "v1", "ClusterRole", "clusterroles", False),
    Kind(_RBAC, "v1", "ClusterRoleBinding", "clusterrolebindings", False),
    Kind(_RBAC, "v1", "Role", "roles", True),
    Kind(_RBAC, "v1", "RoleBinding", "rolebindings", True),
    Kind("", "v1", "Secret", "secrets", True),
    Kind("", "v1", "ConfigMap", "configmaps", True),
    Kind("scheduling.k8s.io", "v1", "PriorityClass", "priorityclasses", False),
    Kind("networking.k8s.io", "v1", "NetworkPolicy", "networkpolicies", True),
    Kind("policy", "v1", "PodDisruptionBudget", "poddisruptionbudgets", True),
    Kind("", "v1", "Service", "services", True),
    Kind("apps", "v1", "Deployment", "deployments", True),
    Kind("config.karmada.io", "v1alpha1", "ResourceInterpreterCustomization",
         "resourceinterpretercustomizations", False),
    Kind(_ADMISSION, "v1", "MutatingWebhookConfiguration", "mutatingwebhookconfigurations", False),
    Kind(_ADMISSION, "v1", "MutatingAdmissionPolicy", "mutatingadmissionpolicies", False),
    Kind(_ADMISSION, "v1", "MutatingAdmissionPolicyBinding", "mutatingadmissionpolicybindings", False),
    Kind("coordination.k8s.io", "v1", "Lease", "leases", True),
    Kind("fairway.dev", "v1alpha1", "ResourceFlavor", "resourceflavors", False),
    Kind("fairway.dev", "v1alpha1", "ClusterQueue", "clusterqueues", False),
    Kind("fairway.dev", "v1alpha1", "LocalQueue", "localqueues", True),
    Kind("fairway.dev", "v1alpha1", "ServiceClass", "serviceclasses", False),
)  # fmt: skip

_BY_NAME: Final = {(kind.api_version, kind.kind): kind for kind in KINDS}


def kind_named(api_version: str, kind: str) -> Kind | None:
    """The kind, None where an installation has none of it."""
    return _BY_NAME.get((api_version, kind))


def the(kind: str) -> Kind:
    """The kind of that name, whatever its group."""
    return next(each for each in KINDS if each.kind == kind)
