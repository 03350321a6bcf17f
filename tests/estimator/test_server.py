"""The server as karmada-scheduler meets it: over a real channel, before a file or a (fake) API server."""

import asyncio
import json
import os
from dataclasses import replace
from pathlib import Path

import grpc
import pytest
from grpc_health.v1 import health_pb2, health_pb2_grpc
from grpc_reflection.v1alpha.proto_reflection_descriptor_database import ProtoReflectionDescriptorDatabase

from estimator.cluster.freshness import Freshness
from estimator.feature_gates import Gates
from estimator.member import MemberCluster
from estimator.pb import estimator_pb2 as pb
from estimator.service import SERVICE
from estimator.settings import PrometheusSettings
from fairway.prometheus.exporters import Value
from fairway.prometheus.server import Server
from fairway.service.program import StartError
from sandbox.fakeapi import FakeApi
from tests.builders import requirements
from tests.estimator.serving import (
    DEFAULTS,
    Caller,
    estimator,
    gpu_node,
    gpu_pod,
    live,
    replicas_request,
    running,
    snapshot,
    write_dump,
)
from tests.prometheus.fake import dcgm, from_table, prometheus
from tests.prometheus.series import Series, values

ONE_GPU = {"nvidia.com/gpu": "1"}
ONE_CPU = {"cpu": "1"}


@pytest.fixture
def dump(tmp_path: Path) -> Path:
    """Two nodes of 8 GPUs, 3 of them in use."""
    return write_dump(tmp_path / "m.json", [gpu_node("a", 8), gpu_node("b", 8), gpu_pod("x", "a", 3)])


async def fill(api: FakeApi) -> None:
    for _, node in (gpu_node("a", 8), gpu_node("b", 8)):
        api.create("/api/v1/nodes", node)
    _, pod = gpu_pod("x", "a", 3)
    api.create("/api/v1/namespaces/default/pods", pod)


async def until_value(caller: Caller, request: pb.MaxAvailableReplicasRequest, value: int) -> None:
    """Ask until the answer is this one; every answer on the way is one that was true a moment ago."""
    async with asyncio.timeout(20):
        while (await caller.replicas(request)).value != value:
            pass


class TestAnswers:
    def test_from_a_file(self, dump: Path) -> None:
        async def scenario() -> None:
            async with estimator(snapshot("m", dump)) as caller:
                assert (await caller.replicas(replicas_request("m", ONE_GPU))).value == 13
                assert (await caller.replicas(replicas_request("m", {"nvidia.com/gpu": "6"}))).value == 1

        asyncio.run(scenario())

    def test_from_an_api_server_and_its_events(self) -> None:
        async def scenario() -> None:
            async with FakeApi() as api:
                await fill(api)
                async with estimator(live("m", api.url)) as caller:
                    request = replicas_request("m", ONE_GPU)
                    assert (await caller.replicas(request)).value == 13
                    _, pod = gpu_pod("y", "b", 8)
                    api.create("/api/v1/namespaces/default/pods", pod)
                    await until_value(caller, request, 5)
                    api.delete("/api/v1/namespaces/default/pods/x")
                    await until_value(caller, request, 8)
                    api.delete("/api/v1/nodes/a")
                    await until_value(caller, request, 0)

        asyncio.run(scenario())

    def test_without_the_devices_that_prometheus_says_are_broken(self) -> None:
        gpus = [
            Series(f"GPU-{number}", values={Value.REMAP_FAILED: float(not number)}).with_(Hostname="a")
            for number in range(8)
        ]
        table = dcgm([gpu.sample() for gpu in gpus], values(gpus))

        async def scenario(url: str) -> None:
            async with FakeApi() as api:
                await fill(api)
                asked = PrometheusSettings({"m": (Server(url),)}, 0.05)
                async with estimator(live("m", api.url), prometheus=asked) as caller:
                    await until_value(caller, replicas_request("m", ONE_GPU), 12)

        with prometheus(from_table(table)) as fake:
            asyncio.run(scenario(fake.url))

    def test_of_a_cluster_without_nodes_it_is_0_and_no_doubt(self, tmp_path: Path) -> None:
        file = write_dump(tmp_path / "m.json", [])

        async def scenario() -> None:
            async with FakeApi() as api, estimator(snapshot("m", file), live("n", api.url)) as caller:
                for cluster in ("m", "n"):
                    for asked in (ONE_CPU, ONE_GPU):
                        reply = await caller.replicas(replicas_request(cluster, asked))
                        assert (reply.value, reply.reasons) == (0, ("the cluster has no nodes",))

        asyncio.run(scenario())

    def test_for_several_clusters_each_its_own(self, dump: Path, tmp_path: Path) -> None:
        other = write_dump(tmp_path / "other.json", [gpu_node("c", 4)])

        async def scenario() -> None:
            async with estimator(snapshot("m", dump), snapshot("n", other)) as caller:
                assert (await caller.replicas(replicas_request("m", ONE_GPU))).value == 13
                assert (await caller.replicas(replicas_request("n", ONE_GPU))).value == 4

        asyncio.run(scenario())

    def test_whole_sets(self, dump: Path) -> None:
        request = pb.MaxAvailableComponentSetsRequest(cluster="m", namespace="default")
        request.components.add(name="launcher", replicas=1, replica_requirements=requirements(cpu="1"))
        request.components.add(name="worker", replicas=2, replica_requirements=requirements(gpu=2))

        async def scenario() -> None:
            async with estimator(snapshot("m", dump)) as caller:
                assert (await caller.sets(request)).value == 3

        asyncio.run(scenario())

    def test_a_zero_says_why(self, dump: Path) -> None:
        async def scenario() -> tuple[str, ...]:
            async with estimator(snapshot("m", dump)) as caller:
                reply = await caller.replicas(replicas_request("m", {"nvidia.com/gpu": "16"}))
                assert reply.value == 0
                return reply.reasons

        assert asyncio.run(scenario()) == (
            "never fits: needs 16 nvidia.com/gpu, the largest eligible node has 8",
        )

    def test_reasons_are_sent_only_when_asked_for(self, dump: Path) -> None:
        async def scenario() -> None:
            async with estimator(snapshot("m", dump)) as caller:
                _, trailing = await caller.raw(
                    "MaxAvailableReplicas", replicas_request("m", ONE_GPU).SerializeToString()
                )
                assert "fairway-reasons" not in trailing

        asyncio.run(scenario())


