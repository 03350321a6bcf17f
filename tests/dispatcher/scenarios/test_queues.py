"""Queues that are missing, stopped, deleted, changed or contradictory."""

from collections.abc import Callable

import pytest

from queue_dispatcher.cycle.reasons import Reason
from queue_dispatcher.visibility.waiting import waiting_of
from tests.dispatcher.scenarios.objects import FAIRWAY, GPU, Obj, cluster_queue, flavor, local_queue
from tests.dispatcher.scenarios.test_life import charged
from tests.dispatcher.scenarios.test_told import queues
from tests.dispatcher.scenarios.world import World, run

QUEUE = f"{FAIRWAY}/clusterqueues/main"
LOCAL = f"{FAIRWAY}/namespaces/team/localqueues/main"


def reason(world: World, key: str) -> Reason | None:
    world.check()
    cache, controller = world.dispatcher.cache, world.dispatcher.controller
    entry = cache.bindings.entries[key]
    return waiting_of(cache, controller.view, entry, controller._clock.now_ms())


def kind(world: World, key: str) -> str:
    found = reason(world, key)
    return "" if found is None else found.kind


def spec(**changes: object) -> Callable[[Obj], object]:
    return lambda obj: obj["spec"].update(changes)


@pytest.mark.parametrize(
    ("missing", "words"),
    [
        ("the label", "names no queue"),
        ("the LocalQueue", "LocalQueue team/main does not exist"),
        ("the ClusterQueue", "ClusterQueue main does not exist"),
        ("the template", "is not there"),
    ],
)
def test_a_queue_that_cannot_be_told_is_told_and_comes_right_when_it_appears(
    missing: str, words: str
) -> None:
    async def scenario(world: World) -> None:
        world.fleet(m1=8)
        if missing != "the ClusterQueue":
            world.add(f"{FAIRWAY}/clusterqueues", cluster_queue("main", {"m1": 4}))
        if missing != "the LocalQueue":
            world.add(f"{FAIRWAY}/namespaces/team/localqueues", local_queue("main", "main"))
        await world.start()
        if missing == "the template":
            key = world.bind("train", gpus=2)
        else:
            key = world.submit("train", "" if missing == "the label" else "main", gpus=2)
        await world.passes(2)
        told = reason(world, key)
        assert told is not None
        assert words in told.text
        match missing:
            case "the label":
                world.api.update(
                    "/apis/batch/v1/namespaces/team/jobs/train",
                    lambda obj: obj["metadata"].update(labels={"fairway.dev/queue": "main"}),
                )
            case "the LocalQueue":
                world.add(f"{FAIRWAY}/namespaces/team/localqueues", local_queue("main", "main"))
            case "the ClusterQueue":
                world.add(f"{FAIRWAY}/clusterqueues", cluster_queue("main", {"m1": 4}))
            case _:
                job = {"metadata": {"name": "train", "labels": {"fairway.dev/queue": "main"}}, "spec": {}}
                world.add("/apis/batch/v1/namespaces/team/jobs", job)
        await world.until(lambda: world.is_placed(key), within_s=2)

    run(scenario)


@pytest.mark.parametrize(
    ("where", "path"),
    [("ClusterQueue", QUEUE), ("LocalQueue", LOCAL), ("parent", f"{FAIRWAY}/clusterqueues/root")],
)
def test_a_stopped_queue_admits_nothing_and_what_runs_goes_on(where: str, path: str) -> None:
    async def scenario(world: World) -> None:
        world.fleet(m1=8)
        world.add(f"{FAIRWAY}/clusterqueues", cluster_queue("root", {}))
        world.queue("main", {"m1": 4}, parent="root")
        await world.start()
        first = world.submit("first", gpus=2)
        await world.until(lambda: world.is_placed(first))
        world.api.update(path, spec(stopPolicy="Hold"))
        second = world.submit("second", gpus=2)
        await world.passes(2)
        assert world.is_held(second)
        assert kind(world, second) == "QueueStopped"
        assert world.is_placed(first)
        world.api.update(path, spec(stopPolicy="None"))
        await world.until(lambda: world.is_placed(second), within_s=2)

    run(scenario)


def test_a_deleted_queue_goes_on_to_be_charged_and_its_workloads_wait() -> None:
    """volcano-global defect e: an unknown queue was neither seen nor counted."""

    async def scenario(world: World) -> None:
        world.fleet(m1=8)
        world.queue("main", {"m1": 4})
        world.queue("other", {"m1": 8})
        await world.start()
        first = world.submit("first", gpus=3)
        await world.until(lambda: world.is_placed(first))
        waiting = world.submit("waiting", gpus=3)
        await world.passes(2)
        world.api.delete(QUEUE)
        await world.passes(2)
        assert kind(world, waiting) == "QueueNotFound"
        assert charged(world) == 3
        # It has quota, but the GPUs are in use.
        large = world.submit("large", "other", gpus=6)
        await world.passes(2)
        assert kind(world, large) == "WaitingForCapacity"
        world.add(f"{FAIRWAY}/clusterqueues", cluster_queue("main", {"m1": 6}))
        await world.until(lambda: world.is_placed(waiting), within_s=2)

    run(scenario)


