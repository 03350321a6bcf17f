"""The doctor's checks of the objects on karmada-apiserver: policies, queues and bindings."""

from typing import Final

from admin.doctor.check import Check
from admin.doctor.objects.federated_quotas import FEDERATED_QUOTAS
from admin.doctor.objects.gang_schedulers import GANG_SCHEDULERS
from admin.doctor.objects.local_queues import LOCAL_QUEUE_REFERENCES, QUEUE_COVER, QUEUE_STOPPED
from admin.doctor.objects.overriding import POLICY_OVERRIDES
from admin.doctor.objects.placing import (
    BINDINGS_CHARGED,
    BINDINGS_PLACED,
    BINDINGS_RUNNING,
    BINDINGS_UNPLACED,
    BINDINGS_UNSCHEDULABLE,
)
from admin.doctor.objects.policy_effects import POLICY_PRESERVES, POLICY_QUEUE, POLICY_SUSPENSION
from admin.doctor.objects.policy_placement import (
    POLICY_CLUSTERS,
    POLICY_FIELDS,
    POLICY_GANGS,
    POLICY_REPLICAS,
)
from admin.doctor.objects.queue_fields import QUEUE_EFFECT, QUEUE_FIELDS
from admin.doctor.objects.queue_objects import (
    QUEUE_CAPACITY,
    QUEUE_CLASSES,
    QUEUE_FLAVORS,
    QUEUE_TREE,
)
from admin.doctor.objects.queueing import NAMESPACES_QUEUEING
from admin.doctor.objects.strays import (
    BINDINGS_COMPONENTS,
    BINDINGS_LABELS,
    BINDINGS_RECORDS,
    BINDINGS_SKIPPED,
    BINDINGS_SLIPPED,
)
from admin.doctor.objects.ungated import WORKLOADS_UNGATED
from admin.doctor.objects.unseen import BINDINGS_UNSEEN
from admin.doctor.objects.waiting import (
    BINDINGS_FINISHED,
    BINDINGS_HELD,
    BINDINGS_LEFT,
    DISPATCHER_LEADS,
)

OBJECTS: Final[tuple[Check, ...]] = (
    POLICY_FIELDS,
    POLICY_REPLICAS,
    POLICY_GANGS,
    POLICY_CLUSTERS,
    POLICY_SUSPENSION,
    POLICY_QUEUE,
    POLICY_PRESERVES,
    POLICY_OVERRIDES,
    FEDERATED_QUOTAS,
    QUEUE_FIELDS,
    QUEUE_EFFECT,
    QUEUE_TREE,
    QUEUE_FLAVORS,
    QUEUE_CAPACITY,
    QUEUE_CLASSES,
    LOCAL_QUEUE_REFERENCES,
    NAMESPACES_QUEUEING,
    QUEUE_COVER,
    QUEUE_STOPPED,
    DISPATCHER_LEADS,
    BINDINGS_HELD,
    BINDINGS_FINISHED,
    BINDINGS_UNSEEN,
    BINDINGS_UNPLACED,
    BINDINGS_UNSCHEDULABLE,
    BINDINGS_RUNNING,
    GANG_SCHEDULERS,
    BINDINGS_PLACED,
    BINDINGS_CHARGED,
    BINDINGS_RECORDS,
    BINDINGS_LABELS,
    BINDINGS_SLIPPED,
    BINDINGS_SKIPPED,
    WORKLOADS_UNGATED,
    BINDINGS_COMPONENTS,
    BINDINGS_LEFT,
)
"""In the order in which they are told."""
