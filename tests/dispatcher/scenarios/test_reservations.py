"""Who holds a reservation is told wherever its state is: views, statuses, gauges, Events, each to whom it
concerns.
"""

import asyncio

import pytest
from prometheus_client import CollectorRegistry, generate_latest

from fairway.kube.client import KubeClient
from fairway.visibility import QueueView, WorkloadView
from queue_dispatcher.bindings.timestamp import parse_ms
from queue_dispatcher.cycle.steps import to_the_end
from queue_dispatcher.metrics import DispatcherMetrics
from queue_dispatcher.visibility.readings import reading
from queue_dispatcher.visibility.status import QueueStatuses
from queue_dispatcher.visibility.viewer import EVERYTHING, Viewer
from queue_dispatcher.visibility.views import Views
from tests.dispatcher.scenarios.objects import FAIRWAY, GPU, cluster_queue, local_queue
from tests.dispatcher.scenarios.world import World, now_s, run

POLICY = {"after": "10s", "drainAfter": "60s", "holdTimeout": "200s"}
LIMIT = "fairway.dev/max-runtime"


async def busy(world: World, limit: str = "1h") -> list[str]:
    """16 GPUs, of which 12 are used, by work with this limit; then a gang of 16 comes, and small work of
    another team, which wait for half a minute.
    """
    world.add("/api/v1/namespaces", {"metadata": {"name": "other"}})
    world.fleet(m1=16)
    world.add(f"{FAIRWAY}/clusterqueues", cluster_queue("root", {"m1": 16}))
    world.queue("main", {"m1": 0}, queueingStrategy="BackfillFIFO", reservation=POLICY, parent="root")
    world.add(f"{FAIRWAY}/namespaces/other/localqueues", local_queue("main", "main"))
    await world.start()
    keys = [world.submit(f"w{n}", gpus=4, said={LIMIT: limit} if limit else {}) for n in range(3)]
    await world.until(lambda: all(map(world.is_placed, keys)))
    world.submit("gang", gpus=16)
    await world.passes(12)
    world.submit("small", namespace="other", gpus=4)
    await world.passes(20)
    return keys


def views(world: World, viewer: Viewer = EVERYTHING) -> Views:
    return Views(world.dispatcher.cache, world.dispatcher.controller.view, int(now_s() * 1000), viewer)


def told(world: World, name: str, namespace: str = "team") -> WorkloadView:
    (found,) = views(world).workloads(namespace, name).workloads
    return found


def queue(world: World, name: str, viewer: Viewer = EVERYTHING) -> QueueView:
    found = views(world, viewer).queue(name, 0, 10)
    assert found is not None
    return found


@pytest.mark.parametrize("limit", ["1h", ""])
def test_a_workload_is_told_of_its_reservation(limit: str) -> None:
    async def scenario(world: World) -> None:
        await busy(world, limit)
        held = told(world, "gang").reservation
        assert held is not None
        (amount,) = held.amounts
        assert (amount.flavor, amount.resource, amount.amount, amount.lacking) == ("m1", GPU, 16, 12)
        assert (held.stage, held.cluster) == ("Reserved", "")
        assert bool(held.starts_at) == bool(limit)
        assert held.unknown == ("" if limit else "not all that uses what it lacks has a maxRuntime")
        since, until = parse_ms(held.since), parse_ms(held.held_until)
        assert since is not None
        assert until == since + 200_000
        for word in (
            f"16 {GPU} of flavor m1 reserved for it",
            held.starts_at or held.unknown,
            held.held_until,
        ):
            assert word in held.text
        assert told(world, "w0").reservation is None
        await world.passes(40)
        draining = told(world, "gang").reservation
        assert draining is not None
        assert (draining.stage, draining.since) == ("Draining", held.since)
        assert f"since {held.drains_at} nothing else starts" in draining.text
        assert [(name, reason) for name, reason in world.told.told if "Reserv" in reason] == [
            ("gang-job", "Reserved")
        ]

    run(scenario)


