"""The story that the demonstration tells: two teams, three clusters, and who gets what when.

The fleet has 40 H100 in two clusters and 16 A100 in a third. Research owns 16 H100 and may borrow; product
owns 24, of which it lends 8. A gang of product's needs two whole nodes of one cluster.
"""

from collections.abc import Iterator

from fairway.names import API_VERSION, QUEUE, SERVICE_CLASS
from sandbox.fakeapi.store import Obj
from sandbox.karmada import Workload
from sandbox.members import Member, NodePool

GPU = "nvidia.com/gpu"
H100_CLUSTERS, A100_CLUSTERS = ("east", "west"), ("north",)
_ROOT = f"/apis/{API_VERSION}"


def members() -> dict[str, Member]:
    """The clusters by name, empty."""
    h100, a100 = "NVIDIA-H100-80GB-HBM3", "NVIDIA-A100-SXM4-80GB"
    pools = {
        "east": NodePool("h100-e", 3, GPU, 8, h100),
        "west": NodePool("h100-w", 2, GPU, 8, h100),
        "north": NodePool("a100-n", 2, GPU, 8, a100),
    }
    return {name: Member(name, (pool,)) for name, pool in pools.items()}


def queue_objects() -> Iterator[tuple[str, Obj]]:
    """Namespaces, flavors, classes and queues, each with the path of its collection."""
    for namespace in ("research", "product"):
        yield "/api/v1/namespaces", {"metadata": {"name": namespace}}
    for name, clusters in (("h100", H100_CLUSTERS), ("a100", A100_CLUSTERS)):
        spec: Obj = {"clusterNames": list(clusters), "capacityPolicy": {"type": "FromClusters"}}
        yield f"{_ROOT}/resourceflavors", _object("ResourceFlavor", name, spec)
    for name, priority in (("batch", 100), ("urgent", 1000)):
        yield f"{_ROOT}/serviceclasses", _object("ServiceClass", name, {"priority": priority})
    yield f"{_ROOT}/clusterqueues", _object("ClusterQueue", "fleet", {})
    quotas = {
        "research": ({"nominalQuota": "16", "borrowingLimit": "8"}, {"nominalQuota": "16"}),
        "product": ({"nominalQuota": "24", "lendingLimit": "8"}, {"nominalQuota": "0"}),
    }
    for team, (h100, a100) in quotas.items():
        flavors = [
            {"name": flavor, "resources": [{"name": GPU, **quota}]}
            for flavor, quota in (("h100", h100), ("a100", a100))
        ]
        group = {"coveredResources": [GPU], "flavors": flavors}
        yield (
            f"{_ROOT}/clusterqueues",
            _object("ClusterQueue", team, {"parent": "fleet", "resourceGroups": [group]}),
        )
        yield (
            f"{_ROOT}/namespaces/{team}/localqueues",
            _object("LocalQueue", "main", {"clusterQueue": team}, namespace=team),
        )


def research_jobs() -> list[Workload]:
    """Five of a whole node each, one after the other; the last is urgent. The first are bound to clusters."""
    where = (("east",), ("west",), ("east",), H100_CLUSTERS)
    jobs = [
        _job("research", f"sweep-{n}", 1, 8, runtime_s=4.5 + 1.5 * n, clusters=clusters)
        for n, clusters in enumerate(where, 1)
    ]
    return [*jobs, _job("research", "hotfix", 1, 8, runtime_s=4.0, service_class="urgent")]


def a100_job() -> Workload:
    """One that asks for the other cluster."""
    return _job("research", "embed", 2, 4, runtime_s=5.0, clusters=A100_CLUSTERS)


def gang() -> Workload:
    """Two whole nodes of one cluster, or nothing."""
    return _job("product", "pretrain", 2, 8, runtime_s=4.0)


def _job(
    team: str,
    name: str,
    pods: int,
    gpus: int,
    *,
    runtime_s: float,
    service_class: str = "batch",
    clusters: tuple[str, ...] = H100_CLUSTERS,
) -> Workload:
    labels = {QUEUE: "main", SERVICE_CLASS: service_class}
    return Workload(team, name, pods, {GPU: str(gpus), "cpu": "8"}, runtime_s, labels, clusters)


def _object(kind: str, name: str, spec: Obj, namespace: str = "") -> Obj:
    metadata: Obj = {"name": name, **({"namespace": namespace} if namespace else {})}
    return {"apiVersion": API_VERSION, "kind": kind, "metadata": metadata, "spec": spec}
