"""Hostile tenants, member clusters and clients: what they write or answer reaches nobody else."""

import asyncio
import contextlib
import json
import ssl
from dataclasses import replace
from pathlib import Path

import aiohttp
import grpc
import pytest
from prometheus_client import CollectorRegistry, generate_latest

from admin.main import run as fairway
from estimator import flags as estimator_flags
from estimator.settings import Settings as EstimatorSettings
from fairway.capacity.v1 import capacity_pb2 as pb
from fairway.names import ADMISSION, QUEUE
from fairway.service.addresses import BindAddress
from fairway.service.common_flags import EndpointSettings
from fairway.visibility import (
    LocalQueueView,
    QueueList,
    QueueView,
    Usage,
    Waiting,
    WorkloadList,
    WorkloadView,
)
from queue_dispatcher import flags as dispatcher_flags
from queue_dispatcher.cycle.steps import to_the_end
from queue_dispatcher.estimates.estimators import Estimators
from queue_dispatcher.metrics import DispatcherMetrics
from queue_dispatcher.settings import EstimatorSettings as Asked
from queue_dispatcher.settings import Settings as DispatcherSettings
from queue_dispatcher.visibility.readings import reading
from sandbox.processes import free_ports
from tests.admin.dispatchers import dispatcher
from tests.dispatcher.estimates.test_estimators import GANG, Canned
from tests.dispatcher.estimates.test_estimators import serving as canned
from tests.dispatcher.scenarios.objects import FAIRWAY, cluster_queue, local_queue, service_class
from tests.dispatcher.scenarios.world import World, run
from tests.estimator.serving import (
    DEFAULTS,
    Caller,
    estimator,
    gpu_node,
    gpu_pod,
    replicas_request,
    running,
    snapshot,
    write_dump,
)
from tests.security.tenants import ALPHA, MARK, ZETA, two_tenants
from tests.webhook.builders import GPU as ONE_GPU
from tests.webhook.builders import binding, review, spec
from tests.webhook.serving import running as webhook_running
from webhook import flags as webhook_flags
from webhook.settings import Settings as WebhookSettings

ESCAPES = "\x1b[31m\x1b]0;title\x07\u202e\u2028<script>alert(1)</script>\r\n"
MAX_INT32 = (1 << 31) - 1


