"""Streams before the dispatcher's turns: they start what the textbook starts, and when it does."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from random import Random

import pytest

from benchmarks.backfill import CHOICES, Load, asked, loads
from benchmarks.openb.trace import Task
from benchmarks.queues.suite import Suite, WorkloadSet
from benchmarks.streams.drawn import FULL_LOAD, drawn
from benchmarks.streams.fleet import COHORT, ONE_QUEUE, Choice, Fleet, Quota, of_suite
from benchmarks.streams.jobs import KNOWN, Job, Known, Stream, ordered, stating
from benchmarks.streams.player import Played, play
from benchmarks.streams.traces import kueue, squeezed
from benchmarks.streams.waits import figures, waits
from queue_dispatcher.cycle.runtime import in_steps
from tests.benchmarks.easy import BEST_EFFORT, EASY, STRICT, OnPool, Policy, starts

STRICT_FIFO, BEST_EFFORT_FIFO = CHOICES[:2]
SECOND, HOUR = 1_000, 3_600_000
SMALL_POOL = Fleet("nvidia.com/gpu", 4, (Quota("main", 4),))

# --- the textbook ----------------------------------------------------------------------------------------

HALF_AN_HOUR_THEN_TWO = Policy(after=HOUR // 2, drains=2 * HOUR)
LONG_RUNS, ALL_OF_IT = OnPool(0, 3, 10, 10), OnPool(1, 4, 5, 5)


@pytest.mark.parametrize(
    ("policy", "third", "expected"),
    [
        (STRICT, OnPool(2, 1, 5, 5), [0, 10, 15]),
        (BEST_EFFORT, OnPool(2, 1, 5, 5), [0, 10, 2]),
        (BEST_EFFORT, OnPool(2, 1, 20, 20), [0, 22, 2]),
        (EASY, OnPool(2, 1, 5, 5), [0, 10, 2]),
        (EASY, OnPool(2, 1, 8, 8), [0, 10, 2]),
        (EASY, OnPool(2, 1, 8, 9), [0, 10, 15]),
        (EASY, OnPool(2, 1, 5, None), [0, 10, 15]),
        (Policy(after=2), OnPool(2, 1, 20, 20), [0, 22, 2]),
        (Policy(after=0, drains=1), OnPool(2, 1, 5, 5), [0, 10, 15]),
    ],
)
def test_the_textbook_on_three_jobs(policy: Policy, third: OnPool, expected: list[int]) -> None:
    assert starts([LONG_RUNS, ALL_OF_IT, third], 4, policy) == expected


@pytest.mark.parametrize("limit", [20, None])
def test_what_is_left_beside_a_reservation_may_be_taken_for_ever(limit: int | None) -> None:
    assert starts([LONG_RUNS, OnPool(1, 3, 5, 5), OnPool(2, 1, 20, limit)], 4, EASY) == [0, 10, 2]


def test_a_reservation_knows_no_moment_while_a_limit_is_missing() -> None:
    jobs = [LONG_RUNS._replace(limit=None), ALL_OF_IT, OnPool(2, 1, 5, 5)]
    assert starts(jobs, 4, EASY) == [0, 10, 15]


# --- turns -----------------------------------------------------------------------------------------------


def crowded(seed: int, *, jobs: int = 60) -> Stream:
    """More than there is room for, of which many come at once."""
    rng = Random(seed)
    made = [
        Job(
            "main",
            rng.choice((1, 2, 8, 64, 192, 256)),
            rng.randrange(100) * 10 * SECOND,
            rng.randrange(1, 60) * 10 * SECOND,
        )
        for _ in range(jobs)
    ]
    return ordered(made, 1000 * SECOND)


def in_known_steps(stream: Stream) -> Stream:
    """The same with limits that nobody rounds: the dispatcher does, up to eight a doubling."""
    jobs = [replace(job, limit_ms=in_steps(job.limit_ms) if job.limit_ms else None) for job in stream.jobs]
    return replace(stream, jobs=jobs)


def on_pool(stream: Stream) -> list[OnPool]:
    return [OnPool(job.arrives_ms, job.amount, job.runs_ms, job.limit_ms) for job in stream.jobs]


def played(stream: Stream, choice: Choice, fleet: Fleet = ONE_QUEUE) -> list[int]:
    found = play(stream, fleet, choice)
    assert not found.faults
    return found.starts_ms


@pytest.mark.parametrize("seed", range(8))
@pytest.mark.parametrize(("choice", "policy"), [(STRICT_FIFO, STRICT), (BEST_EFFORT_FIFO, BEST_EFFORT)])
def test_turns_start_crowded_jobs_as_the_textbook_does(choice: Choice, policy: Policy, seed: int) -> None:
    stream = crowded(seed)
    assert played(stream, choice) == starts(on_pool(stream), 256, policy)


@pytest.mark.parametrize(("choice", "policy"), [(STRICT_FIFO, STRICT), (BEST_EFFORT_FIFO, BEST_EFFORT)])
def test_turns_start_a_drawn_stream_as_the_textbook_does(choice: Choice, policy: Policy) -> None:
    stream = drawn(1, ends_ms=15_000 * SECOND)
    assert any(job.is_gang for job in stream.jobs)
    assert starts(on_pool(stream), 256, STRICT) != starts(on_pool(stream), 256, BEST_EFFORT)
    assert played(stream, choice) == starts(on_pool(stream), 256, policy)


@pytest.mark.parametrize("known", KNOWN, ids=lambda known: known.label)
@pytest.mark.parametrize(
    ("choice", "policy"),
    [
        ("from 0, no drain", EASY),
        ("from 0, drain 1h", Policy(after=0, drains=HOUR)),
        ("from 30m, drain 2h", HALF_AN_HOUR_THEN_TWO),
    ],
)
def test_turns_keep_room_as_the_textbook_does(choice: str, policy: Policy, known: Known) -> None:
    stream = in_known_steps(stating(drawn(1, ends_ms=30_000 * SECOND), known, 1))
    (chosen,) = [one for one in CHOICES if one.label == f"backfill {choice}"]
    assert played(stream, chosen) == starts(on_pool(stream), 256, policy)


@pytest.mark.parametrize("choice", [STRICT_FIFO, BEST_EFFORT_FIFO], ids=lambda choice: choice.label)
def test_limits_change_nothing_where_nothing_looks_at_them(choice: Choice) -> None:
    stream = crowded(9)
    assert len({tuple(played(stating(stream, known, 0), choice)) for known in KNOWN}) == 1


def test_in_a_cohort_strict_order_holds_in_each_queue_alone() -> None:
    blocked = [Job("gangs", 200, 0, 10), Job("gangs", 100, 1, 10), Job("small", 55, 2, 10)]
    fits = Job("gangs", 1, 3, 10)
    assert played(ordered([*blocked, fits], 10), STRICT_FIFO, COHORT) == [0, 10, 2, 10]
    assert played(ordered([*blocked, fits], 10), BEST_EFFORT_FIFO, COHORT) == [0, 10, 2, 3]


def test_jobs_that_can_never_start_are_faults() -> None:
    found = play(ordered([Job("main", 5, 0, 10)], 10), SMALL_POOL, STRICT_FIFO)
    assert [fault.split(" (")[0] for fault in found.faults] == ["1 jobs never started"]


def test_what_queues_do_not_understand_is_a_fault() -> None:
    choice = Choice("misspelt", {"queueingStrategy": "BestEfort"})
    found = play(ordered([Job("main", 1, 0, 10)], 10), SMALL_POOL, choice)
    assert len(found.faults) == 1
    assert "queueingStrategy" in found.faults[0]


# --- streams ---------------------------------------------------------------------------------------------


def test_a_drawn_stream_keeps_its_load_and_is_that_of_its_seed() -> None:
    stream = drawn(0)
    small = [job for job in stream.jobs if not job.is_gang]
    gangs = [job for job in stream.jobs if job.is_gang]
    assert drawn(0) == stream
    assert drawn(1) != stream
    assert [job.arrives_ms for job in gangs] == [14_000 * SECOND * (n + 1) for n in range(11)]
    assert Stream(small, stream.ends_ms).load == pytest.approx(0.7 * 256, rel=0.05)
    assert {job.amount for job in small} == {1, 2, 4, 8, 16}
    assert drawn(0, load=FULL_LOAD).load == pytest.approx(
        (0.8 + 11 * 192 * 3600 / 160_000 / 256) * 256, rel=0.05
    )


def test_limits_are_never_shorter_than_runs_nor_longer_than_said() -> None:
    stream = drawn(0, ends_ms=20_000 * SECOND)
    told = [[job.limit_ms for job in stating(stream, known, 0).jobs] for known in KNOWN]
    for limits, known in zip(told, KNOWN, strict=True):
        stated = [(job, limit) for job, limit in zip(stream.jobs, limits, strict=True) if limit is not None]
        assert len(stated) == pytest.approx(len(stream.jobs) * known.percent / 100, abs=40)
        assert all(job.runs_ms < limit <= job.runs_ms * known.times + 1 for job, limit in stated)
    assert max(limit or 0 for limit in told[1]) > 4 * max(limit or 0 for limit in told[0])


def test_a_trace_is_squeezed_until_it_uses_what_is_wanted() -> None:
    tasks = [Task(f"p{n}", 1, 1, 1 + n % 8, 1000, created_s=500 + 90 * n, runs_s=700) for n in range(400)]
    tasks[0] = replace(tasks[0], runs_s=10**7)
    stream = squeezed(tasks, 100.0)
    of_tasks = [job for job in stream.jobs if not job.is_gang]
    assert len(of_tasks) == 400
    assert max(job.runs_ms for job in of_tasks) == 86_400 * SECOND
    assert Stream(of_tasks, stream.ends_ms).load == pytest.approx(100.0, rel=0.01)
    assert of_tasks[0].arrives_ms == 0
    assert of_tasks[-1].arrives_ms <= stream.ends_ms


def test_a_suite_comes_set_by_set_and_its_large_ones_are_the_gangs() -> None:
    sets = (WorkloadSet(0, "small", 3, 100, 200, 50, 1), WorkloadSet(1, "large", 1, 250, 1000, 200, 20))
    suite = Suite("made", 1, 2, 20, 100, sets)
    stream, fleet = kueue(suite), of_suite(suite)
    assert [(job.arrives_ms, job.amount) for job in stream.jobs if job.queue == "cq-0-0-cohort-0"] == [
        (100, 1),
        (200, 1),
        (250, 20),
        (300, 1),
    ]
    assert sum(job.is_gang for job in stream.jobs) == 2
    # One borrows what the small ones leave it, the other has what it owns once the last small one has ended.
    large = [
        start
        for job, start in zip(stream.jobs, played(stream, BEST_EFFORT_FIFO, fleet), strict=True)
        if job.is_gang
    ]
    assert large == [250, 500]


# --- figures ---------------------------------------------------------------------------------------------


def test_waits_are_told_for_gangs_and_small_jobs_and_use_while_jobs_come() -> None:
    jobs = [Job("main", 4, 0, 10 * SECOND, is_gang=True), Job("main", 2, 0, 5 * SECOND)]
    seen = Played([5 * SECOND, 0])
    of = waits(Stream(jobs, 10 * SECOND), seen, 4)
    values: Sequence[float] = [figure.value for figure in figures([of])]
    assert values == [5.0, 5.0, 0.0, 75.0, 50.0, 0.0]


def test_a_load_has_a_row_for_each_choice_that_is_known() -> None:
    load = Load("crowded", ONE_QUEUE, crowded)
    result = asked(load, (0, 1), (STRICT_FIFO, BEST_EFFORT_FIFO, Choice("x", {"queueingStrategy": "None"})))
    assert [case.label for case in result.cases] == ["strict", "best effort"]
    assert not any(case.faults for case in result.cases)
    strict, best_effort = (case.figures[3].value for case in result.cases)
    assert strict < best_effort


def test_loads_that_are_not_there_say_so(tmp_path: Path) -> None:
    found = list(loads(["one", "openb", "kueue"], tmp_path, tmp_path / "generator.json"))
    assert isinstance(found[0], Load)
    assert [str(one).split(": ")[:2] for one in found[1:]] == [["openb", "skipped"], ["kueue", "skipped"]]
