"""A gang on its way into a cluster as in production: asked about, guided, overridden, and made into pods.

The workload is a Volcano Job, a task for each size of pods; Karmada would state it as components.
"""

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Final

import msgspec

from fairway.capacity.v1 import capacity_pb2 as pb
from fairway.workloads.gang import Gang
from fairway.workloads.registry import read_workload
from queue_dispatcher.bindings.binding import Binding
from queue_dispatcher.bindings.override_policy import override_policy
from queue_dispatcher.cycle.witness import Witness
from queue_dispatcher.estimates.estimators import Estimators
from queue_dispatcher.estimates.questions import question_of, verdict_of
from queue_dispatcher.workloads.demand import Placed
from queue_dispatcher.workloads.guidance import guidance
from queue_dispatcher.workloads.pod_template import pod_templates
from sandbox.simulation.karmada.overriding import overridden
from tests.dispatcher.bindings.builders import binding
from tests.truth.draft import GPU
from tests.truth.fields import Json, name_of, objects, table, text
from tests.truth.gangs import NODE, NOTHING, Fleet, Size
from tests.truth.staging import CASE

MEMBER: Final = "member"
NAMESPACE: Final = "default"
SET: Final = "truth.example.com/set"
"""Label of pods: the Job whose they are."""
_GROUP: Final = "batch.volcano.sh"
_ONE_CLUSTER: Final = {
    "replicaScheduling": {"replicaSchedulingType": "Divided", "replicaDivisionPreference": "Aggregated"},
    "spreadConstraints": [{"spreadByField": "cluster", "minGroups": 1, "maxGroups": 1}],
}


class Way(StrEnum):
    """How much the pods of a gang are told."""

    UNGUIDED = "unguided"
    PREFERENCE = "preference alone"
    GUIDED = "guided"


@dataclass(frozen=True)
class Release:
    """A Job as it reaches its cluster. ``is_told``: whether anything was said of where its pods go."""

    job: Json
    is_told: bool = False

    def pods(self) -> Iterator[Json]:
        """What its controller makes of it."""
        for task in objects(self.job, "spec", "tasks"):
            replicas = task["replicas"]
            assert isinstance(replicas, int)
            for number in range(replicas):
                name = f"{name_of(self.job)}-{text(task, 'name')}-{number}"
                labels = {SET: name_of(self.job)}
                metadata = {"name": name, "namespace": NAMESPACE, "labels": labels}
                yield {
                    "apiVersion": "v1",
                    "kind": "Pod",
                    "metadata": metadata,
                    "spec": table(task, "template", "spec"),
                }


class Releases:
    """What is released one after the other, nothing of which has pods yet."""

    def __init__(self, estimators: Estimators) -> None:
        self._estimators = estimators
        self._on_its_way: list[pb.Gang] = []

    async def next(self, job: Json, way: Way) -> Release | None:
        """The Job as it reaches its cluster; None where the estimator does not promise that it fits."""
        raw = json.dumps(job).encode()
        gang = read_workload(raw)
        assert isinstance(gang, Gang)
        bound = _binding(job)
        question = question_of(bound, frozenset((MEMBER,)), 1, raw)
        assert question is not None
        rooms = await self._estimators.place(
            question.clusters, question.gang, {MEMBER: self._on_its_way}, want_placement=way != Way.UNGUIDED
        )
        verdict, unknown = verdict_of(question, rooms)
        assert verdict is not None, unknown
        if verdict.fits < 1:
            return None
        self._on_its_way.append(question.gang)
        firsts = {cluster: witnesses[0] for cluster, witnesses in verdict.witnesses}
        witnesses = _as_told(firsts, way)
        said = guidance(pod_templates(_GROUP, raw, gang), bound.demand, witnesses, [Placed(MEMBER)], "")
        if not said:
            return Release(job)
        policy = json.loads(msgspec.json.encode(override_policy(bound, said)))
        return Release(overridden(job, MEMBER, [policy]), is_told=True)


def nodes_of(fleet: Fleet, stage: str) -> Iterator[Json]:
    """The nodes of a fleet, and what runs on them, under names of their own."""
    for number, used in enumerate(fleet.used):
        name = f"{stage}-n{number}"
        labels = {CASE: stage, "kubernetes.io/hostname": name}
        status = {"allocatable": {**_amounts(NODE), "pods": "110"}}
        metadata: Json = {"name": name, "labels": labels}
        yield {"apiVersion": "v1", "kind": "Node", "metadata": metadata, "spec": {}, "status": status}
        if used != NOTHING:
            metadata = {"name": f"{name}-runs", "namespace": NAMESPACE}
            yield {
                "apiVersion": "v1",
                "kind": "Pod",
                "metadata": metadata,
                "spec": {"nodeName": name, **_pod(used)},
            }


def job_of(fleet: Fleet, stage: str, number: int = 0) -> Json:
    """A Job of the fleet's gang that keeps to its nodes."""
    tasks = [
        {
            "name": f"t{place}",
            "replicas": replicas,
            "template": {"spec": {"nodeSelector": {CASE: stage}, **_pod(size)}},
        }
        for place, (replicas, size) in enumerate(fleet.tasks)
    ]
    return {
        "apiVersion": f"{_GROUP}/v1alpha1",
        "kind": "Job",
        "metadata": {"namespace": NAMESPACE, "name": f"{stage}-j{number}", "uid": f"{stage}-{number}"},
        "spec": {"minAvailable": fleet.pods, "tasks": tasks},
    }


def _as_told(witnesses: Mapping[str, Witness], way: Way) -> Mapping[str, Witness]:
    if way == Way.GUIDED:
        return witnesses
    if way == Way.UNGUIDED:
        return {}
    return {cluster: replace(witness, ranks=False) for cluster, witness in witnesses.items()}


def _binding(job: Json) -> Binding:
    resource = {"apiVersion": job["apiVersion"], "kind": job["kind"], **table(job, "metadata")}
    components = [_component(task) for task in objects(job, "spec", "tasks")]
    spec = {"resource": resource, "components": components, "placement": _ONE_CLUSTER}
    return binding(spec=spec, metadata={"name": f"{name_of(job)}-job", "namespace": NAMESPACE})


def _component(task: Json) -> Json:
    spec = table(task, "template", "spec")
    requests = table(objects(spec, "containers")[0], "resources", "requests")
    claim = {"nodeSelector": spec["nodeSelector"]}
    required = {"resourceRequest": requests, "nodeClaim": claim}
    return {"name": task["name"], "replicas": task["replicas"], "replicaRequirements": required}


def _pod(size: Size) -> Json:
    resources = {"requests": _amounts(size), "limits": {GPU: str(size.gpus)}}
    container = {"name": "main", "image": "example.com/train", "resources": resources}
    return {"containers": [container]}


def _amounts(size: Size) -> dict[str, str]:
    amounts = {"cpu": str(size.cores), "memory": f"{size.gib}Gi", GPU: str(size.gpus)}
    return {name: amount for name, amount in amounts.items() if amount != "0"}
