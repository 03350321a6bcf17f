"""Where slices, classes, claims and their templates come from: an API server, a file, Karmada, a request."""

import asyncio
import json
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path

import msgspec
import pytest

from admin.live import read_live
from admin.mirrors import mirror_of
from estimator.capacity.gangs.gang_replicas import Topology, gang_replicas
from estimator.capacity.gangs.workload_gang import WorkloadGang, workload_gang
from estimator.capacity.topology.domains import DomainCache
from estimator.capacity.topology.levels import Levels
from estimator.capacity_requests import read_place
from estimator.cluster.mirror import ClusterMirror
from estimator.fit.pod_shape import (
    PodClaim,
    PodShape,
)
from estimator.karmada.kinds import WatchedKind
from estimator.karmada.source import KarmadaSource
from estimator.karmada.templates import read_template
from estimator.live_source import LiveSource
from estimator.member import NODES, PODS, MemberCluster
from estimator.snapshot_source import SnapshotSource
from fairway.capacity.v1 import capacity_pb2 as pb
from fairway.kube.client import KubeClient
from fairway.kube.dumps import Dump, read_dump
from fairway.kube.objects import KubeStruct
from fairway.kube.observation import NullReflectorMetrics
from fairway.kube.resource_slices import DeviceClass, ResourceClaim, ResourceClaimTemplate, ResourceSlice
from fairway.workloads.registry import NotRead, read_workload
from sandbox.fakeapi import FakeApi
from tests.builders import no_complaints, node, replicas_of, room_of, shape
from tests.dra.objects import claim_spec, device_class, request
from tests.estimator.claiming import (
    GPU,
    allocated,
    claim_template,
    claiming,
    claiming_cluster,
    named_claim,
    on,
)

ONE = claim_spec(request("g"))
TWO = claim_spec(request("g", 2))
PLAIN = device_class("gpu", extended=GPU)


def stated(obj: KubeStruct, kind: str, version: str = "resource.k8s.io/v1") -> dict[str, object]:
    """The object as an API server states it."""
    fields: dict[str, object] = msgspec.to_builtins(obj)
    return {"apiVersion": version, "kind": kind, **_without_nulls(fields)}


def _without_nulls(fields: dict[str, object]) -> dict[str, object]:
    kept = {key: value for key, value in fields.items() if value is not None}
    return {key: _without_nulls(value) if isinstance(value, dict) else value for key, value in kept.items()}


def host(name: str) -> dict[str, object]:
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": name},
        "status": {"allocatable": {"cpu": "64", "pods": "110"}},
    }


async def until(condition: Callable[[], bool]) -> None:
    """Events take a moment on their way."""
    for _ in range(1_000_000):
        if condition():
            return
        await asyncio.sleep(0)
    raise AssertionError("it never became so")


@asynccontextmanager
async def member_of(api: FakeApi) -> AsyncIterator[MemberCluster]:
    member = MemberCluster("m", ClusterMirror(no_complaints), time.monotonic)
    client = KubeClient.from_url(api.url, qps=-1)
    source = LiveSource(member, client, NullReflectorMetrics(), clock=time.monotonic)
    async with asyncio.TaskGroup() as group:
        task = group.create_task(source.run())
        yield member
        task.cancel()


def free(member: MemberCluster, asked: PodShape) -> int:
    return replicas_of(member.mirror, asked).value


