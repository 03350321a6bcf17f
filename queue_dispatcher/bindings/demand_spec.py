"""What a binding's spec asks for, read so that nothing malformed is taken for little.

A count or quantity that cannot be read makes a problem, and a workload with one is not admitted until it is
corrected; the rest of it is read all the same, for what may run already has to be charged.
"""

from fairway.kube.templates import NodeSelector
from fairway.resources import ResourceError, parse_amounts
from fairway.workloads.fields import MAX_COUNT
from queue_dispatcher.bindings.objects import BindingSpec, ReplicaRequirements, TargetCluster
from queue_dispatcher.workloads.demand import Component, Demand, Placed, requests
from queue_dispatcher.workloads.node_claim import ANY_NODE, node_claim

MAX_COMPONENTS = 256
"""More kinds of pods than this are not one workload; as in the estimator."""
MAX_CLUSTERS = 10_000
"""More clusters than a fleet has."""


def read_demand(spec: BindingSpec, problems: list[str]) -> Demand:
    """The demand of one copy of the workload; what is wrong with it is appended, by field."""
    stated = spec.components or ()
    if not stated:
        replicas = _count(spec.replicas, "spec.replicas", problems)
        return Demand((_component("", replicas, spec.replica_requirements, "spec", problems),))
    if len(stated) > MAX_COMPONENTS:
        problems.append(
            f"spec.components: {len(stated)} components: expected at most {MAX_COMPONENTS}; split it up"
        )
    return Demand(
        tuple(
            _component(
                component.name,
                _count(component.replicas, f"spec.components[{index}].replicas", problems),
                component.replica_requirements,
                f"spec.components[{index}]",
                problems,
            )
            for index, component in enumerate(stated[:MAX_COMPONENTS])
        ),
        is_set=True,
    )


def read_placed(clusters: list[TargetCluster] | None) -> tuple[Placed, ...]:
    """Where the workload is placed. Karmada accepts any numbers here, so a negative one counts as none."""
    return tuple(Placed(target.name, max(0, target.replicas)) for target in (clusters or ())[:MAX_CLUSTERS])


def _component(
    name: str, replicas: int, stated: ReplicaRequirements | None, path: str, problems: list[str]
) -> Component:
    if stated is None:
        return Component(name, replicas)
    try:
        amounts = parse_amounts(stated.resource_request)
    except ResourceError as error:
        problems.append(f"{path}.replicaRequirements.resourceRequest: {error}")
        amounts = {}
    for resource, amount in amounts.items():
        if amount < 0:
            where = f"{path}.replicaRequirements.resourceRequest[{resource[:63]}]"
            problems.append(f"{where}: {amount}: expected no less than 0")
    claim = ANY_NODE
    if stated.node_claim is not None:
        affinity: NodeSelector | None = stated.node_claim.hard_node_affinity
        tolerations = stated.node_claim.tolerations or ()
        claim = node_claim(stated.node_claim.node_selector or {}, affinity, tolerations)
    return Component(name, replicas, requests(amounts.items()), claim, stated.priority_class_name)


def _count(value: int, path: str, problems: list[str]) -> int:
    if 0 <= value <= MAX_COUNT:
        return value
    problems.append(f"{path}: {value}: expected 0 to {MAX_COUNT}")
    return 0 if value < 0 else MAX_COUNT
