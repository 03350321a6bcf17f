"""What a workload's own object says about how it is to be queued.

Karmada copies a template's labels to nobody, so the dispatcher reads the template itself: whole, or its
metadata alone, in which case nothing is known of its priority class. Users of Volcano and Kueue need no new
labels: where ours is absent, the queue that they name for those is looked for.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace

import msgspec

from fairway.kube.objects import KubeStruct
from fairway.names import GUIDANCE, QUEUE, SERVICE_CLASS, SKIP, WORKLOAD_GROUP, WORKLOAD_GROUP_SIZE
from fairway.selectors import parse_int64
from fairway.workloads.fields import Unreadable as UnreadableObject
from fairway.workloads.fields import WorkloadMeta, decode, shown
from fairway.workloads.gang import Gang
from fairway.workloads.registry import read_workload
from queue_dispatcher.cycle.reasons import Reason, unreadable
from queue_dispatcher.workloads.elastic import NO_MINIMUM, Minimum, stated_minimum, volcano_minimum
from queue_dispatcher.workloads.gang_minimum import GangMinimum
from queue_dispatcher.workloads.max_runtime import RuntimeLimit, deadline, labelled_limits
from queue_dispatcher.workloads.pausing import Switch, may_pause, switch_of
from queue_dispatcher.workloads.pod_template import PodTemplateFacts
from queue_dispatcher.workloads.reclaimable import completions_of

VOLCANO_QUEUE = "scheduling.volcano.sh/queue-name"
"""Volcano's annotation of pods and what makes them (v1beta1.QueueNameAnnotationKey)."""
KUEUE_QUEUE = "kueue.x-k8s.io/queue-name"
"""Kueue's label of workloads (controller constants.QueueLabel); in its first versions an annotation."""
MAX_GROUP_SIZE = 10_000
_OFF = "off"
_PRIORITY_CLASS = b"riorityClassName"
"""How the fields of all kinds that name a PriorityClass end; an API server escapes no letters."""


@dataclass(frozen=True, slots=True)
class TemplateFacts:
    """What a template says; texts are empty where it says nothing.

    ``queue``: Fairway's own label. ``volcano_queue``, ``kueue_queue``: named for those schedulers.
    ``priority_class``: of the job, else of the first pod template that names one. ``group_size``: 0 without a
    group. ``gang_pods``: of how many pods nothing is done unless all of them have nodes; 0 where they are
    independent, or where that is not known. ``pods``: their templates, as far as they can be guided, of so
    many ``pod_sets``; ``is_guided``: whether they may be. ``minimums``: what the gang schedulers that they
    name have to be told. ``limits``: of its run. ``completions``: as of `completions_of`; ``may_pause``,
    ``switch``: by `may_pause` and `switch_of`. ``minimum``: with how many pods it may start; ``is_near``:
    they are not alike, or have to be near each other. ``problems``: what keeps the workload from being
    admitted until it is corrected, by field; ``notes``: what else is wrong.
    """

    queue: str = ""
    volcano_queue: str = ""
    kueue_queue: str = ""
    service_class: str = ""
    priority_class: str = ""
    group: str = ""
    group_size: int = 0
    gang_pods: int = 0
    pods: tuple[PodTemplateFacts, ...] = ()
    pod_sets: int = 0
    minimums: tuple[GangMinimum, ...] = ()
    is_guided: bool = True
    is_skipped: bool = False
    problems: tuple[str, ...] = ()
    limits: tuple[RuntimeLimit, ...] = ()
    completions: int | None = None
    may_pause: bool = False
    switch: Switch | None = None
    minimum: Minimum = NO_MINIMUM
    is_near: bool = False
    notes: tuple[str, ...] = ()

    @property
    def names_queue(self) -> bool:
        """Whether the template names a queue, for whomever."""
        return bool(self.queue or self.volcano_queue or self.kueue_queue)


NO_FACTS = TemplateFacts()
"""A template that says nothing of queues."""


class _PodSpec(KubeStruct, frozen=True):
    priority_class_name: str | None = None


class _PodMeta(KubeStruct, frozen=True):
    annotations: dict[str, str] | None = None


class _PodTemplate(KubeStruct, frozen=True):
    metadata: _PodMeta | None = None
    spec: _PodSpec | None = None


class _SchedulingPolicy(KubeStruct, frozen=True):
    queue: str | None = None
    priority_class: str | None = None


