"""TPU slices that a pod template asks to be cut out of a larger TPU pool.

``cloud.google.com/gke-tpu-slice-topology: 2x4`` on the pods says that as many of them as make up 2x4 chips
form one slice, and nodes carry a label per shape whose value is the same for all nodes of one such partition.
So the pods come in runs, and each run has one value of that label. Shapes larger than the largest partition
of tpu7x, a cube of 4x4x4, are made of whole cubes.
"""

from math import prod

from fairway.kube.templates import PodTemplate
from fairway.resources import ResourceError, pod_template_request
from fairway.selectors import parse_int64
from fairway.workloads.fields import Problems, shown
from fairway.workloads.gang import TopologyMode, TopologyRequest

SLICE_TOPOLOGY = "cloud.google.com/gke-tpu-slice-topology"
ACCELERATOR = "cloud.google.com/gke-tpu-accelerator"
CHIPS = "google.com/tpu"

_CUBE = (4, 4, 4)
_MAX_DIMENSION = 1024


def tpu_slices(template: PodTemplate, field: str, problems: Problems) -> TopologyRequest | None:
    """The runs of pods that form a TPU slice each; None where the annotations, at ``field``, ask for none."""
    text = (template.metadata.annotations or {}).get(SLICE_TOPOLOGY)
    if text is None:
        return None
    field = f"{field}[{SLICE_TOPOLOGY}]"
    shape = _dimensions(text)
    if shape is None:
        problems.append(f"{field}: {shown(text)} is no TPU topology: expected 2x4 or 2x2x4; ignored")
        return None
    try:
        chips = pod_template_request(template.spec).get(CHIPS, 0)
    except ResourceError as error:
        problems.append(f"{field}: the chips of a pod are not known ({error}); ignored")
        return None
    accelerator = (template.spec.node_selector or {}).get(ACCELERATOR, "")
    partitioned = accelerator == "tpu7x" or (not accelerator and len(shape) == 3)
    if partitioned and any(have > most for have, most in zip(shape, _CUBE, strict=False)):
        problems.append(f"{field}: {text} is read as cubes of 4x4x4; that they are joined is not checked")
        shape = _CUBE
    if chips < 1 or prod(shape) % chips:
        problems.append(
            f"{field}: pods of {chips} {CHIPS} do not make up {text}; expected a number that divides "
            f"{prod(shape)}; ignored"
        )
        return None
    pods = prod(shape) // chips
    if pods == 1:
        return None  # a slice within one node, which the node's own chips decide
    name = "x".join(str(dimension) for dimension in shape)
    kind = "partition" if partitioned else "slice"
    return TopologyRequest(TopologyMode.SLICED, f"cloud.google.com/gke-tpu-{kind}-{name}-id", pods)


def _dimensions(text: str) -> tuple[int, ...] | None:
    parts = [parse_int64(part) for part in text.split("x")] if len(text) <= 32 else []
    if len(parts) not in (2, 3):
        return None
    numbers = tuple(part for part in parts if part is not None and 1 <= part <= _MAX_DIMENSION)
    return numbers if len(numbers) == len(parts) else None
