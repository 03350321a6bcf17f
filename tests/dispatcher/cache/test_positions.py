"""Where workloads stand, for those who ask."""

import random

from hypothesis import given, settings
from hypothesis import strategies as st

from queue_dispatcher.api.ageing import NO_AGEING, Ageing
from queue_dispatcher.cycle.items import Item, Shape
from queue_dispatcher.cycle.pending import PendingQueue
from queue_dispatcher.visibility.waiting import page


@settings(max_examples=200, deadline=None)
@given(seed=st.integers(0, 1 << 32), offset=st.integers(0, 30), limit=st.integers(0, 10))
def test_a_page_is_that_part_of_the_line(seed: int, offset: int, limit: int) -> None:
    chance = random.Random(seed)
    line = PendingQueue("q")
    shapes = [Shape(f"s{number}", (), ()) for number in range(4)]
    for number in range(chance.randint(0, 25)):
        line.add(
            Item(
                id=f"u{number}",
                name=f"team/w{number}",
                members=(f"u{number}",),
                queue="q",
                local_queue="main",
                shape=chance.choice(shapes),
                priority=chance.randint(0, 2),
                enqueued_ms=chance.randint(0, 9) * 1_000,
                due_ms=chance.choice((0, 0, 5_000, 20_000)),
            )
        )
    ageing = chance.choice((NO_AGEING, Ageing(1_000, 5)))
    every = list(line.ordered(10_000, ageing))
    assert list(page(line, offset, limit, 10_000, ageing)) == every[offset : offset + limit]
