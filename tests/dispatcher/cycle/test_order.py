"""Whose turn it is of those for whom others go, in several queues."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from queue_dispatcher.cycle.items import Item, Shape
from queue_dispatcher.cycle.order import in_order_of_queues, standing

CI = settings(max_examples=200, derandomize=True, deadline=None)
SHAPE = Shape("s", (), ())


def item(stated: str, place: int = 0) -> Item:
    """As ``queue priority came``, each one character."""
    queue, name = stated[0], f"{stated}{place}"
    return Item(name, name, (name,), queue, queue, SHAPE, int(stated[1]), int(stated[2]), 0)


@pytest.mark.parametrize(
    ("begun", "order"),
    [
        ("", ""),
        # Of one queue: by priority, then by when it came; those alike stay as they are.
        ("a00 a50", "a50 a00"),
        ("a51 a50", "a50 a51"),
        ("a50 a50", "a50 a50"),
        ("a00 a30 a50", "a50 a30 a00"),
        ("a30 a00 a50", "a50 a30 a00"),
        # Of two queues: as they began.
        ("a00 b50", "a00 b50"),
        # Nobody is moved forward: the one behind is moved back, to after its like.
        ("a00 b00 a50", "b00 a50 a00"),
        ("a50 b00 a00", "a50 b00 a00"),
        ("a00 b00 a50 b50 c00", "a50 a00 b50 b00 c00"),
    ],
)
def test_within_a_queue_whoever_stands_first_is_first(begun: str, order: str) -> None:
    assert in_order_of_queues(map(item, begun.split())) == [item(one) for one in order.split()]


STATED = st.builds("{}{}{}".format, st.sampled_from("abc"), st.integers(0, 2), st.integers(0, 2))


@CI
@given(st.lists(STATED, max_size=9))
def test_only_who_has_one_of_its_queue_before_it_is_moved_and_only_back(stated: list[str]) -> None:
    begun = [item(one, place) for place, one in enumerate(stated)]
    order = in_order_of_queues(begun)
    assert sorted(order, key=begun.index) == begun
    for queue in "abc":
        of = [standing(one) for one in order if one.queue == queue]
        assert of == sorted(of)
    moved = [
        one
        for place, one in enumerate(begun)
        if any(two.queue == one.queue and standing(two) < standing(one) for two in begun[place:])
    ]
    assert [one for one in order if one not in moved] == [one for one in begun if one not in moved]
