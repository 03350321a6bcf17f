"""What has room in what is free, one after the other."""

import pytest

from queue_dispatcher.workloads.demand import Component, Requests
from queue_dispatcher.workloads.fleet import Cluster
from queue_dispatcher.workloads.spare import SpareRoom
from tests.dispatcher.workloads.builders import GPU

FPGA = "example.com/fpga"
ALL = {GPU: 8, "cpu": 8_000}
A, B = (Cluster(name, allocatable=ALL, free={GPU: gpus, "cpu": 8_000}) for name, gpus in (("a", 4), ("b", 6)))
UNSUMMED = Cluster("unsummed")
FULL = Cluster("full", allocatable=ALL, free={GPU: -2, "cpu": 8_000})


def has_room(room: SpareRoom, count: int, requests: Requests, *names: str, in_one: bool) -> bool:
    return room.take(names, ((Component("", count, requests), count),), in_one=in_one)


def room_of(*clusters: Cluster) -> SpareRoom:
    return SpareRoom(clusters, lambda name: name in (GPU, FPGA))


@pytest.mark.parametrize(
    ("clusters", "count", "requests", "in_one", "expected"),
    [
        ((A, B), 6, ((GPU, 1),), True, True),
        ((A, B), 7, ((GPU, 1),), True, False),
        ((A, B), 10, ((GPU, 1),), False, True),
        ((A, B), 11, ((GPU, 1),), False, False),
        # Four of five each are not two of eight.
        ((A, B), 2, ((GPU, 5),), False, False),
        ((A, B), 9, (("cpu", 1_000), (GPU, 1)), True, False),
        ((A, FULL), 5, ((GPU, 1),), False, False),
        # What is not an accelerator and listed nowhere is not counted.
        ((A,), 1, (("example.com/slot", 1),), False, True),
        ((A,), 1, ((FPGA, 1),), False, False),
        # Nobody knows only where none is summed up.
        ((A, UNSUMMED), 99, ((GPU, 1),), False, False),
        ((UNSUMMED,), 99, ((GPU, 1),), True, True),
        ((A,), 0, (), True, True),
        ((), 1, ((GPU, 1),), True, False),
        ((), 0, (), False, False),
    ],
)
def test_take(
    clusters: tuple[Cluster, ...], count: int, requests: Requests, in_one: bool, expected: bool
) -> None:
    names = [one.name for one in clusters]
    assert has_room(room_of(*clusters), count, requests, *names, in_one=in_one) is expected


def test_what_is_taken_is_not_there_twice_and_what_was_refused_takes_nothing() -> None:
    room = room_of(A, B)
    assert not has_room(room, 11, ((GPU, 1),), "a", "b", in_one=False)
    assert has_room(room, 6, ((GPU, 1),), "a", "b", in_one=True)
    assert not has_room(room, 5, ((GPU, 1),), "a", "b", in_one=True)
    assert has_room(room, 4, ((GPU, 1),), "a", "b", in_one=False)
    assert not has_room(room, 1, ((GPU, 1),), "a", "b", in_one=False)


def test_what_is_filled_is_not_there_and_what_is_given_back_is() -> None:
    room = room_of(A)
    room.fill("a", ((GPU, 3),))
    room.fill("nowhere", ((GPU, 3),))
    pods = ((Component("", 3, ((GPU, 1),)), 3),)
    assert not room.take(("a",), pods, in_one=True, gives={"a": ((GPU, 1),)})
    assert room.take(("a",), pods, in_one=True, gives={"a": ((GPU, 2),)})
    assert not has_room(room, 1, ((GPU, 1),), "a", in_one=True)
