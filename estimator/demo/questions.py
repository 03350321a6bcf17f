"""What karmada-scheduler and karmada-descheduler would ask about the sample clusters, as they put it.

Requests are those of Karmada 1.19: Kubernetes types travel as bytes inside them.
"""

from collections.abc import Iterable, Mapping
from copy import deepcopy
from dataclasses import dataclass

from estimator.demo.fleet import GPU, GPU_TOLERATION, MIG_3G, TPU, TPU_TOLERATION
from estimator.demo.objects import Json
from estimator.pb import estimator_pb2 as pb

Request = (
    pb.MaxAvailableReplicasRequest | pb.MaxAvailableComponentSetsRequest | pb.UnschedulableReplicasRequest
)

_H100 = {"nvidia.com/gpu.product": "NVIDIA-H100-80GB-HBM3"}
_V5E_4X4 = {
    "cloud.google.com/gke-tpu-accelerator": "tpu-v5-lite-podslice",
    "cloud.google.com/gke-tpu-topology": "4x4",
}
_FIVE_MINUTES_NS = 300 * 10**9


@dataclass(frozen=True, slots=True)
class Question:
    """One question, put to every cluster. ``workload`` is the call's ``object`` metadata."""

    title: str
    request: Request
    workload: str

    @property
    def rpc(self) -> str:
        """The method that takes it."""
        match self.request:
            case pb.MaxAvailableReplicasRequest():
                return "MaxAvailableReplicas"
            case pb.MaxAvailableComponentSetsRequest():
                return "MaxAvailableComponentSets"
            case _:
                return "GetUnschedulableReplicas"

    def about(self, cluster: str) -> Request:
        """The request as it goes to the estimator of this cluster."""
        request = deepcopy(self.request)
        request.cluster = cluster
        return request


def questions() -> list[Question]:
    """Everything the demonstration asks, in order."""
    one_gpu = {"cpu": "8", "memory": "64Gi", GPU: "1"}
    whole_node = {"cpu": "64", "memory": "512Gi", GPU: "8"}
    tpu_host = {"cpu": "100", "memory": "160Gi", TPU: "4"}
    return [
        _replicas("1 GPU, 8 CPUs, 64Gi", "Deployment", one_gpu),
        _replicas("the same in the namespace research", "Deployment", one_gpu, namespace="research"),
        _replicas("8 H100", "Deployment", whole_node, selector=_H100),
        _replicas("16 GPUs", "Deployment", {**whole_node, GPU: "16"}, (GPU_TOLERATION,)),
        _replicas("1 MIG slice 3g.40gb", "Deployment", {"cpu": "2", "memory": "16Gi", MIG_3G: "1"}),
        _replicas("4 TPU chips of a v5e 4x4 slice", "Job", tpu_host, (TPU_TOLERATION,), _V5E_4X4),
        _replicas("4 CPUs, 16Gi, no device", "Deployment", {"cpu": "4", "memory": "16Gi"}),
        _sets(
            "a launcher, and 2 workers with 8 H100 each",
            "MPIJob",
            _component("launcher", 1, {"cpu": "2", "memory": "8Gi"}),
            _component("worker", 2, whole_node, (GPU_TOLERATION,), _H100),
        ),
        _sets(
            "a 2-GPU and a 4-GPU pod (first-fit, in this order, would find no room on alpha)",
            "PyTorchJob",
            _component("master", 1, {"cpu": "8", GPU: "2"}),
            _component("worker", 1, {"cpu": "16", GPU: "4"}),
        ),
        _unschedulable("apps/v1", "Deployment", "serving", "llm-gateway"),
        _unschedulable("batch/v1", "Job", "training", "pretrain"),
    ]


def _replicas(
    title: str,
    kind: str,
    requests: Mapping[str, str],
    tolerations: Iterable[Json] = (),
    selector: Mapping[str, str] | None = None,
    *,
    namespace: str = "",
) -> Question:
    request = pb.MaxAvailableReplicasRequest()
    requirements = request.replica_requirements
    _fill(requirements, requests, tolerations, selector)
    requirements.namespace = namespace
    return Question(title, request, f"kind={kind}, name={namespace or 'demo'}/asked")


def _sets(title: str, kind: str, *components: pb.Component) -> Question:
    request = pb.MaxAvailableComponentSetsRequest(components=components, namespace="demo")
    return Question(title, request, f"kind={kind}, name=demo/asked")


def _component(
    name: str,
    replicas: int,
    requests: Mapping[str, str],
    tolerations: Iterable[Json] = (),
    selector: Mapping[str, str] | None = None,
) -> pb.Component:
    component = pb.Component(name=name, replicas=replicas)
    _fill(component.replica_requirements, requests, tolerations, selector)
    return component


def _unschedulable(api_version: str, kind: str, namespace: str, name: str) -> Question:
    resource = pb.ObjectReference(api_version=api_version, kind=kind, namespace=namespace, name=name)
    request = pb.UnschedulableReplicasRequest(resource=resource, unschedulable_threshold=_FIVE_MINUTES_NS)
    return Question(f"{kind} {namespace}/{name}", request, f"kind={kind}, name={namespace}/{name}")


def _fill(
    requirements: pb.ReplicaRequirements | pb.ComponentReplicaRequirements,
    requests: Mapping[str, str],
    tolerations: Iterable[Json],
    selector: Mapping[str, str] | None,
) -> None:
    for resource, amount in requests.items():
        requirements.resource_request_bytes[resource] = pb.Quantity(string=amount).SerializeToString()
    claim = requirements.node_claim
    claim.node_selector.update(selector or {})
    for toleration in tolerations:
        key, operator, effect = (str(toleration[field]) for field in ("key", "operator", "effect"))
        message = pb.Toleration(key=key, operator=operator, effect=effect)
        claim.tolerations_bytes.append(message.SerializeToString())
