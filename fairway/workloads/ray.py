"""Ray clusters, and the jobs and services that bring their own: one head and groups of workers.

ray.io/v1, KubeRay 1.7. A replica of a worker group is ``numOfHosts`` pods. With in-tree autoscaling a cluster
starts with the least number of workers of each group, else with all that are desired. Mirrors
ray-operator/controllers/ray/utils/util.go and batchscheduler/volcano.
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
    MAX_COUNT,
    NO_META,
    Problems,
    RawCount,
    TemplateFields,
    Unreadable,
    WorkloadMeta,
    decode,
    product,
    read_count,
    template_at,
)
from fairway.workloads.gang import PodSet
from fairway.workloads.outline import Binding, Outline


class _Head(KubeStruct, frozen=True):
    template: TemplateFields | None = None


class _Group(KubeStruct, frozen=True):
    group_name: str = ""
    suspend: bool | None = None
    replicas: RawCount = ABSENT
    min_replicas: RawCount = ABSENT
    max_replicas: RawCount = ABSENT
    num_of_hosts: RawCount = ABSENT
    template: TemplateFields | None = None


class _ClusterSpec(KubeStruct, frozen=True):
    enable_in_tree_autoscaling: bool | None = None
    head_group_spec: _Head | None = None
    worker_group_specs: list[_Group] | None = None


class _Cluster(KubeStruct, frozen=True):
    metadata: WorkloadMeta | None = None
    spec: _ClusterSpec | None = None


class _JobSpec(KubeStruct, frozen=True):
    ray_cluster_spec: _ClusterSpec | None = None
    submission_mode: str = ""
    submitter_pod_template: TemplateFields | None = None


class _Job(KubeStruct, frozen=True):
    metadata: WorkloadMeta | None = None
    spec: _JobSpec | None = None


class _ServiceSpec(KubeStruct, frozen=True):
    ray_cluster_config: _ClusterSpec | None = None


class _Service(KubeStruct, frozen=True):
    metadata: WorkloadMeta | None = None
    spec: _ServiceSpec | None = None


_CLUSTERS = msgspec.json.Decoder(_Cluster)
_JOBS = msgspec.json.Decoder(_Job)
_SERVICES = msgspec.json.Decoder(_Service)
# What KubeRay gives a submitter that has no template of its own.
_SUBMITTER = PodTemplate(
    TemplateMeta(),
    TemplateSpec(
        containers=[
            Container(
                name="ray-job-submitter",
                resources=ResourceRequirements(requests={"cpu": "500m", "memory": "200Mi"}),
            )
        ]
    ),
)


def read_ray_cluster(raw: bytes, problems: Problems) -> Outline:
    """A RayCluster. Raises Unreadable."""
    found = decode(_CLUSTERS, raw)
    meta = found.metadata or NO_META
    pod_sets, fields = _pods(found.spec, "spec", meta.name, problems)
    return Outline(meta, Binding.ALWAYS, pod_sets, fields)


def read_ray_service(raw: bytes, problems: Problems) -> Outline:
    """A RayService: its cluster, once; an upgrade with a second one beside it is not looked at."""
    found = decode(_SERVICES, raw)
    cluster = (found.spec or _ServiceSpec()).ray_cluster_config
    pod_sets, fields = _pods(cluster, "spec.rayClusterConfig", "", problems)
    return Outline(found.metadata or NO_META, Binding.ALWAYS, pod_sets, fields)


def read_ray_job(raw: bytes, problems: Problems) -> Outline:
    """A RayJob with a cluster of its own, and the pod that submits it. Raises Unreadable."""
    found = decode(_JOBS, raw)
    spec = found.spec or _JobSpec()
    if spec.ray_cluster_spec is None:
        raise Unreadable(
            "spec.rayClusterSpec: not stated, so that the job runs on a cluster that is there already; "
            "ask about that RayCluster"
        )
    pod_sets, fields = _pods(spec.ray_cluster_spec, "spec.rayClusterSpec", "", problems)
    if spec.submission_mode in ("", "K8sJobMode"):
        field = "spec.submitterPodTemplate"
        template = _SUBMITTER
        if spec.submitter_pod_template is not None:
            template = template_at(spec.submitter_pod_template, field, {})
        pod_sets, fields = (*pod_sets, PodSet("submitter", 1, 1, template)), (*fields, field)
    return Outline(found.metadata or NO_META, Binding.ALWAYS, pod_sets, fields)


def _pods(
    spec: _ClusterSpec | None, field: str, cluster: str, problems: Problems
) -> tuple[tuple[PodSet, ...], tuple[str, ...]]:
    """The pod sets of a cluster, named as Karmada names its components, and where their templates stand."""
    spec = spec or _ClusterSpec()
    head_field = f"{field}.headGroupSpec.template"
    head_fields = (spec.head_group_spec or _Head()).template
    head = template_at(head_fields, head_field, _labels(cluster, "head", "headgroup"))
    pod_sets = [PodSet("ray-head", 1, 1, head)]
    fields = [head_field]
    for index, group in enumerate(spec.worker_group_specs or ()):
        name = group.group_name or f"worker-{index + 1}"
        where = f"{field}.workerGroupSpecs[{index}]"
        desired, least = _sizes(group, where, problems)
        template = template_at(group.template, f"{where}.template", _labels(cluster, "worker", name))
        minimum = least if spec.enable_in_tree_autoscaling else desired
        pod_sets.append(PodSet(name, desired, minimum, template))
        fields.append(f"{where}.template")
    return tuple(pod_sets), tuple(fields)


def _sizes(group: _Group, field: str, problems: Problems) -> tuple[int, int]:
    """How many pods a group has at first, and at least."""
    least = read_count(group.min_replicas, f"{field}.minReplicas", 0, problems)
    most = read_count(group.max_replicas, f"{field}.maxReplicas", MAX_COUNT, problems)
    replicas = read_count(group.replicas, f"{field}.replicas", 0, problems)
    hosts = read_count(group.num_of_hosts, f"{field}.numOfHosts", 1, problems)
    if group.suspend:
        return 0, 0
    if least > most:
        problems.append(
            f"{field}.minReplicas: {least} is above maxReplicas, {most}; read as {least} replicas"
        )
    desired = least if replicas < least else min(replicas, most)
    return product(field, problems, desired, hosts), product(field, [], min(least, desired), hosts)


def _labels(cluster: str, node_type: str, group: str) -> dict[str, str]:
    return {
        "ray.io/cluster": cluster,
        "ray.io/node-type": node_type,
        "ray.io/group": group,
        "ray.io/is-ray-node": "yes",
    }
