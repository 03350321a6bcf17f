"""Workloads that grow and shrink after they were admitted."""

import pytest

from fairway.names import HELD_AT
from queue_dispatcher.bindings.timestamp import format_ms
from tests.dispatcher.scenarios.objects import FAIRWAY, GPU, Obj, service_class
from tests.dispatcher.scenarios.test_life import charged
from tests.dispatcher.scenarios.world import World, now_s, run


def scaled(world: World, key: str, replicas: int, *, held: bool, at_ms: int = 0) -> None:
    """As the detector and the gate do it, in one write."""

    def scale(obj: Obj) -> None:
        obj["spec"]["replicas"] = replicas
        if held:
            obj["spec"]["suspension"] = {"scheduling": True}
            obj["metadata"].setdefault("annotations", {})[HELD_AT] = format_ms(at_ms) if at_ms else ""

    world.edit(key, scale)


async def running(world: World, quota: int, replicas: int, template: Obj | None = None) -> str:
    world.fleet(m1=32)
    world.queue("main", {"m1": quota})
    await world.start()
    key = world.submit("web", gpus=1, replicas=replicas, kind="Deployment", api_version="apps/v1")
    world.add("/apis/apps/v1/namespaces/team/deployments", template or deployment("web"))
    await world.until(lambda: world.is_placed(key))
    await world.passes(1)
    return key


def deployment(name: str) -> Obj:
    return {"metadata": {"name": name, "labels": {"fairway.dev/queue": "main"}}, "spec": {}}


def replicas_of(world: World, key: str) -> int:
    return sum(share["replicas"] for share in world.binding(key)["spec"]["clusters"])


def test_growth_that_fits_is_admitted() -> None:
    async def scenario(world: World) -> None:
        key = await running(world, 8, 2)
        scaled(world, key, 6, held=True)
        await world.until(lambda: replicas_of(world, key) == 6)
        await world.passes(1)
        assert (world.record(key) or {})["requests"] == {GPU: 6}
        assert charged(world) == 6

    run(scenario)


def test_growth_that_is_not_placed_in_time_gives_its_quota_back() -> None:
    async def scenario(world: World) -> None:
        key = await running(world, 8, 4)
        world.karmada.room = {"m1": 4}
        scaled(world, key, 8, held=True)
        await world.until(lambda: not world.is_held(key))
        await world.passes(320)
        assert world.is_held(key)
        assert (world.record(key) or {})["requests"] == {GPU: 4}
        assert replicas_of(world, key) == 4
        assert charged(world) == 4

    run(scenario)


def test_growth_waits_for_quota_while_what_runs_goes_on() -> None:
    """volcano-global's pull request 37: growth after release bypassed the quota."""

    async def scenario(world: World) -> None:
        key = await running(world, 4, 2)
        other = world.submit("other", gpus=2)
        await world.until(lambda: world.is_placed(other))
        scaled(world, key, 4, held=True)
        await world.passes(5)
        assert world.is_held(key)
        assert replicas_of(world, key) == 2
        assert charged(world) == 4
        world.karmada.finish([other])
        await world.until(lambda: replicas_of(world, key) == 4)
        await world.passes(1)
        assert charged(world) == 4

    run(scenario)


def test_growth_has_its_place_from_when_it_was_asked_for() -> None:
    """A small workload of every team would else be a ticket to the head of every line."""

    async def scenario(world: World) -> None:
        key = await running(world, 4, 2)
        other = world.submit("other", gpus=2)
        await world.until(lambda: world.is_placed(other))
        waited = world.submit("waited", gpus=2)
        await world.passes(2)
        scaled(world, key, 4, held=True)
        await world.passes(2)
        world.karmada.finish([other])
        await world.until(lambda: world.is_placed(waited))
        await world.passes(2)
        assert world.is_held(key)
        assert replicas_of(world, key) == 2

    run(scenario)


@pytest.mark.parametrize(("since_s", "is_first"), [(-1, True), (60, False)])
def test_the_gates_note_keeps_the_place_of_growth_over_a_restart(since_s: int, is_first: bool) -> None:
    """And one that lies in the future counts for no more than the moment when the growth was seen."""

    async def scenario(world: World) -> None:
        key = await running(world, 4, 2)
        other = world.submit("other", gpus=2)
        await world.until(lambda: world.is_placed(other))
        scaled(world, key, 4, held=True, at_ms=int(now_s() * 1000) + since_s * 1000)
        await world.passes(2)
        late = world.submit("late", gpus=2)
        await world.passes(2)
        assert world.running is not None
        await world.running.kill()
        await world.start()
        await world.passes(2)
        world.karmada.finish([other])
        await world.until(lambda: world.is_held(key) != world.is_held(late))
        assert world.is_held(late) == is_first

    run(scenario)


