"""What people and programs are told: over HTTP, in statuses, Events and metrics."""

import asyncio
from typing import TypeVar

import aiohttp
import msgspec
import pytest
from prometheus_client import CollectorRegistry, generate_latest

from fairway.kube.client import KubeClient
from fairway.kube.events import EventWriter
from fairway.service.addresses import BindAddress
from fairway.visibility import LocalQueueView, QueueList, QueueView, WorkloadList
from queue_dispatcher.bindings.timestamp import parse_ms
from queue_dispatcher.cycle.steps import to_the_end
from queue_dispatcher.metrics import DispatcherMetrics
from queue_dispatcher.visibility.etas import Etas
from queue_dispatcher.visibility.events import BindingEvents
from queue_dispatcher.visibility.readings import reading
from queue_dispatcher.visibility.server import VisibilityServer
from queue_dispatcher.visibility.status import QueueStatuses
from tests.dispatcher.scenarios.objects import FAIRWAY, GPU, Obj, cluster_queue, flavor, service_class
from tests.dispatcher.scenarios.test_estimates import Estimators
from tests.dispatcher.scenarios.world import World, run

T = TypeVar("T")


async def full(world: World, spec: Obj | None = None) -> list[str]:
    """Two run, five wait."""
    world.fleet(m1=100)
    world.add(f"{FAIRWAY}/clusterqueues", cluster_queue("root", {"m1": 2}))
    world.queue("main", {"m1": 2}, **{"parent": "root", **(spec or {})})
    await world.start()
    keys = [world.submit(f"w{number}", gpus=2) for number in range(7)]
    await world.until(lambda: sum(map(world.is_placed, keys)) == 2)
    await world.passes(1)
    return keys


async def asked(world: World, path: str, document: type[T]) -> T:
    clock = world.dispatcher.controller._clock
    server = VisibilityServer(world.dispatcher, clock)
    async with (
        server.serve(BindAddress("127.0.0.1", 0)) as address,
        aiohttp.ClientSession() as session,
        session.get(f"http://{address}/visibility/v1{path}") as response,
    ):
        assert response.status == 200, await response.text()
        return msgspec.json.decode(await response.read(), type=document)


def test_queues_positions_and_reasons() -> None:
    async def scenario(world: World) -> None:
        await full(world)
        found = await asked(world, "/queues", QueueList)
        assert [queue.name for queue in found.queues] == ["root", "main"]
        main = found.queues[1]
        assert (main.parent, main.pending, main.admitted) == ("root", 5, 2)
        assert main.waiting == {"WaitingForBorrowing": 5}
        usage = main.usage[0]
        assert (usage.nominal, usage.used, usage.borrowed, usage.available) == (2, 4, 2, 0)
        assert found.is_leader
        queue = await asked(world, "/queues/main?limit=2&offset=1", QueueView)
        assert [one.position_in_cluster_queue for one in queue.workloads] == [2, 3]
        assert [one.position_in_local_queue for one in queue.workloads] == [2, 3]
        local = await asked(world, "/namespaces/team/queues/main", LocalQueueView)
        assert (local.cluster_queue, local.pending, local.admitted) == ("main", 5, 2)
        assert len(local.workloads) == 5

    run(scenario)


