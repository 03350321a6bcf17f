"""Pods joined to a PodGroup by labels and annotations: Volcano, the coscheduling plugin, KAI and Kueue.

Mostly the size of the group stands in another object, the PodGroup; then all pods of the workload are taken
to be needed, which is what is safe and nearly always meant.
"""

from collections.abc import Mapping

from fairway.selectors import parse_int64
from fairway.workloads import kueue
from fairway.workloads.fields import MAX_COUNT, Problems, shown

GROUP_MINIMUM = "scheduling.volcano.sh/group-min-member"
_MINIMUM_LABEL = "pod-group.scheduling.sigs.k8s.io/min-available"
_COSCHEDULING = (
    "scheduling.x-k8s.io/pod-group",
    "pod-group.scheduling.sigs.k8s.io",
    "pod-group.scheduling.sigs.k8s.io/name",
)
_GROUP_LABELS = (*_COSCHEDULING, kueue.POD_GROUP)
_GROUP_ANNOTATIONS = (
    "scheduling.k8s.io/group-name",
    "scheduling.volcano.sh/group-name",
    "pod-group-name",
    kueue.POD_GROUP,
)


def group_of(labels: Mapping[str, str], annotations: Mapping[str, str]) -> str:
    """The name of the group that pods with these labels and annotations join; empty for none."""
    for key in _GROUP_LABELS:
        if labels.get(key):
            return labels[key]
    return next((annotations[key] for key in _GROUP_ANNOTATIONS if annotations.get(key)), "")


def is_coscheduled(labels: Mapping[str, str]) -> bool:
    """Whether pods with these labels join a PodGroup of the coscheduling plugin, which has to have one
    priority for all of its pods.
    """
    return any(labels.get(key) for key in _COSCHEDULING)


def group_minimum(
    workload_annotations: Mapping[str, str],
    labels: Mapping[str, str],
    annotations: Mapping[str, str],
    field: str,
    problems: Problems,
) -> int | None:
    """How many pods must start together, by what the workload and the template at ``field`` say.

    `MAX_COUNT` stands for all of them, None for nothing said. A minimum that is no number is read as all.
    """
    text = workload_annotations.get(GROUP_MINIMUM)
    if text is not None:
        return _number(text, f"metadata.annotations[{GROUP_MINIMUM}]", problems)
    if not group_of(labels, annotations):
        return None
    text = labels.get(_MINIMUM_LABEL)
    if text is not None:
        where = f"{field}.metadata.labels" if field else "metadata.labels"
        return _number(text, f"{where}[{_MINIMUM_LABEL}]", problems)
    return MAX_COUNT


def _number(text: str, field: str, problems: Problems) -> int:
    number = parse_int64(text)
    if number is None or number < 0:
        problems.append(f"{field}: {shown(text)}: expected a number of pods; read as all of them")
        return MAX_COUNT
    return min(number, MAX_COUNT)