class TestUnschedulableReplicas:
    @staticmethod
    def deployment() -> list[tuple[str, dict[str, object]]]:
        """``d/web`` with its one ReplicaSet."""
        template = {"metadata": {"labels": {"app": "web"}}, "spec": {"containers": []}}
        hashed = {
            "metadata": {"labels": {"app": "web", "pod-template-hash": "1"}},
            "spec": {"containers": []},
        }
        owner = {"apiVersion": "apps/v1", "kind": "Deployment", "name": "web", "controller": True}
        created = "2026-01-01T00:00:00Z"
        metadata = {
            "name": "web-1",
            "namespace": "d",
            "creationTimestamp": created,
            "ownerReferences": [owner],
        }
        named = {"name": "web", "namespace": "d"}
        return [
            ("Deployment", {"apiVersion": "apps/v1", "metadata": named, "spec": {"template": template}}),
            ("ReplicaSet", {"apiVersion": "apps/v1", "metadata": metadata, "spec": {"template": hashed}}),
        ]

    @staticmethod
    def pending(
        name: str, kind: str, owner: str, api_version: str = "apps/v1"
    ) -> tuple[str, dict[str, object]]:
        return "Pod", {
            "metadata": {
                "name": name,
                "namespace": "d",
                "ownerReferences": [
                    {"apiVersion": api_version, "kind": kind, "name": owner, "controller": True}
                ],
            },
            "status": {
                "phase": "Pending",
                "conditions": [
                    {
                        "type": "PodScheduled",
                        "status": "False",
                        "reason": "Unschedulable",
                        "lastTransitionTime": "2020-01-01T00:00:00Z",
                    }
                ],
            },
        }

    @pytest.mark.parametrize(
        ("api_version", "kind", "name", "expected"),
        [
            ("apps/v1", "Deployment", "web", 2),
            ("apps/v1", "StatefulSet", "db", 1),
            ("batch/v1", "Job", "train", 1),
            ("batch.volcano.sh/v1alpha1", "Job", "train", 3),
            ("apps/v1", "Deployment", "gone", 0),
        ],
    )
    def test_by_kind(self, tmp_path: Path, api_version: str, kind: str, name: str, expected: int) -> None:
        pods = [
            self.pending("web-1-a", "ReplicaSet", "web-1"),
            self.pending("web-1-b", "ReplicaSet", "web-1"),
            self.pending("db-0", "StatefulSet", "db"),
            self.pending("train-0", "Job", "train", "batch/v1"),
            *(self.pending(f"train-v-{n}", "Job", "train", "batch.volcano.sh/v1alpha1") for n in range(3)),
        ]
        file = write_dump(tmp_path / "m.json", [*self.deployment(), *pods, gpu_node("a", 8)])
        resource = pb.ObjectReference(api_version=api_version, kind=kind, namespace="d", name=name)
        request = pb.UnschedulableReplicasRequest(
            cluster="m", resource=resource, unschedulable_threshold=300 * 10**9
        )

        async def scenario() -> int:
            async with estimator(snapshot("m", file)) as caller:
                return (await caller.unschedulable(request)).value

        assert asyncio.run(scenario()) == expected


