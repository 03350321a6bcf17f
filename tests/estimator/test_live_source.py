"""What a live source reads of a cluster, and from when on."""

import asyncio
from collections.abc import AsyncIterator, Callable, Coroutine
from contextlib import asynccontextmanager

import pytest

from estimator.cluster.mirror import ClusterMirror
from estimator.live_source import LiveSource
from estimator.member import DEPLOYMENTS, NODES, PODS, QUOTAS, REPLICA_SETS, MemberCluster
from estimator.member_kinds import MEMBER_KINDS, RESOURCE_CLAIMS, RESOURCE_SLICES, TOPOLOGIES
from fairway.kube.client import KubeClient
from fairway.kube.observation import NullReflectorMetrics
from sandbox.fakeapi import FakeApi, virtual_time
from tests.builders import no_complaints, replicas_of, shape
from tests.dra.objects import device_class
from tests.estimator.claiming import GPU, allocated, on
from tests.estimator.serving import gpu_node, gpu_pod
from tests.estimator.test_dra_sources import stated

STALE_S, WITHIN_S = 120.0, 2.5
DRA = "/apis/resource.k8s.io/v1"
AGENTS = "/apis/fairway.dev/v1alpha1/nodedevices"
CORE = {"/api/v1/nodes", "/api/v1/pods", AGENTS}
OF_DEPLOYMENTS = {"/apis/apps/v1/deployments", "/apis/apps/v1/replicasets"}
DEVICES = {f"{DRA}/{plural}" for plural in ("resourceslices", "resourceclaims", "resourceclaimtemplates")}


def play(scenario: Callable[[FakeApi], Coroutine[None, None, None]]) -> None:
    async def scene() -> None:
        async with FakeApi() as api:
            for _, node in (gpu_node("a", 8), gpu_node("b", 8)):
                api.create("/api/v1/nodes", node)
            _, pod = gpu_pod("x", "a", 3)
            api.create("/api/v1/namespaces/default/pods", pod)
            # Without Kueue and without Dynamic Resource Allocation, unless a scenario says otherwise.
            api.fail(404, 10**6, when=lambda seen: "kueue" in seen.path or "/v1beta" in seen.path)
            await scenario(api)

    virtual_time.run(scene())


def member_of(name: str = "m") -> MemberCluster:
    return MemberCluster(name, ClusterMirror(no_complaints), asyncio.get_running_loop().time)


@asynccontextmanager
async def followed(
    api: FakeApi, *at_once: str, member: MemberCluster | None = None
) -> AsyncIterator[MemberCluster]:
    member = member or member_of()
    task = asyncio.create_task(source_of(api, member, *at_once).run())
    try:
        yield member
    finally:
        task.cancel()
        await asyncio.wait((task,))


def source_of(api: FakeApi, member: MemberCluster, *at_once: str) -> LiveSource:
    clock = asyncio.get_running_loop().time
    client = KubeClient.from_url(api.url, qps=-1)
    return LiveSource(member, client, NullReflectorMetrics(), clock=clock, at_once=at_once)


def listed(api: FakeApi) -> set[str]:
    """What has been listed or watched, less the look whether something is served at all."""
    return {seen.path for seen in api.seen if seen.params.get("limit") != "1" and seen.path != "/version"}


