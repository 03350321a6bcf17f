"""Where the API server serves the objects that queues are made of."""

from typing import Final

from fairway.kube.resource import ResourceKind
from fairway.names import GROUP, VERSION
from queue_dispatcher.api.objects import (
    ClusterQueueObject,
    LocalQueueObject,
    ResourceFlavorObject,
    ServiceClassObject,
)
from queue_dispatcher.api.volcano_objects import VolcanoQueueObject

_ROOT: Final = f"/apis/{GROUP}/{VERSION}"

RESOURCE_FLAVORS = ResourceKind(f"resourceflavors.{GROUP}", f"{_ROOT}/resourceflavors", ResourceFlavorObject)
CLUSTER_QUEUES = ResourceKind(f"clusterqueues.{GROUP}", f"{_ROOT}/clusterqueues", ClusterQueueObject)
LOCAL_QUEUES = ResourceKind(f"localqueues.{GROUP}", f"{_ROOT}/localqueues", LocalQueueObject)
SERVICE_CLASSES = ResourceKind(f"serviceclasses.{GROUP}", f"{_ROOT}/serviceclasses", ServiceClassObject)
VOLCANO_QUEUES = ResourceKind(
    "queues.scheduling.volcano.sh", "/apis/scheduling.volcano.sh/v1beta1/queues", VolcanoQueueObject
)
