"""Checks that somebody else answers: the whole dispatcher."""

from tests.dispatcher.scenarios.objects import FAIRWAY, Obj, service_class
from tests.dispatcher.scenarios.world import World, run

CHECK = "check.fairway.dev/budget"


def test_what_is_to_be_tried_later_is_asked_again_and_starts_once_it_may() -> None:
    async def scenario(world: World) -> None:
        world.fleet(m1=8)
        world.queue("main", {"m1": 8}, admissionChecks=[{"name": "budget"}])
        world.add(f"{FAIRWAY}/serviceclasses", service_class("soon", 0, requeue={"backoffBase": "5s"}))
        await world.start()
        key = world.submit("train", gpus=8, said={"fairway.dev/class": "soon"})
        other = world.submit("other", gpus=8)

        def says(word: str) -> None:
            def said(obj: Obj) -> None:
                obj["metadata"].setdefault("annotations", {})[CHECK] = word

            world.edit(key, said)

        await world.passes(5)
        assert world.is_held(key)
        says("Retry; the data are on their way")
        await world.until(lambda: CHECK not in world.binding(key)["metadata"]["annotations"])
        says("Ready")
        await world.until(lambda: world.is_placed(key))
        assert world.is_held(other)
        world.check()

    run(scenario, room={"m1": 8})