class TestFirstNeed:
    def test_a_cluster_is_asked_for_no_more_than_plain_questions_need(self) -> None:
        async def scenario(api: FakeApi) -> None:
            async with followed(api) as member:
                assert await member.settle((NODES, PODS), STALE_S, WITHIN_S) is None
                await asyncio.sleep(100)
                assert listed(api) == CORE | {f"{DRA}/deviceclasses"}

        play(scenario)

    @pytest.mark.parametrize(
        ("needed", "paths"),
        [
            ((PODS, DEPLOYMENTS, REPLICA_SETS), OF_DEPLOYMENTS),
            ((NODES, PODS, QUOTAS), {"/api/v1/resourcequotas"}),
        ],
    )
    def test_the_first_question_that_needs_more_waits_until_it_has_been_read(
        self, needed: tuple[str, ...], paths: set[str]
    ) -> None:
        async def scenario(api: FakeApi) -> None:
            async with followed(api) as member:
                await member.settle((NODES, PODS), STALE_S, WITHIN_S)
                assert not listed(api) & paths
                # However long the cluster has been known: the wait begins with the need.
                await asyncio.sleep(2 * STALE_S)
                api.delay(1.0, len(paths), when=lambda seen: seen.path in paths)
                asked_s = asyncio.get_running_loop().time()
                assert await member.settle(needed, STALE_S, WITHIN_S) is None
                assert 1.0 <= asyncio.get_running_loop().time() - asked_s < WITHIN_S
                assert listed(api) >= paths
                asked = len(api.seen)
                assert await member.settle(needed, STALE_S, WITHIN_S) is None
                assert len(api.seen) == asked

        play(scenario)

    def test_it_is_in_doubt_when_the_time_is_up_and_later_ones_are_not(self) -> None:
        async def scenario(api: FakeApi) -> None:
            needed = (PODS, DEPLOYMENTS, REPLICA_SETS)
            broken = set(OF_DEPLOYMENTS)
            api.fail(500, 10**6, when=lambda seen: seen.path in broken)
            async with followed(api) as member:
                doubt = await member.settle(needed, STALE_S, WITHIN_S)
                assert doubt is not None
                assert not doubt.synced
                assert "deployments: out of contact" in doubt.detail
                # Nobody else suffers.
                assert await member.settle((NODES, PODS), STALE_S, WITHIN_S) is None
                broken.clear()
                await asyncio.sleep(60)
                assert await member.settle(needed, STALE_S, 0.0) is None

        play(scenario)

    def test_a_need_from_before_the_source_was_there_counts(self) -> None:
        async def scenario(api: FakeApi) -> None:
            member = member_of()
            member.need(REPLICA_SETS)
            async with followed(api, member=member):
                await member.synced((REPLICA_SETS,))

        play(scenario)

    def test_what_is_known_to_be_needed_is_read_at_once(self) -> None:
        async def scenario(api: FakeApi) -> None:
            async with followed(api, QUOTAS, REPLICA_SETS) as member:
                await asyncio.sleep(1)
                assert await member.settle((QUOTAS, REPLICA_SETS), STALE_S, 0.0) is None

        play(scenario)

    def test_bound_pods_of_a_deployment_are_told_by_its_replica_sets_once_somebody_asks(self) -> None:
        owner = {"apiVersion": "apps/v1", "kind": "Deployment", "name": "web", "uid": "u", "controller": True}
        replica_set = {"metadata": {"name": "web-1", "namespace": "default", "ownerReferences": [owner]}}
        of_it = {
            "apiVersion": "apps/v1",
            "kind": "ReplicaSet",
            "name": "web-1",
            "uid": "r",
            "controller": True,
        }

        async def scenario(api: FakeApi) -> None:
            api.create("/apis/apps/v1/namespaces/default/replicasets", replica_set)
            _, pod = gpu_pod("web-1-x", "b", 1)
            pod["metadata"] = {"name": "web-1-x", "namespace": "default", "ownerReferences": [of_it]}
            api.create("/api/v1/namespaces/default/pods", pod)
            async with followed(api) as member:
                await member.synced((NODES, PODS))
                assert member.bound_pods("default", "web").get("Deployment", 0) == 0
                await member.synced((REPLICA_SETS,))
                assert member.bound_pods("default", "web")["Deployment"] == 1

        play(scenario)


