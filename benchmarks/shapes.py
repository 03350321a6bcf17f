"""What is asked: the requests that karmada-scheduler would send about the cluster of `benchmarks.cluster`.

Both generations of resource fields are filled, as Karmada 1.18 does, so any estimator can be asked.
"""

from collections.abc import Mapping, Sequence
from types import MappingProxyType

from benchmarks.cluster import GENERATION, GPU, KIND, SPOT, TPU, ZONES, PodSize
from estimator.pb import estimator_pb2 as pb

SERVICE = "/github.com.karmada_io.karmada.pkg.estimator.service.Estimator"
REPLICAS = f"{SERVICE}/MaxAvailableReplicas"
SETS = f"{SERVICE}/MaxAvailableComponentSets"

_ZONE = "topology.kubernetes.io/zone"
_Amounts = Mapping[str, str]

_AMOUNTS: Sequence[_Amounts] = (
    {"cpu": "500m", "memory": "512Mi"},
    {"cpu": "2", "memory": "4Gi"},
    {"cpu": "7500m", "memory": "48Gi"},
    {"cpu": "8", "memory": "64Gi", GPU: "1"},
    {"cpu": "24", "memory": "180Gi", GPU: "4"},
    {"cpu": "80", "memory": "100Gi", TPU: "4"},
)


def _claims() -> Sequence[pb.NodeClaim]:
    devices = [_toleration(GPU), _toleration(TPU)]
    zones = _term(_requirement(_ZONE, "In", *ZONES[:2]), _requirement(KIND, "NotIn", "spot"))
    newer = _term(_requirement(GENERATION, "Gt", "3"), _requirement("nvidia.com/gpu.product", "Exists"))
    return (
        pb.NodeClaim(),
        _claim(tolerations=devices),
        _claim(selector={KIND: "a100"}),
        _claim(selector={_ZONE: ZONES[1]}, tolerations=[*devices, _toleration(SPOT)]),
        _claim(affinity=[zones], tolerations=devices),
        _claim(selector={"kubernetes.io/os": "linux"}, affinity=[newer, zones], tolerations=devices),
    )


def replicas_requests(cluster: str) -> list[bytes]:
    """A MaxAvailableReplicas request for each of 36 pod templates: six sizes, six claims on nodes."""
    return [
        pb.MaxAvailableReplicasRequest(
            cluster=cluster,
            replica_requirements=pb.ReplicaRequirements(
                node_claim=claim,
                resource_request=_typed(amounts),
                resource_request_bytes=_bytes(amounts),
                namespace="team-1",
            ),
        ).SerializeToString()
        for amounts in _AMOUNTS
        for claim in _claims()
    ]


def replicas_request(cluster: str, size: PodSize, more: _Amounts = MappingProxyType({})) -> bytes:
    """A MaxAvailableReplicas request for a pod of this size, which tolerates no taint, and more of it."""
    amounts = {"cpu": f"{size.cpu_milli}m", "memory": f"{size.memory_gib}Gi", **more}
    if size.gpus:
        amounts[GPU] = f"{size.gpus}"
    requirements = pb.ReplicaRequirements(
        resource_request=_typed(amounts), resource_request_bytes=_bytes(amounts)
    )
    request = pb.MaxAvailableReplicasRequest(cluster=cluster, replica_requirements=requirements)
    return request.SerializeToString()


def answer_of(reply: bytes) -> int:
    """The number in a reply to either method, whose messages have the same form."""
    return pb.MaxAvailableReplicasResponse.FromString(reply).max_replicas


def sets_request(cluster: str, components: Sequence[tuple[int, _Amounts]]) -> bytes:
    """A MaxAvailableComponentSets request: replicas and amounts of each component, on all device nodes."""
    claim = _claim(tolerations=[_toleration(GPU), _toleration(TPU)])
    return pb.MaxAvailableComponentSetsRequest(
        cluster=cluster,
        namespace="team-1",
        components=[
            pb.Component(
                name=f"part-{number}",
                replicas=replicas,
                replica_requirements=pb.ComponentReplicaRequirements(
                    node_claim=claim, resource_request=_typed(amounts), resource_request_bytes=_bytes(amounts)
                ),
            )
            for number, (replicas, amounts) in enumerate(components)
        ],
    ).SerializeToString()


def _typed(amounts: _Amounts) -> dict[str, pb.Quantity]:
    return {name: pb.Quantity(string=text) for name, text in amounts.items()}


def _bytes(amounts: _Amounts) -> dict[str, bytes]:
    return {name: pb.Quantity(string=text).SerializeToString() for name, text in amounts.items()}


def _claim(
    *,
    selector: Mapping[str, str] | None = None,
    affinity: Sequence[pb.NodeSelectorTerm] = (),
    tolerations: Sequence[pb.Toleration] = (),
) -> pb.NodeClaim:
    terms = pb.NodeSelector(node_selector_terms=affinity) if affinity else None
    return pb.NodeClaim(
        node_selector=selector,
        node_affinity=terms,
        node_affinity_bytes=terms.SerializeToString() if terms else b"",
        tolerations=tolerations,
        tolerations_bytes=[toleration.SerializeToString() for toleration in tolerations],
    )


def _term(*requirements: pb.NodeSelectorRequirement) -> pb.NodeSelectorTerm:
    return pb.NodeSelectorTerm(match_expressions=requirements)


def _requirement(key: str, operator: str, *values: str) -> pb.NodeSelectorRequirement:
    return pb.NodeSelectorRequirement(key=key, operator=operator, values=values)


def _toleration(key: str) -> pb.Toleration:
    return pb.Toleration(key=key, operator="Exists", effect="NoSchedule")