def test_when_what_waits_is_expected_to_start() -> None:
    async def scenario(world: World) -> None:
        world.add(f"{FAIRWAY}/serviceclasses", service_class("short", maxRuntime="10m"))
        world.fleet(m1=2)
        world.queue("main", {"m1": 2}, queueingStrategy="BackfillFIFO")
        await world.start()
        runs = world.submit("runs", gpus=2, said={"fairway.dev/class": "short"})
        await world.until(lambda: world.is_placed(runs))
        world.submit("waits", gpus=2)
        world.submit("behind", gpus=2)
        controller = world.dispatcher.controller
        clock = controller._clock
        # Nothing was worked out yet.
        (first,) = (await asked(world, "/workloads/team/waits", WorkloadList)).workloads
        assert first.eta is None
        await Etas(controller).look()
        told = {one.name: one.eta for one in (await asked(world, "/queues/main", QueueView)).workloads}
        assert told.keys() == {"waits", "behind"}
        waits, behind = told["waits"], told["behind"]
        assert waits is not None
        assert (waits.confidence, waits.at) == ("bound", waits.by)
        assert 580_000 < (parse_ms(waits.at) or 0) - clock.now_ms() <= 600_000
        assert waits.text == f"if all in its way runs for as long as it may: about {waits.by}"
        # The one before it has no limit.
        assert behind is not None
        assert (behind.confidence, behind.at) == ("unknown", "")
        async with KubeClient.from_url(world.api.url, qps=-1) as client:
            writer = EventWriter(
                client, "fairway-dispatcher", "test", clock=lambda: clock.elapsed_ms() / 1000
            )
            events = BindingEvents(writer, clock.elapsed_ms, clock.now_ms)
            tasks = [
                asyncio.create_task(writer.run()),
                asyncio.create_task(events.watch(world.dispatcher)),
            ]
            await world.passes(300)
            stored = [r.decode() for r in world.api.store.collection("v1", "events").records.values()]
            expected = [one for one in stored if one["reason"] == "StartExpected"]
            assert [one["involvedObject"]["name"] for one in expected] == ["waits-job"]
            assert expected[0]["message"].startswith("it can start about 20")
            for task in tasks:
                task.cancel()
            await asyncio.wait(tasks)

    run(scenario)


def test_one_workload() -> None:
    async def scenario(world: World) -> None:
        keys = await full(world)
        (running,) = (await asked(world, "/workloads/team/w0", WorkloadList)).workloads
        assert (running.state, running.cluster_queue, running.clusters) == ("Placed", "main", {"m1": 1})
        assert running.flavors == {GPU: "m1"}
        assert running.waiting is None
        (held,) = (await asked(world, "/workloads/team/w6", WorkloadList)).workloads
        assert (held.state, held.position_in_cluster_queue) == ("Pending", 5)
        assert held.waiting is not None
        assert held.waiting.kind == "WaitingForBorrowing"
        assert held.waiting.unblock
        nowhere = world.submit("nowhere", "none", gpus=1)
        await world.passes(1)
        (lost,) = (await asked(world, "/queues", QueueList)).unresolved
        assert (lost.name, lost.state) == ("nowhere", "Held")
        assert lost.waiting is not None
        assert lost.waiting.text == "LocalQueue team/none does not exist"
        assert await asked(world, "/workloads/team/none", WorkloadList) == WorkloadList()
        assert await asked(world, "/workloads/typo/w0", WorkloadList) == WorkloadList(namespaces=["team"])
        world.karmada.finish(keys[:1])
        await world.passes(0.1)
        (done,) = (await asked(world, "/workloads/team/w0-job", WorkloadList)).workloads
        assert done.state == "Finished"
        assert nowhere

    run(scenario)


def test_bad_questions_are_refused() -> None:
    async def scenario(world: World) -> None:
        await full(world)
        clock = world.dispatcher.controller._clock
        server = VisibilityServer(world.dispatcher, clock)
        async with server.serve(BindAddress("127.0.0.1", 0)) as address, aiohttp.ClientSession() as session:
            for path, status in (
                ("/queues/none", 404),
                ("/namespaces/team/queues/none", 404),
                ("/queues/main?limit=1001", 400),
                ("/queues/main?offset=-1", 400),
                ("/queues/main?limit=x", 400),
                ("/nothing", 404),
            ):
                async with session.get(f"http://{address}/visibility/v1{path}") as response:
                    assert response.status == status, path
            async with session.post(f"http://{address}/visibility/v1/queues") as response:
                assert response.status == 405

    run(scenario)


