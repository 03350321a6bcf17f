"""Pod templates as their authors write them: all that decides where the pods can go.

Unlike `fairway.kube.objects.Pod`, of which a cluster holds a hundred thousand, a template is read rarely and
whole: selectors, affinity, tolerations, spreading. The same rules hold: every field optional, wrong types are
located errors, unknown fields are skipped.
"""

from fairway.kube.objects import (
    Container,
    KubeStruct,
    LabelSelector,
    PodAffinity,
    RawResources,
    ResourceRequirements,
    SelectorRequirement,
    Volume,
)
from fairway.taints import Toleration


class TemplateMeta(KubeStruct, frozen=True):
    labels: dict[str, str] | None = None
    annotations: dict[str, str] | None = None


class NodeSelectorTerm(KubeStruct, frozen=True):
    match_expressions: list[SelectorRequirement] | None = None
    match_fields: list[SelectorRequirement] | None = None


class NodeSelector(KubeStruct, frozen=True):
    node_selector_terms: list[NodeSelectorTerm] | None = None


class NodeAffinity(KubeStruct, frozen=True):
    required_during_scheduling_ignored_during_execution: NodeSelector | None = None


class Affinity(KubeStruct, frozen=True):
    node_affinity: NodeAffinity | None = None
    pod_affinity: PodAffinity | None = None
    pod_anti_affinity: PodAffinity | None = None


class TopologySpreadConstraint(KubeStruct, frozen=True):
    max_skew: int = 1
    topology_key: str = ""
    when_unsatisfiable: str = "DoNotSchedule"
    label_selector: LabelSelector | None = None
    min_domains: int | None = None
    node_affinity_policy: str | None = None
    node_taints_policy: str | None = None
    match_label_keys: list[str] | None = None


class PodResourceClaim(KubeStruct, frozen=True):
    name: str = ""
    resource_claim_name: str | None = None
    resource_claim_template_name: str | None = None


class SchedulingGate(KubeStruct, frozen=True):
    name: str = ""


class TemplateSpec(KubeStruct, frozen=True):
    containers: list[Container] | None = None
    init_containers: list[Container] | None = None
    resources: ResourceRequirements | None = None
    overhead: RawResources | None = None
    node_name: str = ""
    host_network: bool = False
    node_selector: dict[str, str] | None = None
    affinity: Affinity | None = None
    tolerations: list[Toleration] | None = None
    topology_spread_constraints: list[TopologySpreadConstraint] | None = None
    priority_class_name: str = ""
    scheduling_gates: list[SchedulingGate] | None = None
    resource_claims: list[PodResourceClaim] | None = None
    volumes: list[Volume] | None = None
    runtime_class_name: str | None = None


class PodTemplate(KubeStruct, frozen=True):
    """A core/v1 PodTemplateSpec."""

    metadata: TemplateMeta = TemplateMeta()
    spec: TemplateSpec = TemplateSpec()
