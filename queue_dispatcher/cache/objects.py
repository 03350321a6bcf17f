"""What else is read on Karmada's API server: namespaces, policies, PriorityClasses, workloads' templates."""

from collections.abc import Mapping
from dataclasses import dataclass, field

import msgspec

from fairway.kube.objects import KubeStruct, ObjectMeta
from fairway.kube.resource import ResourceKind
from fairway.names import DEFAULT_QUEUE, QUEUE, QUEUEING

_POLICY = "/apis/policy.karmada.io/v1alpha1"


class MetadataObject(KubeStruct, frozen=True):
    """Any object of which only the metadata counts."""

    metadata: ObjectMeta = ObjectMeta()


class PriorityClassObject(KubeStruct, frozen=True):
    """scheduling.k8s.io/v1 PriorityClass."""

    metadata: ObjectMeta = ObjectMeta()
    value: int = 0


class TemplateObject(KubeStruct, frozen=True):
    """A workload's own object; its ``spec`` as it came, to be read by the rules of its kind."""

    metadata: ObjectMeta = ObjectMeta()
    spec: msgspec.Raw = msgspec.Raw(b"null")


NAMESPACES = ResourceKind("namespaces", "/api/v1/namespaces", MetadataObject, metadata_only=True)
PRIORITY_CLASSES = ResourceKind(
    "priorityclasses", "/apis/scheduling.k8s.io/v1/priorityclasses", PriorityClassObject
)
PROPAGATION_POLICIES = ResourceKind(
    "propagationpolicies", f"{_POLICY}/propagationpolicies", MetadataObject, metadata_only=True
)
CLUSTER_PROPAGATION_POLICIES = ResourceKind(
    "clusterpropagationpolicies", f"{_POLICY}/clusterpropagationpolicies", MetadataObject, metadata_only=True
)


@dataclass(frozen=True, slots=True)
class NamespaceFacts:
    """What a namespace says. ``default_queue``: of what names none. ``queueing``: how far queues reach."""

    labels: Mapping[str, str] = field(default_factory=dict)
    default_queue: str = ""
    queueing: str = ""


def read_namespace(obj: MetadataObject) -> NamespaceFacts:
    """The facts of a namespace; its default queue is a label or an annotation, the label wins."""
    labels = obj.metadata.labels or {}
    annotations = obj.metadata.annotations or {}
    return NamespaceFacts(
        labels=labels,
        default_queue=labels.get(DEFAULT_QUEUE) or annotations.get(DEFAULT_QUEUE, ""),
        queueing=labels.get(QUEUEING, ""),
    )


def read_policy(obj: MetadataObject) -> str | None:
    """The queue that a policy names for its workloads; None for none."""
    return (obj.metadata.annotations or {}).get(QUEUE) or None


def read_priority_class(obj: PriorityClassObject) -> int:
    """The value of a PriorityClass."""
    return obj.value
