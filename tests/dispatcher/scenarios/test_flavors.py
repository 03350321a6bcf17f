"""Which flavors a workload is charged to, from objects to what Karmada places."""

import asyncio

import pytest

from queue_dispatcher.ledger.cells import Charge
from tests.dispatcher.scenarios.objects import FAIRWAY, GPU, Obj, cluster, flavor
from tests.dispatcher.scenarios.test_queues import reason
from tests.dispatcher.scenarios.world import World, run

TAINT = {"key": "spot", "effect": "NoSchedule"}


def pods(name: str, replicas: int, gpus: int, **claim: object) -> Obj:
    """One component of a workload."""
    requirements = {"resourceRequest": {GPU: str(gpus)}, "nodeClaim": claim}
    return {"name": name, "replicas": replicas, "replicaRequirements": requirements}


def charged(world: World, queue: str = "main") -> dict[str, int]:
    """What is charged, by flavor and resource where that is not GPUs."""
    cache = world.dispatcher.cache
    charge: Charge = cache.charges.ledger.charges().get(queue, ())
    named = [(cache.table.name(cell), amount) for cell, amount in charge]
    return {
        name.flavor if name.resource == GPU else f"{name.flavor} {name.resource}": amount
        for name, amount in named
    }


def one_cluster(world: World, **flavors: Obj) -> None:
    """One cluster of many GPUs, with flavors of kinds of nodes."""
    world.add("/api/v1/namespaces", {"metadata": {"name": "team"}})
    made = cluster("m1", 100)
    made["status"]["resourceSummary"]["allocatable"]["pods"] = "1000"
    world.add("/apis/cluster.karmada.io/v1alpha1/clusters", made)
    for name, spec in flavors.items():
        world.add(f"{FAIRWAY}/resourceflavors", flavor(name, "m1", **spec))


@pytest.mark.parametrize(
    ("quotas", "admitted"),
    [
        # Charged to both while nobody knows where it goes,
        ({"m1": 16, "m2": 16}, {GPU: ["m1", "m2"]}),
        # but the quota of the smaller one, which can never take it, sets no limit.
        ({"m1": 64, "m2": 8}, {GPU: ["m1"]}),
        ({"m1": 8, "m2": 64}, {GPU: ["m2"]}),
    ],
)
def test_a_placement_over_two_flavors_is_limited_by_the_larger(
    quotas: dict[str, int], admitted: dict[str, list[str]]
) -> None:
    async def scenario(world: World) -> None:
        world.fleet(m1=64, m2=64)
        world.queue("main", quotas)
        world.karmada.is_stopped = True
        await world.start()
        key = world.submit("train", gpus=8, replicas=2)
        await world.until(lambda: not world.is_held(key))
        record = world.record(key)
        assert record is not None
        assert record["flavors"] == admitted
        assert charged(world) == dict.fromkeys(admitted[GPU], 16)
        world.check()

    run(scenario)


def test_where_no_flavor_can_take_it_it_is_told_so() -> None:
    async def scenario(world: World) -> None:
        world.fleet(m1=64, m2=64)
        world.queue("main", {"m1": 4, "m2": 8})
        await world.start()
        key = world.submit("train", gpus=8, replicas=2)
        await world.passes(2)
        assert world.is_held(key)
        told = reason(world, key)
        assert told is not None
        assert told.kind == "NeverFits"
        assert "queue main can never use more than 4" in told.text

    run(scenario)


def test_each_component_has_a_flavor_of_its_own_and_keeps_it_after_a_restart() -> None:
    async def scenario(world: World) -> None:
        one_cluster(world, a100={"nodeLabels": {"gpu": "a100"}}, h100={"nodeLabels": {"gpu": "h100"}})
        world.queue("main", {"a100": 4, "h100": 8})
        world.karmada.is_stopped = True
        running = await world.start()
        parts = [pods("launcher", 1, 2), pods("worker", 4, 2), pods("judge", 1, 2)]
        key = world.submit("train", gpus=0, replicas=0, clusters=("m1",), more={"components": parts})
        await world.until(lambda: not world.is_held(key))
        record = world.record(key)
        assert record is not None
        # Two of the three beside each other in the first, the large one in the second.
        assert record["flavors"] == {GPU: ["a100", "h100"]}
        assert record["components"] == {
            "launcher": {GPU: ["a100"]},
            "worker": {GPU: ["h100"]},
            "judge": {GPU: ["a100"]},
        }
        assert charged(world) == {"a100": 4, "h100": 8}
        world.check()
        await running.kill()
        await world.start()
        await world.passes(1)
        assert charged(world) == {"a100": 4, "h100": 8}
        world.edit(key, lambda obj: obj["spec"].update(clusters=[{"name": "m1"}]))
        await world.passes(1)
        assert charged(world) == {"a100": 4, "h100": 8}

    run(scenario)