class TestDevices:
    def test_slices_and_claims_are_read_once_there_is_a_class_and_count_only_then(self) -> None:
        async def scenario(api: FakeApi) -> None:
            api.create(f"{DRA}/resourceslices", stated(on("a", 4), "ResourceSlice"))
            claims = f"{DRA}/namespaces/default/resourceclaims"
            api.create(claims, stated(allocated("x", "a", "gpu-0"), "ResourceClaim"))
            async with followed(api) as member:
                await member.synced((NODES, PODS))
                await asyncio.sleep(1)
                assert not listed(api) & DEVICES
                assert member.mirror.columns.dra.is_complete
                free: list[int] = []
                api.delay(1.0, when=lambda seen: seen.path.endswith("/resourceclaims"))
                plain = device_class("gpu", extended=GPU)
                api.create(f"{DRA}/deviceclasses", stated(plain, "DeviceClass"))
                for _ in range(50):
                    await asyncio.sleep(0.1)
                    free.append(replicas_of(member.mirror, shape({GPU: 1})).value)
                assert listed(api) >= DEVICES
                # Never the four that look free as long as the claim is not known.
                assert free == sorted(free)
                assert (free[0], free[-1], set(free)) == (0, 3, {0, 3})

        play(scenario)


class TestOptional:
    def test_nobody_waits_for_what_is_not_served_or_not_allowed_and_it_can_be_asked_why(self) -> None:
        async def scenario(api: FakeApi) -> None:
            api.fail(403, 10**6, when=lambda seen: seen.path.endswith("/resourceclaims"))
            async with followed(api) as member:
                needed = (NODES, TOPOLOGIES, RESOURCE_CLAIMS, RESOURCE_SLICES)
                assert await member.settle(needed, STALE_S, WITHIN_S) is None
                assert member.left_out(TOPOLOGIES) == "topologies.kueue.x-k8s.io are not served"
                assert "403" in member.left_out(RESOURCE_CLAIMS)
                assert member.left_out(RESOURCE_SLICES) == ""
                assert member.left_out(NODES) == ""

        play(scenario)

    def test_every_kind_of_the_table_can_be_followed(self) -> None:
        async def scenario(api: FakeApi) -> None:
            names = tuple(kind.name for kind in MEMBER_KINDS)
            async with followed(api) as member:
                assert await member.settle(names, STALE_S, WITHIN_S) is None

        play(scenario)


@pytest.mark.parametrize("in_pages", [False, True])
def test_members_that_hang_cost_the_others_nothing(in_pages: bool) -> None:
    """100 clusters, 30 of them behind a server that accepts connections and says nothing."""

    async def scenario(api: FakeApi) -> None:
        if in_pages:
            api.disable_watchlist()
        loop = asyncio.get_running_loop()
        async with FakeApi() as hanging:
            hanging.hang()
            lost, good = [member_of() for _ in range(30)], [member_of() for _ in range(70)]
            began_s = loop.time()
            tasks = []
            for server, member in [(hanging, member) for member in lost] + [(api, member) for member in good]:
                tasks.append(asyncio.create_task(source_of(server, member).run()))
                # A socket has a queue of no more than a hundred connections.
                await asyncio.sleep(0.001)
            for member in good:
                assert await member.settle((NODES, PODS), STALE_S, WITHIN_S) is None
                assert replicas_of(member.mirror, shape({"nvidia.com/gpu": 1})).value == 13
            assert loop.time() - began_s < 0.5
            # Each question about one that hangs waits for itself alone.
            asked_s = loop.time()
            doubts = await asyncio.gather(
                *(member.settle((NODES, PODS), STALE_S, WITHIN_S) for member in lost)
            )
            assert all(doubt is not None and not doubt.synced for doubt in doubts)
            assert loop.time() - asked_s == pytest.approx(WITHIN_S, abs=0.1)
            # And those that hang are followed as soon as they answer.
            hanging.create("/api/v1/nodes", gpu_node("a", 8)[1])
            hanging.answer()
            for member in lost:
                await member.synced((NODES, PODS))
            for task in tasks:
                task.cancel()
            await asyncio.wait(tasks)

    play(scenario)
