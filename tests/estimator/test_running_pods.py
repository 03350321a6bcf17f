"""Deployments beside pods that run: the server with Karmada's templates and the command agree."""

import asyncio
from dataclasses import replace
from pathlib import Path

import msgspec
import pytest

from admin.estimates import Rules
from admin.local import LocalEstimates
from admin.observing import Observed
from fairway.accelerators.builtin import builtin_catalogue
from fairway.capacity.v1 import capacity_pb2 as pb
from fairway.kube.dumps import read_dump
from fairway.workloads.gang import Gang
from fairway.workloads.registry import read_workload
from sandbox.fakeapi import FakeApi
from tests.builders import PodBuilder, pod, selecting
from tests.estimator.running import BARE, FIVE, HOST, ZONE, Scene, Scenes, app, at, web
from tests.estimator.serving import (
    CapacityCaller,
    Reply,
    estimator,
    kubeconfig,
    live,
    replicas_request,
    snapshot,
    write_dump,
)
from tests.truth.oracle import truth
from tests.truth.world import World

WEB, CACHE, DB = selecting(app="web"), selecting(app="cache"), selecting(app="db")
TAINTED = at("n5", "c").taint("gpu:NoSchedule")


def own(on: str) -> PodBuilder:
    return app("web", on)


def caches(*on: str) -> tuple[PodBuilder, ...]:
    return tuple(app("cache", name) for name in on)


# What Karmada's request says of the pods: 1 cpu, whatever the template asks for beside or apart.
SCENES: Scenes = {
    "a sidecar beside the main container": Scene(
        pod("web").sidecar(cpu=3, memory="1Mi").requests(cpu=1, memory="1Mi"),
        7,
        nodes=tuple(at(f"n{i}", cpu=4) for i in range(7)),
    ),
    "requests of the pod as a whole": Scene(
        pod("web").requests(cpu=1, memory="1Mi").pod_level(cpu=6),
        5,
        nodes=tuple(at(f"n{i}", cpu=10) for i in range(5)),
    ),
    "apart from its own kind by host": Scene(web().apart(HOST, WEB), 2, (own("n1"), own("n2"), own("n3"))),
    "a port of the node that four of five have given away": Scene(
        web().port(80),
        1,
        tuple(pod(name).requests(cpu=0).port(80).on(name) for name in ("n1", "n2", "n3", "n4")),
    ),
    "even over zones, one of which is ahead": Scene(
        web().spread(ZONE, WEB),
        2,
        tuple(own(name).requests(cpu=1) for name in ("n1", "n2", "n3")),
        nodes=(*(at(name, "a", 2) for name in ("n1", "n2", "n3")), at("n4", "b", 1), at("n5", "c", 1)),
    ),
    "near its own kind, whose zone is full": Scene(web().near(ZONE, WEB), 0, (own("n5").requests(cpu=8),)),
    "near a cache that runs nowhere": Scene(web().near(ZONE, CACHE), 0),
    "apart from a cache on four of five": Scene(web().apart(HOST, CACHE), 8, caches("n1", "n2", "n3", "n4")),
    "a database that keeps it off two zones": Scene(
        web(), 16, (app("db", "n1").apart(ZONE, WEB), app("db", "n5").apart(ZONE, WEB))
    ),
    "apart from its own kind in another namespace": Scene(
        web().apart(HOST, WEB, namespaces=["other"]), 40, tuple(own(one.name) for one in FIVE)
    ),
    "even over a label that no node carries": Scene(web().spread("none", DB), 0),
    "even over zones without taints": Scene(
        web().spread(ZONE, WEB, nodeTaintsPolicy="Honor"), 8, nodes=(at("n1", "a"), TAINTED)
    ),
    "even over zones, one of them tainted": Scene(web().spread(ZONE, WEB), 1, nodes=(at("n1", "a"), TAINTED)),
    "nothing but what it asks for": Scene(web(), 39, (own("n1").requests(cpu=1),)),
    "all at once": Scene(
        web().port(80).apart(HOST, CACHE).near(ZONE, DB).spread(ZONE, WEB, 2),
        1,
        (app("db", "n1"), *caches("n2")),
        nodes=(*FIVE, BARE),
    ),
}


def dump(tmp_path: Path, scene: Scene) -> Path:
    objects = [("Node", one.object()) for one in scene.nodes] + [("Pod", one.object()) for one in scene.pods]
    return write_dump(tmp_path / "m.json", objects)


async def served(tmp_path: Path, scene: Scene) -> Reply:
    """What the server answers to Karmada, with the Deployment on Karmada's API server."""
    async with FakeApi() as member, FakeApi() as karmada:
        for one in scene.nodes:
            member.create("/api/v1/nodes", one.object())
        for running in scene.pods:
            member.create(f"/api/v1/namespaces/{running.namespace}/pods", running.object())
        karmada.create("/apis/apps/v1/namespaces/default/deployments", scene.asked.deployment())
        settings = kubeconfig(tmp_path / "karmada", karmada.url)
        async with estimator(live("m", member.url), karmada=settings) as caller:
            request = replicas_request("m", {"cpu": "1"}, namespace="default")
            return await caller.replicas(request, object_text="kind=Deployment, name=default/web")


def one_each(scene: Scene) -> Gang:
    """The Deployment's pod as a gang of one, of which the most copies are its pods."""
    read = read_workload(msgspec.json.encode(scene.asked.deployment(1)))
    assert isinstance(read, Gang)
    return read


@pytest.mark.parametrize("scene", SCENES.values(), ids=SCENES)
def test_the_server_the_command_and_the_scheduler_agree(tmp_path: Path, scene: Scene) -> None:
    real = truth(scene.asked.template(), "default", World(scene.items()))
    assert real.highest == scene.fits
    reply = asyncio.run(served(tmp_path, scene))
    assert reply.value == scene.fits, reply.reasons
    seen = Observed("m", "m.json", read_dump(dump(tmp_path, scene)), 0.0)
    explained = LocalEstimates(Rules(builtin_catalogue(), ())).explanation(seen, one_each(scene), 0)
    placement = explained.placement
    assert (placement.fits, placement.proven) == (scene.fits, True), placement


@pytest.mark.parametrize("scene", SCENES.values(), ids=SCENES)
def test_fairways_own_service_agrees(tmp_path: Path, scene: Scene) -> None:
    async def scenario() -> pb.ClusterPlacement:
        async with estimator(snapshot("m", dump(tmp_path, scene))) as caller:
            gang = pb.Gang(workload_json=msgspec.json.encode(scene.asked.deployment(1)))
            (found,) = await CapacityCaller(caller.channel).place(pb.PlaceRequest(gang=gang))
            return found

    found = asyncio.run(scenario())
    assert (found.fits, found.proven) == (scene.fits, True), found


def test_a_snapshot_that_changes_is_another_scene(tmp_path: Path) -> None:
    """Of two scenes that differ in one running pod each has its own answer."""
    scene = SCENES["apart from its own kind by host"]
    fewer = replace(scene, pods=scene.pods[:1])
    assert asyncio.run(served(tmp_path, scene)).value == 2
    assert asyncio.run(served(tmp_path, fewer)).value == 4
