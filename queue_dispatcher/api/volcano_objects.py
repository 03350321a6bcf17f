"""Volcano's Queue as the API server sends it: only the fields that decide something.

Mirrors staging/src/volcano.sh/apis/pkg/apis/scheduling/v1beta1/types.go of Volcano at ed72c7c (August 2026).
"""

from fairway.kube.objects import KubeStruct, ObjectMeta, RawResources


class VolcanoGuarantee(KubeStruct, frozen=True):
    """What is kept for a queue though it uses it not."""

    resource: RawResources | None = None


class VolcanoQueueSpec(KubeStruct, frozen=True):
    """What a queue is told."""

    weight: int | None = None
    capability: RawResources | None = None
    deserved: RawResources | None = None
    guarantee: VolcanoGuarantee | None = None
    parent: str | None = None
    priority: int | None = None
    dequeue_strategy: str | None = None


class VolcanoQueueStatus(KubeStruct, frozen=True):
    """What Volcano's controller says of a queue; empty where none runs."""

    state: str | None = None


class VolcanoQueueObject(KubeStruct, frozen=True):
    """scheduling.volcano.sh/v1beta1 Queue."""

    metadata: ObjectMeta = ObjectMeta()
    spec: VolcanoQueueSpec = VolcanoQueueSpec()
    status: VolcanoQueueStatus | None = None
