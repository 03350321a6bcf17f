"""What the estimator asks to be allowed, in member clusters and on Karmada's API server, and why."""

from fairway.kube.permissions import ANY_RESOURCE, Permission

_MEMBER = "manifests/member/rbac.yaml"
_KARMADA = "manifests/karmada/rbac/estimator.yaml"
_READS = ("list", "watch")
_NO_ANSWERS = "every answer about this cluster is in doubt"
_NO_DEVICES = "devices of Dynamic Resource Allocation count as none in this cluster"
_NO_VOLUMES = "answers about pods with persistent volumes say what is not known, and are not proven"
_NO_CONTROLLERS = (
    "karmada-descheduler's questions about Deployments are answered in doubt, and pods of assumed "
    "Deployments may count twice once they are bound"
)
_UNKNOWN = "say that it is not known, and are not proven"
_LOST = {
    "nodes": _NO_ANSWERS,
    "pods": _NO_ANSWERS,
    "deployments.apps": _NO_CONTROLLERS,
    "replicasets.apps": _NO_CONTROLLERS,
    "resourcequotas": f"with the gate ResourceQuotaEstimate {_NO_ANSWERS}",
    "resourceslices.resource.k8s.io": _NO_DEVICES,
    "deviceclasses.resource.k8s.io": _NO_DEVICES,
    "resourceclaims.resource.k8s.io": _NO_DEVICES,
    "resourceclaimtemplates.resource.k8s.io": (
        "claims that pods make from templates of this cluster are not known"
    ),
    "topologies.kueue.x-k8s.io": "the levels of this cluster's topology are guessed from well-known labels",
    "nodedevices.fairway.dev": (
        "devices that node agents find broken are promised until the device plugin takes them away, what "
        "labels lack of devices is not known, and nobody knows what devices do"
    ),
    "limitranges": (
        "answers about pods that state no cpu or memory say that defaults are not known, and are not proven"
    ),
    "runtimeclasses.node.k8s.io": f"answers about pods with a RuntimeClass {_UNKNOWN}",
    "namespaces": (
        f"answers about pods that a namespaceSelector is about {_UNKNOWN}; "
        "who uses what knows no default queues"
    ),
    "persistentvolumeclaims": _NO_VOLUMES,
    "persistentvolumes": _NO_VOLUMES,
    "storageclasses.storage.k8s.io": _NO_VOLUMES,
    "csinodes.storage.k8s.io": _NO_VOLUMES,
    "priorityclasses.scheduling.k8s.io": (
        "it is not known whether this cluster can order the pods of a gang by size, so they are not ordered"
    ),
}

MEMBER = tuple(Permission(resource, _READS, lost, _MEMBER) for resource, lost in _LOST.items())
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
