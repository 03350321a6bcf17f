"""Who gets a thread, and when: round robin by caller, nothing for nobody, the patient after the urgent."""

import asyncio
from collections.abc import Awaitable, Callable

from estimator.fair_queue import FairQueue
from tests.estimator.by_hand import ByHand, turns


class Bench:
    """A queue whose work is done by hand, and notes who began."""

    def __init__(self, at_once: int = 1) -> None:
        self.threads = ByHand()
        self.queue = FairQueue(self.threads, at_once)
        self.begun: list[str] = []

    def ask(self, caller: str, what: str = "", queue: FairQueue | None = None) -> "asyncio.Task[str]":
        name = caller + what

        def start() -> Callable[[], str]:
            self.begun.append(name)
            return lambda: name

        return asyncio.ensure_future((queue or self.queue).run(caller, start))

    async def finish(self, *tasks: "asyncio.Task[str]") -> None:
        while not all(task.done() for task in tasks):
            await self.threads.work()


def run(scenario: Callable[[], Awaitable[None]]) -> None:
    async def main() -> None:
        await scenario()

    asyncio.run(main())


def test_callers_take_turns_however_much_each_asks() -> None:
    async def scenario() -> None:
        bench = Bench()
        tasks = [bench.ask("a", number) for number in "123"] + [bench.ask("b"), bench.ask("c")]
        await bench.finish(*tasks)
        assert bench.begun == ["a1", "a2", "b", "c", "a3"]
        assert [task.result() for task in tasks] == ["a1", "a2", "a3", "b", "c"]

    run(scenario)


def test_so_many_are_at_work_at_once_and_no_more() -> None:
    async def scenario() -> None:
        bench = Bench(at_once=2)
        tasks = [bench.ask(caller) for caller in "abcde"]
        await turns()
        assert bench.begun == ["a", "b"]
        await bench.finish(*tasks)
        assert bench.begun == list("abcde")

    run(scenario)


def test_what_nobody_waits_for_any_more_never_starts() -> None:
    async def scenario() -> None:
        bench = Bench()
        first, gone, last = (bench.ask(caller) for caller in "abc")
        await turns()
        gone.cancel()
        await bench.finish(first, last)
        assert bench.begun == ["a", "c"]

    run(scenario)


def test_work_that_has_started_keeps_its_place_until_it_ends() -> None:
    async def scenario() -> None:
        bench = Bench()
        gone, next_one = bench.ask("a"), bench.ask("b")
        await turns()
        gone.cancel()
        await turns()
        assert bench.begun == ["a"]
        await bench.finish(next_one)
        assert bench.begun == ["a", "b"]

    run(scenario)


def test_a_start_that_fails_gives_its_place_back() -> None:
    async def scenario() -> None:
        bench = Bench()

        def fails() -> Callable[[], str]:
            raise ValueError

        failed = asyncio.ensure_future(bench.queue.run("a", fails))
        next_one = bench.ask("b")
        await bench.finish(next_one)
        assert isinstance(failed.exception(), ValueError)

    run(scenario)


def test_the_patient_start_only_while_nobody_waits_before_them() -> None:
    async def scenario() -> None:
        bench = Bench()
        behind = FairQueue(bench.threads, 1, after=bench.queue)
        urgent = [bench.ask("a"), bench.ask("b")]
        patient = bench.ask("p", queue=behind)
        await turns()
        assert bench.begun == ["a"]
        await bench.threads.work()
        assert bench.begun[:2] == ["a", "b"]
        await bench.finish(*urgent, patient)
        assert bench.begun == ["a", "b", "p"]

    run(scenario)
