"""The line of one queue: who is next, whatever came in whichever order."""

from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from queue_dispatcher.api.ageing import NO_AGEING, Ageing
from queue_dispatcher.cycle.items import Item, Shape
from queue_dispatcher.cycle.order import next_point_ms, rank
from queue_dispatcher.cycle.pending import PendingQueue

CI = settings(max_examples=60, derandomize=True, deadline=None)
SHAPES = [Shape(f"s{number}", (), ()) for number in range(3)]
AGEING = Ageing(step_ms=10, cap=2)


def item(
    name: str,
    shape: int = 0,
    *,
    at: int = 0,
    priority: int = 0,
    due: int = 0,
    ageing: Ageing | None = None,
    runtime: int | None = None,
) -> Item:
    return Item(
        name, name, (name,), "q", "q", SHAPES[shape], priority, at, due, ageing=ageing, runtime_ms=runtime
    )


def line(*items: Item) -> PendingQueue:
    queue = PendingQueue("q")
    for one in items:
        queue.add(one)
    return queue


def seen(queue: PendingQueue, now_ms: int) -> list[tuple[object, list[str]]]:
    return [(found.key, [one.id for one in found.items]) for found in queue.classes(now_ms)]


def test_items_of_one_shape_and_priority_stand_by_when_they_came() -> None:
    queue = line(item("c", at=3), item("b", at=1), item("a", at=1), item("z", 1), item("p", priority=5))
    assert [ids for _, ids in seen(queue, 0)] == [["p"], ["z"], ["a", "b", "c"]]
    assert len(queue) == 5


def test_a_class_of_its_own_ageing_is_another_class() -> None:
    queue = line(item("a"), item("b", ageing=AGEING))
    assert [ids for _, ids in seen(queue, 0)] == [["a"], ["b"]]


def test_those_that_run_for_a_different_time_are_another_class_and_keep_their_order() -> None:
    queue = line(
        item("d", at=4, runtime=60),
        item("b", at=2, runtime=90),
        item("c", at=3),
        item("a", at=1, runtime=60),
    )
    assert [ids for _, ids in seen(queue, 0)] == [["a", "d"], ["b"], ["c"]]
    assert [key.runtime_ms for key in (found.key for found in queue.classes(0))] == [60, 90, None]
    assert [one.id for one in queue.ordered(0, AGEING)] == ["a", "b", "c", "d"]
    assert [queue.position(name, 0, AGEING) for name in "abcd"] == [1, 2, 3, 4]
    queue.remove("a")
    assert [ids for _, ids in seen(queue, 0)] == [["b"], ["c"], ["d"]], (
        "the class goes where its first stands"
    )


def test_adding_twice_is_adding_once_and_the_last_counts() -> None:
    queue = line(item("a", at=5), item("b", at=6), item("a", at=7, due=0), item("a", at=7))
    assert [ids for _, ids in seen(queue, 0)] == [["b", "a"]]
    queue.add(item("a", at=7, due=50))
    assert [ids for _, ids in seen(queue, 0)] == [["b"]]
    assert [one.id for one in queue.later(0)] == ["a"]
    assert len(queue) == 2


@pytest.mark.parametrize("due", [0, 50])
def test_who_leaves_is_gone(due: int) -> None:
    queue = line(item("a", due=due), item("b", due=due))
    left = queue.remove("a")
    assert left is not None
    assert left.id == "a"
    assert queue.remove("a") is None
    assert queue.get("a") is None
    assert {one.id for one in queue} == {"b"}
    queue.remove("b")
    assert (len(queue), seen(queue, 99), list(queue.later(0))) == (0, [], [])


def test_who_is_not_due_is_held_apart_until_then() -> None:
    queue = line(item("a", due=10, at=1), item("b", at=2), item("c", due=20, at=0))
    assert [ids for _, ids in seen(queue, 9)] == [["b"]]
    assert queue.next_due_ms(9) == 10
    assert [ids for _, ids in seen(queue, 10)] == [["a", "b"]]
    assert [ids for _, ids in seen(queue, 9)] == [["b"]], "asking about later changes nothing now"
    queue.advance(10)
    assert queue.next_due_ms(10) == 20
    assert [ids for _, ids in seen(queue, 20)] == [["c", "a", "b"]]
    queue.advance(20)
    assert queue.next_due_ms(20) is None
    assert [ids for _, ids in seen(queue, 20)] == [["c", "a", "b"]]


def test_a_clock_that_jumps_back_takes_nobody_out_of_the_line() -> None:
    queue = line(item("a", due=10))
    queue.advance(10)
    queue.advance(3)
    assert [ids for _, ids in seen(queue, 3)] == [["a"]]
    assert queue.position("a", 3, NO_AGEING) == 1
    assert queue.remove("a") is not None


def test_positions_count_from_one_and_those_not_due_come_last() -> None:
    queue = line(
        item("a", at=2), item("b", 1, at=1), item("c", due=30), item("d", due=20), item("e", priority=1)
    )
    expected = {"e": 1, "b": 2, "a": 3, "d": 4, "c": 5, "nobody": 0}
    assert {name: queue.position(name, 5, NO_AGEING) for name in expected} == expected


items = st.builds(
    item,
    st.sampled_from([f"i{number}" for number in range(12)]),
    st.integers(0, 2),
    at=st.integers(0, 30),
    priority=st.integers(0, 3),
    due=st.sampled_from([0, 0, 15, 40]),
    ageing=st.sampled_from([None, Ageing(7, 1)]),
    runtime=st.sampled_from([None, 60, 90]),
)


@CI
@given(
    st.lists(items, max_size=20), st.integers(0, 50), st.integers(0, 50), st.randoms(use_true_random=False)
)
def test_the_line_is_the_same_whatever_the_order_of_arrival(
    arrivals: list[Item], advanced_ms: int, now_ms: int, rng: Random
) -> None:
    latest = {one.id: one for one in arrivals}
    shuffled = list(latest.values())
    rng.shuffle(shuffled)
    first, second = line(*arrivals), PendingQueue("q")
    for number, one in enumerate(shuffled):
        if number == len(shuffled) // 2:
            second.advance(min(advanced_ms, now_ms))
        second.add(one)
    assert seen(first, now_ms) == seen(second, now_ms)
    ordered = [one.id for one in first.ordered(now_ms, AGEING)]
    assert ordered == [one.id for one in second.ordered(now_ms, AGEING)]
    due = sorted(
        (one for one in latest.values() if one.due_ms <= now_ms), key=lambda i: rank(i, AGEING, now_ms)
    )
    assert ordered[: len(due)] == [one.id for one in due]
    assert sorted(ordered) == sorted(latest)
    for queue in (first, second):
        assert [queue.position(one, now_ms, AGEING) for one in ordered] == list(range(1, len(ordered) + 1))


@pytest.mark.parametrize(
    ("waited", "points", "next_ms"),
    [(0, 0, 10), (9, 0, 10), (10, 1, 20), (19, 1, 20), (20, 2, None), (-5, 0, 10)],
)
def test_ageing_counts_whole_steps_up_to_its_cap(waited: int, points: int, next_ms: int | None) -> None:
    assert rank(item("a", priority=3), AGEING, waited) == (-3 - points, 0, 0, "a")
    assert next_point_ms(item("a"), AGEING, waited) == next_ms
    assert rank(item("a", ageing=NO_AGEING), AGEING, waited)[0] == 0
