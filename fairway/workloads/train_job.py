"""TrainJob: so many nodes of a training runtime, which is another object.

trainer.kubeflow.org/v1alpha1, Trainer 2.3. The TrainJob itself states how many pods there are and what each
asks for; node selectors, tolerations and further jobs stand in the runtime that it names. So it is read as
far as it goes, with a problem that says what is missing, and not at all where even the requests are not here.
"""

import msgspec

from fairway.kube.objects import (
    Container,
    KubeStruct,
    ResourceRequirements,
)
from fairway.kube.templates import (
    PodTemplate,
    TemplateMeta,
    TemplateSpec,
)
from fairway.workloads.fields import (
    ABSENT,
    NO_META,
    Problems,
    RawCount,
    Unreadable,
    WorkloadMeta,
    decode,
    read_count,
)
from fairway.workloads.gang import PodSet
from fairway.workloads.outline import Binding, Outline


class _RuntimeRef(KubeStruct, frozen=True):
    kind: str = "ClusterTrainingRuntime"
    name: str = ""


class _Trainer(KubeStruct, frozen=True):
    num_nodes: RawCount = ABSENT
    resources_per_node: ResourceRequirements | None = None


class _Spec(KubeStruct, frozen=True):
    runtime_ref: _RuntimeRef | None = None
    trainer: _Trainer | None = None


class _TrainJob(KubeStruct, frozen=True):
    metadata: WorkloadMeta | None = None
    spec: _Spec | None = None


_DECODER = msgspec.json.Decoder(_TrainJob)


def read_train_job(raw: bytes, problems: Problems) -> Outline:
    """A TrainJob. Raises Unreadable, also where what a pod asks for stands in the runtime alone."""
    found = decode(_DECODER, raw)
    meta = found.metadata or NO_META
    spec = found.spec or _Spec()
    trainer = spec.trainer or _Trainer()
    runtime = spec.runtime_ref or _RuntimeRef()
    source = f"{runtime.kind[:63]} {runtime.name[:253]}".strip()
    if trainer.resources_per_node is None:
        raise Unreadable(
            f"spec.trainer.resourcesPerNode: not stated, so that what a pod asks for is only in {source}; "
            "state it, or ask about the JobSet that is made of it"
        )
    problems.append(
        f"spec.runtimeRef: {source} is another object: its selectors, tolerations and jobs are not known"
    )
    count = read_count(trainer.num_nodes, "spec.trainer.numNodes", 1, problems)
    container = Container(name="node", resources=trainer.resources_per_node)
    template = PodTemplate(TemplateMeta(), TemplateSpec(containers=[container]))
    return Outline(meta, Binding.ALWAYS, (PodSet("node", count, count, template),), ("spec.trainer",))
