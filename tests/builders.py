"""Builders, so that tests read as tables of clusters and questions.

Objects come into being through JSON and questions through the wire, exactly as in production, so no test can
state what a real cluster or scheduler could not. Each builder is a value: every method returns a new one.

    node("a").gpus(8).cpu("96").taint("nvidia.com/gpu:NoSchedule")
    pod("x").on("a").requests(cpu="1", gpu=2).sidecar(cpu="100m")
    shape(cpu="1", gpu=2, tolerations=["nvidia.com/gpu:NoSchedule"])
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace

import msgspec

from estimator.capacity.answer import Answer
from estimator.capacity.assumed import hold, outstanding
from estimator.capacity.replicas import max_replicas
from estimator.capacity.request import (
    AssumedWorkload,
    Component,
    WorkloadReference,
)
from estimator.capacity.room import Room
from estimator.capacity.sets.component_sets import Sets, max_sets
from estimator.cluster.mirror import ClusterMirror
from estimator.fit.eligibility import EligibilityCache
from estimator.fit.pod_shape import PodShape
from estimator.pb import estimator_pb2 as pb
from estimator.wire import decode_sets
from fairway.kube.node_devices import NodeDevices
from fairway.kube.objects import Deployment, Node, Pod, ReplicaSet, ResourceQuota, object_key
from fairway.resources import Amounts
from tests.estimator.agents import AgentBuilder

Quantity = str | int | float | None
Quantities = dict[str, Quantity]

_SHORT_NAMES = {"gpu": "nvidia.com/gpu", "storage": "ephemeral-storage"}


def quantities(more: Mapping[str, Quantity] | None = None, /, **named: Quantity) -> Quantities:
    """A resource list: ``gpu`` and ``storage`` for short, names that are no identifiers in a mapping."""
    return {**(more or {}), **{_SHORT_NAMES.get(name, name): value for name, value in named.items()}}


def taint_fields(text: str) -> dict[str, str]:
    """``key:Effect`` or ``key=value:Effect`` as fields of a taint."""
    key_value, _, effect = text.rpartition(":")
    key, _, value = key_value.partition("=")
    return {"key": key, "value": value, "effect": effect}


# --- objects ---------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class NodeBuilder:
    """A node; without ``pods`` it has room for 110."""

    name: str
    allocatable: Quantities = field(default_factory=lambda: {"pods": 110})
    labels: dict[str, str] = field(default_factory=dict)
    taints: tuple[dict[str, str], ...] = ()
    unschedulable: bool = False
    capacity: Quantities | None = None
    annotations: dict[str, str] = field(default_factory=dict)
    boot_id: str = ""

    def has(self, more: Mapping[str, Quantity] | None = None, /, **named: Quantity) -> NodeBuilder:
        return replace(self, allocatable={**self.allocatable, **quantities(more, **named)})

    def cpu(self, quantity: Quantity) -> NodeBuilder:
        return self.has(cpu=quantity)

    def memory(self, quantity: Quantity) -> NodeBuilder:
        return self.has(memory=quantity)

    def gpus(self, count: int) -> NodeBuilder:
        return self.has(gpu=count)

    def pods(self, count: Quantity) -> NodeBuilder:
        return self.has(pods=count)

    def label(self, more: Mapping[str, str] | None = None, /, **named: str) -> NodeBuilder:
        return replace(self, labels={**self.labels, **(more or {}), **named})

    def taint(self, text: str) -> NodeBuilder:
        return replace(self, taints=(*self.taints, taint_fields(text)))

    def cordoned(self) -> NodeBuilder:
        return replace(self, unschedulable=True)

    def capacity_of(self, more: Mapping[str, Quantity] | None = None, /, **named: Quantity) -> NodeBuilder:
        """What the node has, healthy or not."""
        return replace(self, capacity=quantities(more, **named))

    def booted(self, boot_id: str) -> NodeBuilder:
        """It runs since this boot."""
        return replace(self, boot_id=boot_id)

    def annotated(self, more: Mapping[str, str]) -> NodeBuilder:
        return replace(self, annotations={**self.annotations, **more})

    def object(self) -> dict[str, object]:
        return {
            "metadata": {
                "name": self.name,
                "labels": self.labels or None,
                "annotations": self.annotations or None,
            },
            "spec": {"unschedulable": self.unschedulable, "taints": list(self.taints) or None},
            "status": {
                "allocatable": self.allocatable,
                "capacity": self.capacity,
                "nodeInfo": {"bootID": self.boot_id},
            },
        }

    def build(self) -> Node:
        return msgspec.convert(self.object(), Node)


@dataclass(frozen=True)
class _Container:
    init: bool = False
    sidecar: bool = False
    requests: Quantities | None = None
    limits: Quantities | None = None
    has: Quantities | None = None
    granted: Quantities | None = None
    ports: tuple[dict[str, object], ...] = ()

    def spec(self, name: str) -> dict[str, object]:
        return {
            "name": name,
            "restartPolicy": "Always" if self.sidecar else None,
            "resources": {"requests": self.requests, "limits": self.limits},
            "ports": list(self.ports) or None,
        }

    def status(self, name: str) -> dict[str, object]:
        resources = None if self.has is None else {"requests": self.has}
        return {"name": name, "resources": resources, "allocatedResources": self.granted}


@dataclass(frozen=True)
class PodBuilder:
    """A pod, by default running and bound to no node."""

    name: str
    namespace: str = "default"
    spec: dict[str, object] = field(default_factory=dict)
    status: dict[str, object] = field(default_factory=lambda: {"phase": "Running"})
    metadata: dict[str, object] = field(default_factory=dict)
    containers: tuple[_Container, ...] = ()
    conditions: tuple[dict[str, object], ...] = ()

    def _spec(self, **fields: object) -> PodBuilder:
        return replace(self, spec={**self.spec, **fields})

    def _status(self, **fields: object) -> PodBuilder:
        return replace(self, status={**self.status, **fields})

    def _metadata(self, **fields: object) -> PodBuilder:
        return replace(self, metadata={**self.metadata, **fields})

    def _container(self, container: _Container) -> PodBuilder:
        return replace(self, containers=(*self.containers, container))

    def _last(self, change: Callable[[_Container], _Container]) -> PodBuilder:
        return replace(self, containers=(*self.containers[:-1], change(self.containers[-1])))

    def named(self, name: str) -> PodBuilder:
        return replace(self, name=name)

    def of(self, namespace: str) -> PodBuilder:
        return replace(self, namespace=namespace)

    def uid(self, uid: str) -> PodBuilder:
        return self._metadata(uid=uid)

    def on(self, node_name: str) -> PodBuilder:
        return self._spec(nodeName=node_name)

    def nominated(self, node_name: str) -> PodBuilder:
        return self.phase("Pending")._status(nominatedNodeName=node_name)

    def phase(self, phase: str) -> PodBuilder:
        return self._status(phase=phase)

    def ready(self, since: str) -> PodBuilder:
        return self._status(conditions=[{"type": "Ready", "status": "True", "lastTransitionTime": since}])

    def terminating(self, until: str = "2026-01-01T00:00:00Z") -> PodBuilder:
        """Being deleted: it has to be gone by then."""
        return self._metadata(deletionTimestamp=until)

    def requests(self, more: Mapping[str, Quantity] | None = None, /, **named: Quantity) -> PodBuilder:
        """One more regular container."""
        return self._container(_Container(requests=quantities(more, **named)))

    def init(self, more: Mapping[str, Quantity] | None = None, /, **named: Quantity) -> PodBuilder:
        """One more init container that ends."""
        return self._container(_Container(init=True, requests=quantities(more, **named)))

    def sidecar(self, more: Mapping[str, Quantity] | None = None, /, **named: Quantity) -> PodBuilder:
        """One more init container that keeps running."""
        return self._container(_Container(init=True, sidecar=True, requests=quantities(more, **named)))

    def limits(self, more: Mapping[str, Quantity] | None = None, /, **named: Quantity) -> PodBuilder:
        """The limits of the last container."""
        return self._last(lambda container: replace(container, limits=quantities(more, **named)))

    def running_with(self, more: Mapping[str, Quantity] | None = None, /, **named: Quantity) -> PodBuilder:
        """What the last container's status says it has."""
        return self._last(lambda container: replace(container, has=quantities(more, **named)))

    def granted(self, more: Mapping[str, Quantity] | None = None, /, **named: Quantity) -> PodBuilder:
        """What the last container's status says the kubelet has set aside."""
        return self._last(lambda container: replace(container, granted=quantities(more, **named)))

    def port(self, host: int, protocol: str = "TCP", address: str = "", container: int = 0) -> PodBuilder:
        """A port of the last container: one of the node's where ``host`` is not 0."""
        port = {
            "hostPort": host,
            "containerPort": container or host,
            "protocol": protocol,
            "hostIP": address,
        }
        return self._last(lambda last: replace(last, ports=(*last.ports, port)))

    def host_network(self) -> PodBuilder:
        return self._spec(hostNetwork=True)

    def volume(self, claim: str) -> PodBuilder:
        """One more volume, on a PersistentVolumeClaim."""
        given = self.spec.get("volumes")
        given = given if isinstance(given, list) else []
        return self._spec(volumes=[*given, {"name": claim, "persistentVolumeClaim": {"claimName": claim}}])

    def apart(self, key: str, selector: object, **fields: object) -> PodBuilder:
        """One more required term of anti-affinity; ``selector`` as `selecting` makes it, None for none."""
        return self._term("podAntiAffinity", {"topologyKey": key, "labelSelector": selector, **fields})

    def near(self, key: str, selector: object, **fields: object) -> PodBuilder:
        """One more required term of affinity."""
        return self._term("podAffinity", {"topologyKey": key, "labelSelector": selector, **fields})

    def _term(self, kind: str, term: dict[str, object]) -> PodBuilder:
        affinity = self.spec.get("affinity")
        affinity = affinity if isinstance(affinity, dict) else {}
        required = "requiredDuringSchedulingIgnoredDuringExecution"
        terms = affinity.get(kind, {}).get(required, [])
        return self._spec(affinity={**affinity, kind: {required: [*terms, term]}})

    def spread(self, key: str, selector: object, skew: int = 1, **fields: object) -> PodBuilder:
        """One more topology spread constraint that does not give way."""
        given = self.spec.get("topologySpreadConstraints")
        given = given if isinstance(given, list) else []
        one = {"topologyKey": key, "labelSelector": selector, "maxSkew": skew}
        one |= {"whenUnsatisfiable": "DoNotSchedule", **fields}
        return self._spec(topologySpreadConstraints=[*given, one])

    def tolerates(self, text: str) -> PodBuilder:
        """``key:Effect``, whatever the value."""
        key, _, effect = text.partition(":")
        given = self.spec.get("tolerations")
        given = given if isinstance(given, list) else []
        return self._spec(tolerations=[*given, {"key": key, "operator": "Exists", "effect": effect}])

    def selects(self, **labels: str) -> PodBuilder:
        """Only nodes with these labels."""
        return self._spec(nodeSelector=labels)

    def overhead(self, more: Mapping[str, Quantity] | None = None, /, **named: Quantity) -> PodBuilder:
        return self._spec(overhead=quantities(more, **named))

    def pod_level(
        self,
        requests: Mapping[str, Quantity] | None = None,
        limits: Mapping[str, Quantity] | None = None,
        **named: Quantity,
    ) -> PodBuilder:
        given = quantities(requests, **named)
        return self._spec(resources={"requests": given or None, "limits": limits})

    def pod_running_with(
        self, has: Mapping[str, Quantity], granted: Mapping[str, Quantity] | None = None
    ) -> PodBuilder:
        """What the pod's own status says it has, and what is set aside."""
        return self._status(resources={"requests": has}, allocatedResources=granted)

    def condition(self, type: str, status: str, reason: str, since: str | None = None) -> PodBuilder:
        stated: dict[str, object] = {"type": type, "status": status, "reason": reason}
        return replace(self, conditions=(*self.conditions, {**stated, "lastTransitionTime": since}))

    def resize_pending(self, reason: str) -> PodBuilder:
        return self.condition("PodResizePending", "True", reason)

    def unschedulable(self, since: str | None, reason: str = "Unschedulable") -> PodBuilder:
        return self.phase("Pending").condition("PodScheduled", "False", reason, since)

    def annotated(self, more: Mapping[str, str]) -> PodBuilder:
        return self._metadata(annotations=dict(more))

    def labelled(self, more: Mapping[str, str]) -> PodBuilder:
        return self._metadata(labels=dict(more))

    def owned_by(self, kind: str, name: str, api_version: str = "apps/v1") -> PodBuilder:
        owner = {"apiVersion": api_version, "kind": kind, "name": name, "controller": True}
        return self._metadata(ownerReferences=[owner])

    def template(self) -> dict[str, object]:
        """The template of such pods."""
        made = self.object()
        metadata = {key: value for key, value in self.metadata.items() if key in ("labels", "annotations")}
        return {"metadata": metadata, "spec": made["spec"]}

    def deployment(self, replicas: int = 500) -> dict[str, object]:
        """A Deployment of such pods, by the name of this one."""
        return {
            "apiVersion": "apps/v1",
            "kind": "Deployment",
            "metadata": {"name": self.name, "namespace": self.namespace},
            "spec": {"replicas": replicas, "template": self.template()},
        }

    def object(self) -> dict[str, object]:
        named = [(f"c{index}", container) for index, container in enumerate(self.containers)]
        return {
            "metadata": {"name": self.name, "namespace": self.namespace, **self.metadata},
            "spec": {
                "containers": [c.spec(name) for name, c in named if not c.init],
                "initContainers": [c.spec(name) for name, c in named if c.init] or None,
                **self.spec,
            },
            "status": {
                "containerStatuses": [c.status(name) for name, c in named if not c.init],
                "initContainerStatuses": [c.status(name) for name, c in named if c.init] or None,
                "conditions": list(self.conditions) or None,
                **self.status,
            },
        }

    def build(self) -> Pod:
        return msgspec.convert(self.object(), Pod)


