"""Who gets the same state of a cluster, and what those get for whom there is no place."""

import asyncio
from collections.abc import Callable
from contextlib import AsyncExitStack

import pytest

from estimator import shared_usage
from estimator.shared_usage import MOST_IN_HAND, CrowdedError, Pages, SharedUsage


class Clusters:
    """Counts what is worked out, once it may begin and may end."""

    def __init__(self) -> None:
        self.worked_out = 0
        self.may_begin, self.may_end = asyncio.Event(), asyncio.Event()
        self.may_begin.set()
        self.shared = SharedUsage()

    async def gather(self, begun: Callable[[], None]) -> Pages:
        await self.may_begin.wait()
        begun()
        self.worked_out += 1
        found = b"%d" % self.worked_out
        await self.may_end.wait()
        return [found]

    async def ask(self, cluster: str = "m", within_s: float = 10.0) -> Pages:
        async with self.shared.pages(cluster, self.gather, within_s) as pages:
            return await pages


async def turns() -> None:
    """So many turns of the loop that all have gone as far as they can."""
    for _ in range(10):
        await asyncio.sleep(0)


def test_all_who_ask_within_a_moment_get_one_state_and_those_after_it_another(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async def scenario() -> None:
        monkeypatch.setattr(shared_usage, "SHARED_S", 1000)
        there = Clusters()
        there.may_begin.clear()
        waiting = [asyncio.create_task(there.ask()) for _ in range(100)]
        await turns()
        there.may_begin.set()
        await turns()
        waiting += [asyncio.create_task(there.ask()) for _ in range(100)]
        await turns()
        monkeypatch.setattr(shared_usage, "SHARED_S", 0)
        there.may_end.set()
        assert {tuple(await one) for one in waiting} == {(b"1",)}
        assert await there.ask() == [b"1"], "a state that is not too old is told again"
        assert await there.ask("other") == [b"2"]
        await turns()
        assert await there.ask("other") == [b"3"], "too old"

    asyncio.run(scenario())


def test_one_who_goes_takes_nothing_from_the_others_and_with_the_last_it_ends() -> None:
    async def scenario() -> None:
        there = Clusters()
        first, second = (asyncio.create_task(there.ask()) for _ in range(2))
        await turns()
        first.cancel()
        await turns()
        there.may_end.set()
        assert await second == [b"1"]
        there.may_end.clear()
        last = asyncio.create_task(there.ask("other"))
        await turns()
        last.cancel()
        await turns()
        there.may_end.set()
        assert await there.ask("other") == [b"3"], "what was given up is not told"

    asyncio.run(scenario())


def test_where_slow_clients_have_all_places_others_are_told_early_and_get_the_next() -> None:
    async def scenario() -> None:
        there = Clusters()
        there.may_end.set()
        async with AsyncExitStack() as slow:
            for number in range(MOST_IN_HAND):
                await slow.enter_async_context(there.shared.pages(f"c{number}", there.gather, 10.0))
            assert await there.ask("c0") == [b"1"], "a state that is in hand takes no place"
            with pytest.raises(CrowdedError, match=rf"expected a place among the {MOST_IN_HAND} answers"):
                await there.ask(within_s=0.01)
            waiting = [asyncio.create_task(there.ask()) for _ in range(3)]
            await turns()
        assert len({tuple(await one) for one in waiting}) == 1

    asyncio.run(scenario())
