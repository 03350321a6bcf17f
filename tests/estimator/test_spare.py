"""Which nodes of a placement would take more pods of a component, the larger ones in their places."""

import pytest

from estimator.capacity.request import Component
from estimator.capacity.sets.first_fit import Placement
from estimator.capacity.sets.spare import with_spare
from tests.builders import cluster, component, never, node, room_of

NODES = cluster(*(node(f"n{number}").gpus(8).cpu(64) for number in range(3)))
SIX, TWO, ONE = (component(str(gpus), 2, gpu=gpus, cpu=1) for gpus in (6, 2, 1))
TWO_TOO = component("too", 2, gpu=2, cpu=1)


@pytest.mark.parametrize(
    ("asked", "placement", "spare"),
    [
        pytest.param((SIX,), {(0, 0): 1, (0, 1): 1}, set(), id="no node takes a second"),
        pytest.param((TWO,), {(0, 0): 4, (0, 1): 1}, {(0, 1)}, id="one is full by it"),
        pytest.param(
            (TWO, SIX), {(1, 0): 1, (0, 0): 1, (0, 1): 3}, {(0, 1)}, id="one is full by it and what is larger"
        ),
        pytest.param(
            (ONE, TWO),
            {(1, 0): 3, (0, 0): 2},
            {(1, 0)},
            id="what is smaller comes later, and counts for nothing",
        ),
        pytest.param(
            (TWO, TWO_TOO), {(0, 0): 2, (1, 0): 2}, {(0, 0), (1, 0)}, id="of one size either may come first"
        ),
    ],
)
def test_with_spare(asked: tuple[Component, ...], placement: Placement, spare: set[tuple[int, int]]) -> None:
    room = room_of(NODES)
    free = room.free("nvidia.com/gpu").tolist()
    assert set(with_spare(room, asked, placement, never)) == spare
    assert room.free("nvidia.com/gpu").tolist() == free


def test_nothing_is_said_where_the_time_is_up() -> None:
    assert with_spare(room_of(NODES), (TWO,), {(0, 1): 1}, lambda: True) == {}