def test_queues_in_a_circle_stop_and_others_go_on() -> None:
    async def scenario(world: World) -> None:
        world.fleet(m1=8)
        world.queue("main", {"m1": 4}, parent="loop")
        world.queue("loop", {"m1": 4}, parent="main")
        world.queue("sound", {"m1": 4})
        await world.start()
        stuck = world.submit("stuck", gpus=2)
        sound = world.submit("sound", "sound", gpus=2)
        await world.until(lambda: world.is_placed(sound))
        assert kind(world, stuck) == "QueueStopped"
        await world.passes(1)
        room = {name: [one.available for one in view.usage] for name, view in queues(world).items()}
        assert room == {"main": [0], "loop": [0], "sound": [2]}
        world.api.update(QUEUE, spec(parent=""))
        await world.passes(1)
        # Now a parent itself, it still runs nothing.
        assert kind(world, stuck) == "QueueStopped"
        world.api.update(f"{FAIRWAY}/clusterqueues/loop", spec(parent=""))
        await world.until(lambda: world.is_placed(stuck), within_s=2)

    run(scenario)


def test_a_queue_says_which_of_its_flavors_are_gone() -> None:
    async def scenario(world: World) -> None:
        world.fleet(m1=8, m2=8)
        world.queue("main", {"m1": 3})
        world.queue("both", {"m1": 3, "m2": 3})
        await world.start()
        world.api.delete(f"{FAIRWAY}/resourceflavors/m1")
        await world.passes(1)
        key = world.submit("train")
        other = world.submit("other", "both")
        await world.until(lambda: world.is_placed(other))
        await world.passes(1)
        told = reason(world, key)
        assert told is not None
        assert (told.kind, told.text, told.unblock) == (
            "NeverFits",
            f"{GPU}: there is no ResourceFlavor m1, and queue main has quota of no other",
            "an administrator creates ResourceFlavor m1, or has queue main name another",
        )
        views = queues(world)
        gone = (
            "spec.resourceGroups[0].flavors[0].name: there is no ResourceFlavor m1: its quota is never "
            "given; create it, or name another"
        )
        assert [(views[name].problems, views[name].stopped) for name in ("main", "both")] == [
            ([gone], "there is no ResourceFlavor m1, and queue main has quota of no other"),
            ([gone], ""),
        ]
        assert [[one.available for one in views[name].usage] for name in ("main", "both")] == [[0], [0, 2]]
        world.add(f"{FAIRWAY}/resourceflavors", flavor("m1", "m1"))
        await world.until(lambda: world.is_placed(key))
        await world.passes(1)
        assert (queues(world)["main"].problems, queues(world)["main"].stopped) == ([], "")

    run(scenario)


def test_moved_to_another_parent_its_usage_moves_with_it() -> None:
    async def scenario(world: World) -> None:
        world.fleet(m1=16)
        for name in ("north", "south"):
            world.add(f"{FAIRWAY}/clusterqueues", cluster_queue(name, {"m1": 4}))
        world.queue("main", {"m1": 0}, parent="north")
        await world.start()
        key = world.submit("train", gpus=4)
        await world.until(lambda: world.is_placed(key))
        world.api.update(QUEUE, spec(parent="south"))
        await world.passes(1)
        world.check()
        cache = world.dispatcher.cache
        cell = cache.table.cell("m1", "nvidia.com/gpu")
        assert cache.charges.ledger.used("south", cell) == 4
        assert cache.charges.ledger.used("north", cell) == 0

    run(scenario)


def test_a_lowered_quota_evicts_nothing_and_admits_nothing_until_there_is_room() -> None:
    async def scenario(world: World) -> None:
        world.fleet(m1=16)
        world.queue("main", {"m1": 8})
        await world.start()
        keys = [world.submit(f"w{number}", gpus=4) for number in range(2)]
        await world.until(lambda: all(map(world.is_placed, keys)))
        world.api.update(
            QUEUE,
            lambda obj: obj["spec"]["resourceGroups"][0]["flavors"][0]["resources"][0].update(
                nominalQuota="4"
            ),
        )
        late = world.submit("late", gpus=4)
        await world.passes(2)
        assert all(map(world.is_placed, keys))
        world.karmada.finish(keys[:1])
        await world.passes(2)
        assert world.is_held(late)
        world.karmada.finish(keys[1:])
        await world.until(lambda: world.is_placed(late), within_s=2)

    run(scenario)


