"""What the estimator asks to be allowed, in member clusters and on Karmada's API server, and why."""

from fairway.kube.permissions import ANY_RESOURCE, Permission

_MEMBER = "manifests/member/rbac.yaml"
_KARMADA = "manifests/karmada/rbac/estimator.yaml"
_READS = ("list", "watch")
_NO_DEVICES = "devices of Dynamic Resource Allocation count as none in this cluster"
_NO_VOLUMES = "answers about pods with persistent volumes say what is not known, and are not proven"
_NO_CONTROLLERS = (
    "karmada-descheduler's questions about Deployments are answered in doubt, and pods of assumed "
    "Deployments may count twice once they are bound"
)

MEMBER: tuple[Permission, ...] = (
    Permission("nodes", _READS, "every answer about this cluster is in doubt", _MEMBER),
    Permission("pods", _READS, "every answer about this cluster is in doubt", _MEMBER),
    Permission(
        "deployments.apps",
        _READS,
        _NO_CONTROLLERS,
        _MEMBER,
    ),
    Permission(
        "replicasets.apps",
        _READS,
        _NO_CONTROLLERS,
        _MEMBER,
    ),
    Permission(
        "resourcequotas",
        _READS,
        "with the gate ResourceQuotaEstimate every answer about this cluster is in doubt",
        _MEMBER,
    ),
    Permission("resourceslices.resource.k8s.io", _READS, _NO_DEVICES, _MEMBER),
    Permission("deviceclasses.resource.k8s.io", _READS, _NO_DEVICES, _MEMBER),
    Permission("resourceclaims.resource.k8s.io", _READS, _NO_DEVICES, _MEMBER),
    Permission(
        "resourceclaimtemplates.resource.k8s.io",
        _READS,
        "claims that pods make from templates of this cluster are not known",
        _MEMBER,
    ),
    Permission(
        "topologies.kueue.x-k8s.io",
        _READS,
        "the levels of this cluster's topology are guessed from well-known labels",
        _MEMBER,
    ),
    Permission(
        "limitranges",
        _READS,
        "answers about pods that state no cpu or memory say that defaults are not known, and are not proven",
        _MEMBER,
    ),
    Permission(
        "runtimeclasses.node.k8s.io",
        _READS,
        "answers about pods with a RuntimeClass say that it is not known, and are not proven",
        _MEMBER,
    ),
    Permission(
        "namespaces",
        _READS,
        "answers about pods that a namespaceSelector is about say that it is not known, and are not proven",
        _MEMBER,
    ),
    Permission("persistentvolumeclaims", _READS, _NO_VOLUMES, _MEMBER),
    Permission("persistentvolumes", _READS, _NO_VOLUMES, _MEMBER),
    Permission("storageclasses.storage.k8s.io", _READS, _NO_VOLUMES, _MEMBER),
    Permission("csinodes.storage.k8s.io", _READS, _NO_VOLUMES, _MEMBER),
)
"""In each member cluster."""

KARMADA: tuple[Permission, ...] = (
    Permission(
        "resourceclaims.resource.k8s.io", _READS, "claims that templates name are not known", _KARMADA
    ),
    Permission(
        "resourceclaimtemplates.resource.k8s.io",
        _READS,
        "claims that pods make from templates are not known",
        _KARMADA,
    ),
    Permission(
        ANY_RESOURCE,
        _READS,
        "workloads of this kind are estimated from Karmada's request alone, without their gang",
        "manifests/karmada/rbac/templates.yaml",
    ),
)
"""On Karmada's API server, with ``--karmada-kubeconfig``."""
