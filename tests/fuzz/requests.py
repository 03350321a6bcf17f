"""Random requests: valid ones of every shape, and those with bytes changed, cut, repeated or made up."""

import random
from collections.abc import Callable

from estimator.pb import estimator_pb2 as pb

RPCS = ("MaxAvailableReplicas", "MaxAvailableComponentSets", "GetUnschedulableReplicas")

_QUANTITIES = (
    "1",
    "500m",
    "0",
    "-1",
    "1.5Gi",
    "1e3",
    "8E",
    "100Ei",
    ".5",
    "+1",
    "1n",
    "",
    "one",
    "1 Gi",
    "9" * 40,
    "1e999",
)
_RESOURCES = (
    "cpu",
    "memory",
    "nvidia.com/gpu",
    "ephemeral-storage",
    "hugepages-2Mi",
    "pods",
    "foo",
    "../../x",
    "a/b",
    "x" * 400,
)
_KEYS = (
    "zone",
    "nvidia.com/gpu.product",
    "kubernetes.io/hostname",
    "",
    "Bad Key",
    "metadata.name",
    "k" * 300,
)
_VALUES = ("z1", "H100", "7", "-3", "", "no/label", "v" * 100, "\u00fc")
_OPERATORS = ("In", "NotIn", "Exists", "DoesNotExist", "Gt", "Lt", "", "Equals", "in")
_EFFECTS = ("NoSchedule", "NoExecute", "PreferNoSchedule", "", "Never")
_REPLICAS = (0, 1, 2, 7, -1, 2**31 - 1, -(2**31), 1000)
_CLUSTERS = ("fuzzed", "fuzzed", "fuzzed", "control", "", "elsewhere", "c" * 5000)


def request(rng: random.Random, rpc: str) -> bytes:
    """A request for the RPC, well-formed half of the time."""
    return spoiled(rng, _WELL_FORMED[rpc](rng).SerializeToString())


def spoiled(rng: random.Random, data: bytes) -> bytes:
    """The data, half of the time cut, made up, partly repeated, or with some bytes changed."""
    match rng.randrange(8):
        case 0:
            return data[: rng.randrange(len(data) + 1)]
        case 1:
            return rng.randbytes(rng.randrange(400))
        case 2:
            return data + data[rng.randrange(len(data) + 1) :]
        case 3:
            changed = bytearray(data)
            for _ in range(rng.randint(1, 8)):
                if changed:
                    changed[rng.randrange(len(changed))] = rng.randrange(256)
            return bytes(changed)
        case _:
            return data


def _replicas(rng: random.Random) -> pb.MaxAvailableReplicasRequest:
    message = pb.MaxAvailableReplicasRequest(cluster=rng.choice(_CLUSTERS))
    wanted = message.replica_requirements
    _fill(rng, wanted)
    wanted.namespace = rng.choice(("", "default", "n" * 300))
    for _ in range(rng.choice((0, 0, 1, 5))):
        _assume(rng, message.assumed_workloads.add())
    return message


def _sets(rng: random.Random) -> pb.MaxAvailableComponentSetsRequest:
    message = pb.MaxAvailableComponentSetsRequest(
        cluster=rng.choice(_CLUSTERS), namespace=rng.choice(("", "default"))
    )
    for _ in range(rng.choice((0, 1, 2, 3, 8, 40))):
        _component(rng, message.components.add())
    for _ in range(rng.choice((0, 0, 1, 5))):
        _assume(rng, message.assumed_workloads.add())
    return message


def _unschedulable(rng: random.Random) -> pb.UnschedulableReplicasRequest:
    message = pb.UnschedulableReplicasRequest(cluster=rng.choice(_CLUSTERS))
    message.unschedulable_threshold = rng.choice((0, -1, 300 * 10**9, 2**63 - 1, -(2**63)))
    resource = message.resource
    resource.kind = rng.choice(("Deployment", "Job", "", "StatefulSet"))
    resource.api_version = rng.choice(("apps/v1", "batch/v1", "", "a/b/c"))
    resource.namespace, resource.name = rng.choice(("default", "")), rng.choice(("web", "", "w" * 5000))
    return message


_WELL_FORMED: dict[
    str,
    Callable[
        [random.Random],
        pb.MaxAvailableReplicasRequest
        | pb.MaxAvailableComponentSetsRequest
        | pb.UnschedulableReplicasRequest,
    ],
] = {
    "MaxAvailableReplicas": _replicas,
    "MaxAvailableComponentSets": _sets,
    "GetUnschedulableReplicas": _unschedulable,
}


def _assume(rng: random.Random, workload: pb.AssumedWorkload) -> None:
    workload.namespace = rng.choice(("", "default"))
    for _ in range(rng.randrange(4)):
        _component(rng, workload.components.add())


def _component(rng: random.Random, component: pb.Component) -> None:
    component.name = rng.choice(("worker", "web", ""))
    component.replicas = rng.choice(_REPLICAS)
    if rng.random() < 0.9:
        _fill(rng, component.replica_requirements)


def _fill(rng: random.Random, wanted: pb.ReplicaRequirements | pb.ComponentReplicaRequirements) -> None:
    for _ in range(rng.randrange(4)):
        name, quantity = rng.choice(_RESOURCES), pb.Quantity(string=rng.choice(_QUANTITIES))
        if rng.random() < 0.3:
            wanted.resource_request[name].CopyFrom(quantity)
        else:
            data = quantity.SerializeToString() if rng.random() < 0.95 else rng.randbytes(9)
            wanted.resource_request_bytes[name] = data
    claim = wanted.node_claim
    for _ in range(rng.randrange(3)):
        claim.node_selector[rng.choice(_KEYS)] = rng.choice(_VALUES)
    if rng.random() < 0.5:
        selector = pb.NodeSelector()
        for _ in range(rng.randrange(3)):
            _term(rng, selector.node_selector_terms.add())
        if rng.random() < 0.3:
            claim.node_affinity.CopyFrom(selector)
        else:
            claim.node_affinity_bytes = selector.SerializeToString()
    for _ in range(rng.randrange(4)):
        toleration = pb.Toleration(
            key=rng.choice(_KEYS),
            operator=rng.choice(("Exists", "Equal", "", "Lt", "?")),
            value=rng.choice(_VALUES),
            effect=rng.choice(_EFFECTS),
        )
        claim.tolerations_bytes.append(
            toleration.SerializeToString() if rng.random() < 0.95 else rng.randbytes(9)
        )


def _term(rng: random.Random, term: pb.NodeSelectorTerm) -> None:
    for requirements in (term.match_expressions, term.match_fields):
        for _ in range(rng.randrange(3)):
            values = [rng.choice(_VALUES) for _ in range(rng.randrange(3))]
            requirements.add(key=rng.choice(_KEYS), operator=rng.choice(_OPERATORS), values=values)
