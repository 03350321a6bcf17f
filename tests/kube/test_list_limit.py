"""Lists in hand at once, in virtual time."""

import asyncio
from collections.abc import Callable, Coroutine

from fairway.kube.list_limit import LAPSE_S, MOST, ListInHand
from sandbox.fakeapi import virtual_time


class Pages:
    """Pages of servers, each of which may hang before its first byte or after it."""

    def __init__(self) -> None:
        self.begun: list[str] = []
        self.read: dict[str, float] = {}

    async def get(self, name: str, *, headers_s: float = 0.01, body_s: float = 0.01) -> None:
        loop = asyncio.get_running_loop()
        started_s = loop.time()
        with ListInHand() as in_hand:
            await asyncio.sleep(headers_s)
            await in_hand.begin()
            self.begun.append(name)
            await asyncio.sleep(body_s)
        self.read[name] = loop.time() - started_s


def play(scenario: Callable[[Pages], Coroutine[None, None, None]]) -> None:
    virtual_time.run(scenario(Pages()))


def test_no_more_than_a_few_at_once_in_the_order_in_which_they_came() -> None:
    async def scenario(pages: Pages) -> None:
        async with asyncio.TaskGroup() as group:
            for number in range(3 * MOST):
                group.create_task(pages.get(f"{number}", headers_s=number / 1000, body_s=1.0))
            await asyncio.sleep(0.5)
            assert pages.begun == [f"{number}" for number in range(MOST)]
        assert max(pages.read.values()) < 3.1

    play(scenario)


def test_servers_that_do_not_answer_have_no_part_in_it() -> None:
    async def scenario(pages: Pages) -> None:
        hanging = [asyncio.create_task(pages.get(f"h{n}", headers_s=1e6)) for n in range(30)]
        await asyncio.gather(*(pages.get(f"{n}") for n in range(70)))
        assert max(pages.read.values()) < 0.2
        for task in hanging:
            task.cancel()

    play(scenario)


def test_servers_that_stop_in_the_middle_lose_their_place() -> None:
    async def scenario(pages: Pages) -> None:
        hanging = [asyncio.create_task(pages.get(f"h{n}", body_s=1e6)) for n in range(MOST)]
        await asyncio.sleep(0.1)
        await asyncio.gather(*(pages.get(f"{n}") for n in range(70)))
        assert LAPSE_S - 0.1 <= max(pages.read.values()) < LAPSE_S + 0.2
        await pages.get("later")
        assert pages.read["later"] < 0.1
        for task in hanging:
            task.cancel()

    play(scenario)


def test_whoever_is_cancelled_gives_the_place_back() -> None:
    async def scenario(pages: Pages) -> None:
        tasks = [asyncio.create_task(pages.get(f"c{n}", body_s=1.0)) for n in range(3 * MOST)]
        await asyncio.sleep(0.5)
        for task in tasks:
            task.cancel()
        await asyncio.wait(tasks)
        await asyncio.gather(*(pages.get(f"{n}", body_s=1.0) for n in range(MOST)))
        assert max(pages.read.values()) < 1.1

    play(scenario)
