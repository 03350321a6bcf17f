"""KAI's topology placement, as annotations of a workload or of a pod template ask for it.

Mirrors pkg/podgrouper/podgrouper/plugins of KAI Scheduler 0.13: the annotations of the workload bind its
whole pod group, those of a template its own pods, and a segment is a run of pods that keep together.
"""

from collections.abc import Mapping

from fairway.workloads.fields import Problems
from fairway.workloads.gang import TopologyMode, TopologyRequest, in_slices
from fairway.workloads.levels import read_level, read_size

REQUIRED = "kai.scheduler/topology-required-placement"
PREFERRED = "kai.scheduler/topology-preferred-placement"
SEGMENT_LEVEL = "kai.scheduler/segment-topology-required-placement"
SEGMENT_SIZE = "kai.scheduler/segment-size"


def kai_topology(
    annotations: Mapping[str, str], field: str, problems: Problems, *, segments: bool = True
) -> TopologyRequest | None:
    """The topology that the annotations at ``field`` ask KAI for, or None.

    Of a required and a preferred level the required one counts: the other only says how to choose among what
    fits. Segments count before both where they are asked for; ``segments`` False leaves them out.
    """
    if not any(key.startswith("kai.scheduler/") for key in annotations):
        return None
    level = annotations.get(SEGMENT_LEVEL) if segments else None
    if level:
        level = read_level(level, f"{field}[{SEGMENT_LEVEL}]", problems)
        size = read_size(annotations.get(SEGMENT_SIZE, ""), f"{field}[{SEGMENT_SIZE}]", problems)
        if annotations.get(REQUIRED):
            problems.append(f"{field}[{REQUIRED}]: not looked at beside {SEGMENT_LEVEL}")
        return in_slices(level, size)
    for key, mode in ((REQUIRED, TopologyMode.REQUIRED), (PREFERRED, TopologyMode.PREFERRED)):
        if annotations.get(key):
            return TopologyRequest(mode, read_level(annotations[key], f"{field}[{key}]", problems))
    return None
