"""Labels and annotations that the programs of Fairway and their users share, each written once.

Those about pods that belong together are in `fairway.workloads.own`.
"""

from typing import Final

GROUP: Final = "fairway.dev"
VERSION: Final = "v1alpha1"
API_VERSION: Final = f"{GROUP}/{VERSION}"

DUMPED: Final = (
    "nodes,pods,namespaces,resourcequotas,limitranges,runtimeclasses,"
    "deployments,replicasets,pv,pvc,storageclasses,csinodes"
)
"""What a dump of a cluster is made of, as kubectl get takes it; with nodedevices where node agents run."""

# What users say. As a label of the workload's template or of its binding; QUEUE also as an annotation of the
# PropagationPolicy; DEFAULT_QUEUE as a label or annotation of the namespace.
QUEUE: Final = "fairway.dev/queue"
"""Name of the LocalQueue, in the workload's namespace."""
DEFAULT_QUEUE: Final = "fairway.dev/default-queue"
"""Name of the LocalQueue of a namespace's workloads that name none."""
SERVICE_CLASS: Final = "fairway.dev/class"
"""Name of the ServiceClass."""
WORKLOAD_GROUP: Final = "fairway.dev/group"
"""Workloads of a namespace and queue with the same group start together or not at all."""
WORKLOAD_GROUP_SIZE: Final = "fairway.dev/group-size"
"""How many workloads the group has."""
MAX_RUNTIME: Final = "fairway.dev/max-runtime"
"""Label or annotation: how long the workload may run at the most, such as ``4h``."""
MIN_REPLICAS: Final = "fairway.dev/min-replicas"
"""Label or annotation: with how many of its pods the workload may start, and run on with."""
SKIP: Final = "fairway.dev/skip"
"""Label or annotation, with any value: Fairway leaves the workload alone."""
GUIDANCE: Final = "fairway.dev/guidance"
"""Label or annotation of a workload, ``off``: its pods go in the cluster where its scheduler puts them. Label
of the OverridePolicies that the dispatcher writes for those that are guided."""
SUSPENDED: Final = "fairway.dev/suspended"
"""Label of the OverridePolicies by which the dispatcher suspends workloads in their clusters."""
QUEUEING: Final = "fairway.dev/queueing"
"""Label of a namespace: how far queues reach into it; its values are `fairway.scope.Queueing`."""
NOTIFY: Final = "fairway.dev/notify"
"""Label of a namespace, ``true``: owners of its workloads are told by Events what these leave unused."""

# What the gate and the dispatcher write on bindings.
HELD_AT: Final = "fairway.dev/held-at"
"""Annotation by whoever holds the binding at its creation or growth, in the same write: when that was, in
RFC 3339; empty where the gate has no clock. It goes when the hold does."""
ADMISSION: Final = "fairway.dev/admission"
"""Annotation: the admission record, JSON; see `queue_dispatcher.bindings.record`."""
CHECK_PREFIX: Final = "check.fairway.dev/"
"""Begins annotations of a binding by which others say whether it may be admitted; the name of a check of its
ClusterQueue follows. See `queue_dispatcher.bindings.checks`."""
REQUEUE: Final = "fairway.dev/requeue"
"""Annotation: when a released workload that did not start was taken back, and when it is due again; JSON."""

# Of objects in member clusters.
GANG_CLASSES: Final = tuple(f"fairway-gang-{rank}" for rank in range(1, 9))
"""PriorityClasses in member clusters that order the pods of one gang, the smallest pods' first; see
manifests/member/priority-classes.yaml."""