class TestApiServer:
    @pytest.mark.parametrize("version", ["v1", "v1beta2", "v1beta1"])
    def test_devices_are_followed_in_the_newest_version_that_is_served(self, version: str) -> None:
        root = f"/apis/resource.k8s.io/{version}"

        async def scenario() -> None:
            async with FakeApi() as api:
                api.create("/api/v1/nodes", host("a"))
                api.create(f"{root}/resourceslices", stated(on("a", 4), "ResourceSlice"))
                api.create(f"{root}/deviceclasses", stated(PLAIN, "DeviceClass"))
                claim = stated(allocated("x", "a", "gpu-0"), "ResourceClaim")
                claims = f"{root}/namespaces/default/resourceclaims"
                api.create(claims, claim)
                template = stated(claim_template("t", TWO), "ResourceClaimTemplate")
                api.create(f"{root}/namespaces/default/resourceclaimtemplates", template)
                api.fail(
                    404,
                    100_000,
                    when=lambda seen: "resource.k8s.io" in seen.path and f"/{version}/" not in seen.path,
                )
                async with member_of(api) as member:
                    await member.synced((NODES, PODS))
                    await until(lambda: free(member, shape({GPU: 1})) == 3)
                    await until(lambda: free(member, claiming(templates=["t"])) == 1)
                    api.delete(f"{claims}/x")
                    await until(lambda: free(member, shape({GPU: 1})) == 4)

        asyncio.run(scenario())

    def test_a_cluster_without_the_api_has_no_such_devices_and_nothing_else_suffers(self) -> None:
        async def scenario() -> None:
            async with FakeApi() as api:
                api.create("/api/v1/nodes", host("a"))
                api.fail(404, 100_000, when=lambda seen: "resource.k8s.io" in seen.path)
                async with member_of(api) as member:
                    await member.synced((NODES, PODS))
                    await api.until(lambda: sum("resource.k8s.io" in seen.path for seen in api.seen) >= 3)
                    assert free(member, shape(cpu=1)) == 64
                    assert free(member, shape({GPU: 1})) == 0
                    # Classes in each version once; the rest not before there is one.
                    for _ in range(50):
                        await asyncio.sleep(0)
                    assert sum("resource.k8s.io" in seen.path for seen in api.seen) == 3

        asyncio.run(scenario())

    def test_where_claims_may_not_be_read_no_device_looks_free(self) -> None:
        root = "/apis/resource.k8s.io/v1"

        async def scenario() -> None:
            async with FakeApi() as api:
                api.create("/api/v1/nodes", host("a"))
                api.create(f"{root}/resourceslices", stated(on("a", 4), "ResourceSlice"))
                api.create(f"{root}/deviceclasses", stated(PLAIN, "DeviceClass"))
                api.fail(403, 100_000, when=lambda seen: seen.path.endswith("/resourceclaims"))
                async with member_of(api) as member:
                    await member.synced((NODES, PODS))
                    await until(lambda: bool(member.mirror.dra.slices.keys()))
                    await until(lambda: bool(member.mirror.dra.classes.keys()))
                    assert free(member, shape({GPU: 1})) == 0

        asyncio.run(scenario())


class TestReadOnce:
    """What ``fairway`` reads of a live cluster."""

    @pytest.mark.parametrize(
        ("refused", "slices", "problem"),
        [
            ("", 1, ""),
            ("/resourceclaims", 0, "devices of Dynamic Resource Allocation are left out"),
            ("/deviceclasses", 0, "devices of Dynamic Resource Allocation are left out"),
        ],
    )
    def test_devices_come_with_their_claims_or_not_at_all(
        self, refused: str, slices: int, problem: str
    ) -> None:
        root = "/apis/resource.k8s.io/v1beta1"

        async def scenario() -> Dump:
            async with FakeApi() as api:
                api.create("/api/v1/nodes", host("a"))
                api.create(f"{root}/resourceslices", stated(on("a", 4), "ResourceSlice"))
                api.create(f"{root}/deviceclasses", stated(PLAIN, "DeviceClass"))
                api.create(
                    f"{root}/namespaces/default/resourceclaims",
                    stated(allocated("x", "a", "gpu-0"), "ResourceClaim"),
                )
                newer = ("resource.k8s.io/v1/", "resource.k8s.io/v1beta2/")
                api.fail(404, 100, when=lambda seen: any(version in seen.path for version in newer))
                if refused:
                    api.fail(403, 100, when=lambda seen: seen.path.endswith(refused))
                async with KubeClient.from_url(api.url, qps=-1) as client:
                    return await read_live(client, lambda told: None)

        dump = asyncio.run(scenario())
        assert len(dump.of(ResourceSlice)) == slices
        assert [one.detail[: len(problem)] for one in dump.problems] == ([problem] if problem else [])
        mirror, _ = mirror_of(dump)
        assert replicas_of(mirror, shape({GPU: 1})).value == 3 * slices


ITEMS = [
    host("a"),
    stated(on("a", 4), "ResourceSlice"),
    stated(PLAIN, "DeviceClass"),
    stated(allocated("x", "a", "gpu-0"), "ResourceClaim"),
    stated(named_claim("s", ONE), "ResourceClaim", "resource.k8s.io/v1beta1"),
    stated(claim_template("t", TWO), "ResourceClaimTemplate"),
]


