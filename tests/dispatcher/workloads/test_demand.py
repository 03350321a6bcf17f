import pytest
from hypothesis import given
from hypothesis import strategies as st

from fairway.quantity import MAX_INT64
from queue_dispatcher.workloads.demand import NOTHING, Demand, Placed, Requests, beyond, largest, requests
from tests.dispatcher.workloads.builders import GPU, LAW, a_set, component, plain

LAUNCHER_AND_WORKERS = a_set(component("launcher", 1, cpu=500), component("worker", 4, gpu=2, cpu=1000))


@pytest.mark.parametrize(
    ("demand", "copies", "expected"),
    [
        (NOTHING, 1, ()),
        (plain(3), 1, ()),
        (plain(0, gpu=8), 1, ()),
        (plain(3, gpu=2, cpu=1500), 1, (("cpu", 4500), (GPU, 6))),
        (plain(3, gpu=2), 4, ((GPU, 24),)),
        (LAUNCHER_AND_WORKERS, 1, (("cpu", 4500), (GPU, 8))),
        (LAUNCHER_AND_WORKERS, 2, (("cpu", 9000), (GPU, 16))),
        (plain(2**31 - 1, memory=MAX_INT64), 3, (("memory", MAX_INT64),)),
    ],
)
def test_total(demand: Demand, copies: int, expected: Requests) -> None:
    assert demand.total(copies) == expected


@pytest.mark.parametrize(
    ("demand", "placed", "expected"),
    [
        (plain(6, gpu=1), (), ()),
        (plain(6, gpu=1), (Placed("a", 4), Placed("b", 2)), ((GPU, 6),)),
        (plain(6, gpu=1), (Placed("a", -4),), ()),
        (LAUNCHER_AND_WORKERS, (Placed("a"),), (("cpu", 4500), (GPU, 8))),
        (LAUNCHER_AND_WORKERS, (Placed("a"), Placed("b")), (("cpu", 9000), (GPU, 16))),
    ],
)
def test_held_where_placed(demand: Demand, placed: tuple[Placed, ...], expected: Requests) -> None:
    assert demand.held(placed) == expected


def test_every_component_of_a_set_is_charged_not_only_the_first() -> None:
    """volcano-global charges a job of parameter servers and workers for its first task alone."""
    demand = a_set(component("ps", 1, cpu=1000), component("worker", 8, gpu=1))
    assert dict(demand.total())[GPU] == 8


_AMOUNTS = st.dictionaries(st.sampled_from(("cpu", "memory", GPU)), st.integers(0, 100)).map(
    lambda amounts: requests(amounts.items())
)


@LAW
@given(_AMOUNTS, _AMOUNTS)
def test_what_is_had_and_what_is_wanted_beyond_it_make_the_larger_of_both(
    one: Requests, other: Requests
) -> None:
    assert requests((*one, *beyond(other, one))) == largest(one, other) == largest(other, one)
    assert beyond(one, one) == ()
