"""Ray clusters, and the jobs and services that bring their own: one head and groups of workers.

ray.io/v1, KubeRay 1.7. A replica of a worker group is ``numOfHosts`` pods. With in-tree autoscaling a cluster
starts with the least number of workers of each group, else with all that are desired. Mirrors
ray-operator/controllers/ray/utils/util.go and batchscheduler/volcano.
"""

from fairway.kube.objects import Container, KubeStruct, ResourceRequirements
from fairway.kube.templates import PodTemplate, TemplateMeta, TemplateSpec
from fairway.workloads.fields import ABSENT, MAX_COUNT, RawCount, TemplateFields, Unreadable, product
from fairway.workloads.outline import Outline


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


class RayClusterFields(KubeStruct, frozen=True):
    """What Fairway looks at in a RayClusterSpec."""

    enable_in_tree_autoscaling: bool | None = None
    head_group_spec: _Head | None = None
    worker_group_specs: list[_Group] | None = None


class RayJobFields(KubeStruct, frozen=True):
    """What Fairway looks at in a RayJobSpec."""

    ray_cluster_spec: RayClusterFields | None = None
    submission_mode: str = ""
    submitter_pod_template: TemplateFields | None = None


class RayServiceFields(KubeStruct, frozen=True):
    """What Fairway looks at in a RayServiceSpec."""

    ray_cluster_config: RayClusterFields | None = None


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


def read_ray_cluster(of: Outline, spec: RayClusterFields) -> None:
    """A RayCluster. Raises Unreadable."""
    _add_cluster(of, spec, "spec", of.meta.name)


def read_ray_service(of: Outline, spec: RayServiceFields) -> None:
    """A RayService: its cluster, once; an upgrade with a second one beside it is not looked at."""
    _add_cluster(of, spec.ray_cluster_config or RayClusterFields(), "spec.rayClusterConfig", "")


def read_ray_job(of: Outline, spec: RayJobFields) -> None:
    """A RayJob with a cluster of its own, and the pod that submits it. Raises Unreadable."""
    if spec.ray_cluster_spec is None:
        raise Unreadable(
            "spec.rayClusterSpec: not stated, so that the job runs on a cluster that is there already; "
            "ask about that RayCluster"
        )
    _add_cluster(of, spec.ray_cluster_spec, "spec.rayClusterSpec", "")
    if spec.submission_mode in ("", "K8sJobMode"):
        at, own = "spec.submitterPodTemplate", spec.submitter_pod_template
        of.add("submitter", 1, _SUBMITTER if own is None else of.template(own, at), at)


def _add_cluster(of: Outline, spec: RayClusterFields, field: str, cluster: str) -> None:
    """The pod sets of a cluster, named as Karmada names its components."""
    at = f"{field}.headGroupSpec.template"
    head = (spec.head_group_spec or _Head()).template
    of.add("ray-head", 1, of.template(head, at, _labels(cluster, "head", "headgroup")), at)
    for index, group in enumerate(spec.worker_group_specs or ()):
        name = group.group_name or f"worker-{index + 1}"
        where = f"{field}.workerGroupSpecs[{index}]"
        desired, least = _sizes(of, group, where)
        template = of.template(group.template, f"{where}.template", _labels(cluster, "worker", name))
        minimum = least if spec.enable_in_tree_autoscaling else desired
        of.add(name, desired, template, f"{where}.template", minimum=minimum)


def _sizes(of: Outline, group: _Group, field: str) -> tuple[int, int]:
    """How many pods a group has at first, and at least."""
    least = of.count(group.min_replicas, f"{field}.minReplicas", 0)
    most = of.count(group.max_replicas, f"{field}.maxReplicas", MAX_COUNT)
    replicas = of.count(group.replicas, f"{field}.replicas", 0)
    hosts = of.count(group.num_of_hosts, f"{field}.numOfHosts", 1)
    if group.suspend:
        return 0, 0
    if least > most:
        of.problems.append(
            f"{field}.minReplicas: {least} is above maxReplicas, {most}; read as {least} replicas"
        )
    desired = least if replicas < least else min(replicas, most)
    return product(field, of.problems, desired, hosts), product(field, [], min(least, desired), hosts)


def _labels(cluster: str, node_type: str, group: str) -> dict[str, str]:
    return {
        "ray.io/cluster": cluster,
        "ray.io/node-type": node_type,
        "ray.io/group": group,
        "ray.io/is-ray-node": "yes",
    }