def test_growth_that_nobody_held_is_charged_until_there_is_quota_for_it() -> None:
    async def scenario(world: World) -> None:
        key = await running(world, 4, 2)
        scaled(world, key, 4, held=False)
        await world.passes(2)
        assert charged(world) == 4
        other = world.submit("other", gpus=1)
        await world.passes(3)
        assert world.is_held(other)

    run(scenario)


def test_scaling_down_gives_quota_back_with_one_write() -> None:
    async def scenario(world: World) -> None:
        key = await running(world, 8, 6)
        writes = len(world.api.writes.entries)
        scaled(world, key, 2, held=False)
        await world.until(lambda: (world.record(key) or {})["requests"] == {GPU: 2})
        await world.passes(2)
        assert charged(world) == 2
        assert len(world.api.writes.entries) == writes + 1

    run(scenario)


def test_a_held_scale_down_is_let_through_at_once() -> None:
    """live.md 4: a scale-down does not pass while suspended."""

    async def scenario(world: World) -> None:
        key = await running(world, 6, 6)
        scaled(world, key, 9, held=True)
        await world.passes(2)
        assert world.is_held(key)
        scaled(world, key, 3, held=False)
        await world.until(lambda: not world.is_held(key) and replicas_of(world, key) == 3, within_s=2)
        await world.passes(2)
        assert charged(world) == 3

    run(scenario)


def test_a_flag_set_by_hand_on_what_runs_is_cleared() -> None:
    async def scenario(world: World) -> None:
        key = await running(world, 6, 2)
        scaled(world, key, 2, held=True)
        await world.until(lambda: not world.is_held(key))

    run(scenario)


def test_growth_admitted_without_its_template_keeps_what_it_was_admitted_as() -> None:
    async def scenario(world: World) -> None:
        world.add(f"{FAIRWAY}/serviceclasses", service_class("gold", 7))
        made = deployment("web")
        made["metadata"]["labels"]["fairway.dev/class"] = "gold"
        key = await running(world, 8, 2, made)
        world.api.delete("/apis/apps/v1/namespaces/team/deployments/web")
        await world.passes(1)
        scaled(world, key, 6, held=True)
        await world.until(lambda: replicas_of(world, key) == 6)
        record = world.record(key) or {}
        assert record["requests"] == {GPU: 6}
        assert (record["class"], record["priority"]) == ("gold", 7)
        assert (record["queue"], record["localQueue"]) == ("main", "main")

    run(scenario)


def test_growth_takes_over_the_class_that_its_template_names_now() -> None:
    async def scenario(world: World) -> None:
        world.add(f"{FAIRWAY}/serviceclasses", service_class("gold", 7))
        key = await running(world, 8, 2)

        def promote(obj: Obj) -> None:
            obj["metadata"]["labels"]["fairway.dev/class"] = "gold"

        world.api.update("/apis/apps/v1/namespaces/team/deployments/web", promote)
        await world.passes(1)
        scaled(world, key, 6, held=True)
        await world.until(lambda: replicas_of(world, key) == 6)
        assert (world.record(key) or {})["class"] == "gold"

    run(scenario)


def test_a_wider_placement_is_charged_before_the_further_copies_are_placed() -> None:
    """Each cluster that the placement comes to permit gets a copy, and nobody holds those."""

    async def scenario(world: World) -> None:
        world.fleet(m1=8, m2=8)
        world.queue("main", {"m1": 4, "m2": 4})
        await world.start()
        key = world.submit("copies", gpus=2, duplicated=True, clusters=("m1",))
        await world.until(lambda: world.is_placed(key))
        await world.passes(1)
        assert charged(world) == 2
        world.karmada.is_stopped = True

        def widen(obj: Obj) -> None:
            obj["spec"]["placement"]["clusterAffinity"] = {"clusterNames": ["m1", "m2"]}

        world.edit(key, widen)
        await world.passes(1)
        assert charged(world) == 4
        other = world.submit("other", gpus=4, clusters=("m1",))
        await world.passes(2)
        assert world.is_held(other)
        world.karmada.is_stopped = False
        await world.passes(2)
        assert len(world.binding(key)["spec"]["clusters"]) == 2
        assert charged(world) == 4

    run(scenario)
