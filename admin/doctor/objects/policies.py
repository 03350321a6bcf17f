"""PropagationPolicies and ClusterPropagationPolicies: what they say, and the bindings that they made.

A policy matters here by what it propagates: workloads that ask for accelerators, workloads whose pods have to
start together in one cluster (gangs), and whatever it puts in a queue itself.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

import msgspec

from admin.doctor.finding import Patch
from admin.doctor.karmada_kinds import PolicyObject, PolicySpec, SpreadBounds
from fairway.names import QUEUE
from queue_dispatcher.bindings.binding import PolicyReference
from queue_dispatcher.bindings.objects import ReplicaScheduling
from queue_dispatcher.bindings.placement_spec import read_placement
from queue_dispatcher.bindings.salvage import salvage
from queue_dispatcher.cache.entry import Entry
from queue_dispatcher.cache.templates import Kind
from queue_dispatcher.workloads.placement import Placement

GANGS: Final = frozenset(
    (
        ("batch.volcano.sh", "Job"),
        ("jobset.x-k8s.io", "JobSet"),
        ("kubeflow.org", "JAXJob"),
        ("kubeflow.org", "MPIJob"),
        ("kubeflow.org", "PaddleJob"),
        ("kubeflow.org", "PyTorchJob"),
        ("kubeflow.org", "TFJob"),
        ("kubeflow.org", "XGBoostJob"),
        ("ray.io", "RayCluster"),
        ("ray.io", "RayJob"),
        ("sparkoperator.k8s.io", "SparkApplication"),
        ("trainer.kubeflow.org", "TrainJob"),
    )
)
"""API group and kind of the workloads that are one set of components, of which Karmada divides nothing."""

_SPECS = msgspec.json.Decoder(PolicySpec)
_NO_SPEC = PolicySpec()


@dataclass(frozen=True, slots=True, eq=False)
class Policy:
    """A policy of either kind; ``namespace`` empty for a ClusterPropagationPolicy.

    ``queue``: the queue that its annotation names, empty for none. ``users``: the bindings that it made.
    ``gangs``: names of the kinds of gangs among what it propagates. ``problems``: what cannot be read.
    """

    namespace: str
    name: str
    spec: PolicySpec
    placement: Placement
    queue: str
    users: Sequence[Entry]
    gangs: frozenset[str]
    problems: tuple[str, ...]

    @property
    def title(self) -> str:
        """How findings call it."""
        if not self.namespace:
            return f"ClusterPropagationPolicy {self.name}"
        return f"PropagationPolicy {self.namespace}/{self.name}"

    @property
    def target(self) -> str:
        """How kubectl calls it."""
        if not self.namespace:
            return f"clusterpropagationpolicy/{self.name}"
        return f"propagationpolicy/{self.name} -n {self.namespace}"

    @property
    def spreads(self) -> Sequence[SpreadBounds]:
        """The spread constraints as stated."""
        return self.spec.placement.spread_constraints or ()

    def patch(self, plane: str, change: Mapping[str, object]) -> Patch:
        """A merge patch of its spec."""
        return Patch(plane, msgspec.json.encode({"spec": change}).decode(), self.target)


def read_policy(stated: PolicyObject, users: Mapping[PolicyReference, Sequence[Entry]]) -> Policy:
    """The policy; never raises. ``users``: bindings by the policy that made them."""
    metadata = stated.metadata
    problems: list[str] = []
    spec = salvage(stated.spec, _SPECS, _NO_SPEC, "spec", problems)
    made = users.get(PolicyReference(metadata.namespace, metadata.name), ())
    selected: list[Kind] = [
        (selector.api_version.rpartition("/")[0], selector.kind) for selector in spec.resource_selectors or ()
    ]
    gangs = {kind for group, kind in selected if (group, kind) in GANGS}
    gangs.update(entry.binding.workload.kind for entry in made if entry.binding.demand.is_set)
    return Policy(
        namespace=metadata.namespace,
        name=metadata.name,
        spec=spec,
        placement=read_placement(spec.placement.as_on_bindings()),
        queue=(metadata.annotations or {}).get(QUEUE, ""),
        users=made,
        gangs=frozenset(gangs),
        problems=tuple(problems),
    )


def is_estimated(scheduling: ReplicaScheduling | None) -> bool:
    """Whether Karmada divides by what the estimators say: Aggregated, or by dynamic weight.

    Mirrors IsReplicaDynamicDivided of Karmada 1.19 (pkg/util/helper/policy.go); what says Divided and nothing
    more becomes Weighted, without weights, in Karmada's own webhook.
    """
    if scheduling is None or scheduling.replica_scheduling_type != "Divided":
        return False
    match scheduling.replica_division_preference:
        case "Aggregated":
            return True
        case "Weighted" | "":
            weights = scheduling.weight_preference
            return weights is not None and weights.dynamic_weight != ""
        case _:
            return False


def division(scheduling: ReplicaScheduling | None) -> str:
    """How replicas are given to clusters, as findings say it."""
    if scheduling is None:
        return "nothing, which Karmada reads as Duplicated"
    if scheduling.replica_scheduling_type != "Divided":
        return scheduling.replica_scheduling_type[:63]
    if is_estimated(scheduling):
        return f"Divided, {scheduling.replica_division_preference or 'Weighted'}"
    if scheduling.weight_preference is None:
        return "Divided without weights, which Karmada reads as equal shares"
    return "Divided by static weights"
