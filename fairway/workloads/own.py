"""Fairway's own annotations, which win over everything else that a workload says of its pods together.

``fairway.dev/gang`` says how many pods start together, ``fairway.dev/topology-<mode>: <level>`` where they
have to be with respect to each other, ``fairway.dev/topology-slice-size`` that this holds for runs of so many
pods. On the workload they are about all its pods, on a pod template about the pods of that template.
"""

from collections.abc import Mapping

from fairway.selectors import parse_int64
from fairway.workloads.fields import MAX_COUNT, Problems, shown
from fairway.workloads.gang import TopologyMode, TopologyRequest, in_slices
from fairway.workloads.levels import read_level, read_size

GANG = "fairway.dev/gang"
REQUIRED = "fairway.dev/topology-required"
PREFERRED = "fairway.dev/topology-preferred"
EXCLUSIVE = "fairway.dev/topology-exclusive"
SLICE_SIZE = "fairway.dev/topology-slice-size"

# The strictest first: it is the one that counts where several are stated.
_MODES = (
    (EXCLUSIVE, TopologyMode.EXCLUSIVE),
    (REQUIRED, TopologyMode.REQUIRED),
    (PREFERRED, TopologyMode.PREFERRED),
)


def own_together(annotations: Mapping[str, str], field: str, problems: Problems) -> int | None:
    """How many pods must start together: `MAX_COUNT` for all, 0 for none, None where nothing is said.

    What cannot be understood is read as all of them: whoever writes the annotation wants a gang.
    """
    text = annotations.get(GANG)
    if text is None:
        return None
    match text.lower():
        case "true":
            return MAX_COUNT
        case "false":
            return 0
    size = parse_int64(text)
    if size is None or size < 1:
        problems.append(
            f"{field}[{GANG}]: {shown(text)}: expected true, false or a number of pods; read as true"
        )
        return MAX_COUNT
    return min(size, MAX_COUNT)


def own_topology(
    annotations: Mapping[str, str], field: str, problems: Problems, *, slices: bool = True
) -> TopologyRequest | None:
    """The topology that the annotations ask for, or None.

    ``slices`` False: these annotations are about several pod sets, which have no common order, so they cannot
    be cut into slices. An unusable slice size leaves the pods in one piece, which is never easier to place.
    """
    said = [(key, mode) for key, mode in _MODES if key in annotations]
    size_text = annotations.get(SLICE_SIZE)
    if not said:
        if size_text is not None:
            problems.append(f"{field}[{SLICE_SIZE}]: expected {REQUIRED} or {EXCLUSIVE} beside it; ignored")
        return None
    key, mode = said[0]
    for other, _ in said[1:]:
        problems.append(f"{field}[{other}]: not looked at beside {key}")
    level = read_level(annotations[key], f"{field}[{key}]", problems)
    size = None
    if size_text is None:
        pass
    elif mode is TopologyMode.PREFERRED:
        problems.append(f"{field}[{SLICE_SIZE}]: a preference has no slices; ignored")
    elif not slices:
        problems.append(
            f"{field}[{SLICE_SIZE}]: expected on the pod template whose pods it is about; ignored"
        )
    else:
        size = read_size(size_text, f"{field}[{SLICE_SIZE}]", problems)
    if mode is TopologyMode.REQUIRED:
        return in_slices(level, size)
    return TopologyRequest(mode, level, size or 0)
