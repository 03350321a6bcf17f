"""A Pod by itself, which may be one of a group.

core/v1. A plain Pod is a workload of one. Kueue's pod groups state their size on every pod, so such a Pod
stands for a group of as many like it; the size of a PodGroup stands elsewhere, and then only the Pod counts.
"""

import msgspec

from fairway.kube.objects import KubeStruct
from fairway.kube.templates import TemplateMeta, TemplateSpec
from fairway.workloads.fields import NO_META, Problems, TemplateFields, WorkloadMeta, decode, template_at
from fairway.workloads.gang import PodSet
from fairway.workloads.kueue import POD_GROUP_SIZE
from fairway.workloads.levels import read_size
from fairway.workloads.outline import Binding, Outline
from fairway.workloads.pod_groups import group_of


class _Pod(KubeStruct, frozen=True):
    metadata: WorkloadMeta | None = None
    spec: TemplateSpec | None = None


_DECODER = msgspec.json.Decoder(_Pod)


def read_pod(raw: bytes, problems: Problems) -> Outline:
    """A Pod. Raises Unreadable."""
    found = decode(_DECODER, raw)
    meta = found.metadata or NO_META
    fields = TemplateFields(TemplateMeta(meta.labels, meta.annotations), found.spec)
    template = template_at(fields, "spec", {})
    count = _group_size(meta, problems)
    pod_set = PodSet("main", count, count, template)
    # The template is the object itself: what its annotations say, they say of the pods.
    return Outline(WorkloadMeta(meta.name, meta.namespace), Binding.WHEN_SAID, (pod_set,), ("",))


def _group_size(meta: WorkloadMeta, problems: Problems) -> int:
    annotations = meta.annotations or {}
    group = group_of(meta.labels or {}, annotations)
    if not group:
        return 1
    text = annotations.get(POD_GROUP_SIZE)
    if text is None:
        problems.append(f"metadata: the size of group {group[:63]} is not stated here; read as 1 pod")
        return 1
    return read_size(text, f"metadata.annotations[{POD_GROUP_SIZE}]", problems) or 1
