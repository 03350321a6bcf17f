"""How the simulated karmada-scheduler divides and queues: tables of a live one, and of its source."""

import pytest

from sandbox.simulation.karmada.division import Failure, Strategy, Wanted, by_weight, divided
from sandbox.simulation.karmada.estimation import room
from sandbox.simulation.karmada.queue import Queued, SchedulingQueue
from sandbox.simulation.karmada.throttle import TOKEN, Throttle
from sandbox.simulation.objects import Obj

AGGREGATED, DYNAMIC, STATIC, DUPLICATED = (
    Strategy.AGGREGATED,
    Strategy.DYNAMIC,
    Strategy.STATIC,
    Strategy.DUPLICATED,
)
ONE = {"min_groups": 1, "max_groups": 1}


def outcome(
    strategy: Strategy,
    replicas: int,
    room: dict[str, int],
    placed: dict[str, int] | None = None,
    *,
    one: bool = False,
    is_set: bool = False,
    is_fresh: bool = False,
) -> dict[str, int] | str:
    groups = 1 if one else 0
    wanted = Wanted(replicas, placed or {}, strategy, groups, groups, is_set, is_fresh)
    try:
        return divided(wanted, room)
    except Failure as failure:
        return type(failure).__name__


@pytest.mark.parametrize(
    ("strategy", "replicas", "rooms", "expected"),
    [
        (DYNAMIC, 10, (6, 7), {"1": 5, "2": 5}),
        (AGGREGATED, 10, (6, 7), {"1": 5, "2": 5}),
        (DYNAMIC, 10, (6, 352), {"2": 10}),
        (AGGREGATED, 10, (6, 352), {"2": 10}),
        (DYNAMIC, 10, (6, 0), "Unschedulable"),
        (AGGREGATED, 10, (6, -2), "Unschedulable"),
        (DYNAMIC, 10, (448, 352), {"1": 6, "2": 4}),
        (AGGREGATED, 10, (448, 352), {"1": 10}),
        (AGGREGATED, 4, (1, 3), {"1": 1, "2": 3}),
        (STATIC, 4, (0, 0), {"1": 2, "2": 2}),
        (DUPLICATED, 4, (0, 0), {"1": 4, "2": 4}),
        (AGGREGATED, 0, (5, 5), {"1": 0, "2": 0}),
    ],
)
def test_replicas_are_divided_by_the_numbers_that_count(
    strategy: Strategy, replicas: int, rooms: tuple[int, int], expected: dict[str, int] | str
) -> None:
    assert outcome(strategy, replicas, dict(zip("12", rooms, strict=True))) == expected


@pytest.mark.parametrize(
    ("strategy", "replicas", "rooms", "expected"),
    [
        (AGGREGATED, 10, (6, 12), {"2": 10}),
        (AGGREGATED, 10, (6, 0), "SchedulerError"),
        (DYNAMIC, 4, (1, 3), "SchedulerError"),
        (STATIC, 4, (0, 0), {"1": 2, "2": 2}),
        (DUPLICATED, 4, (1, 3), {"2": 4}),
        (DUPLICATED, 4, (0, 0), {"1": 4}),
    ],
)
def test_one_cluster_takes_all_or_the_scheduler_errs(
    strategy: Strategy, replicas: int, rooms: tuple[int, int], expected: dict[str, int] | str
) -> None:
    assert outcome(strategy, replicas, dict(zip("12", rooms, strict=True)), one=True) == expected


@pytest.mark.parametrize(
    ("rooms", "expected"),
    [((0, 2), {"2": 0}), ((0, 0), "SchedulerError"), ((2, 0), {"1": 0}), ((2, 5), {"2": 0})],
)
def test_a_set_goes_to_one_cluster_as_a_whole(rooms: tuple[int, int], expected: dict[str, int] | str) -> None:
    assert outcome(AGGREGATED, 0, dict(zip("12", rooms, strict=True)), one=True, is_set=True) == expected