def test_what_is_used_is_written_once_a_minute_while_it_changes() -> None:
    async def scenario(world: World) -> None:
        keys = await full(world, {"fairSharing": {}})
        clock = world.dispatcher.controller._clock
        async with KubeClient.from_url(world.api.url, qps=-1) as client:
            statuses = QueueStatuses(client, world.dispatcher, clock, lambda kind, outcome: None)
            task = asyncio.create_task(statuses.run(lambda: True))
            await world.passes(12)

            def used() -> int:
                records = world.api.store.collection("fairway.dev/v1alpha1", "localqueues").records
                (status,) = (record.decode()["status"] for record in records.values())
                return int(status["history"]["deviceMilliseconds"])

            def written() -> int:
                return sum(w.path.endswith("/localqueues/main/status") for w in world.api.writes.entries)

            first, before = used(), written()
            await world.passes(300)
            assert 4 <= written() - before <= 5
            assert 4 * 235_000 <= used() - first <= 4 * 305_000
            for _ in range(4):
                world.karmada.finish(keys)
                await world.passes(10)
            before = written()
            last = used()
            await world.passes(300)
            # What only fades is worked out by whoever reads it.
            assert (written(), used()) == (before, last)
            task.cancel()
            await asyncio.wait((task,))

    run(scenario)


def test_statuses_are_written_when_they_change_and_seldom() -> None:
    async def scenario(world: World) -> None:
        keys = await full(world)
        clock = world.dispatcher.controller._clock
        async with KubeClient.from_url(world.api.url, qps=-1) as client:
            statuses = QueueStatuses(client, world.dispatcher, clock, lambda kind, outcome: None)
            task = asyncio.create_task(statuses.run(lambda: True))
            await world.passes(12)

            def written() -> list[str]:
                return [w.path for w in world.api.writes.entries if w.path.endswith("/status")]

            def status(path: str) -> Obj:
                found: Obj = next(
                    record.decode()["status"]
                    for key, record in world.api.store.collection(
                        "fairway.dev/v1alpha1", path
                    ).records.items()
                    if key[1] == "main"
                )
                return found

            # One for each of the three queues, and none while nothing changes.
            assert len(written()) == 3
            await world.passes(60)
            assert len(written()) == 3
            main = status("clusterqueues")
            assert (main["pending"], main["admitted"]) == (5, 2)
            assert main["conditions"][0]["status"] == "True"
            assert main["flavorsUsage"][0]["resources"][0] == {
                "name": GPU,
                "total": "4",
                "borrowed": "2",
                "reserved": "0",
            }
            since = main["conditions"][0]["lastTransitionTime"]
            world.karmada.finish(keys[:2])
            await world.passes(12)
            assert status("localqueues")["pending"] == 3
            assert status("clusterqueues")["conditions"][0]["lastTransitionTime"] == since
            before = len(written())
            task.cancel()
            # A new leader does not write anew what the last one has written.
            heir = asyncio.create_task(
                QueueStatuses(client, world.dispatcher, clock, lambda *_: None).run(lambda: True)
            )
            await world.passes(12)
            assert len(written()) == before
            heir.cancel()
            await asyncio.wait((task, heir))

    run(scenario)


@pytest.mark.parametrize("code", [403, 422, 429, 500])
def test_a_status_that_is_refused_keeps_no_other_from_being_written(code: int) -> None:
    """The history in them is all that a new leader knows of what was used."""

    async def scenario(world: World) -> None:
        await full(world)
        refused = next(iter(world.dispatcher.cache.queues.cluster_queues.values))
        world.api.fail(code, 10_000, when=lambda seen: seen.path.endswith(f"/clusterqueues/{refused}/status"))
        clock = world.dispatcher.controller._clock
        async with KubeClient.from_url(world.api.url, qps=-1) as client:
            statuses = QueueStatuses(client, world.dispatcher, clock, lambda kind, outcome: None)
            task = asyncio.create_task(statuses.run(lambda: True))
            await world.passes(25)
            written = [w.path for w in world.api.writes.entries if w.path.endswith("/status")]
            assert len(written) == 2
            asked = [s for s in world.api.seen if s.path.endswith(f"/clusterqueues/{refused}/status")]
            assert len(asked) == 1
            world.api.faults.clear()
            await world.passes(80)
            written = [w.path for w in world.api.writes.entries if w.path.endswith("/status")]
            assert len(written) == 3
            task.cancel()
            await asyncio.wait((task,))

    run(scenario)


