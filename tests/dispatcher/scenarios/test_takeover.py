"""Who comes to lead knows what was written before, whatever its watches have told of it."""

import asyncio
import json

from queue_dispatcher.bindings.timestamp import format_ms
from sandbox.fakeapi.seen import Seen
from tests.dispatcher.scenarios.objects import GPU, Obj
from tests.dispatcher.scenarios.test_life import charged
from tests.dispatcher.scenarios.world import World, now_s, run


def released_by_another(obj: Obj) -> None:
    """As the last leader released it: 4 GPUs of queue main."""
    now = format_ms(int(now_s() * 1000))
    record = {
        "id": obj["metadata"]["uid"],
        "queue": "main",
        "localQueue": "main",
        "enqueuedAt": now,
        "admittedAt": now,
        "replicas": 1,
        "requests": {GPU: 4},
        "flavors": {GPU: ["m1"]},
    }
    obj["spec"]["suspension"] = {"scheduling": False}
    obj["metadata"].setdefault("annotations", {})["fairway.dev/admission"] = json.dumps(record)


def silent(seen: Seen) -> bool:
    """Watches that were open before a term began."""
    return seen.is_watch and seen.params["timeoutSeconds"] != "3"


def test_a_silent_watch_does_not_make_the_new_leader_admit_twice() -> None:
    async def scenario(world: World) -> None:
        world.fleet(m1=8)
        world.queue("main", {"m1": 4})
        await world.start(leader="fairway-dispatcher-0_6fdb")
        await world.passes(1)
        first, second = (world.submit(name, gpus=4) for name in ("first", "second"))
        await world.passes(1)
        world.api.part(silent)
        world.edit(second, released_by_another)
        async with world.leading():
            await world.passes(20)
            assert world.is_held(first)
            assert charged(world) == 4
        world.api.heal()

    run(scenario)


def test_a_server_that_does_not_answer_puts_the_term_off() -> None:
    async def scenario(world: World) -> None:
        world.fleet(m1=8)
        world.queue("main", {"m1": 4})
        await world.start(leader="fairway-dispatcher-0_6fdb")
        await world.passes(1)
        key = world.submit("first", gpus=4)
        await world.passes(1)
        world.api.fail(503, 40, when=lambda seen: "limit" in seen.params)
        async with world.leading():
            await world.passes(1)
            assert world.is_held(key)
            await world.until(lambda: not world.is_held(key), within_s=120)
        await asyncio.sleep(0)

    run(scenario)
