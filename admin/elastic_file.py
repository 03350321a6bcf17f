"""What a workload file says of starting with fewer pods than it asks for, as the dispatcher reads it."""

import msgspec

from fairway.kube.decoding import UNDECODABLE
from fairway.kube.objects import KubeStruct, ObjectMeta
from queue_dispatcher.workloads.elastic import NO_MINIMUM, REVISABLE, Minimum, stated_minimum


class _Stated(KubeStruct, frozen=True):
    kind: str = ""
    api_version: str = ""
    metadata: ObjectMeta = ObjectMeta()


def minimum_in(raw_json: bytes) -> Minimum:
    """The minimum that the object states, where its kind can have one."""
    try:
        stated = msgspec.json.decode(raw_json, type=_Stated)
    except UNDECODABLE:
        # Labels that are no text: the workload itself was read, without them.
        return NO_MINIMUM
    group, _, _ = stated.api_version.rpartition("/")
    if (group, stated.kind) not in REVISABLE:
        return NO_MINIMUM
    return stated_minimum(stated.metadata.labels or {}, stated.metadata.annotations or {})
