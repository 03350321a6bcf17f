"""The best answer until the deadline: first answers before better ones, nothing lost, nobody starved."""

import asyncio
from collections.abc import Awaitable, Callable, Iterator
from dataclasses import dataclass, field

import pytest
from prometheus_client import CollectorRegistry

from estimator.answering import Answering, Policy
from estimator.anytime import FIRST_AT_ONCE, Anytime, Problem, Solver, Terms
from estimator.capacity.answer import Answer, best
from estimator.capacity.assumed import OutOfTime
from estimator.capacity.doubt import OnDoubt
from estimator.capacity.request import Component, SetsQuestion
from estimator.capacity.sets.component_sets import max_sets
from estimator.cluster.freshness import Freshness
from estimator.cluster.mirror import ClusterMirror
from estimator.feature_gates import Gates
from estimator.member import MemberCluster
from estimator.member_kinds import MEMBER_KINDS
from estimator.metrics import EstimatorMetrics
from estimator.reasons import DOUBT
from tests.builders import cluster, component, never, node, room_of
from tests.estimator.by_hand import ByHand, turns

SOON_S = 0.05
FRESH = Freshness(synced=True, lost_s=None, recovering=False, detail="")


class Clock:
    """Stands still until moved."""

    def __init__(self) -> None:
        self.now_s = 1000.0

    def __call__(self) -> float:
        return self.now_s


@dataclass
class Stage:
    """Solvers as scripted, threads by hand, and a note of what happened."""

    clock: Clock = field(default_factory=Clock)
    threads: ByHand = field(default_factory=ByHand)
    log: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.anytime = Anytime(self.threads, self.clock)

    def solver(self, name: str, answers: tuple[int, ...], took_s: float) -> Solver[int]:
        def solve(terms: Terms) -> Iterator[int]:
            self.log.append(f"{name} first")
            self.clock.now_s += took_s
            terms.expired()
            yield answers[0]
            terms.search()
            self.log.append(f"{name} better")
            yield from answers[1:]

        return solve

    def problem(
        self, name: str, *answers: int, now: bool = False, now_s: float = 0.0, final: int = 100
    ) -> Problem[int]:
        solver = self.solver(name, answers, 0.0)
        at_once = self.solver(f"{name} now", answers, now_s) if now else None
        return Problem(name, "test", 1, at_once, lambda: solver, max, lambda answer: answer >= final)

    def ask(self, problem: Problem[int], within_s: float = 60.0) -> "asyncio.Task[int | None]":
        async def best_of() -> int | None:
            return await self.anytime.best(problem, self.clock.now_s + within_s)

        return asyncio.ensure_future(best_of())

    async def finish(self, *tasks: "asyncio.Task[int | None]") -> list[int | None]:
        while not all(task.done() for task in tasks):
            await self.threads.work()
        return [task.result() for task in tasks]


def run(scenario: Callable[[Stage], Awaitable[None]]) -> None:
    async def main() -> None:
        await scenario(Stage())

    asyncio.run(main())


@pytest.mark.parametrize(("answers", "expected"), [((3, 5), 5), ((5, 3), 5), ((3,), 3), ((3, 4, 9, 2), 9)])
def test_an_answer_is_never_given_up_for_a_worse_one(answers: tuple[int, ...], expected: int) -> None:
    async def scenario(stage: Stage) -> None:
        assert await stage.finish(stage.ask(stage.problem("a", *answers))) == [expected]

    run(scenario)


def test_nothing_better_is_looked_for_where_there_is_none() -> None:
    async def scenario(stage: Stage) -> None:
        assert await stage.finish(stage.ask(stage.problem("a", 3, 5, final=3))) == [3]
        assert stage.log == ["a first"]

    run(scenario)


def test_all_first_answers_come_before_any_better_one() -> None:
    async def scenario(stage: Stage) -> None:
        names = [f"c{number}" for number in range(50)]
        found = await stage.finish(*(stage.ask(stage.problem(name, 1, 2)) for name in names))
        assert found == [2] * 50
        started = [entry for entry in stage.log if entry.endswith("first")]
        assert started == [f"{name} first" for name in names]
        assert stage.log.index("c0 better") >= 50 - FIRST_AT_ONCE

    run(scenario)


def test_with_all_threads_taken_what_was_found_on_the_loop_is_the_answer() -> None:
    async def scenario(stage: Stage) -> None:
        assert await stage.ask(stage.problem("small", 2, 3, now=True), SOON_S) == 2
        assert stage.log == ["small now first"]

    run(scenario)


def test_with_all_threads_taken_there_may_be_no_answer_and_none_is_made_up() -> None:
    async def scenario(stage: Stage) -> None:
        assert await stage.ask(stage.problem("large", 2, 3), SOON_S) is None

    run(scenario)


def test_a_search_that_finds_no_end_leaves_what_was_found() -> None:
    async def scenario(stage: Stage) -> None:
        task = stage.ask(stage.problem("a", 2, 3), SOON_S)
        await stage.threads.work()
        assert await task == 2
        assert stage.log == ["a first"]

    run(scenario)


