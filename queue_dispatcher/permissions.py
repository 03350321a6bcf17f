"""What the dispatcher asks to be allowed on Karmada's API server, and why."""

from fairway.kube.permissions import ANY_RESOURCE, Permission

_MANIFEST = "manifests/karmada/rbac/dispatcher.yaml"
_TEMPLATES = "manifests/karmada/rbac/templates.yaml"
_VISIBILITY = "manifests/karmada/rbac/visibility.yaml"
_READS = ("list", "watch")
_NOT_SUSPENDED = (
    "JobSets, Kubeflow's and Ray's jobs are taken off their clusters instead of being suspended there"
)
_UNGUIDED = (
    "gangs are released without being told where to go in their clusters, and small pods break nodes; "
    "what is charged to a flavor with `nodeLabels` or `tolerations` is not released; "
    f"{_NOT_SUSPENDED}"
)
_STOPS = "nothing is released, and /readyz says so"

PERMISSIONS: tuple[Permission, ...] = (
    Permission("resourcebindings.work.karmada.io", _READS, _STOPS, _MANIFEST),
    Permission(
        "resourcebindings.work.karmada.io",
        ("get",),
        "a write that was overtaken waits, and workloads of unknown kinds are not asked about",
        _MANIFEST,
    ),
    Permission(
        "resourcebindings.work.karmada.io",
        ("patch",),
        "nothing is released, taken back or written down",
        _MANIFEST,
    ),
    Permission("clusterresourcebindings.work.karmada.io", _READS, _STOPS, _MANIFEST),
    Permission(
        "clusterresourcebindings.work.karmada.io",
        ("get",),
        "a write that was overtaken waits, and cluster-scoped workloads are not asked about",
        _MANIFEST,
    ),
    Permission(
        "clusterresourcebindings.work.karmada.io",
        ("patch",),
        "nothing cluster-scoped is released, taken back or written down",
        _MANIFEST,
    ),
    Permission("clusters.cluster.karmada.io", _READS, _STOPS, _MANIFEST),
    Permission("resourceflavors.fairway.dev", _READS, _STOPS, _MANIFEST),
    Permission("clusterqueues.fairway.dev", _READS, _STOPS, _MANIFEST),
    Permission("localqueues.fairway.dev", _READS, _STOPS, _MANIFEST),
    Permission(
        "serviceclasses.fairway.dev",
        _READS,
        "ServiceClasses are passed over: priority 0 and the default start timeout unless something else says",
        _MANIFEST,
    ),
    Permission(
        "clusterqueues.fairway.dev/status", ("patch",), "ClusterQueues show no counts and no usage", _MANIFEST
    ),
    Permission("localqueues.fairway.dev/status", ("patch",), "LocalQueues show no counts", _MANIFEST),
    Permission(
        "resourceflavors.fairway.dev/status",
        ("patch",),
        "ResourceFlavors do not tell which of their fields have no effect",
        _MANIFEST,
    ),
    Permission(
        "serviceclasses.fairway.dev/status",
        ("patch",),
        "ServiceClasses do not tell which of their fields have no effect",
        _MANIFEST,
    ),
    Permission(
        "priorityclasses.scheduling.k8s.io",
        _READS,
        "PriorityClasses are passed over: priority 0 unless a ServiceClass or the binding says",
        _MANIFEST,
    ),
    Permission(
        "namespaces",
        _READS,
        "namespaces have no default queue, what is held in them stays whatever their label says, and "
        "ClusterQueues with a namespaceSelector admit nothing",
        _MANIFEST,
    ),
    Permission(
        "propagationpolicies.policy.karmada.io",
        _READS,
        "queues that PropagationPolicies name are passed over",
        _MANIFEST,
    ),
    Permission(
        "clusterpropagationpolicies.policy.karmada.io",
        _READS,
        "queues that ClusterPropagationPolicies name are passed over",
        _MANIFEST,
    ),
    Permission(
        "overridepolicies.policy.karmada.io",
        _READS,
        "pods are told where to go although a policy of somebody else's says something else; "
        f"{_NOT_SUSPENDED}, and what was goes on only once they can be read",
        _MANIFEST,
    ),
    Permission(
        "clusteroverridepolicies.policy.karmada.io",
        _READS,
        "pods are told where to go although a policy of somebody else's says something else",
        _MANIFEST,
    ),
    Permission("overridepolicies.policy.karmada.io", ("create", "patch"), _UNGUIDED, _MANIFEST),
    Permission(
        "overridepolicies.policy.karmada.io",
        ("get", "delete"),
        "what is released again after it was taken back is told to go where it was to go before; "
        "where there are flavors with `nodeLabels` or `tolerations` it is not released; "
        "what was suspended in its cluster by a policy stays so when it is released",
        _MANIFEST,
    ),
    Permission(
        "queues.scheduling.volcano.sh",
        _READS,
        "with --volcano-queues, Volcano's queues are not there",
        _MANIFEST,
    ),
    Permission("leases.coordination.k8s.io", ("get",), "this replica never leads", _MANIFEST),
    Permission(
        "leases.coordination.k8s.io", ("create",), "nobody leads until somebody makes the Lease", _MANIFEST
    ),
    Permission("leases.coordination.k8s.io", ("patch",), "this replica never leads, or no longer", _MANIFEST),
    Permission("events", ("create",), "nobody is told by Events", _MANIFEST),
    Permission("events", ("patch",), "Events that repeat are not counted on", _MANIFEST),
    Permission(
        "tokenreviews.authentication.k8s.io",
        ("create",),
        "readers of the visibility API cannot be told apart: those with tokens are refused",
        _VISIBILITY,
    ),
    Permission(
        "subjectaccessreviews.authorization.k8s.io",
        ("create",),
        "what readers of the visibility API may see cannot be known: they are refused",
        _VISIBILITY,
    ),
    Permission(
        ANY_RESOURCE,
        _READS,
        "workloads of this kind wait, with this as their reason; those of other kinds go on",
        _TEMPLATES,
    ),
    Permission(
        ANY_RESOURCE,
        ("get",),
        "estimators are not asked about workloads of this kind, which are released after --estimator-wait",
        _TEMPLATES,
    ),
)