class TestTenant:
    @pytest.mark.parametrize(
        "queue",
        [
            f"{MARK}-only",
            f"{ZETA}/{MARK}-local",
            f"../{ZETA}/localqueues/{MARK}-local",
            "\u200bmain",
            "\uff4d\uff41\uff49\uff4e",
            "main\x00",
            "x" * 300_000,
        ],
    )
    def test_a_name_of_another_teams_queue_leads_nowhere(self, queue: str) -> None:
        async def scenario(world: World) -> None:
            await two_tenants(world)
            key = world.submit("thief", "", ALPHA, gpus=1, said={QUEUE: queue})
            named = world.submit("second", "", ALPHA, gpus=1, labels={QUEUE: queue})
            await world.passes(2)
            for held in (key, named):
                assert world.is_held(held)
                entry = next(
                    one for one in world.dispatcher.cache.entries.values() if one.binding.key == held
                )
                assert entry.waits is not None
                assert entry.waits.kind == "QueueNotFound"
                assert len(entry.waits.text) < 1000

        run(scenario)

    def test_a_class_that_anybody_may_name_goes_first_in_its_own_queue_alone(self) -> None:
        """What comes free in a cohort goes to whoever uses the smaller share, whatever the priorities."""

        async def scenario(world: World) -> None:
            world.fleet(m1=100)
            world.add(f"{FAIRWAY}/clusterqueues", cluster_queue("root", {"m1": 2}))
            world.add(f"{FAIRWAY}/serviceclasses", service_class("urgent", 1_000_000))
            for name in (ALPHA, ZETA):
                world.add("/api/v1/namespaces", {"metadata": {"name": name}})
                world.queue(name, {"m1": 2}, name, parent="root")
            await world.start()
            # Zeta uses its own quota and all that others lend.
            running = [world.submit(f"running-{number}", ZETA, ZETA, gpus=2) for number in range(3)]
            await world.until(lambda: all(map(world.is_placed, running)))
            plain = world.submit("plain", ZETA, ZETA, gpus=2)
            await world.passes(1.1)
            urgent = world.submit("urgent", ZETA, ZETA, gpus=2, said={"fairway.dev/class": "urgent"})
            await world.passes(1.1)
            alphas = world.submit("alphas", ALPHA, ALPHA, gpus=2)
            await world.passes(1.1)
            world.karmada.finish(running[:1])
            await world.until(lambda: world.is_placed(alphas))
            assert world.is_held(urgent)
            world.karmada.finish(running[1:2])
            await world.until(lambda: world.is_placed(urgent))
            assert world.is_held(plain)

        run(scenario)

    def test_a_local_queue_that_leads_to_another_teams_queue_gets_none_of_it(self) -> None:
        async def scenario(world: World) -> None:
            await two_tenants(world)
            world.api.update(
                f"{FAIRWAY}/clusterqueues/{MARK}-only",
                lambda obj: obj["spec"].update(namespaceSelector={"matchLabels": {"team": MARK}}),
            )
            world.add(f"{FAIRWAY}/namespaces/{ALPHA}/localqueues", local_queue("door", f"{MARK}-only"))
            key = world.submit("thief", "door", ALPHA, gpus=1)
            await world.passes(2)
            assert world.is_held(key)
            entry = next(one for one in world.dispatcher.cache.entries.values() if one.binding.key == key)
            assert entry.waits is not None
            assert entry.waits.kind == "NamespaceNotAllowed"

        run(scenario)

    @pytest.mark.parametrize(
        "record",
        [
            '{"id":"me","queue":"research","requests":{}}',
            "x" * 1_000_000,
            "[" * 100_000,
            '{"requests":{"nvidia.com/gpu":-5}}',
            "\ud7ff\u202e\u0000",
        ],
        ids=["forged", "a megabyte", "nested", "negative", "unicode"],
    )
    def test_a_record_forged_at_creation_starts_nothing_and_holds_up_nobody(self, record: str) -> None:
        async def scenario(world: World) -> None:
            await two_tenants(world, "BestEffortFIFO")
            forged = world.submit("forged", "main", ALPHA, gpus=7, annotations={ADMISSION: record})
            honest = world.submit(f"{MARK}-honest", "main", ZETA, gpus=1)
            await world.until(lambda: world.is_placed(honest))
            assert world.is_held(forged)
            world.check()

        run(scenario)


class TestMember:
    @pytest.mark.parametrize("fits", [-1, -MAX_INT32, 0, MAX_INT32])
    def test_an_estimator_may_say_any_number_of_its_own_cluster(self, fits: int) -> None:
        async def scenario() -> None:
            liar = Canned({"evil": fits}, {"evil": [("insufficient", ESCAPES * 1000)]})
            async with canned(liar) as evil, canned(Canned({"good": 3})) as good:
                asked = Asked(addresses={"evil": evil.address, "good": good.address})
                async with Estimators(asked) as estimators:
                    rooms = await estimators.place(("evil", "good"), GANG, {})
                assert rooms[0].fits == max(0, fits)
                assert len(rooms[0].why) <= 300
                assert (rooms[1].cluster, rooms[1].fits) == ("good", 3)

        asyncio.run(scenario())

    def test_an_estimator_says_nothing_of_clusters_that_it_was_not_asked_about(self) -> None:
        async def scenario() -> None:
            # It answers about whatever it is asked; what it adds about others is not heard.
            liar = Canned(garbage=_about("good", 1_000_000))
            async with canned(liar) as evil, canned(Canned({"good": 0})) as good:
                asked = Asked(addresses={"evil": evil.address, "good": good.address})
                async with Estimators(asked) as estimators:
                    rooms = await estimators.place(("evil", "good"), GANG, {})
                assert rooms[0].unknown
                assert rooms[1].fits == 0

        asyncio.run(scenario())

    @pytest.mark.parametrize(
        "size", ["9e999", "-8", "1e400", "99999999999999999999", "NaN", "8\x1b[31m", "", "0x10"]
    )
    def test_absurd_nodes_leave_others_true_and_the_answer_in_range(self, size: str, tmp_path: Path) -> None:
        evil = gpu_node(f"evil{ESCAPES}", 8)
        evil[1]["status"] = {"allocatable": {"cpu": size, "pods": size, "nvidia.com/gpu": size}}
        dump = write_dump(tmp_path / "m.json", [gpu_node("a", 8), evil])

        async def scenario() -> None:
            async with estimator(snapshot("m", dump)) as caller:
                value = (await caller.replicas(replicas_request("m", {"nvidia.com/gpu": "8"}))).value
                assert 1 <= value <= MAX_INT32

        asyncio.run(scenario())