def test_a_better_answer_is_looked_for_no_longer_than_a_second() -> None:
    async def scenario(stage: Stage) -> None:
        task = stage.ask(stage.problem("a", 2, 3))
        await turns()
        stage.clock.now_s += 2.0
        assert await stage.finish(task) == [2]
        assert stage.log == ["a first"]

    run(scenario)


def test_one_question_is_solved_on_the_loop_in_each_of_its_turns() -> None:
    async def scenario(stage: Stage) -> None:
        tasks = [stage.ask(stage.problem(f"c{number}", 7, now=True, final=7)) for number in range(50)]
        await asyncio.sleep(0)
        assert [entry for entry in stage.log if "now" in entry] == ["c0 now first"]
        assert await stage.finish(*tasks) == [7] * 50

    run(scenario)


def test_what_took_longer_than_a_moment_does_not_count_and_is_not_tried_again() -> None:
    async def scenario(stage: Stage) -> None:
        slow = stage.problem("slow", 7, now=True, now_s=0.5, final=7)
        for _ in range(2):
            assert await stage.finish(stage.ask(slow)) == [7]
            await turns()
        assert stage.log == ["slow now first", "slow first", "slow first"]

    run(scenario)


def test_what_runs_out_of_time_on_the_loop_goes_on_elsewhere() -> None:
    async def scenario(stage: Stage) -> None:
        def never_in_time(terms: Terms) -> Iterator[int]:
            stage.clock.now_s += 1.0
            if terms.expired():
                raise OutOfTime("too much")
            yield 0

        later = stage.solver("a", (4,), 0.0)
        problem = Problem("a", "test", 1, never_in_time, lambda: later, max, lambda _: True)
        assert await stage.finish(stage.ask(problem)) == [4]

    run(scenario)


def test_the_better_of_two_answers_keeps_its_bound_above_it() -> None:
    first, second = Answer(5, 9, False), Answer(3, 4, False)
    assert best(first, second) == best(second, first) == Answer(5, 5, True)
    assert best(Answer(5, 9, False), Answer(5, 7, False)) == Answer(5, 7, False)


# --- Karmada's questions ------------------------------------------------------------------------------------

PARTS = (component("a", 3, cpu=3), component("b", 2, cpu=5), component("c", 2, cpu=7))


def fleet(nodes: int) -> ClusterMirror:
    return cluster(*(node(f"n{number}").cpu(11 + number * 7 % 13) for number in range(nodes)))


def answering(threads: ByHand, clusters: int, mirror: ClusterMirror) -> Answering:
    clock = Clock()
    members = [MemberCluster(f"m{number}", mirror, clock) for number in range(clusters)]
    for member in members:
        for kind in MEMBER_KINDS:
            member.watch(kind.name, lambda: FRESH)
    metrics = EstimatorMetrics(CollectorRegistry(), [member.name for member in members], version="0")
    policy = Policy(Gates(), OnDoubt.ZERO, 120.0)
    return Answering(members, policy, metrics, threads, clock=clock, wall_clock=clock)


async def asked(
    asking: Answering, count: int, within_s: float, parts: tuple[Component, ...] = PARTS
) -> list[Answer]:
    questions = (SetsQuestion(f"m{number}", parts, "") for number in range(count))
    return await asyncio.gather(*(asking.answer(question, within_s) for question in questions))


def doubts(answer: Answer) -> list[str]:
    return [reason.cause for reason in answer.reasons if reason.kind == DOUBT]


def test_a_fan_out_with_little_time_is_answered_or_doubted_and_never_a_bare_nothing() -> None:
    async def main() -> None:
        found = await asked(answering(ByHand(), 50, fleet(60)), 50, SOON_S)
        assert len(found) == 50
        assert all(answer.value > 0 or doubts(answer) == ["late"] for answer in found)
        assert any(doubts(answer) for answer in found)

    asyncio.run(main())


def test_many_clusters_asked_at_once_are_all_answered_no_worse_than_greedily() -> None:
    async def main() -> None:
        threads = ByHand()
        waiting = asyncio.ensure_future(asked(answering(threads, 50, fleet(60)), 50, 60.0))
        while not waiting.done():
            await threads.work()
        greedy = max_sets(room_of(fleet(60)), PARTS, never).answer
        assert greedy.value > 0
        assert {answer.value >= greedy.value for answer in waiting.result()} == {True}

    asyncio.run(main())


TOO_LARGE = (component("a", 2, cpu=7), component("b", 1, cpu=6))
"""One set of these is as much as two nodes of ten CPUs have in all, and fits on no two such nodes."""


def test_nothing_found_and_nothing_ruled_out_is_a_doubt() -> None:
    async def main() -> None:
        pair = cluster(node("x").cpu(10), node("y").cpu(10))
        (found,) = await asked(answering(ByHand(), 1, pair), 1, SOON_S, TOO_LARGE)
        assert (found.value, found.upper_bound, doubts(found)) == (0, 1, ["late"])
        threads = ByHand()
        waiting = asyncio.ensure_future(asked(answering(threads, 1, pair), 1, 60.0, TOO_LARGE))
        while not waiting.done():
            await threads.work()
        (found,) = waiting.result()
        assert (found.value, found.proven, doubts(found)) == (0, True, [])

    asyncio.run(main())
