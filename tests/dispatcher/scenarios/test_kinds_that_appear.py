"""Workloads of a kind that nobody serves yet: they wait with that as their reason until its CRD appears."""

import pytest

from tests.dispatcher.scenarios.objects import Obj, job
from tests.dispatcher.scenarios.world import World, run

SWARMS = "/apis/example.com/v1/swarms"
CRDS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"


def definition() -> Obj:
    names = {"plural": "swarms", "singular": "swarm", "kind": "Swarm", "listKind": "SwarmList"}
    version = {"name": "v1", "served": True, "storage": True}
    return {
        "metadata": {"name": "swarms.example.com"},
        "spec": {"group": "example.com", "names": names, "scope": "Namespaced", "versions": [version]},
    }


def swarm(world: World) -> str:
    return world.bind("swarm", kind="Swarm", api_version="example.com/v1")


def install(world: World) -> None:
    """The CRD, and with it the workload's own object."""
    world.add(CRDS, definition())
    world.api.serve(SWARMS)
    labelled = {"metadata": {"name": "swarm", "labels": {"fairway.dev/queue": "main"}}}
    world.add("/apis/example.com/v1/namespaces/team/swarms", labelled)


@pytest.mark.parametrize("others", ["before", "after"], ids=["with others waiting", "first of all"])
def test_they_wait_for_the_crd_and_nobody_waits_for_them(others: str) -> None:
    async def scenario(world: World) -> None:
        world.fleet(m1=8)
        world.queue("main", {"m1": 8})
        world.api.serve(SWARMS, served=False)
        plain = world.submit("plain") if others == "before" else ""
        waiting = swarm(world)
        await world.start()
        plain = plain or world.submit("plain")
        await world.until(lambda: world.is_placed(plain))
        assert world.is_held(waiting)
        (entry,) = (e for e in world.dispatcher.cache.entries.values() if e.binding.key == waiting)
        assert entry.waits is not None
        assert "kind Swarm of example.com/v1 is not served by Karmada's API server" in entry.waits.text
        install(world)
        await world.passes(61)
        await world.until(lambda: world.is_placed(waiting))

    run(scenario)


def test_one_whose_crd_is_taken_away_keeps_what_it_holds() -> None:
    async def scenario(world: World) -> None:
        world.fleet(m1=8)
        world.queue("main", {"m1": 8})
        install(world)
        placed = swarm(world)
        running = await world.start()
        await world.until(lambda: world.is_placed(placed))
        world.api.serve(SWARMS, served=False)
        await world.passes(130)
        assert not world.is_held(placed)
        assert len(running.dispatcher.cache.charges.ledger.charges()) > 0
        world.add("/apis/batch/v1/namespaces/team/jobs", job("next", {"fairway.dev/queue": "main"}))
        other = world.bind("next")
        await world.until(lambda: world.is_placed(other))

    run(scenario)