class TestEyes:
    @pytest.mark.parametrize(
        "args",
        [("queues",), ("queue", "q"), ("queue", "ns/q"), ("pending",), ("pending", "w"), ("queue", "odd")],
    )
    def test_nothing_that_is_named_commands_a_terminal(
        self, args: tuple[str, ...], capsys: pytest.CaptureFixture[str]
    ) -> None:
        evil = WorkloadView(
            namespace=ESCAPES,
            name=ESCAPES,
            kind=ESCAPES,
            binding=ESCAPES,
            state="Pending",
            local_queue=ESCAPES,
            cluster_queue=ESCAPES,
            service_class=ESCAPES,
            position_in_cluster_queue=1,
            enqueued_at=ESCAPES,
            admitted_at=ESCAPES,
            request={ESCAPES: 1},
            flavors={ESCAPES: ESCAPES},
            clusters={ESCAPES: 1},
            waiting=Waiting(ESCAPES, ESCAPES, ESCAPES),
            note=ESCAPES,
        )
        queue = QueueView(
            name=ESCAPES,
            parent=ESCAPES,
            strategy=ESCAPES,
            stopped=ESCAPES,
            problems=[ESCAPES],
            pending=1,
            usage=[Usage(ESCAPES, ESCAPES, 1, 1, 0)],
            waiting={ESCAPES: 1},
            workloads=[evil],
        )
        local = LocalQueueView(
            namespace=ESCAPES,
            name=ESCAPES,
            cluster_queue=ESCAPES,
            stopped=ESCAPES,
            problems=[ESCAPES],
            pending=1,
            workloads=[evil],
        )
        answers = {
            "/queues": QueueList([queue], [evil], as_of=ESCAPES),
            "/queues/q": queue,
            f"/queues/{ESCAPES}": queue,
            "/namespaces/ns/queues/q": local,
            "/workloads/default/w": WorkloadList([evil]),
            "/queues/odd": ESCAPES.encode(),
        }
        with dispatcher(answers) as url:
            fairway((*args, "--dispatcher", url))
        captured = capsys.readouterr()
        said = captured.out + captured.err
        assert not set(said) & set("\x1b\x07\u202e\u2028\r")


class TestWebhookClient:
    def test_connections_of_one_address_leave_room_for_the_api_server(self) -> None:
        async def scenario() -> None:
            async with webhook_running(max_connections_of_one=2) as webhook:
                context = ssl.create_default_context(cadata=webhook.authority.pem.decode())
                flood = [
                    await asyncio.open_connection(
                        "127.0.0.1",
                        webhook.port,
                        ssl=context,
                        server_hostname="localhost",
                        local_addr=("127.0.0.2", 0),
                    )
                    for _ in range(2)
                ]
                assert not await _answered(webhook.port, context)
                answer = await webhook.ask(review(binding(spec(ONE_GPU))))
                assert answer["allowed"] is True
                assert webhook.counted("refused_total", reason="too_many_connections") >= 1
                for _, writer in flood:
                    await _ended(writer)

        asyncio.run(scenario())

    @pytest.mark.parametrize(
        "body",
        [
            b"[" * 1_000_000,
            b'{"request":' * 100_000,
            json.dumps(review(binding(spec(ONE_GPU, replicas=10**400)))).encode(),
            json.dumps(review(binding(spec({"nvidia.com/gpu": "9" * 100_000})))).encode(),
            json.dumps(review(binding(spec({"nvidia.com/gpu": "1e" + "9" * 1000})))).encode(),
            json.dumps(review(binding(spec({ESCAPES: "1"}, replicas=-1)))).encode(),
        ],
        ids=["nested", "nested objects", "replicas", "digits", "exponent", "escapes"],
    )
    def test_any_review_is_answered_or_refused_and_the_next_is_answered(self, body: bytes) -> None:
        async def scenario() -> None:
            async with webhook_running() as webhook:
                status, text = await webhook.post(body)
                assert status in (200, 400)
                assert b"\x1b" not in text
                answer = await webhook.ask(review(binding(spec(ONE_GPU))))
                assert answer["allowed"] is True
                assert "patch" in answer

        asyncio.run(scenario())