@dataclass(frozen=True)
class QuotaBuilder:
    """A ResourceQuota; what is hard and not stated as used is used to 0."""

    name: str
    namespace: str
    scopes: tuple[str, ...] = ()
    selectors: tuple[dict[str, object], ...] = ()
    limits: Quantities = field(default_factory=dict)
    usage: Quantities | None = None

    def scope(self, name: str, operator: str | None = None, *values: str) -> QuotaBuilder:
        """A plain scope, or with an operator one of the scope selector."""
        if operator is None:
            return replace(self, scopes=(*self.scopes, name))
        selector: dict[str, object] = {"scopeName": name, "operator": operator, "values": list(values)}
        return replace(self, selectors=(*self.selectors, selector))

    def hard(self, more: Mapping[str, Quantity] | None = None, /, **named: Quantity) -> QuotaBuilder:
        return replace(self, limits=quantities(more, **named))

    def used(self, more: Mapping[str, Quantity] | None = None, /, **named: Quantity) -> QuotaBuilder:
        return replace(self, usage=quantities(more, **named))

    def build(self) -> ResourceQuota:
        used = dict.fromkeys(self.limits, 0) if self.usage is None else self.usage
        return msgspec.convert(
            {
                "metadata": {"name": self.name, "namespace": self.namespace},
                "spec": {
                    "scopes": list(self.scopes) or None,
                    "scopeSelector": {"matchExpressions": list(self.selectors)} if self.selectors else None,
                },
                "status": {"hard": self.limits, "used": used},
            },
            ResourceQuota,
        )