@pytest.mark.parametrize(
    ("replicas", "placed", "rooms", "expected"),
    [
        (5, {"2": 4}, (1, 0), {"2": 4, "1": 1}),
        (7, {"1": 1, "2": 4}, (0, 2), {"1": 1, "2": 6}),
        (5, {"1": 5, "2": 2}, (9, 9), {"1": 5}),
        (4, {"2": 4}, (9, 0), {"2": 4}),
        (4, {"2": 1}, (50, 40), {"2": 4}),
    ],
)
def test_what_is_placed_stays_and_only_the_difference_is_divided(
    replicas: int, placed: dict[str, int], rooms: tuple[int, int], expected: dict[str, int]
) -> None:
    assert outcome(AGGREGATED, replicas, dict(zip("12", rooms, strict=True)), placed) == expected


def test_nothing_that_passes_the_filters_is_its_own_reason() -> None:
    assert outcome(AGGREGATED, 1, {}) == "NoClusterFit"


def test_weights_leave_nobody_out_and_nothing_over() -> None:
    assert by_weight(9, {"a": 1, "b": 2}) == {"a": 3, "b": 6}
    assert sum(by_weight(1_000_003, {str(n): n + 1 for n in range(50)}).values()) == 1_000_003


class Saying:
    def __init__(self, **answers: int | None) -> None:
        self._answers = answers

    def replicas(self, cluster: str, requirements: Obj, asking: str) -> int | None:
        return self._answers[cluster]

    def sets(self, cluster: str, components: object, asking: str) -> int | None:
        return self._answers[cluster]


@pytest.mark.parametrize(
    ("answers", "expected"),
    [
        ((6, 7), (6, 7)),
        ((6, -1), (6, 352)),
        ((6, 2147483647), (6, 352)),
        ((6, None), (448, 352)),
        ((0, 0), (0, 0)),
    ],
)
def test_the_smaller_estimate_counts_and_one_error_takes_all(
    answers: tuple[int, int | None], expected: tuple[int, int]
) -> None:
    clusters = [
        {"metadata": {"name": name}, "status": {"resourceSummary": {"allocatable": {"gpu": str(gpus)}}}}
        for name, gpus in (("a", 448), ("b", 352))
    ]
    spec = {"replicas": 10, "replicaRequirements": {"resourceRequest": {"gpu": "1"}}}
    found = room(spec, clusters, Saying(**dict(zip("ab", answers, strict=True))))
    assert found == dict(zip("ab", expected, strict=True))


def test_the_queue_gives_by_priority_then_age_and_nothing_twice() -> None:
    queue = SchedulingQueue()
    for at_ms, (key, priority) in enumerate([("a", 0), ("b", 5), ("c", 0), ("b", 9)]):
        queue.push(Queued(key, priority), at_ms)
    popped = []
    while (queued := queue.pop()) is not None:
        popped.append(queued.key)
        queue.done(queued, 10)
    assert popped == ["b", "a", "c"]


def test_what_happens_while_it_is_scheduled_brings_it_back() -> None:
    queue = SchedulingQueue()
    queue.push(Queued("a", 0), 0)
    first = queue.pop()
    assert first is not None
    queue.push(Queued("a", 0), 5)
    queue.failed(first, is_unschedulable=True)
    queue.done(first, 9)
    assert not queue.unschedulable
    assert queue.pop() is first


def test_errors_back_off_and_the_unschedulable_wait_five_minutes() -> None:
    queue, now_ms, tried = SchedulingQueue(), 0, list[int]()
    queue.push(Queued("a", 0), 0)
    while now_ms < 40_000:
        queue.flush_backoff(now_ms)
        if (queued := queue.pop()) is not None:
            tried.append(now_ms // 1000)
            queue.failed(queued, is_unschedulable=False)
            queue.done(queued, now_ms)
        now_ms += 1_000
    assert tried == [0, 1, 3, 7, 15, 25, 35]
    queue.push(Queued("b", 0), now_ms)
    while (queued := queue.pop()) is not None:
        queue.failed(queued, is_unschedulable=True)
        queue.done(queued, now_ms)
    queue.flush_unschedulable(now_ms + 300_000)
    assert queue.pop() is None
    queue.flush_unschedulable(now_ms + 300_001)
    assert queue.pop() is not None


def test_a_throttle_lets_a_burst_through_and_then_so_many_a_second() -> None:
    throttle = Throttle(qps=40, burst=60)
    times = [throttle.reserve(1_000, TOKEN) for _ in range(100)]
    assert times[:60] == [1_000] * 60
    assert times[60:62] == [1_025, 1_050]
    assert times[-1] == 2_000
    assert throttle.reserve(60_000, TOKEN) == 60_000
