"""Pod templates as their authors write them: all that decides where the pods can go.

Unlike `fairway.kube.objects.Pod`, of which a cluster holds a hundred thousand, a template is read rarely and
whole: selectors, affinity, tolerations, spreading. The same rules hold: every field optional, wrong types are
located errors, unknown fields are skipped.
"""

from fairway.kube.objects import Container, KubeStruct, RawResources, ResourceRequirements


class TemplateMeta(KubeStruct, frozen=True):
    labels: dict[str, str] | None = None
    annotations: dict[str, str] | None = None


class TemplateToleration(KubeStruct, frozen=True):
    key: str = ""
    operator: str = ""
    value: str = ""
    effect: str = ""


class SelectorRequirement(KubeStruct, frozen=True):
    key: str = ""
    operator: str = ""
    values: list[str] | None = None


class NodeSelectorTerm(KubeStruct, frozen=True):
    match_expressions: list[SelectorRequirement] | None = None
    match_fields: list[SelectorRequirement] | None = None


class NodeSelector(KubeStruct, frozen=True):
    node_selector_terms: list[NodeSelectorTerm] | None = None


class NodeAffinity(KubeStruct, frozen=True):
    required_during_scheduling_ignored_during_execution: NodeSelector | None = None


class LabelSelector(KubeStruct, frozen=True):
    match_labels: dict[str, str] | None = None
    match_expressions: list[SelectorRequirement] | None = None


class PodAffinityTerm(KubeStruct, frozen=True):
    label_selector: LabelSelector | None = None
    topology_key: str = ""
    match_label_keys: list[str] | None = None


class PodAffinity(KubeStruct, frozen=True):
    required_during_scheduling_ignored_during_execution: list[PodAffinityTerm] | None = None


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


class ContainerPort(KubeStruct, frozen=True):
    container_port: int = 0
    host_port: int = 0
    protocol: str = "TCP"


class PodResourceClaim(KubeStruct, frozen=True):
    name: str = ""
    resource_claim_name: str | None = None
    resource_claim_template_name: str | None = None


class VolumeClaimSpec(KubeStruct, frozen=True):
    access_modes: list[str] | None = None
    selector: LabelSelector | None = None
    resources: ResourceRequirements | None = None
    volume_name: str = ""
    storage_class_name: str | None = None
    volume_mode: str | None = None


class VolumeClaimTemplate(KubeStruct, frozen=True):
    spec: VolumeClaimSpec = VolumeClaimSpec()


class EphemeralVolume(KubeStruct, frozen=True):
    volume_claim_template: VolumeClaimTemplate | None = None


class ClaimVolume(KubeStruct, frozen=True):
    claim_name: str = ""


class Volume(KubeStruct, frozen=True):
    """A volume of a pod, as far as it is a claim on a persistent one."""

    name: str = ""
    persistent_volume_claim: ClaimVolume | None = None
    ephemeral: EphemeralVolume | None = None


class TemplateContainer(Container, frozen=True):
    ports: list[ContainerPort] | None = None


class TemplateSpec(KubeStruct, frozen=True):
    containers: list[TemplateContainer] | None = None
    init_containers: list[TemplateContainer] | None = None
    resources: ResourceRequirements | None = None
    overhead: RawResources | None = None
    node_name: str = ""
    host_network: bool = False
    node_selector: dict[str, str] | None = None
    affinity: Affinity | None = None
    tolerations: list[TemplateToleration] | None = None
    topology_spread_constraints: list[TopologySpreadConstraint] | None = None
    priority_class_name: str = ""
    scheduler_name: str = ""
    resource_claims: list[PodResourceClaim] | None = None
    volumes: list[Volume] | None = None
    runtime_class_name: str | None = None


class PodTemplate(KubeStruct, frozen=True):
    """A core/v1 PodTemplateSpec."""

    metadata: TemplateMeta = TemplateMeta()
    spec: TemplateSpec = TemplateSpec()
