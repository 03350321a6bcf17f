"""Objects as the API server sends them: JSON, decoded as in production."""

from collections.abc import Mapping

import msgspec

from queue_dispatcher.api.objects import (
    ClusterQueueObject,
    LocalQueueObject,
    ResourceFlavorObject,
    ServiceClassObject,
)
from queue_dispatcher.api.volcano_objects import VolcanoQueueObject

Json = object
Spec = Mapping[str, Json]


def _encoded(name: str, spec: Spec, namespace: str = "", status: Spec | None = None) -> bytes:
    metadata = {"name": name, **({"namespace": namespace} if namespace else {})}
    return msgspec.json.encode({"metadata": metadata, "spec": spec, **({"status": status} if status else {})})


def flavor(spec: Spec) -> ResourceFlavorObject:
    return msgspec.json.decode(_encoded("h100", spec), type=ResourceFlavorObject)


def cluster_queue(spec: Spec) -> ClusterQueueObject:
    return msgspec.json.decode(_encoded("team-a", spec), type=ClusterQueueObject)


def local_queue(spec: Spec) -> LocalQueueObject:
    return msgspec.json.decode(_encoded("main", spec, "tenant"), type=LocalQueueObject)


def service_class(spec: Spec, name: str = "batch") -> ServiceClassObject:
    return msgspec.json.decode(_encoded(name, spec), type=ServiceClassObject)


def volcano_queue(name: str, state: str = "", /, **spec: Json) -> VolcanoQueueObject:
    """``deserved``, ``capability`` and so on; ``guarantee`` is given as its resources."""
    if "guarantee" in spec:
        spec["guarantee"] = {"resource": spec["guarantee"]}
    status = {"state": state} if state else None
    return msgspec.json.decode(_encoded(name, spec, status=status), type=VolcanoQueueObject)


def gpus(**limits: Json) -> Spec:
    """The spec of a queue with one flavor and one resource."""
    quota = {"name": "gpu", "nominalQuota": 8, **limits}
    return groups({"coveredResources": ["gpu"], "flavors": [{"name": "h100", "resources": [quota]}]})


def groups(*stated: Spec, parent: str = "research") -> Spec:
    return {"resourceGroups": list(stated), "parent": parent}
