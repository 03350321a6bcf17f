"""KAI Scheduler and Run:ai: fractions of NVIDIA GPUs, asked for by annotation.

A pod asks for a share of a device (``gpu-fraction``) or for MiB of it (``gpu-memory``), on one device or on
``gpu-fraction-num-devices`` different ones, and for no ``nvidia.com/gpu``. The first fraction on a GPU makes
KAI run a reservation pod that holds the whole GPU; it and the pods on the GPU carry the same group id in a
label. So a node registers nothing: its devices are the groups that its pods name, and each free whole GPU can
become one more. The reservation pod's GPU is already used up in the node's ``nvidia.com/gpu`` and counts
nothing here.

A device's memory is the node's ``nvidia.com/gpu.memory`` in MiB, rounded down to hundreds; 100 where there is
no such label, so that shares still work and memory does not.

Mirrors pkg/scheduler/api/node_info/, pkg/scheduler/api/pod_info/ and pkg/binder/plugins/gpusharing/ of
KAI-Scheduler as of March 2026. KAI computes a share's MiB in floating point, at most one less than here.
``gpu-fraction-container-name`` and ``mps`` change nothing of the amounts.
"""

import re
from collections.abc import Mapping

from fairway.accelerators.annotation import MOST, shown, truth, whole_number
from fairway.accelerators.devices import (
    NO_USES,
    PPM,
    Device,
    DeviceClaim,
    DeviceUse,
    NodeFacts,
    PodAsk,
    PodFacts,
    Read,
    Scheme,
)

GPU = "nvidia.com/gpu"
FRACTION = "gpu-fraction"
GPU_MEMORY = "gpu-memory"
NUM_DEVICES = "gpu-fraction-num-devices"
GROUP = "runai-gpu-group"
MEMORY_LABEL = "nvidia.com/gpu.memory"
MIG_LABEL = "node-role.kubernetes.io/mig-enabled"

_DECIMAL = re.compile(r"([0-9]{0,9})(?:\.([0-9]{0,18}))?")
_GROUP_PREFIX = GROUP + "/"
_MIG_RESOURCE = "nvidia.com/mig-"
_NO_LABEL_MIB = 100
_TIB_IN_MIB = _MIB = 1024 * 1024
# KAI takes less for no request at all.
_LEAST_PPM = PPM // 100


def _devices(node: NodeFacts) -> Read[tuple[Device, ...]] | None:
    if node.allocatable.get(GPU, 0) <= 0 or _has_mig(node):
        return None
    label = node.labels.get(MEMORY_LABEL)
    if label is None or whole_number(label, 2**63 - 1) is not None:
        return Read(())
    problem = f"label {MEMORY_LABEL} is {shown(label)}, expected MiB; as without it, {_NO_LABEL_MIB} is taken"
    return Read((), (problem,))


def _has_mig(node: NodeFacts) -> bool:
    said = node.labels.get(MIG_LABEL)
    if said is not None:
        return truth(said) is True
    return any(name.startswith(_MIG_RESOURCE) for name in node.allocatable)


def _new_device(node: NodeFacts) -> Device:
    memory = whole_number(node.labels.get(MEMORY_LABEL, ""), 2**63 - 1)
    if memory is None:
        return Device("", _NO_LABEL_MIB, cores=0)
    # Old releases of the labeller wrote bytes.
    mib = memory if memory < _TIB_IN_MIB else memory // _MIB
    return Device("", min(mib - mib % 100, MOST), cores=0)


def _uses(pod: PodFacts) -> Read[tuple[DeviceUse, ...]]:
    labels, annotations = pod.labels, pod.annotations
    # Pods on one device carry the plain label, those on several the annotation and a label for each.
    if GROUP not in labels and NUM_DEVICES not in annotations:
        return NO_USES
    if any(container.get(GPU, 0) > 0 for container in pod.containers):
        return NO_USES
    groups = dict.fromkeys(
        value for key, value in labels.items() if key == GROUP or key.startswith(_GROUP_PREFIX)
    )
    share, memory = _asked(annotations)
    if share is not None:
        return Read(tuple(DeviceUse(group, 0, memory_ppm=share) for group in groups))
    if memory is not None:
        return Read(tuple(DeviceUse(group, memory) for group in groups))
    if not groups:
        return NO_USES
    problem = (
        f"label {GROUP} puts the pod on {len(groups)} GPUs, but annotations {FRACTION} "
        f"({shown(annotations.get(FRACTION, ''))}) and {GPU_MEMORY} "
        f"({shown(annotations.get(GPU_MEMORY, ''))}) do not say with how much; all of them counts as used"
    )
    return Read(tuple(DeviceUse(group, 0, exclusive=True) for group in groups), (problem,))


def _asked(annotations: Mapping[str, str]) -> tuple[int | None, int | None]:
    share = _ppm(annotations.get(FRACTION, ""))
    memory = whole_number(annotations.get(GPU_MEMORY, ""))
    return share if share and share <= PPM else None, memory or None


def _ppm(text: str) -> int | None:
    """The decimal fraction in millionths, rounded up; None where the text is none."""
    match = _DECIMAL.fullmatch(text)
    if match is None or not any(match.groups()):
        return None
    digits, places = str(match[1]), str(match[2] or "")
    scale: int = 10 ** len(places)
    return -(-int(digits + places) * PPM // scale)


def _claims(ask: PodAsk) -> Read[tuple[DeviceClaim, ...]] | None:
    said = {name: value for name, value in ask.annotations if name in (FRACTION, GPU_MEMORY, NUM_DEVICES)}
    if not said:
        return None
    problem = _refusal(said, ask)
    if problem:
        return Read((), (problem,))
    share, memory = _asked(said)
    count = whole_number(said.get(NUM_DEVICES, "1")) or 0
    return Read((DeviceClaim(count, memory or 0, share or 0),))


def _refusal(said: Mapping[str, str], ask: PodAsk) -> str:
    share = _ppm(said.get(FRACTION, ""))
    if FRACTION not in said and GPU_MEMORY not in said:
        return f"annotation {NUM_DEVICES} needs {FRACTION} or {GPU_MEMORY} beside it"
    if FRACTION in said and GPU_MEMORY in said:
        return f"annotations {FRACTION} and {GPU_MEMORY} are both there; KAI takes one of them"
    if ask.total.get(GPU, 0):
        return f"{GPU} is asked for beside annotation {next(iter(said))}; KAI takes one of them"
    if FRACTION in said and (share is None or not _LEAST_PPM <= share < PPM):
        return f"annotation {FRACTION} is {shown(said[FRACTION])}, expected at least 0.01 and less than 1"
    if GPU_MEMORY in said and not whole_number(said[GPU_MEMORY]):
        return f"annotation {GPU_MEMORY} is {shown(said[GPU_MEMORY])}, expected MiB from 1 to {MOST}"
    if not whole_number(said.get(NUM_DEVICES, "1")):
        return f"annotation {NUM_DEVICES} is {shown(said[NUM_DEVICES])}, expected a number from 1 to {MOST}"
    return ""


KAI = Scheme(
    "kai",
    frozenset(),
    frozenset({GROUP, NUM_DEVICES}),
    devices=_devices,
    uses=_uses,
    claims=_claims,
    opens=GPU,
    new_device=_new_device,
)
"""A node takes part when it has GPUs that are not cut by MIG; whether KAI runs there, nodes do not show."""