def node(name: str) -> NodeBuilder:
    return NodeBuilder(name)


def pod(name: str, namespace: str = "default") -> PodBuilder:
    return PodBuilder(name, namespace)


def selecting(*expressions: tuple[str, str, Sequence[str]], **labels: str) -> dict[str, object]:
    """A label selector: ``selecting(app="web")``, ``selecting(("tier", "In", ["a", "b"]))``; {} for all."""
    listed = [
        {"key": key, "operator": operator, "values": list(values)} for key, operator, values in expressions
    ]
    made: dict[str, object] = {"matchLabels": labels} if labels else {}
    return made | ({"matchExpressions": listed} if listed else {})


def quota(name: str, namespace: str = "default") -> QuotaBuilder:
    return QuotaBuilder(name, namespace)


def deployment(name: str, template: object = None, namespace: str = "default") -> Deployment:
    data = {"metadata": {"name": name, "namespace": namespace}, "spec": {"template": template or {}}}
    return msgspec.json.decode(msgspec.json.encode(data), type=Deployment)


def replica_set(
    name: str,
    owner: str | None,
    template: object = None,
    created: str = "2026-01-01T00:00:00Z",
    namespace: str = "default",
) -> ReplicaSet:
    owners = [{"apiVersion": "apps/v1", "kind": "Deployment", "name": owner, "controller": True}]
    metadata = {
        "name": name,
        "namespace": namespace,
        "creationTimestamp": created,
        "ownerReferences": owners if owner else None,
    }
    data = {"metadata": metadata, "spec": {"template": template or {}}}
    return msgspec.json.decode(msgspec.json.encode(data), type=ReplicaSet)