def test_a_namespace_that_is_not_selected_is_told_and_may_be_later() -> None:
    async def scenario(world: World) -> None:
        world.fleet(m1=8)
        world.queue("main", {"m1": 4}, namespaceSelector={"matchLabels": {"tier": "gold"}})
        await world.start()
        key = world.submit("train", gpus=2)
        await world.passes(1)
        assert kind(world, key) == "NamespaceNotAllowed"
        world.api.update(
            "/api/v1/namespaces/team", lambda obj: obj["metadata"].update(labels={"tier": "gold"})
        )
        await world.until(lambda: world.is_placed(key), within_s=2)

    run(scenario)


def test_the_default_queue_of_a_namespace_and_that_of_a_policy() -> None:
    """volcano-global defect g: without a queue name nothing was ever dispatched."""

    async def scenario(world: World) -> None:
        world.fleet(m1=8)
        world.queue("main", {"m1": 8})
        world.queue("other", {"m1": 8})
        await world.start()
        policy = {"metadata": {"name": "spread", "annotations": {"fairway.dev/queue": "other"}}, "spec": {}}
        world.add("/apis/policy.karmada.io/v1alpha1/namespaces/team/propagationpolicies", policy)
        named = {
            "propagationpolicy.karmada.io/namespace": "team",
            "propagationpolicy.karmada.io/name": "spread",
        }
        by_policy = world.submit("by-policy", "", gpus=1, annotations=named)
        await world.until(lambda: world.is_placed(by_policy))
        assert (world.record(by_policy) or {})["queue"] == "other"
        nameless = world.submit("nameless", "", gpus=1)
        await world.passes(1)
        assert kind(world, nameless) == "QueueNotFound"
        world.api.update(
            "/api/v1/namespaces/team",
            lambda obj: obj["metadata"].update(labels={"fairway.dev/default-queue": "main"}),
        )
        await world.until(lambda: world.is_placed(nameless), within_s=2)

    run(scenario)


def test_two_namespaces_with_the_same_names_do_not_meet() -> None:
    async def scenario(world: World) -> None:
        world.fleet(m1=8)
        world.queue("main", {"m1": 2})
        world.add("/api/v1/namespaces", {"metadata": {"name": "other"}})
        world.add(f"{FAIRWAY}/namespaces/other/localqueues", local_queue("main", "main"))
        await world.start()
        one = world.submit("train", gpus=2)
        two = world.submit("train", namespace="other", gpus=2)
        await world.until(lambda: world.is_placed(one) or world.is_placed(two))
        await world.passes(2)
        (placed,), (held,) = (
            [key for key in (one, two) if world.is_held(key) is wanted] for wanted in (False, True)
        )
        world.delete(placed)
        await world.until(lambda: world.is_placed(held))

    run(scenario)


def test_a_strict_queue_waits_behind_its_head_and_a_best_effort_one_does_not() -> None:
    async def scenario(world: World) -> None:
        world.fleet(m1=16)
        world.queue("strict", {"m1": 4}, queueingStrategy="StrictFIFO")
        world.queue("loose", {"m1": 4})
        await world.start()
        for name in ("strict", "loose"):
            world.submit(f"{name}-running", name, gpus=2)
        await world.passes(2)
        heads = [world.submit(f"{name}-head", name, gpus=4) for name in ("strict", "loose")]
        await world.passes(2)
        small = [world.submit(f"{name}-small", name, gpus=1) for name in ("strict", "loose")]
        await world.passes(3)
        assert [world.is_held(key) for key in (*heads, *small)] == [True, True, True, False]
        assert kind(world, small[0]) == "BehindHead"

    run(scenario)


def test_each_copy_of_duplicated_work_is_charged_to_the_flavor_of_its_own_cluster() -> None:
    """Two flavors of one cluster each: neither has to have room for both copies."""

    async def scenario(world: World) -> None:
        world.fleet(m1=8, m2=8)
        world.queue("main", {"m1": 4, "m2": 4})
        world.karmada.is_stopped = True
        await world.start()
        key = world.submit("copies", gpus=2, replicas=2, duplicated=True)
        await world.until(lambda: not world.is_held(key))
        cache = world.dispatcher.cache

        def by_flavor() -> dict[str, int]:
            totals = cache.charges.ledger.totals
            return {cache.table.name(cell).flavor: amount for cell, amount in totals.items() if amount}

        assert by_flavor() == {"m1": 4, "m2": 4}
        world.karmada.is_stopped = False
        await world.until(lambda: world.is_placed(key))
        await world.passes(1)
        world.check()
        assert by_flavor() == {"m1": 4, "m2": 4}
        late = world.submit("late", gpus=1)
        await world.passes(2)
        assert world.is_held(late)

    run(scenario)