class TestMetrics:
    def test_the_dispatchers_name_queues_and_no_workloads_or_namespaces(self) -> None:
        async def scenario(world: World) -> None:
            await two_tenants(world)
            assert world.running is not None
            clock, sources = world.dispatcher.controller._clock, world.running.sources
            registry = CollectorRegistry()
            metrics = DispatcherMetrics(registry, version="test")
            metrics.readings = to_the_end(reading(world.dispatcher, sources, clock))
            text = generate_latest(registry).decode()
            assert f"{MARK}-only" in text
            for name in (ZETA, ALPHA, f"{MARK}-1", "alpha-1", f"{MARK}-local", f"{MARK}-lost"):
                assert name not in text

        run(scenario)

    def test_the_estimators_name_no_pod_node_or_namespace(self, tmp_path: Path) -> None:
        objects = [gpu_node("a-node", 8), gpu_pod("a-pod", "a-node", 3, "a-namespace")]
        dump = write_dump(tmp_path / "m.json", objects)
        (port,) = free_ports(1)
        endpoints = EndpointSettings(health=None, metrics=BindAddress("127.0.0.1", port), profiling=None)
        settings = replace(DEFAULTS, clusters=(snapshot("m", dump),), endpoints=endpoints)

        async def scenario() -> str:
            async with (
                running(settings) as (serving, _),
                grpc.aio.insecure_channel(f"127.0.0.1:{serving}") as channel,
                aiohttp.ClientSession() as session,
            ):
                asked = replicas_request("m", {"nvidia.com/gpu": "1"})
                await Caller(channel).replicas(asked, object_text="a-namespace/a-workload")
                async with session.get(f"http://127.0.0.1:{port}/metrics") as got:
                    return await got.text()

        text = asyncio.run(scenario())
        assert 'cluster="m"' in text
        for name in ("a-node", "a-pod", "a-namespace", "a-workload"):
            assert name not in text

    def test_profiling_is_off_unless_asked_for(self) -> None:
        parsed = (
            estimator_flags.parse(["--cluster-name=m", "--master=http://x"], version="1"),
            dispatcher_flags.parse([], version="1", identity="me"),
            webhook_flags.parse(["--url=https://webhook.example"], version="1"),
        )
        for settings in parsed:
            assert isinstance(settings, EstimatorSettings | DispatcherSettings | WebhookSettings)
            assert settings.endpoints.profiling is None


async def _answered(port: int, context: ssl.SSLContext) -> bool:
    """Whether a further connection from the flooding address gets any answer."""
    try:
        reader, writer = await asyncio.open_connection(
            "127.0.0.1", port, ssl=context, server_hostname="localhost", local_addr=("127.0.0.2", 0)
        )
    except OSError:
        return False
    try:
        writer.write(b"GET / HTTP/1.1\r\nHost: x\r\n\r\n")
        return bool(await reader.read())
    except OSError:
        return False
    finally:
        await _ended(writer)


async def _ended(writer: asyncio.StreamWriter) -> None:
    writer.close()
    with contextlib.suppress(OSError):
        await writer.wait_closed()


def _about(cluster: str, fits: int) -> bytes:
    return pb.PlaceResponse(clusters=[pb.ClusterPlacement(cluster=cluster, fits=fits)]).SerializeToString()