class TestGates:
    def test_quotas_count_only_with_their_gate(self, tmp_path: Path) -> None:
        quota = ("ResourceQuota", {
            "metadata": {"name": "team", "namespace": "d"},
            "status": {"hard": {"requests.nvidia.com/gpu": "4"}, "used": {"requests.nvidia.com/gpu": "1"}},
        })  # fmt: skip
        file = write_dump(tmp_path / "m.json", [gpu_node("a", 8), quota])
        request = replicas_request("m", ONE_GPU, namespace="d")

        async def ask(
            gates: Gates, request: pb.MaxAvailableReplicasRequest, object_text: str | None = None
        ) -> int:
            async with estimator(snapshot("m", file), gates=gates) as caller:
                return (await caller.replicas(request, object_text=object_text)).value

        on = Gates(resource_quota_estimate=True)
        assert asyncio.run(ask(Gates(), request)) == 8
        assert asyncio.run(ask(on, request)) == 3
        unnamed = replicas_request("m", ONE_GPU)
        assert asyncio.run(ask(on, unnamed)) == 8
        # Karmada before 1.14.10 leaves the namespace out of the message; the metadata has it.
        assert asyncio.run(ask(on, unnamed, "kind=Deployment, name=d/web")) == 3

    def test_assumed_workloads_count_only_with_their_gate_and_never_twice(self, tmp_path: Path) -> None:
        owned = gpu_pod("web-0", "a", 1, "d")[1]
        owned["metadata"] = {
            "name": "web-0",
            "namespace": "d",
            "ownerReferences": [
                {"apiVersion": "apps/v1", "kind": "StatefulSet", "name": "web", "controller": True}
            ],
        }
        file = write_dump(tmp_path / "m.json", [gpu_node("a", 8), ("Pod", owned)])
        request = replicas_request("m", ONE_GPU)
        workload = request.assumed_workloads.add(namespace="d")
        workload.components.add(name="web", replicas=3, replica_requirements=requirements(gpu=1))

        async def ask(gates: Gates) -> int:
            async with estimator(snapshot("m", file), gates=gates) as caller:
                return (await caller.replicas(request, object_text="kind=StatefulSet, name=d/web")).value

        assert asyncio.run(ask(Gates())) == 7
        # Of three assumed pods one is bound and holds its GPU already: two more are charged.
        assert asyncio.run(ask(Gates(scheduling_overcommit_protection=True))) == 5


