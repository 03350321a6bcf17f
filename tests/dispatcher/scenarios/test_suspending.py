"""What is suspended in its cluster beside a Karmada: a Job, and what has a switch of its own."""

from typing import Final

from queue_dispatcher.turn.suspending import WAITS_UNDONE_MS
from tests.dispatcher.scenarios import objects
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


SET: Final = "jobset.x-k8s.io/v1alpha2"
PLACED: Final = [{"name": "m1", "replicas": 6}]


def submit_set(world: World, name: str, pods: int) -> str:
    """A JobSet and its held binding, whose key is answered."""
    made = objects.job(name, {"fairway.dev/queue": "main"}, pods=pods)
    made["spec"] = {"replicatedJobs": [{"name": "workers", "template": {"spec": made["spec"]}}]}
    world.add(f"/apis/{SET}/namespaces/team/jobsets", made)
    return world.bind(name, replicas=pods, kind="JobSet", api_version=SET)


def says(world: World, key: str, *, active: int, suspended: bool) -> None:
    """Its cluster reports that."""
    condition = {"type": "Suspended", "status": str(suspended)}
    status = {"conditions": [condition], "replicatedJobsStatus": [{"name": "workers", "active": active}]}
    item: Obj = {"clusterName": "m1", "applied": True, "status": status}
    world.edit(key, lambda obj: obj.setdefault("status", {}).update(aggregatedStatus=[item]))


def switches(world: World) -> list[Obj]:
    """What the policies that suspend say: where, and what stands there then."""
    policies = world.api.store.collection("policy.karmada.io/v1alpha1", "overridepolicies").records.values()
    rules = [rule for one in policies for rule in one.decode()["spec"]["overrideRules"]]
    return [rule for rule in rules if "plaintext" in rule["overriders"]]


def test_a_switch_follows_what_the_binding_says() -> None:
    async def scenario(world: World) -> None:
        world.fleet(m1=8, m2=8)
        world.queue("main", {"m1": 8, "m2": 8})
        await world.start(estimation=Estimators(world, {"m1": 8, "m2": 0}).estimation())
        key = submit_set(world, "train", 6)
        await world.until(lambda: world.is_placed(key))
        says(world, key, active=1, suspended=False)
        await world.passes(2)

        world.api.update(QUEUE, lambda obj: obj["spec"].update(stopPolicy="HoldAndDrain"))
        await world.until(lambda: bool(switches(world)))
        assert world.is_held(key)
        entry = {"path": "/spec/suspend", "operator": "add", "value": True}
        where = {"clusterNames": ["m1"]}
        assert switches(world) == [{"targetCluster": where, "overriders": {"plaintext": [entry]}}]
        assert (places_of(world, key), charged(world)) == (PLACED, 6)
        says(world, key, active=0, suspended=True)
        await world.until(lambda: charged(world) == 0)

        world.api.update(QUEUE, lambda obj: obj["spec"].update(stopPolicy="None"))
        await world.until(lambda: not switches(world))
        assert (world.is_held(key), places_of(world, key), charged(world)) == (False, PLACED, 6)
        world.check()

    run(scenario)
