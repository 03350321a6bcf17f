"""Turns at one loop, counted in units of work: no pass of the loop may hold more of it than two turns."""

import asyncio
from collections.abc import Callable, Coroutine

import pytest

from fairway.kube.pace import SLICE_ITEMS, SLICE_S, Pace, take_turn

ITEM_S = 60e-6
MOST_IN_A_PASS_S = 2 * (SLICE_S + ITEM_S)


class Work:
    """Items that take their time by a clock that nothing else moves."""

    def __init__(self, item_s: float = ITEM_S) -> None:
        self.now_s = 0.0
        self.item_s = item_s
        self.done: dict[str, int] = {}

    def clock(self) -> float:
        return self.now_s

    async def items(self, name: str, count: int) -> None:
        pace = Pace(self.clock)
        for _ in range(count):
            if pace.is_due():
                await pace.pause()
            self.now_s += self.item_s
            self.done[name] = self.done.get(name, 0) + 1

    async def holds(self, passes: int) -> list[float]:
        """How long each pass of the loop holds it, looked at from another task of the loop."""
        seen = []
        for _ in range(passes):
            before_s = self.now_s
            await asyncio.sleep(0)
            seen.append(self.now_s - before_s)
        return seen


def play(scenario: Callable[[Work], Coroutine[None, None, None]], item_s: float = ITEM_S) -> Work:
    work = Work(item_s)
    asyncio.run(scenario(work))
    return work


@pytest.mark.parametrize("workers", [1, 2, 50, 200, 1000])
@pytest.mark.parametrize("item_s", [1e-6, ITEM_S, 1e-3])
def test_however_many_work_no_pass_holds_the_loop_for_longer_than_two_turns(
    workers: int, item_s: float
) -> None:
    async def scenario(work: Work) -> None:
        tasks = [asyncio.create_task(work.items(f"{number}", 10**6)) for number in range(workers)]
        holds = await work.holds(3 * workers + 50)
        assert max(holds) <= 2 * (SLICE_S + item_s) + 1e-9
        for task in tasks:
            task.cancel()

    play(scenario, item_s)


def test_all_get_on_alike() -> None:
    async def scenario(work: Work) -> None:
        tasks = [asyncio.create_task(work.items(f"{number}", 10**6)) for number in range(200)]
        await work.holds(10 * 200)
        for task in tasks:
            task.cancel()

    done = play(scenario).done
    assert len(done) == 200
    # A turn more or less at the end, and what the first had of the pass in which all arrived.
    assert max(done.values()) - min(done.values()) <= 3 * (SLICE_S / ITEM_S + 1)


def test_a_single_event_does_not_wait_until_all_lists_had_their_turn() -> None:
    async def scenario(work: Work) -> None:
        lists = [asyncio.create_task(work.items(f"{number}", 10**6)) for number in range(200)]
        await work.holds(50)
        began_s = work.now_s
        await work.items("event", 1)
        assert work.now_s - began_s <= MOST_IN_A_PASS_S
        for task in lists:
            task.cancel()

    play(scenario)


def test_work_alone_gets_on_with_full_turns() -> None:
    async def scenario(work: Work) -> None:
        worker = asyncio.create_task(work.items("alone", 10 * SLICE_ITEMS))
        passes = 0
        while not worker.done():
            await asyncio.sleep(0)
            passes += 1
        # Of every two passes one is its turn.
        assert passes <= 2 * 10 + 3

    play(scenario, item_s=1e-6)


def test_whoever_is_cancelled_while_waiting_costs_nobody_a_turn() -> None:
    async def scenario(work: Work) -> None:
        tasks = [asyncio.create_task(work.items(f"{number}", 10**6)) for number in range(10)]
        await work.holds(5)
        for task in tasks[1:]:
            task.cancel()
        before = work.done["0"]
        holds = await work.holds(12)
        assert sum(hold > 0 for hold in holds) >= 5
        assert work.done["0"] > before
        tasks[0].cancel()

    play(scenario)


def test_what_cannot_be_cut_takes_a_turn_of_its_own() -> None:
    async def scenario(work: Work) -> None:
        async def whole() -> None:
            await take_turn()
            work.now_s += 3e-3

        tasks = [asyncio.create_task(whole()) for _ in range(100)]
        assert max(await work.holds(110)) <= 3e-3 + 1e-9
        assert all(task.done() for task in tasks)

    play(scenario)