class TestDoubt:
    @pytest.mark.parametrize(
        ("on_doubt", "for_gpus", "for_cpus"), [("auto", 0, -1), ("zero", 0, 0), ("skip", -1, -1)]
    )
    def test_is_what_the_operator_chose(
        self, dump: Path, on_doubt: str, for_gpus: int, for_cpus: int
    ) -> None:
        async def scenario() -> None:
            async with estimator(snapshot("m", dump), on_doubt=on_doubt) as caller:
                gpus = await caller.replicas(replicas_request("elsewhere", ONE_GPU))
                assert gpus.value == for_gpus
                assert gpus.reasons == (
                    "in doubt (unknown_cluster): this estimator serves m; it was asked about 'elsewhere'",
                )
                assert (await caller.replicas(replicas_request("elsewhere", ONE_CPU))).value == for_cpus

        asyncio.run(scenario())

    def test_a_call_before_the_first_sync_waits_for_the_right_answer(self) -> None:
        async def scenario() -> None:
            async with FakeApi() as api:
                await fill(api)
                api.hang()
                async with estimator(live("m", api.url)) as caller:
                    calls = [
                        asyncio.create_task(caller.replicas(replicas_request("m", ONE_GPU))) for _ in range(3)
                    ]
                    await api.until(lambda: len(api.seen) >= 4)
                    assert not any(call.done() for call in calls)
                    api.answer()
                    assert [(await call).value for call in calls] == [13, 13, 13]

        asyncio.run(scenario())

    def test_a_call_before_the_first_sync_is_answered_within_its_deadline(self) -> None:
        async def scenario() -> None:
            async with FakeApi() as api:
                api.hang()
                async with estimator(live("m", api.url)) as caller:
                    reply = await caller.replicas(replicas_request("m", ONE_GPU), timeout_s=0.6)
                    assert reply.value == 0
                    assert reply.reasons[0].startswith("in doubt (not_synced): nodes: out of contact for ")

        asyncio.run(scenario())

    def test_a_lost_api_server_leaves_the_last_state_and_then_doubt(self) -> None:
        async def scenario() -> None:
            async with FakeApi() as api:
                await fill(api)
                request = replicas_request("m", ONE_GPU)
                async with estimator(live("m", api.url)) as caller:
                    assert (await caller.replicas(request)).value == 13
                    await api.refuse()
                    assert (await caller.replicas(request)).value == 13
                async with estimator(live("m", api.url), stale_after_s=0.0) as caller:
                    reply = await caller.replicas(request)
                    assert reply.value == 0
                    assert "not_synced" in reply.reasons[0]

        asyncio.run(scenario())

    def test_what_changed_while_contact_was_lost_is_seen_when_it_is_back(self) -> None:
        async def scenario() -> None:
            async with FakeApi() as api:
                await fill(api)
                request = replicas_request("m", ONE_GPU)
                async with estimator(live("m", api.url)) as caller:
                    assert (await caller.replicas(request)).value == 13
                    await api.refuse()
                    api.delete("/api/v1/namespaces/default/pods/x")
                    api.compact()
                    await api.start()
                    await until_value(caller, request, 16)

        asyncio.run(scenario())

    def test_one_dead_cluster_does_not_touch_the_others(self, dump: Path) -> None:
        async def scenario() -> None:
            async with FakeApi() as api:
                await api.refuse()
                async with estimator(snapshot("m", dump), live("dead", api.url), stale_after_s=0.0) as caller:
                    assert (await caller.replicas(replicas_request("dead", ONE_CPU))).value == -1
                    assert (await caller.replicas(replicas_request("m", ONE_GPU))).value == 13

        asyncio.run(scenario())

    def test_quotas_that_may_not_be_read_put_only_questions_about_quotas_in_doubt(self) -> None:
        async def scenario() -> None:
            async with FakeApi() as api:
                await fill(api)
                api.fail(403, 10_000, when=lambda seen: "resourcequotas" in seen.path)
                gates = Gates(resource_quota_estimate=True)
                async with estimator(live("m", api.url), gates=gates, stale_after_s=0.0) as caller:
                    await until_value(caller, replicas_request("m", ONE_GPU), 13)
                    reply = await caller.replicas(replicas_request("m", ONE_GPU, namespace="d"))
                    assert reply.value == 0
                    assert "resourcequotas" in reply.reasons[0]

        asyncio.run(scenario())