class _RunPolicy(KubeStruct, frozen=True):
    scheduling_policy: _SchedulingPolicy | None = None


class _Spec(KubeStruct, frozen=True):
    """Where kinds say it of the whole job: Volcano's Job, Kubeflow's jobs, and all with one pod template."""

    queue: str | None = None
    priority_class_name: str | None = None
    run_policy: _RunPolicy | None = None
    template: _PodTemplate | None = None


class _Object(KubeStruct, frozen=True):
    api_version: str = ""
    kind: str = ""
    metadata: WorkloadMeta | None = None
    spec: msgspec.Raw = msgspec.Raw(b"null")


_OBJECTS = msgspec.json.Decoder(_Object)
_SPECS = msgspec.json.Decoder(_Spec | None)


def read_template(raw_json: bytes) -> TemplateFacts | Reason:
    """The facts of a template: the whole object, or its metadata alone; never raises.

    `Unreadable` where the metadata is of the wrong shape: then nobody can say which queue was meant.
    """
    try:
        stated = decode(_OBJECTS, raw_json)
    except UnreadableObject as error:
        return unreadable(f"the workload's template: {error}")
    metadata = stated.metadata or WorkloadMeta()
    facts = read_metadata(metadata.labels or {}, metadata.annotations or {})
    group = stated.api_version.rpartition("/")[0]
    ends = deadline(group, stated.kind, stated.spec)
    if ends is not None:
        facts = replace(facts, limits=(*facts.limits, ends))
    facts = replace(
        facts,
        completions=completions_of(group, stated.kind, stated.spec),
        may_pause=may_pause(group, stated.kind, stated.spec),
        switch=switch_of(group, stated.kind, stated.spec),
    )
    if not facts.minimum.pods:
        facts = replace(facts, minimum=volcano_minimum(group, stated.kind, stated.spec))
    try:
        spec = decode(_SPECS, stated.spec)
    except UnreadableObject:
        return facts  # not of a kind that says it there
    if spec is None:
        return facts
    pods = spec.template or _PodTemplate()
    policy = (spec.run_policy and spec.run_policy.scheduling_policy) or _SchedulingPolicy()
    on_pods = ((pods.metadata and pods.metadata.annotations) or {}).get(VOLCANO_QUEUE, "")
    named = spec.priority_class_name or policy.priority_class or (pods.spec and pods.spec.priority_class_name)
    return replace(
        facts,
        volcano_queue=facts.volcano_queue or on_pods or spec.queue or policy.queue or "",
        priority_class=named or _priority_class_of_pods(raw_json),
    )


def read_metadata(labels: Mapping[str, str], annotations: Mapping[str, str]) -> TemplateFacts:
    """The facts in a template's metadata; a label wins over an annotation of the same name."""
    both = {**annotations, **labels}
    group, size_text = both.get(WORKLOAD_GROUP, ""), both.get(WORKLOAD_GROUP_SIZE, "")
    size = parse_int64(size_text) if group else 0
    problems: tuple[str, ...] = ()
    if size is None or (group and not 1 <= size <= MAX_GROUP_SIZE):
        problems = (
            f"metadata.labels[{WORKLOAD_GROUP_SIZE}]: {shown(size_text)}: expected how many workloads "
            f"{WORKLOAD_GROUP} {shown(group)} has, 1 to {MAX_GROUP_SIZE}",
        )
        size = 0
    stated = labelled_limits(labels, annotations)
    minimum = stated_minimum(labels, annotations)
    return TemplateFacts(
        queue=both.get(QUEUE, ""),
        volcano_queue=annotations.get(VOLCANO_QUEUE, ""),
        kueue_queue=both.get(KUEUE_QUEUE, ""),
        service_class=both.get(SERVICE_CLASS, ""),
        group=group,
        group_size=size,
        is_guided=both.get(GUIDANCE) != _OFF,
        is_skipped=SKIP in both,
        problems=problems,
        limits=stated.limits,
        minimum=minimum,
        notes=(*stated.notes, *minimum.notes),
    )


def _priority_class_of_pods(raw_json: bytes) -> str:
    # Finding the pod templates of a kind costs ten times what looking for the word does; few name a class.
    if _PRIORITY_CLASS not in raw_json:
        return ""
    gang = read_workload(raw_json)
    if not isinstance(gang, Gang):
        return ""
    names = (pod_set.template.spec.priority_class_name for pod_set in gang.pod_sets)
    return next((name for name in names if name), "")
