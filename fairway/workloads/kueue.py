"""Kueue's topology-aware scheduling, as annotations of a pod template ask for it.

Kueue admits the pods of a workload all at once, and where one of these annotations stands it also chooses the
nodes for all of them; so each of them makes a gang. Mirrors apis/kueue/v1beta2/topology_types.go and
pkg/controller/jobframework/tas.go of Kueue 0.19.
"""

from collections.abc import Mapping
from dataclasses import dataclass

import msgspec

from fairway.workloads.fields import MAX_COUNT, Problems, Unreadable, decode, shown
from fairway.workloads.gang import TopologyMode, TopologyRequest, in_slices
from fairway.workloads.levels import read_level, read_size

REQUIRED = "kueue.x-k8s.io/podset-required-topology"
PREFERRED = "kueue.x-k8s.io/podset-preferred-topology"
UNCONSTRAINED = "kueue.x-k8s.io/podset-unconstrained-topology"
SLICE_LEVEL = "kueue.x-k8s.io/podset-slice-required-topology"
SLICE_SIZE = "kueue.x-k8s.io/podset-slice-size"
SLICE_LAYERS = "kueue.x-k8s.io/podset-slice-required-topology-constraints"
SET_GROUP = "kueue.x-k8s.io/podset-group-name"
POD_GROUP = "kueue.x-k8s.io/pod-group-name"
POD_GROUP_SIZE = "kueue.x-k8s.io/pod-group-total-count"
JOB_MINIMUM = "kueue.x-k8s.io/job-min-parallelism"

_TRUE = frozenset({"1", "t", "T", "TRUE", "true", "True"})


@dataclass(frozen=True, slots=True)
class KueueWords:
    """What one template says to Kueue.

    ``placed``: Kueue chooses the nodes of all pods at once. ``whole`` is about all pods of the set,
    ``sliced`` about runs of them. ``group``: sets of the same group share the domain of ``whole``.
    """

    placed: bool = False
    whole: TopologyRequest | None = None
    sliced: TopologyRequest | None = None
    group: str = ""


class _Layer(msgspec.Struct, frozen=True):
    topology: str = ""
    size: int = 0


_LAYERS = msgspec.json.Decoder(list[_Layer])
_SILENT = KueueWords()


def kueue_words(annotations: Mapping[str, str], field: str, problems: Problems) -> KueueWords:
    """What the annotations of a template at ``field`` ask of Kueue."""
    if not any(key.startswith("kueue.x-k8s.io/podset-") for key in annotations):
        return _SILENT
    whole: TopologyRequest | None = None
    for key, mode in ((REQUIRED, TopologyMode.REQUIRED), (PREFERRED, TopologyMode.PREFERRED)):
        text = annotations.get(key)
        if text is None:
            continue
        if whole is not None:
            problems.append(f"{field}[{key}]: not looked at beside {REQUIRED}")
            continue
        whole = TopologyRequest(mode, read_level(text, f"{field}[{key}]", problems))
    sliced = _slices(annotations, field, problems)
    placed = whole is not None or sliced is not None or annotations.get(UNCONSTRAINED) in _TRUE
    return KueueWords(placed, whole, sliced, annotations.get(SET_GROUP, "") if whole else "")


def _slices(annotations: Mapping[str, str], field: str, problems: Problems) -> TopologyRequest | None:
    layers = annotations.get(SLICE_LAYERS)
    if layers is not None:
        return _innermost(layers, f"{field}[{SLICE_LAYERS}]", problems)
    level = annotations.get(SLICE_LEVEL)
    if level is None:
        if SLICE_SIZE in annotations:
            problems.append(f"{field}[{SLICE_SIZE}]: expected {SLICE_LEVEL} beside it; ignored")
        return None
    level = read_level(level, f"{field}[{SLICE_LEVEL}]", problems)
    text = annotations.get(SLICE_SIZE)
    if text is None:
        problems.append(
            f"{field}[{SLICE_LEVEL}]: expected {SLICE_SIZE} beside it; read as one slice of all pods"
        )
        return TopologyRequest(TopologyMode.REQUIRED, level)
    return in_slices(level, read_size(text, f"{field}[{SLICE_SIZE}]", problems))


def _innermost(text: str, field: str, problems: Problems) -> TopologyRequest | None:
    try:
        layers = decode(_LAYERS, text.encode(errors="replace"))
    except Unreadable:
        layers = []
    if not layers:
        problems.append(
            f'{field}: {shown(text)}: expected [{{"topology": "example.com/rack", "size": 4}}] or the like; '
            "ignored"
        )
        return None
    if len(layers) > 1:
        problems.append(f"{field}: only the innermost of {len(layers)} layers is looked at")
    level = read_level(layers[-1].topology, field, problems)
    size = layers[-1].size
    if not 1 <= size <= MAX_COUNT:
        problems.append(f"{field}: {size} is no number of pods: expected 1 to {MAX_COUNT}; read as all pods")
        size = 0
    return in_slices(level, size)