class TestSnapshotFiles:
    def test_are_read_again_when_they_change(self, dump: Path) -> None:
        async def scenario() -> None:
            async with estimator(snapshot("m", dump)) as caller:
                request = replicas_request("m", ONE_GPU)
                assert (await caller.replicas(request)).value == 13
                write_dump(dump, [gpu_node("a", 2)])
                await until_value(caller, request, 2)

        asyncio.run(scenario())

    def test_that_become_unreadable_leave_the_last_good_state(
        self, dump: Path, caplog: pytest.LogCaptureFixture
    ) -> None:
        half = dump.read_bytes()[: dump.stat().st_size // 2]

        async def scenario() -> None:
            async with estimator(snapshot("m", dump)) as caller:
                request = replicas_request("m", ONE_GPU)
                assert (await caller.replicas(request)).value == 13
                await asyncio.to_thread(dump.write_bytes, half)
                async with asyncio.timeout(20):
                    while not any(str(dump) in message for message in caplog.messages):
                        assert (await caller.replicas(request)).value == 13
                assert (await caller.replicas(request)).value == 13
                os.replace(write_dump(dump.with_suffix(".new"), [gpu_node("a", 4)]), dump)
                await until_value(caller, request, 4)

        asyncio.run(scenario())

    def test_with_a_broken_object_serve_the_rest(
        self, tmp_path: Path, caplog: pytest.LogCaptureFixture
    ) -> None:
        broken: tuple[str, dict[str, object]] = ("Node", {"metadata": {"name": ["no"]}})
        items = [gpu_node("a", 8), broken, gpu_node("b", 8)]
        file = write_dump(tmp_path / "m.json", items)

        async def scenario() -> int:
            async with estimator(snapshot("m", file)) as caller:
                return (await caller.replicas(replicas_request("m", ONE_GPU))).value

        assert asyncio.run(scenario()) == 16
        assert any("item 1" in message and "metadata.name" in message for message in caplog.messages)


class TestProcess:
    def test_health_says_serving_before_any_cluster_is_read(self) -> None:
        async def scenario() -> None:
            async with FakeApi() as api:
                api.hang()
                async with estimator(live("m", api.url)) as caller:
                    stub = health_pb2_grpc.HealthStub(caller.channel)
                    for service in ("", SERVICE):
                        reply = await stub.Check(health_pb2.HealthCheckRequest(service=service))
                        assert reply.status == health_pb2.HealthCheckResponse.SERVING

        asyncio.run(scenario())

    def test_reflection_describes_the_service_under_its_full_name(self, dump: Path) -> None:
        async def scenario() -> set[str]:
            async with running(replace(DEFAULTS, clusters=(snapshot("m", dump),))) as (port, _):
                return await asyncio.to_thread(describe, port)

        def describe(port: int) -> set[str]:
            with grpc.insecure_channel(f"127.0.0.1:{port}") as channel:
                known = ProtoReflectionDescriptorDatabase(channel)
                assert SERVICE in known.get_services()
                return {method.name for method in known.FindFileContainingSymbol(SERVICE).service[0].method}

        assert asyncio.run(scenario()) == {
            "MaxAvailableReplicas",
            "MaxAvailableComponentSets",
            "GetUnschedulableReplicas",
        }

    def test_a_graceful_stop_finishes_the_calls_in_flight(self, monkeypatch: pytest.MonkeyPatch) -> None:
        arrived = asyncio.Event()
        settle = MemberCluster.settle

        async def noticed(
            member: MemberCluster, resources: tuple[str, ...], stale_after_s: float, within_s: float
        ) -> Freshness | None:
            arrived.set()
            return await settle(member, resources, stale_after_s, within_s)

        monkeypatch.setattr(MemberCluster, "settle", noticed)

        async def scenario() -> int:
            async with FakeApi() as api:
                await fill(api)
                api.hang()
                async with (
                    running(replace(DEFAULTS, clusters=(live("m", api.url),))) as (port, stop),
                    grpc.aio.insecure_channel(f"127.0.0.1:{port}") as channel,
                ):
                    call = asyncio.create_task(Caller(channel).replicas(replicas_request("m", ONE_GPU)))
                    await arrived.wait()
                    stop.set()
                    api.answer()
                    return (await call).value

        assert asyncio.run(scenario()) == 13

    def test_a_taken_port_is_a_clear_error(self, dump: Path) -> None:
        async def scenario() -> None:
            settings = replace(DEFAULTS, clusters=(snapshot("m", dump),))
            async with running(settings) as (port, _):
                with pytest.raises(StartError, match=f"--server-port {port}: cannot listen"):
                    async with running(replace(settings, server_port=port)):
                        pass

        asyncio.run(scenario())

    def test_debug_logs_tell_the_whole_answer(self, dump: Path, caplog: pytest.LogCaptureFixture) -> None:
        async def scenario() -> None:
            async with estimator(snapshot("m", dump)) as caller:
                await caller.replicas(
                    replicas_request("m", ONE_GPU), object_text="kind=Deployment, name=d/web"
                )

        with caplog.at_level("DEBUG", logger="estimator.service"):
            asyncio.run(scenario())
        record = next(record for record in caplog.records if record.message == "answered")
        assert json.loads(json.dumps(record.__dict__["value"])) == 13
        assert record.__dict__["object"] == "kind=Deployment, name=d/web"


def test_a_component_workload_larger_than_the_loop_may_bear_is_worked_out_on_a_thread(tmp_path: Path) -> None:
    nodes = [gpu_node(f"n{number}", 8) for number in range(400)]
    file = write_dump(tmp_path / "m.json", nodes)
    request = pb.MaxAvailableComponentSetsRequest(cluster="m")
    for number in range(64):
        wants = requirements(cpu=f"{number + 1}00m", gpu=1 + number % 2)
        request.components.add(name=f"c{number}", replicas=1, replica_requirements=wants)

    async def scenario() -> int:
        async with estimator(snapshot("m", file)) as caller:
            return (await caller.sets(request)).value

    # 3,200 GPUs, 96 a set.
    assert asyncio.run(scenario()) == 33
