"""Karmada's resource detector: a binding for each workload that a policy means, and after its every change.

It overwrites what it owns (replicas, requirements, placement, schedulerName, priority, what a policy
suspends) and leaves what it does not: suspension.scheduling, clusters, labels and annotations of others
(MergePolicySuspension). 300 Deployments become 300 bindings in 17.6 s at default limits. A
deleted workload's binding is collected as garbage, and goes when its Works have.
"""

import random
from collections.abc import Mapping

from sandbox.simulation.api_server import Client
from sandbox.simulation.errors import ApiError, Conflict, NotFound
from sandbox.simulation.karmada.controller import Controller
from sandbox.simulation.karmada.informer import Informer
from sandbox.simulation.karmada.policies import policy_of
from sandbox.simulation.karmada.throttle import Throttle
from sandbox.simulation.objects import Obj, at, rfc3339
from sandbox.simulation.templates import RESOURCES, PodSet, pod_sets

BINDINGS = "resourcebindings"
COST = 2_300
"""Thousandths of a request that a workload takes of the controller-manager's limit: 17 bindings a second."""
GC_MS = (20, 120)
_POLICY_ID = "propagationpolicy.karmada.io/permanent-id"
_POLICY_NAMESPACE = "propagationpolicy.karmada.io/namespace"
_POLICY_NAME = "propagationpolicy.karmada.io/name"


def binding_name(kind: str, name: str) -> str:
    """The name of a workload's binding: names.GenerateBindingName."""
    return f"{name}-{kind}".lower()


class Detector:
    """``templates``: what it knows of the workloads, by resource."""

    def __init__(self, client: Client, rng: random.Random, throttle: Throttle) -> None:
        self._client, self._timeline, self._rng = client, client.timeline, rng
        self.controller = Controller(
            self._timeline, throttle, self._cost, self._reconcile, took_ms=lambda: rng.randint(2, 10)
        )
        self._kinds = {resource: (version, kind) for kind, (version, resource) in RESOURCES.items()}
        self.templates = {resource: self._follow(resource) for resource in self._kinds}
        self._policies = Informer(client, "propagationpolicies", self._policy)
        self._bindings = Informer(client, BINDINGS, self._binding_gone)
        self._priorities = Informer(client, "priorityclasses", lambda key, before, now: None)

    def start(self) -> None:
        """Begin to follow workloads and policies."""
        for informer in (self._priorities, self._policies, self._bindings, *self.templates.values()):
            informer.start()

    def _follow(self, resource: str) -> Informer:
        def heard(key: str, before: Obj | None, now: Obj | None) -> None:
            if now is None:
                assert before is not None
                gone = before
                self._timeline.after(self._rng.randint(*GC_MS), lambda: self._collect(resource, gone))
            elif before is None or _stated(before) != _stated(now):
                self.controller.enqueue(f"{resource}|{key}")

        return Informer(self._client, resource, heard)

    def _policy(self, key: str, before: Obj | None, now: Obj | None) -> None:
        if now is None or (before is not None and before["spec"] == now["spec"]):
            return
        namespace = now["metadata"].get("namespace", "")
        for resource, informer in self.templates.items():
            for name, template in informer.objects.items():
                if template["metadata"].get("namespace", "") == namespace:
                    self.controller.enqueue(f"{resource}|{name}")

    def _binding_gone(self, key: str, before: Obj | None, now: Obj | None) -> None:
        """Somebody deleted a binding: its workload, if it is there, gets a new one."""
        if now is None and before is not None:
            of: Obj = before["spec"]["resource"]
            _, resource = RESOURCES.get(of["kind"], ("", ""))
            if resource:
                namespace, name = of.get("namespace", ""), of["name"]
                self.controller.enqueue(
                    f"{resource}|{namespace}/{name}" if namespace else f"{resource}|{name}"
                )

    def template(self, resource: str, key: str) -> Obj | None:
        """The workload as it is known here, with its kind."""
        known = self.templates[resource].objects.get(key)
        if known is None:
            return None
        version, kind = self._kinds[resource]
        return {**known, "apiVersion": version, "kind": kind}

    def _cost(self, queued: str) -> int:
        resource, _, key = queued.partition("|")
        return COST if key in self.templates[resource].objects else 0

    def _reconcile(self, queued: str) -> None:
        resource, _, key = queued.partition("|")
        template = self.template(resource, key)
        if template is None:
            return
        policy = policy_of(template, self._policies.objects.values())
        if policy is None:
            return
        made = self._binding(template, policy)
        namespace = template["metadata"].get("namespace", "")
        name = made["metadata"]["name"]
        try:
            existing = self._client.get(BINDINGS, f"{namespace}/{name}" if namespace else name)
        except NotFound:
            self._client.create(BINDINGS, made)
            return
        owner = at(existing, "spec", "resource", "uid")
        if owner != template["metadata"]["uid"] or "deletionTimestamp" in existing["metadata"]:
            raise Conflict(f"{BINDINGS} {key}: that of a workload which is gone is still there")
        self._client.update(BINDINGS, merged(existing, made))

    def _binding(self, template: Obj, policy: Obj) -> Obj:
        metadata, stated = template["metadata"], policy["spec"]
        spec: Obj = {
            "resource": {
                "apiVersion": template["apiVersion"],
                "kind": template["kind"],
                "namespace": metadata.get("namespace", ""),
                "name": metadata["name"],
                "uid": metadata["uid"],
                "resourceVersion": metadata["resourceVersion"],
            },
            "placement": stated.get("placement") or {},
            "schedulerName": stated.get("schedulerName", "default-scheduler"),
            "conflictResolution": "Abort",
            **replicas_of(pod_sets(template)),
        }
        if stated.get("suspension"):
            spec["suspension"] = dict(stated["suspension"])
        if stated.get("preserveResourcesOnDeletion"):
            spec["preserveResourcesOnDeletion"] = True
        if (name := at(stated, "schedulePriority", "priorityClassName")) is not None:
            known = self._priorities.objects.get(name)
            if known is None:
                raise NotFound(f"priorityclasses {name} not found")
            spec["schedulePriority"] = {"priority": known["value"]}
        of = policy["metadata"]
        return {
            "metadata": {
                "name": binding_name(template["kind"], metadata["name"]),
                "namespace": metadata.get("namespace", ""),
                "labels": {_POLICY_ID: of["uid"]},
                "annotations": {_POLICY_NAMESPACE: of.get("namespace", ""), _POLICY_NAME: of["name"]},
                "finalizers": ["karmada.io/binding-controller"],
            },
            "spec": spec,
        }

    def _collect(self, resource: str, template: Obj) -> None:
        """Garbage collection: the binding is marked, and whoever has its finalizer lets it go."""
        metadata = template["metadata"]
        name = binding_name(self._kinds[resource][1], metadata["name"])
        namespace = metadata.get("namespace", "")
        key = f"{namespace}/{name}" if namespace else name
        try:
            existing = self._client.get(BINDINGS, key)
            if at(existing, "spec", "resource", "uid") == metadata["uid"]:
                marked = {"metadata": {"deletionTimestamp": rfc3339(self._timeline.now_ms)}}
                self._client.patch(BINDINGS, key, marked, uid=existing["metadata"]["uid"])
        except NotFound:
            return
        except ApiError:
            self._timeline.after(1_000, lambda: self._collect(resource, template))


