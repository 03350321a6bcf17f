"""Karmada's protobuf messages to questions and back, for every generation of the contract at once.

Karmada <= 1.17 fills typed fields, 1.18 those and their serialised twins, >= 1.19 the twins alone; the twin
wins where it is present. Nothing here trusts its input: whatever cannot be read is a `WireError` that names
the field and still says, as far as it can be seen, whether the request asks for devices.
"""

from collections.abc import Collection, Iterable
from functools import lru_cache
from typing import TypeVar

from google.protobuf.message import DecodeError, Message

from estimator.capacity.answer import NO_BOUND
from estimator.capacity.claims import RawTerm, node_claim
from estimator.capacity.doubt import NO_OPINION
from estimator.capacity.request import (
    AssumedWorkload,
    Component,
    ReplicasQuestion,
    SetsQuestion,
    UnschedulableQuestion,
    WorkloadReference,
)
from estimator.fit.pod_shape import ANY_NODE, NodeClaim, PodShape
from estimator.pb import estimator_pb2 as pb
from fairway.quantity import QuantityError, milli, parse_nano, units
from fairway.resources import CPU, is_extended, is_scheduled

# Far above what a scheduler can have in flight, and little enough to be worked through in time.
_MAX_ITEMS = 20_000
_M = TypeVar("_M", bound=Message)


class WireError(ValueError):
    """A request cannot be read; ``names_device`` tells whether it visibly asks for devices."""

    def __init__(self, message: str, *, names_device: bool = False) -> None:
        super().__init__(message)
        self.names_device = names_device


def decode_replicas(data: bytes, object_text: str | None) -> ReplicasQuestion:
    """The question in a MaxAvailableReplicasRequest. Raises WireError.

    ``object_text`` is the call's ``object`` metadata; it names the workload, and its namespace where the
    message leaves that out, as Karmada does unless its own quota gate is on.
    """
    message = _parse(pb.MaxAvailableReplicasRequest, data)
    requirements = message.replica_requirements
    workload = parse_object(object_text)
    try:
        shape = _shape(requirements, "replicaRequirements")
        assumed = _assumed(message.assumed_workloads)
    except WireError as error:
        error.names_device = _name_device([requirements])
        raise
    namespace = requirements.namespace or (workload.namespace if workload else "")
    return ReplicasQuestion(message.cluster, shape, namespace, assumed, workload)


def decode_sets(data: bytes, object_text: str | None) -> SetsQuestion:
    """The question in a MaxAvailableComponentSetsRequest. Raises WireError."""
    message = _parse(pb.MaxAvailableComponentSetsRequest, data)
    try:
        components = _components(message.components, "components")
        assumed = _assumed(message.assumed_workloads)
    except WireError as error:
        error.names_device = _name_device(c.replica_requirements for c in message.components)
        raise
    return SetsQuestion(message.cluster, components, message.namespace, assumed, parse_object(object_text))


def decode_unschedulable(data: bytes) -> UnschedulableQuestion:
    """The question in an UnschedulableReplicasRequest. Raises WireError, also where no resource is named."""
    message = _parse(pb.UnschedulableReplicasRequest, data)
    resource = message.resource
    if not resource.kind or not resource.name:
        raise WireError("resource: expected the kind and name of a workload, found none")
    group = resource.api_version.rpartition("/")[0]
    workload = WorkloadReference(resource.kind, resource.namespace, resource.name, group)
    return UnschedulableQuestion(message.cluster, workload, message.unschedulable_threshold / 1e9)


def encode_replicas(value: int) -> bytes:
    """A MaxAvailableReplicasResponse."""
    return pb.MaxAvailableReplicasResponse(max_replicas=_int32(value)).SerializeToString()


def encode_sets(value: int) -> bytes:
    """A MaxAvailableComponentSetsResponse."""
    return pb.MaxAvailableComponentSetsResponse(max_sets=_int32(value)).SerializeToString()


def encode_unschedulable(value: int) -> bytes:
    """An UnschedulableReplicasResponse."""
    return pb.UnschedulableReplicasResponse(unschedulable_replicas=_int32(value)).SerializeToString()


@lru_cache(maxsize=4096)
def parse_object(text: str | None) -> WorkloadReference | None:
    """The workload in ``kind=Deployment, name=default/web``, or None where the text is not of that form."""
    if not text or len(text) > 1024:
        return None
    kind, comma, rest = text.partition(", name=")
    namespace, slash, name = rest.partition("/")
    if not (comma and slash and name and kind.startswith("kind=") and len(kind) > len("kind=")):
        return None
    return WorkloadReference(kind.removeprefix("kind="), namespace, name)