def test_the_condition_says_what_is_wrong_with_a_queue() -> None:
    async def scenario(world: World) -> None:
        world.fleet(m1=8, m2=8)
        world.queue("main", {"m1": 3})
        world.queue("both", {"m1": 3, "m2": 3})
        world.queue("lost", {"m2": 3}, parent="none")
        await world.start()
        clock = world.dispatcher.controller._clock
        async with KubeClient.from_url(world.api.url, qps=-1) as client:

            def active(kind: str, name: str, namespace: str = "") -> tuple[str, str, str]:
                records = world.api.store.collection("fairway.dev/v1alpha1", kind).records
                (found,) = records[namespace, name].decode()["status"]["conditions"]
                return found["status"], found["reason"], found["message"]

            statuses = QueueStatuses(client, world.dispatcher, clock, lambda kind, outcome: None)
            task = asyncio.create_task(statuses.run(lambda: True))
            await world.passes(12)
            ready = ("True", "Ready", "the queue admits workloads")
            status, why, lost = active("clusterqueues", "lost")
            assert (status, why) == ("False", "Stopped")
            assert active("localqueues", "lost", "team") == (status, why, lost)
            assert active("clusterqueues", "main") == active("localqueues", "main", "team") == ready
            world.api.delete(f"{FAIRWAY}/resourceflavors/m1")
            await world.passes(12)
            gone = (
                "spec.resourceGroups[0].flavors[0].name: there is no ResourceFlavor m1: its quota is never "
                "given; create it, or name another"
            )
            lacking = "there is no ResourceFlavor m1, and queue main has quota of no other"
            assert active("clusterqueues", "main") == ("False", "FlavorNotFound", lacking)
            assert active("localqueues", "main", "team") == ("False", "FlavorNotFound", lacking)
            assert active("clusterqueues", "both") == ("True", "Ready", f"{ready[2]}; {gone}")
            assert active("localqueues", "both", "team") == ready
            task.cancel()
            await asyncio.wait((task,))

    run(scenario)


@pytest.mark.parametrize(
    ("asks", "told"),
    [
        (False, {"main": "Karmada chooses the clusters", "above": "it has queues below it"}),
        (True, {"above": "it has queues below it"}),
    ],
    ids=["without estimators", "with estimators"],
)
def test_spreading_without_effect_is_told(asks: bool, told: dict[str, str]) -> None:
    async def scenario(world: World) -> None:
        world.fleet(m1=8)
        spreads = {"type": "LeastAllocated"}
        world.queue("above", {"m1": 8}, scoringStrategy=spreads)
        world.queue("main", {"m1": 8}, parent="above", scoringStrategy=spreads)
        await world.start(estimation=Estimators(world, {"m1": 8}).estimation() if asks else None)
        await world.passes(2)
        async with KubeClient.from_url(world.api.url, qps=-1) as client:
            clock = world.dispatcher.controller._clock
            await QueueStatuses(client, world.dispatcher, clock, lambda *_: None).write(lambda: True)
        records = world.api.store.collection("fairway.dev/v1alpha1", "clusterqueues").records
        for name in ("main", "above"):
            view = await asked(world, f"/queues/{name}", QueueView)
            expected = told.get(name)
            conditions = records["", name].decode()["status"]["conditions"]
            assert view.problems == [c["message"] for c in conditions if c["type"] == "Effective"]
            assert len(view.problems) == (expected is not None)
            assert all(
                one.startswith(f"spec.scoringStrategy: no effect: {expected}") for one in view.problems
            )

    run(scenario)


