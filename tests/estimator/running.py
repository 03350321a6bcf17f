"""Scenes: a cluster with pods that run, and how many further pods of a template it takes.

Each is answered by the estimator's own way from a Deployment to a number, and by the oracle of
kube-scheduler's filters, which shares no code with it. Where the truth hangs on the scheduler's scores
the most that it may bind counts.
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass, replace

from estimator.capacity.answer import Answer, unsure
from estimator.capacity.gangs.gang_replicas import gang_replicas
from estimator.capacity.gangs.workload_gang import workload_gang
from estimator.capacity.local import Localizer, left_out
from estimator.capacity.room import Room
from estimator.cluster.mirror import ClusterMirror
from estimator.fit.eligibility import EligibilityCache
from estimator.member import MemberCluster
from fairway.kube.member_kinds import Namespace
from fairway.kube.objects import ObjectMeta
from fairway.workloads.gang import Gang
from fairway.workloads.registry import read_workload
from tests.builders import NodeBuilder, PodBuilder, cluster, never, node, pod
from tests.truth.oracle import truth
from tests.truth.world import World

HOST, ZONE, RACK = "kubernetes.io/hostname", "topology.kubernetes.io/zone", "example.com/rack"


def at(name: str, zone: str = "", cpu: int = 8, rack: str = "", pool: str = "") -> NodeBuilder:
    """A node with its name as hostname, and those of the other labels that are not empty."""
    labels = {HOST: name, ZONE: zone, RACK: rack, "pool": pool}
    return node(name).cpu(cpu).memory("1Ti").label({key: value for key, value in labels.items() if value})


FIVE = (at("n1", "a"), at("n2", "a"), at("n3", "b"), at("n4", "b"), at("n5", "c"))
"""Forty pods of one cpu: sixteen in zone a, sixteen in zone b, eight in zone c."""

BARE = node("bare").cpu(8).memory("1Ti")
"""A node without a label."""


def web(**labels: str) -> PodBuilder:
    """The pod that asks: one cpu, app=web. What it states of memory leaves LimitRanges nothing to add."""
    return pod("web").labelled({"app": "web", **labels}).requests(cpu=1, memory="1Mi")


def app(name: str, on: str, **labels: str) -> PodBuilder:
    """A running pod that holds nothing but its place."""
    built = pod(f"{name}-{on}").labelled({"app": name, **labels})
    return (built.on(on) if on else built).requests(cpu=0)


@dataclass(frozen=True)
class Scene:
    """``fits``: the true number. ``known``: the labels of namespaces, None where nobody reads them.

    ``proven`` is False where the truth cannot be known; ``seen`` where the oracle looks at it too.
    """

    asked: PodBuilder
    fits: int
    pods: tuple[PodBuilder, ...] = ()
    nodes: tuple[NodeBuilder, ...] = FIVE
    known: Mapping[str, Mapping[str, str]] | None = None
    proven: bool = True
    seen: bool = True

    def mirror(self) -> ClusterMirror:
        mirror = cluster(*self.nodes, *self.pods)
        if self.known is not None:
            for name, labels in self.known.items():
                mirror.admission.namespaces.upsert(Namespace(ObjectMeta(name=name, labels=dict(labels))))
            mirror.admission.namespaces.synced = True
        return mirror

    def items(self) -> list[dict[str, object]]:
        """The cluster as ``kubectl get`` shows it."""
        found: list[dict[str, object]] = [{"kind": "Node", **one.object()} for one in self.nodes]
        found += [{"kind": "Pod", **one.object()} for one in self.pods]
        for name, labels in (self.known or {}).items():
            named = {**labels, "kubernetes.io/metadata.name": name}
            found.append({"kind": "Namespace", "metadata": {"name": name, "labels": named}})
        return found


def beside(mirror: ClusterMirror, asked: PodBuilder) -> Answer:
    """How many further pods of the Deployment the cluster takes."""
    read = read_workload(json.dumps(asked.deployment()).encode())
    assert isinstance(read, Gang), read
    gang = workload_gang(read)
    cache = EligibilityCache()
    mirror.admission.limit_ranges.synced = True  # there are none
    here = Localizer(mirror, cache).local(gang.components)
    answer = gang_replicas(
        Room(mirror.columns, cache, here.around),
        gang.components[0].shape,
        replace(gang, components=here.components),
        0,
        MemberCluster("m", mirror, lambda: 0.0).topology(),
        never,
    )
    return unsure(answer, *left_out(gang.problems, here))


def check(scene: Scene) -> None:
    """Both say that so many fit."""
    if scene.seen:
        real = truth(scene.asked.template(), scene.asked.namespace, World(scene.items()))
        assert (real.highest, real.refusal) == (scene.fits, ""), real
    answer = beside(scene.mirror(), scene.asked)
    assert (answer.value, answer.proven) == (scene.fits, scene.proven), answer


Scenes = dict[str, Scene]
