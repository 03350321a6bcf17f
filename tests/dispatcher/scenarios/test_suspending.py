"""A Job that is suspended in its cluster beside a Karmada, and waits for that one only for a while."""

from queue_dispatcher.turn.suspending import WAITS_UNDONE_MS
from tests.dispatcher.scenarios.objects import Obj
from tests.dispatcher.scenarios.test_estimates import Estimators
from tests.dispatcher.scenarios.test_evictions import QUEUE
from tests.dispatcher.scenarios.test_life import charged
from tests.dispatcher.scenarios.world import World, run


def reports(world: World, key: str, active: int) -> None:
    """So many pods of it are there, says its cluster."""
    item: Obj = {"clusterName": "m1", "applied": True, "status": {"active": active, "ready": active}}
    world.edit(key, lambda obj: obj.setdefault("status", {}).update(aggregatedStatus=[item]))


def test_a_place_that_was_kept_is_given_up() -> None:
    async def scenario(world: World) -> None:
        world.fleet(m1=8, m2=8)
        world.queue("main", {"m1": 8, "m2": 8})
        estimators = Estimators(world, {"m1": 8, "m2": 0})
        await world.start(estimation=estimators.estimation())
        key = world.submit("train", replicas=6)
        await world.until(lambda: world.is_placed(key))
        reports(world, key, 6)
        await world.passes(2)

        estimators.room["m1"] = 0
        world.api.update(QUEUE, lambda obj: obj["spec"].update(stopPolicy="HoldAndDrain"))
        await world.until(lambda: world.is_held(key))
        assert world.binding(key)["spec"]["clusters"] == [{"name": "m1"}]
        assert charged(world) == 6
        reports(world, key, 0)
        await world.until(lambda: charged(world) == 0)
        await world.passes(600)
        assert world.binding(key)["spec"]["clusters"] == [{"name": "m1"}]

        world.api.update(QUEUE, lambda obj: obj["spec"].update(stopPolicy="None"))
        await world.until(lambda: "until" in (world.requeue(key) or {}).get("suspended", {}))
        await world.until(lambda: not places_of(world, key), within_s=WAITS_UNDONE_MS / 1000 + 10)
        assert "suspended" not in (world.requeue(key) or {})
        world.check()

    run(scenario)


def places_of(world: World, key: str) -> list[Obj]:
    clusters: list[Obj] = world.binding(key)["spec"].get("clusters") or []
    return clusters