def test_fields_without_effect_are_told_on_the_objects_that_state_them() -> None:
    async def scenario(world: World) -> None:
        world.fleet(m1=8)
        world.queue("main", {"m1": 8}, flavorFungibility={"whenCanPreempt": "MayStopSearch"})
        spot = [{"key": "spot", "operator": "Exists"}]
        world.add(f"{FAIRWAY}/resourceflavors", flavor("spot", "m1", tolerations=spot))
        # As an earlier version told it, in which the field had no effect.
        before = {
            "type": "Effective",
            "status": "False",
            "reason": "FieldsWithoutEffect",
            "message": "of old",
        }
        told_before = {"conditions": [before | {"lastTransitionTime": "2026-01-01T00:00:00Z"}]}
        urgent = service_class("urgent", minRuntime="1h") | {"status": told_before}
        world.add(f"{FAIRWAY}/serviceclasses", urgent)
        world.add(f"{FAIRWAY}/serviceclasses", service_class("plain"))
        await world.start()
        clock = world.dispatcher.controller._clock
        async with KubeClient.from_url(world.api.url, qps=-1) as client:

            def written(kind: str) -> int:
                return sum(f"/{kind}/" in w.path for w in world.api.writes.entries if "/status" in w.path)

            def effective(kind: str, name: str) -> list[str]:
                records = world.api.store.collection("fairway.dev/v1alpha1", kind).records
                status = records["", name].decode().get("status", {})
                found = [c for c in status.get("conditions", ()) if c["type"] == "Effective"]
                assert all((c["status"], c["reason"]) == ("False", "FieldsWithoutEffect") for c in found)
                return [c["message"] for c in found]

            statuses = QueueStatuses(client, world.dispatcher, clock, lambda kind, outcome: None)
            task = asyncio.create_task(statuses.run(lambda: True))
            await world.passes(12)
            assert effective("clusterqueues", "main") == [
                "spec.flavorFungibility.whenCanPreempt: no effect: nobody is displaced, as spec.preemption "
                "states Never for both"
            ]
            (told,) = effective("resourceflavors", "spot")
            assert told.startswith("spec.tolerations[0]: no effect")
            assert effective("serviceclasses", "urgent") == []
            assert (await asked(world, "/queues/main", QueueView)).problems == effective(
                "clusterqueues", "main"
            )
            task.cancel()
            # Another leader writes nothing anew, and takes back what holds no longer.
            heir = asyncio.create_task(
                QueueStatuses(client, world.dispatcher, clock, lambda *_: None).run(lambda: True)
            )
            await world.passes(12)
            assert (written("serviceclasses"), written("resourceflavors")) == (1, 1)
            world.api.update(f"{FAIRWAY}/resourceflavors/spot", lambda obj: obj["spec"].pop("tolerations"))
            await world.passes(12)
            assert effective("resourceflavors", "spot") == []
            await world.passes(12)
            assert written("resourceflavors") == 2
            heir.cancel()
            await asyncio.wait((task, heir))

    run(scenario)