def test_what_was_given_up_is_told_until_there_may_be_another() -> None:
    async def scenario(world: World) -> None:
        await busy(world, "")
        await world.passes(190)
        gang = told(world, "gang")
        assert gang.reservation is None
        assert gang.note.startswith(
            "its reservation was given up (reservation.holdTimeout); it gets no other"
        )
        assert ("gang-job", "ReservationGivenUp") in world.told.told
        await world.passes(200)
        assert (told(world, "gang").note, told(world, "gang").reservation is None) == ("", False)

    run(scenario)


def test_queues_tell_what_is_reserved() -> None:
    async def scenario(world: World) -> None:
        keys = await busy(world)
        for name, count in (("main", 1), ("root", 0)):
            found = queue(world, name)
            assert ([one.reserved for one in found.usage], found.reservations) == ([16], count)
        world.karmada.finish(keys)
        await world.passes(2)
        assert world.is_placed("team/gang-job")
        # By now the other waits long enough.
        assert [one.reserved for one in queue(world, "main").usage] == [4]

    run(scenario)


def test_another_team_learns_what_would_let_it_pass_and_no_name() -> None:
    async def scenario(world: World) -> None:
        await busy(world)
        viewer = Viewer.of(["other"])
        shown = queue(world, "main", viewer)
        (small,) = shown.workloads
        assert small.waiting is not None
        assert small.waiting.kind == "BehindReservation"
        assert "has a maxRuntime of " in small.waiting.unblock
        assert "gang" not in str(shown)
        # That so much is kept is no name, and explains why less can be taken.
        assert [one.reserved for one in shown.usage] == [16]
        own = told(world, "small", "other").waiting
        assert own is not None
        assert own.text.startswith(
            f"the room that it would take is kept for team/gang, which waits longer, for {GPU}"
        )

    run(scenario)


def test_a_status_tells_what_is_reserved_and_is_written_once_for_it() -> None:
    async def scenario(world: World) -> None:
        await busy(world)
        clock = world.dispatcher.controller._clock
        async with KubeClient.from_url(world.api.url, qps=-1) as client:
            statuses = QueueStatuses(client, world.dispatcher, clock, lambda kind, outcome: None)
            task = asyncio.create_task(statuses.run(lambda: True))
            await world.passes(60)
            written = [
                w.path for w in world.api.writes.entries if w.path.endswith("clusterqueues/main/status")
            ]
            assert len(written) == 1
            records = world.api.store.collection("fairway.dev/v1alpha1", "clusterqueues").records
            main = next(record.decode() for key, record in records.items() if key[1] == "main")
            (usage,) = main["status"]["flavorsUsage"][0]["resources"]
            assert usage == {"name": GPU, "total": "12", "borrowed": "12", "reserved": "16"}
            task.cancel()
            await asyncio.wait((task,))

    run(scenario)


@pytest.mark.parametrize("limit", ["1h", ""])
def test_gauges_tell_how_many_how_old_and_when_the_first_starts(limit: str) -> None:
    async def scenario(world: World) -> None:
        await busy(world, limit)
        assert world.running is not None
        registry = CollectorRegistry()
        metrics = DispatcherMetrics(registry, version="test")
        clock = world.dispatcher.controller._clock
        metrics.readings = to_the_end(reading(world.dispatcher, world.running.sources, clock))
        text = generate_latest(registry).decode()
        labels = {"cluster_queue": "main"}
        assert registry.get_sample_value("fairway_reservations_held", labels) == 1
        of = {**labels, "flavor": "m1", "resource": GPU}
        assert registry.get_sample_value("fairway_queue_reserved", of) == 16
        age = registry.get_sample_value("fairway_reservation_age_seconds", labels)
        assert age is not None
        assert 15 < age < 35
        ratio = registry.get_sample_value("fairway_reservation_held_ratio", labels)
        assert ratio == pytest.approx(age / 200)
        starts = registry.get_sample_value("fairway_reservation_starts_seconds", labels)
        assert (starts is None) == (not limit)
        assert 'fairway_reservations_held{cluster_queue="root"}' not in text

    run(scenario)