class TestFiles:
    def test_a_dump_has_all_four_kinds(self, tmp_path: Path) -> None:
        file = tmp_path / "m.json"
        file.write_text(json.dumps({"apiVersion": "v1", "kind": "List", "items": ITEMS}))
        dump = read_dump(file)
        assert not dump.problems
        found = [
            len(kind)
            for kind in (
                dump.of(ResourceSlice),
                dump.of(DeviceClass),
                dump.of(ResourceClaim),
                dump.of(ResourceClaimTemplate),
            )
        ]
        assert found == [1, 1, 2, 1]
        mirror, _ = mirror_of(dump)
        assert replicas_of(mirror, shape({GPU: 1})).value == 3
        assert replicas_of(mirror, claiming(templates=["t"])).value == 1

    def test_a_dump_of_slices_alone_is_one(self, tmp_path: Path) -> None:
        file = tmp_path / "m.json"
        file.write_text(json.dumps({"apiVersion": "v1", "kind": "List", "items": ITEMS[1:2]}))
        assert len(read_dump(file).of(ResourceSlice)) == 1

    @pytest.mark.parametrize(
        ("spec", "field"),
        [
            ({"pool": {"generation": "new"}}, "spec.pool.generation"),
            ({"devices": {"gpu": {}}}, "spec.devices"),
        ],
    )
    def test_a_broken_slice_is_located_and_costs_nothing_else(
        self, tmp_path: Path, spec: dict[str, object], field: str
    ) -> None:
        broken = {
            "apiVersion": "resource.k8s.io/v1",
            "kind": "ResourceSlice",
            "metadata": {"name": "x"},
            "spec": spec,
        }
        file = tmp_path / "m.json"
        file.write_text(json.dumps({"apiVersion": "v1", "kind": "List", "items": [*ITEMS, broken]}))
        dump = read_dump(file)
        assert [problem.field for problem in dump.problems] == [field]
        assert len(dump.of(ResourceSlice)) == 1

    def test_the_estimator_serves_a_file(self, tmp_path: Path) -> None:
        file = tmp_path / "m.json"
        file.write_text(json.dumps({"apiVersion": "v1", "kind": "List", "items": ITEMS}))

        async def scenario() -> None:
            member = MemberCluster("m", ClusterMirror(no_complaints), time.monotonic)
            source = SnapshotSource(member, file, no_complaints, clock=time.monotonic)
            task = asyncio.create_task(source.run())
            await member.synced((NODES, PODS))
            task.cancel()
            assert replicas_of(member.mirror, shape({GPU: 1})).value == 3

        asyncio.run(scenario())


DEPLOYMENT = WatchedKind("Deployment", "apps", "v1", "deployments")


def deployment(*claims: dict[str, str], name: str = "train") -> dict[str, object]:
    spec = {
        "containers": [{"name": "c", "resources": {"requests": {"cpu": "1"}}}],
        "resourceClaims": list(claims),
    }
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": name, "namespace": "default"},
        "spec": {"replicas": 2, "template": {"metadata": {"labels": {"app": name}}, "spec": spec}},
    }


BY_TEMPLATE = {"name": "g", "resourceClaimTemplateName": "t"}
BY_NAME = {"name": "s", "resourceClaimName": "s"}


def gang_of(*claims: dict[str, str]) -> WorkloadGang:
    read = read_workload(json.dumps(deployment(*claims)).encode())
    assert not isinstance(read, NotRead)
    return workload_gang(read)