@pytest.mark.parametrize("dies", [False, True])
def test_a_queue_tells_since_when_it_uses_more_than_it_may_and_who_takes_over_counts_on(
    *, dies: bool
) -> None:
    async def scenario(world: World) -> None:
        reduction = {"policy": "Evict", "delay": "60s"}
        world.fleet(m1=8)
        world.queue("main", {"m1": 4}, quotaReduction=reduction)
        await world.start()
        key = world.submit("x", gpus=1, replicas=4)
        await world.until(lambda: world.is_placed(key))

        def within() -> list[Obj]:
            records = world.api.store.collection("fairway.dev/v1alpha1", "clusterqueues").records
            conditions = records["", "main"].decode().get("status", {}).get("conditions", ())
            return [one for one in conditions if one["type"] == "WithinQuota"]

        async with KubeClient.from_url(world.api.url, qps=-1) as client:
            clock = world.dispatcher.controller._clock
            statuses = QueueStatuses(client, world.dispatcher, clock, lambda *_: None)
            task = asyncio.create_task(statuses.run(lambda: True))
            await world.passes(12)
            assert within() == []
            path = f"{FAIRWAY}/clusterqueues/main"
            world.api.update(path, lambda obj: obj["spec"].update(cluster_queue("", {"m1": 2})["spec"]))
            await world.passes(12)
            (told,) = within()
            message = "2 nvidia.com/gpu of m1 more than it may; taken back once that has lasted for 1m"
            assert (told["status"], told["reason"], told["message"]) == ("False", "QuotaExceeded", message)
            assert message in (await asked(world, "/queues/main", QueueView)).problems
            task.cancel()
            await asyncio.wait((task,))
        if dies:
            assert world.running is not None
            await world.running.kill()
            await world.start()
        await world.passes(40)
        assert world.is_placed(key)
        await world.passes(20)
        assert not world.is_placed(key)

    run(scenario)


def test_events_tell_of_those_that_stand_for_others_once() -> None:
    async def scenario(world: World) -> None:
        await full(world)
        world.submit("nowhere", "none", gpus=1)
        clock = world.dispatcher.controller._clock
        async with KubeClient.from_url(world.api.url, qps=-1) as client:
            writer = EventWriter(
                client, "fairway-dispatcher", "test", clock=lambda: clock.elapsed_ms() / 1000
            )
            events = BindingEvents(writer, clock.elapsed_ms, clock.now_ms)
            tasks = [
                asyncio.create_task(writer.run()),
                asyncio.create_task(events.watch(world.dispatcher)),
            ]
            await world.passes(300)
            stored = [r.decode() for r in world.api.store.collection("v1", "events").records.values()]
            told = sorted((event["involvedObject"]["name"], event["reason"]) for event in stored)
            assert told == [("nowhere-job", "QueueNotFound"), ("w2-job", "WaitingForBorrowing")]
            for task in tasks:
                task.cancel()
            await asyncio.wait(tasks)

    run(scenario)


def test_metrics_count_what_there_is() -> None:
    async def scenario(world: World) -> None:
        budget = {"name": "day", "deviceHours": 9, "period": "Day"}
        await full(world, {"fairSharing": {}, "budgets": [budget]})
        world.submit("nowhere", "none", gpus=1)
        await world.passes(9)
        assert world.running is not None
        clock = world.dispatcher.controller._clock
        registry = CollectorRegistry()
        metrics = DispatcherMetrics(registry, version="test")
        sources = world.running.sources
        metrics.readings = to_the_end(reading(world.dispatcher, sources, clock))
        text = generate_latest(registry).decode()
        for line in (
            'fairway_pending{cluster_queue="main"} 5.0',
            'fairway_pending{cluster_queue=""} 1.0',
            'fairway_unadmitted{cluster_queue="main",reason="WaitingForBorrowing"} 5.0',
            'fairway_unadmitted{cluster_queue="",reason="QueueNotFound"} 1.0',
            'fairway_bindings{state="Placed"} 2.0',
            f'fairway_queue_usage{{cluster_queue="main",flavor="m1",resource="{GPU}"}} 4.0',
            f'fairway_queue_borrowed{{cluster_queue="main",flavor="m1",resource="{GPU}"}} 2.0',
            'fairway_queue_cost{cluster_queue="main"} 0.01',
            'fairway_budget_used_device_hours{budget="day",cluster_queue="main"} 0.01',
            'fairway_budget_device_hours{budget="day",cluster_queue="main"} 9.0',
            'fairway_local_queue_usage{cluster_queue="main",local_queue="main",namespace="team"} 0.01',
            "fairway_leading 1.0",
            "fairway_synced 1.0",
        ):
            assert line in text, line

    run(scenario)