# --- clusters --------------------------------------------------------------------------------------------

KubeObject = Node | Pod | ResourceQuota | Deployment | ReplicaSet | NodeDevices
Thing = KubeObject | NodeBuilder | PodBuilder | QuotaBuilder | AgentBuilder


class Complaints(list[tuple[str, str, str]]):
    """What a mirror reported: resource, object key, message."""

    def __call__(self, resource: str, key: str, message: str) -> None:
        self.append((resource, key, message))


def no_complaints(resource: str, key: str, message: str) -> None:
    raise AssertionError(f"unexpected report about {resource} {key}: {message}")


def cluster(*things: Thing, report: Callable[[str, str, str], None] = no_complaints) -> ClusterMirror:
    """A mirror that has seen these objects, in this order."""
    mirror = ClusterMirror(report)
    for thing in things:
        upsert(mirror, thing)
    return mirror


def typed(thing: Thing) -> KubeObject:
    if isinstance(thing, NodeBuilder | PodBuilder | QuotaBuilder | AgentBuilder):
        return thing.build()
    return thing


def upsert(mirror: ClusterMirror, thing: Thing) -> None:
    match typed(thing):
        case Node() as obj:
            mirror.nodes.upsert(obj)
        case Pod() as obj:
            mirror.pods.upsert(obj)
        case ResourceQuota() as obj:
            mirror.quotas.upsert(obj)
        case Deployment() as obj:
            mirror.controllers.deployments.upsert(obj)
        case ReplicaSet() as obj:
            mirror.controllers.replica_sets.upsert(obj)
        case NodeDevices() as obj:
            mirror.node_devices.upsert(obj)