def replicas_of(sets: tuple[PodSet, ...]) -> Obj:
    """What the spec of a binding says of the pods: replicas, or with pods of several kinds components."""
    if len(sets) != 1:
        components = [
            {"name": one.name, "replicas": one.count, "replicaRequirements": requirements(one)}
            for one in sets
        ]
        return {"components": components} if components else {}
    return {"replicas": sets[0].count, "replicaRequirements": requirements(sets[0])}


def requirements(pods: PodSet) -> Obj:
    """The replicaRequirements of pods; what Karmada's own interpreter loses, is lost."""
    spec: Obj = pods.template.get("spec") or {}
    amounts: dict[str, str] = {}
    for name, amount in pods.request:
        amounts[name] = f"{amount}m" if name == "cpu" else str(amount)
    stated: Obj = {"resourceRequest": amounts}
    claim = {name: spec[name] for name in ("nodeSelector", "tolerations") if spec.get(name)}
    if claim:
        stated["nodeClaim"] = claim
    return stated


def merged(existing: Obj, made: Obj) -> Obj:
    """The existing binding with what the detector owns as it is made now."""
    before: Mapping[str, object] = existing["spec"]
    spec = {**before, **made["spec"]}
    for name in ("replicas", "replicaRequirements", "components", "schedulePriority"):
        if name not in made["spec"]:
            spec.pop(name, None)
    scheduling = at(existing, "spec", "suspension", "scheduling")
    suspension: Obj = dict(made["spec"].get("suspension") or {})
    if scheduling is not None:
        suspension["scheduling"] = scheduling
    spec.pop("suspension", None)
    if suspension:
        spec["suspension"] = suspension
    metadata = dict(existing["metadata"])
    for name in ("labels", "annotations"):
        metadata[name] = {**(metadata.get(name) or {}), **made["metadata"][name]}
    return {**existing, "metadata": metadata, "spec": spec}


def _stated(template: Obj) -> Obj:
    """What people say of it: all but its status and versions."""
    metadata = template["metadata"]
    kept = {name: metadata.get(name) for name in ("labels", "annotations", "uid", "deletionTimestamp")}
    return {"spec": template.get("spec"), "metadata": kept}