class TestTemplates:
    def test_claims_are_part_of_the_shape_in_their_namespace(self) -> None:
        gang = gang_of(BY_TEMPLATE, BY_NAME, {"name": "again", "resourceClaimName": "s"})
        (component,) = gang.components
        assert component.shape.claims == (PodClaim("default/t"), PodClaim("default/s", is_shared=True))
        assert component.shape.names_device

    @pytest.mark.parametrize(
        "claim", [{"name": "g"}, {"name": "g", "resourceClaimName": "a", "resourceClaimTemplateName": "b"}]
    )
    def test_a_claim_that_names_none_or_two_fits_nowhere(self, claim: dict[str, str]) -> None:
        gang = gang_of(claim)
        assert "spec.resourceClaims[0]: expected one of" in gang.problems[0]
        mirror = claiming_cluster(node("a").cpu("4").pods(9), PLAIN)
        assert replicas_of(mirror, gang.components[0].shape).value == 0

    def test_karmadas_replicas_are_those_of_the_devices(self) -> None:
        gang = gang_of(BY_TEMPLATE)
        mirror = claiming_cluster(node("a").cpu("64").pods(99), PLAIN, on("a", 7), claim_template("t", TWO))
        topology = Topology(Levels(()), DomainCache())
        answer = gang_replicas(room_of(mirror), shape(cpu=1), gang, 0, topology, lambda: False)
        assert (answer.value, answer.proven) == (3, True)

    def test_place_takes_claims_of_its_pod_sets(self) -> None:
        template = {"spec": {"containers": [{"name": "c"}], "resourceClaims": [BY_TEMPLATE]}}
        message = pb.PlaceRequest(
            gang=pb.Gang(
                namespace="default",
                pod_sets=[pb.PodSet(name="w", count=2, template_json=json.dumps(template).encode())],
            )
        )
        (component,) = read_place(message).gang.components
        assert component.shape.claims == (PodClaim("default/t"),)


class TestKarmada:
    def test_what_pods_claim_is_found_with_their_template(self) -> None:
        root = "/apis/resource.k8s.io/v1/namespaces/default"

        async def scenario() -> None:
            async with FakeApi() as api:
                api.create("/apis/apps/v1/namespaces/default/deployments", deployment(BY_TEMPLATE, BY_NAME))
                client = KubeClient.from_url(api.url, qps=-1)
                source = KarmadaSource(
                    client, read_template, NullReflectorMetrics(), clock=time.monotonic, kinds=[DEPLOYMENT]
                )
                async with asyncio.TaskGroup() as group:
                    task = group.create_task(source.run())
                    early = await source.find("Deployment", "default", "train", 5)
                    assert early.gang is not None
                    assert early.gang.components[0].shape.claims[0].stated is None
                    api.create(
                        f"{root}/resourceclaimtemplates",
                        stated(claim_template("t", TWO), "ResourceClaimTemplate"),
                    )
                    api.create(f"{root}/resourceclaims", stated(named_claim("s", ONE), "ResourceClaim"))
                    async with asyncio.timeout(20):
                        while True:
                            found = await source.find("Deployment", "default", "train", 5)
                            assert found.gang is not None
                            known = found.gang.components[0].shape
                            if all(claim.stated for claim in known.claims):
                                break
                    task.cancel()
                mirror = claiming_cluster(node("a").cpu("64").pods(99), PLAIN, on("a", 7))
                # One device is shared by all, two are each pod's own.
                assert replicas_of(mirror, known).value == 3

        asyncio.run(scenario())

    def test_a_claim_that_cannot_be_understood_says_why(self) -> None:
        wrong = claim_template("t", claim_spec(request("g", allocationMode="Most")))
        root = "/apis/resource.k8s.io/v1/namespaces/default"

        async def scenario() -> None:
            async with FakeApi() as api:
                api.create("/apis/apps/v1/namespaces/default/deployments", deployment(BY_TEMPLATE))
                api.create(f"{root}/resourceclaimtemplates", stated(wrong, "ResourceClaimTemplate"))
                client = KubeClient.from_url(api.url, qps=-1)
                source = KarmadaSource(
                    client, read_template, NullReflectorMetrics(), clock=time.monotonic, kinds=[DEPLOYMENT]
                )
                async with asyncio.TaskGroup() as group:
                    task = group.create_task(source.run())
                    async with asyncio.timeout(20):
                        while True:
                            found = await source.find("Deployment", "default", "train", 5)
                            assert found.gang is not None
                            (claim,) = found.gang.components[0].shape.claims
                            if claim.problem:
                                break
                    task.cancel()
                mirror = claiming_cluster(node("a").cpu("64").pods(99), PLAIN, on("a", 7))
                answer = replicas_of(mirror, found.gang.components[0].shape)
                assert answer.value == 0
                assert "allocationMode is 'Most'" in str(answer.reasons[0])

        asyncio.run(scenario())