def _int32(value: int) -> int:
    return NO_OPINION if value < 0 else min(value, NO_BOUND)


def _parse(message: type[_M], data: bytes) -> _M:
    try:
        return message.FromString(data)
    except DecodeError:
        raise WireError(
            f"{len(data)} bytes are not a {message.__name__}: expected protobuf as Karmada >= 1.10 sends it"
        ) from None


_Requirements = pb.ReplicaRequirements | pb.ComponentReplicaRequirements


def _name_device(requirements: Iterable[_Requirements]) -> bool:
    names = (name for r in requirements for name in (*r.resource_request_bytes, *r.resource_request))
    return any(map(is_extended, names))


def _assumed(workloads: Collection[pb.AssumedWorkload]) -> tuple[AssumedWorkload, ...]:
    if len(workloads) > _MAX_ITEMS or sum(len(w.components) for w in workloads) > _MAX_ITEMS:
        raise WireError(f"assumedWorkloads: more than {_MAX_ITEMS} workloads or components")
    return tuple(
        AssumedWorkload(w.namespace, _components(w.components, f"assumedWorkloads[{index}].components"))
        for index, w in enumerate(workloads)
        if w.components
    )


def _components(components: Collection[pb.Component], path: str) -> tuple[Component, ...]:
    if len(components) > _MAX_ITEMS:
        raise WireError(f"{path}: {len(components)} components, at most {_MAX_ITEMS} are read")
    return tuple(
        Component(c.name, c.replicas, _shape(c.replica_requirements, f"{path}[{index}].replicaRequirements"))
        for index, c in enumerate(components)
    )


def _shape(requirements: _Requirements, path: str) -> PodShape:
    twins, plain = requirements.resource_request_bytes, requirements.resource_request
    if twins:
        requests = [(name, _twin_amount(name, data, path)) for name, data in twins.items()]
    else:
        requests = [(name, _amount(name, quantity.string, path)) for name, quantity in plain.items()]
    kept = tuple(sorted((name, amount) for name, amount in requests if amount > 0 and is_scheduled(name)))
    claim = _claim(requirements.node_claim, path) if requirements.HasField("node_claim") else ANY_NODE
    return PodShape(kept, claim, requirements.priority_class_name)


def _twin_amount(name: str, data: bytes, path: str) -> int:
    try:
        return _cached_twin(name == CPU, data) if len(data) <= 64 else _read_twin(name == CPU, data)
    except (DecodeError, QuantityError) as error:
        raise WireError(f"{path}.resourceRequestBytes[{name[:63]}]: {error}") from None


def _amount(name: str, text: str, path: str) -> int:
    try:
        return _cached_amount(name == CPU, text) if len(text) <= 64 else _read_amount(name == CPU, text)
    except QuantityError as error:
        raise WireError(f"{path}.resourceRequest[{name[:63]}]: {error}") from None


def _read_amount(is_cpu: bool, text: str) -> int:
    # A Quantity message without its text is Go's zero value.
    nano = parse_nano(text) if text else 0
    return milli(nano) if is_cpu else units(nano)


def _read_twin(is_cpu: bool, data: bytes) -> int:
    return _read_amount(is_cpu, pb.Quantity.FromString(data).string)


_cached_amount = lru_cache(maxsize=16384)(_read_amount)
_cached_twin = lru_cache(maxsize=16384)(_read_twin)


def _claim(claim: pb.NodeClaim, path: str) -> NodeClaim:
    try:
        affinity = (
            pb.NodeSelector.FromString(claim.node_affinity_bytes)
            if claim.node_affinity_bytes
            else claim.node_affinity
            if claim.HasField("node_affinity")
            else None
        )
        tolerations: Iterable[pb.Toleration] = (
            [pb.Toleration.FromString(data) for data in claim.tolerations_bytes]
            if claim.tolerations_bytes
            else claim.tolerations
        )
    except DecodeError as error:
        raise WireError(f"{path}.nodeClaim: {error}") from None
    return node_claim(
        tuple(sorted(claim.node_selector.items())),
        # Karmada >= 1.19 cannot tell an affinity without terms from none, and Kubernetes refuses one.
        tuple(_raw_term(term) for term in affinity.node_selector_terms) if affinity else (),
        tuple((t.key, t.operator, t.value, t.effect) for t in tolerations),
        claim.ByteSize(),
    )


def _raw_term(term: pb.NodeSelectorTerm) -> RawTerm:
    return (
        tuple((r.key, r.operator, tuple(r.values)) for r in term.match_expressions),
        tuple((r.key, r.operator, tuple(r.values)) for r in term.match_fields),
    )
