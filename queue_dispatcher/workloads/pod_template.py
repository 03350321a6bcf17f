"""Where the pod templates of a workload stand in its object, and what they say that has to be kept.

Only of kinds whose templates stay as they were created: what is added to those of a Deployment would have to
follow each edit of it, or its pods would lose what their owner says from then on.
"""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Final

import msgspec

from fairway.workloads.gang import Gang
from fairway.workloads.pod_groups import is_coscheduled

FIXED_KINDS: Final = frozenset(
    {
        ("", "Pod"),
        ("batch", "Job"),
        ("batch.volcano.sh", "Job"),
        ("jobset.x-k8s.io", "JobSet"),
        ("kubeflow.org", "JAXJob"),
        ("kubeflow.org", "MPIJob"),
        ("kubeflow.org", "PaddleJob"),
        ("kubeflow.org", "PyTorchJob"),
        ("kubeflow.org", "TFJob"),
        ("kubeflow.org", "XGBoostJob"),
        ("ray.io", "RayJob"),
    }
)
"""API group and kind of workloads whose pod templates nobody changes while they run."""

KAI: Final = "kai-scheduler"
"""How KAI Scheduler is called, which looks at no preferences for nodes (0.17), and takes the priority of a
pod for that of its whole PodGroup."""

NODE_AFFINITY: Final = "nodeAffinity"
PREFERRED: Final = "preferredDuringSchedulingIgnoredDuringExecution"

MAX_AFFINITY_BYTES: Final = 64 << 10
"""A template that says more of its affinity is left alone."""
_DEEPER: Final = 200
"""By so much what is read here may be nested deeper where it is written."""

_STEP: Final = re.compile(r"\.?([^.\[\]]+)|\[([^\[\]]*)\]")
_OBJECT: Final = msgspec.json.Decoder(dict[str, msgspec.Raw])
_LIST: Final = msgspec.json.Decoder(list[msgspec.Raw])
_LABELS: Final = msgspec.json.Decoder(dict[str, str])
_TEXT: Final = msgspec.json.Decoder(str)


@dataclass(frozen=True, slots=True)
class StatedAffinity:
    """An affinity as it stands in a template, each part as JSON, empty where there is none.

    ``on_nodes``: by field, but for the preferences, which are ``preferred``, a term each.
    """

    on_nodes: tuple[tuple[str, bytes], ...] = ()
    preferred: tuple[bytes, ...] = ()
    others: tuple[tuple[str, bytes], ...] = ()

    @property
    def size(self) -> int:
        """About how many bytes of JSON it is."""
        fields = (said for _, said in (*self.on_nodes, *self.others))
        return sum(map(len, (*fields, *self.preferred)))


@dataclass(frozen=True, slots=True)
class PodTemplateFacts:
    """One pod template. ``pod_set``: whose it is. ``pointer``: of its spec, a JSON pointer (RFC 6901).

    ``names_priority``: whether it says how urgent its pods are, or all of their group have to be as urgent.
    ``selector``: its nodeSelector, and ``tolerations``: its tolerations, each as JSON. ``scheduler``: which
    takes its pods, empty for the default.
    """

    pod_set: str
    pointer: str
    affinity: StatedAffinity = StatedAffinity()
    names_priority: bool = False
    selector: tuple[tuple[str, str], ...] = ()
    tolerations: tuple[bytes, ...] = ()
    scheduler: str = ""


def pod_templates(group: str, raw: bytes, gang: Gang) -> tuple[PodTemplateFacts, ...]:
    """Those of the object ``raw``, JSON, that can be guided; none of a kind that is not among `FIXED_KINDS`.

    A template that cannot be found where its kind has it, or understood, is left out.
    """
    if (group, gang.kind) not in FIXED_KINDS:
        return ()
    return tuple(_found(raw, gang))


def _found(raw: bytes, gang: Gang) -> Iterator[PodTemplateFacts]:
    for pod_set in gang.pod_sets:
        steps = [one.group(1) or one.group(2) for one in _STEP.finditer(pod_set.field)]
        path = [*steps, "spec"]
        spec = _at(raw, path)
        if spec is None:
            continue
        pointer = "".join(f"/{step.replace('~', '~0').replace('/', '~1')}" for step in path)
        names_priority = any(_is_said(spec.get(field)) for field in ("priorityClassName", "priority"))
        is_of_one = is_coscheduled(pod_set.template.metadata.labels or {})
        try:
            affinity = _affinity(spec.get("affinity"))
            selector = _LABELS.decode(_or(spec.get("nodeSelector"), b"{}"))
            tolerations = _LIST.decode(_or(spec.get("tolerations"), b"[]"))
            scheduler = _TEXT.decode(_or(spec.get("schedulerName"), b'""'))
        except (msgspec.DecodeError, RecursionError):
            continue
        yield PodTemplateFacts(
            pod_set.name,
            pointer,
            affinity,
            names_priority or is_of_one,
            tuple(sorted(selector.items())),
            tuple(map(bytes, tolerations)),
            scheduler,
        )


def _affinity(raw: msgspec.Raw | None) -> StatedAffinity:
    """What it says. Raises DecodeError or RecursionError where that cannot be understood, or written again
    beside other things.
    """
    if raw is not None:
        if len(bytes(raw)) > MAX_AFFINITY_BYTES:
            raise msgspec.DecodeError("too long")
        msgspec.json.decode(b"[" * _DEEPER + bytes(raw) + b"]" * _DEEPER)
    stated = _OBJECT.decode(_or(raw, b"{}"))
    on_nodes = _OBJECT.decode(_or(stated.pop(NODE_AFFINITY, None), b"{}"))
    terms = _LIST.decode(_or(on_nodes.pop(PREFERRED, None), b"[]"))
    return StatedAffinity(
        tuple((field, bytes(said)) for field, said in sorted(on_nodes.items())),
        tuple(map(bytes, terms)),
        tuple((field, bytes(said)) for field, said in sorted(stated.items())),
    )


def _or(raw: msgspec.Raw | None, empty: bytes) -> bytes:
    """What a field says, or where it says nothing, what that means."""
    return raw if raw is not None and _is_said(raw) else empty


def _at(raw: bytes, path: list[str]) -> Mapping[str, msgspec.Raw] | None:
    """The object at the path; None where there is none."""
    found: bytes = raw
    try:
        for step in path:
            if bytes(found).lstrip()[:1] == b"[":
                items = _LIST.decode(found)
                if not step.isdecimal() or int(step) >= len(items):
                    return None
                found = items[int(step)]
            else:
                fields = _OBJECT.decode(found)
                if step not in fields:
                    return None
                found = fields[step]
        return _OBJECT.decode(found)
    except (msgspec.DecodeError, RecursionError):
        return None


def _is_said(value: msgspec.Raw | None) -> bool:
    return value is not None and bytes(value) not in (b"null", b'""')