def test_what_does_not_tolerate_a_taint_goes_to_the_next_flavor() -> None:
    async def scenario(world: World) -> None:
        one_cluster(world, spot={"nodeTaints": [TAINT]}, owned={})
        world.queue("main", {"spot": 8, "owned": 8})
        world.karmada.is_stopped = True
        await world.start()
        claim = {"nodeClaim": {"tolerations": [{"key": "spot", "operator": "Exists"}]}}
        requirements = {"replicaRequirements": {"resourceRequest": {GPU: "2"}, **claim}}
        key = world.submit("kept", gpus=2)
        await world.until(lambda: not world.is_held(key))
        assert charged(world) == {"owned": 2}
        key = world.submit("cheap", gpus=2, more=requirements)
        await world.until(lambda: not world.is_held(key))
        assert charged(world) == {"owned": 2, "spot": 2}
        # The flavor says that its workloads tolerate it, for an admission controller adds it.
        world.api.update(
            f"{FAIRWAY}/resourceflavors/spot",
            lambda obj: obj["spec"].update(tolerations=[{"key": "spot", "operator": "Exists"}]),
        )
        await asyncio.sleep(0.1)
        key = world.submit("also", gpus=2)
        await world.until(lambda: not world.is_held(key))
        assert charged(world) == {"owned": 2, "spot": 4}

    run(scenario)


def test_pods_are_a_quota() -> None:
    async def scenario(world: World) -> None:
        one_cluster(world, h100={})
        world.queue("main", {"h100": 100})
        world.api.update(
            f"{FAIRWAY}/clusterqueues/main",
            lambda obj: obj["spec"].update(
                resourceGroups=[
                    {
                        "coveredResources": [GPU, "pods"],
                        "flavors": [
                            {
                                "name": "h100",
                                "resources": [
                                    {"name": GPU, "nominalQuota": 100},
                                    {"name": "pods", "nominalQuota": 5},
                                ],
                            }
                        ],
                    }
                ]
            ),
        )
        await world.start()
        one, two = world.submit("one", replicas=4), world.submit("two", replicas=2)
        await world.until(lambda: world.is_placed(one))
        await world.passes(1)
        assert charged(world) == {"h100": 4, "h100 pods": 4}
        assert world.is_held(two)
        # More pods are growth, and wait for quota of pods like all growth.
        world.edit(one, lambda obj: obj["spec"].update(replicas=6, suspension={"scheduling": True}))
        await world.passes(1)
        assert world.is_held(one)
        world.edit(one, lambda obj: obj["spec"].update(replicas=5))
        await world.until(lambda: not world.is_held(one))
        await world.passes(1)
        assert charged(world) == {"h100": 5, "h100 pods": 5}
        world.check()

    run(scenario)


@pytest.mark.parametrize(("policy", "expected"), [("MayStopSearch", "m1"), ("TryNextFlavor", "m2")])
def test_a_later_flavor_is_taken_rather_than_borrowing_where_the_queue_says_so(
    policy: str, expected: str
) -> None:
    async def scenario(world: World) -> None:
        one_cluster(world, m1={}, m2={})
        world.queue("lender", {"m1": 8}, parent="")
        world.queue("main", {"m1": 1, "m2": 8}, parent="root", flavorFungibility={"whenCanBorrow": policy})
        world.add(f"{FAIRWAY}/clusterqueues", {"metadata": {"name": "root"}, "spec": {"resourceGroups": []}})
        world.api.update(f"{FAIRWAY}/clusterqueues/lender", lambda obj: obj["spec"].update(parent="root"))
        world.karmada.is_stopped = True
        await world.start()
        key = world.submit("train", gpus=4)
        await world.until(lambda: not world.is_held(key))
        assert charged(world) == {expected: 4}

    run(scenario)