def delete(mirror: ClusterMirror, thing: Thing) -> None:
    obj = typed(thing)
    key = object_key(obj.metadata)
    match obj:
        case Node():
            mirror.nodes.delete(key)
        case Pod():
            mirror.pods.delete(key)
        case ResourceQuota():
            mirror.quotas.delete(key)
        case Deployment():
            mirror.controllers.deployments.delete(key)
        case ReplicaSet():
            mirror.controllers.replica_sets.delete(key)
        case NodeDevices():
            mirror.node_devices.delete(key)


def room_of(mirror: ClusterMirror) -> Room:
    return Room(mirror.columns, EligibilityCache())


def free_on(mirror: ClusterMirror, node_name: str) -> Amounts:
    """Free amounts of a node that is present, by resource; those of which nothing is free left out."""
    row = mirror.columns.row_of(node_name)
    assert row is not None, f"no node {node_name}"
    amounts = {name: int(mirror.columns.free(name)[row]) for name in mirror.columns.resource_names}
    return {name: amount for name, amount in amounts.items() if amount}


# --- questions -------------------------------------------------------------------------------------------

Expression = tuple[str, str, Sequence[str]]


def term(*expressions: Expression, fields: Iterable[Expression] = ()) -> pb.NodeSelectorTerm:
    """A node selector term: ``term(("zone", "In", ["a"]))``."""
    return pb.NodeSelectorTerm(
        match_expressions=[
            pb.NodeSelectorRequirement(key=key, operator=operator, values=values)
            for key, operator, values in expressions
        ],
        match_fields=[
            pb.NodeSelectorRequirement(key=key, operator=operator, values=values)
            for key, operator, values in fields
        ],
    )


def toleration(text: str | pb.Toleration) -> pb.Toleration:
    """``*`` for all taints; ``key:Effect`` whatever the value; ``key=value:Effect``; no effect for all."""
    if isinstance(text, pb.Toleration):
        return text
    if text == "*":
        return pb.Toleration(operator="Exists")
    key_value, _, effect = text.partition(":")
    key, equals, value = key_value.partition("=")
    return pb.Toleration(key=key, operator="Equal" if equals else "Exists", value=value, effect=effect)


def requirements(
    more: Mapping[str, Quantity] | None = None,
    /,
    *,
    selector: Mapping[str, str] | None = None,
    affinity: Iterable[pb.NodeSelectorTerm] | None = None,
    tolerations: Iterable[str | pb.Toleration] = (),
    priority: str = "",
    **named: Quantity,
) -> pb.ComponentReplicaRequirements:
    """What one pod asks for, as Karmada 1.19 states it."""
    message = pb.ComponentReplicaRequirements(priority_class_name=priority)
    for name, quantity in quantities(more, **named).items():
        message.resource_request_bytes[name] = pb.Quantity(string=str(quantity)).SerializeToString()
    claim = message.node_claim
    claim.node_selector.update(selector or {})
    if affinity is not None:
        claim.node_affinity_bytes = pb.NodeSelector(node_selector_terms=affinity).SerializeToString()
    claim.tolerations_bytes.extend(toleration(text).SerializeToString() for text in tolerations)
    return message


def read(name: str, replicas: int, asked: pb.ComponentReplicaRequirements) -> Component:
    """The component as the server reads it."""
    sent = pb.Component(name=name, replicas=replicas, replica_requirements=asked)
    message = pb.MaxAvailableComponentSetsRequest(components=[sent])
    return decode_sets(message.SerializeToString(), None).components[0]


def component(
    name: str,
    replicas: int,
    more: Mapping[str, Quantity] | None = None,
    /,
    *,
    selector: Mapping[str, str] | None = None,
    affinity: Iterable[pb.NodeSelectorTerm] | None = None,
    tolerations: Iterable[str | pb.Toleration] = (),
    priority: str = "",
    **named: Quantity,
) -> Component:
    """So many pods of one shape."""
    asked = requirements(
        more,
        selector=selector,
        affinity=affinity,
        tolerations=tolerations,
        priority=priority,
        **named,
    )
    return read(name, replicas, asked)


def shape(
    more: Mapping[str, Quantity] | None = None,
    /,
    *,
    selector: Mapping[str, str] | None = None,
    affinity: Iterable[pb.NodeSelectorTerm] | None = None,
    tolerations: Iterable[str | pb.Toleration] = (),
    priority: str = "",
    **named: Quantity,
) -> PodShape:
    """One pod template as far as capacity is concerned."""
    return component(
        "",
        1,
        more,
        selector=selector,
        affinity=affinity,
        tolerations=tolerations,
        priority=priority,
        **named,
    ).shape


def assumed(namespace: str, *components: Component) -> AssumedWorkload:
    """A workload that Karmada says it has placed."""
    return AssumedWorkload(namespace, components)


# --- answers ---------------------------------------------------------------------------------------------


def never() -> bool:
    """No deadline."""
    return False


def replicas_of(
    mirror: ClusterMirror,
    asked: PodShape,
    placed: Iterable[AssumedWorkload] = (),
    asking: WorkloadReference | None = None,
) -> Answer:
    """How many more pods fit on the nodes, with the placed workloads' room held."""
    room = room_of(mirror)
    hold(room, outstanding(tuple(placed), mirror.controllers.bound_pods, asking), never)
    return max_replicas(room, asked)


def sets_of(
    mirror: ClusterMirror,
    components: Iterable[Component],
    placed: Iterable[AssumedWorkload] = (),
    asking: WorkloadReference | None = None,
) -> Sets:
    """How many whole sets fit on the nodes, with the placed workloads' room held."""
    room = room_of(mirror)
    hold(room, outstanding(tuple(placed), mirror.controllers.bound_pods, asking), never)
    return max_sets(room, tuple(components), never)
