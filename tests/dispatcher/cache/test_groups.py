"""What follows for the members of a group."""

import dataclasses
import random

import pytest

from queue_dispatcher.cache.groups import GroupState, Member, group_state
from queue_dispatcher.cycle.reasons import waiting_for_gang_members


def waits(uid: str, size: int = 3, *, created_ms: int = 0, taken_back: bool = False) -> Member:
    return Member(uid, size, created_ms, created_ms, is_pending=True, was_taken_back=taken_back)


def runs(uid: str, size: int = 3, *, admitted_ms: int = 100) -> Member:
    return Member(uid, size, 0, 0, is_pending=False, admitted_ms=admitted_ms)


def blocked(uid: str) -> Member:
    return dataclasses.replace(waits(uid), is_pending=False)


@pytest.mark.parametrize(
    ("members", "expected"),
    [
        pytest.param([], GroupState(), id="nobody"),
        pytest.param(
            [waits("a"), waits("b")],
            GroupState(waiting=waiting_for_gang_members("g", 2, 3)),
            id="one is missing",
        ),
        pytest.param([waits("b"), waits("a"), waits("c")], GroupState(("a", "b", "c")), id="complete"),
        pytest.param(
            [waits("a", created_ms=9), waits("b"), waits("c", created_ms=5)],
            GroupState(("b", "c", "a")),
            id="in the order in which they came",
        ),
        pytest.param(
            [waits("a"), waits("b"), blocked("c")],
            GroupState(waiting=waiting_for_gang_members("g", 2, 3)),
            id="one may not start",
        ),
        pytest.param(
            [waits("a", 2), waits("b", 3)],
            GroupState(waiting=waiting_for_gang_members("g", 2, 3)),
            id="the largest size counts",
        ),
        pytest.param([runs("a"), waits("b"), waits("c")], GroupState(forward=("b", "c")), id="half released"),
        pytest.param(
            [runs("a"), runs("b"), runs("c"), waits("d")],
            GroupState(("d",)),
            id="who comes to a whole group asks for quota",
        ),
        pytest.param(
            [runs("a"), runs("b"), waits("c", created_ms=101)],
            GroupState(("c",)),
            id="who was not there when it was released asks for quota",
        ),
        pytest.param(
            [runs("a"), runs("b"), waits("c", taken_back=True)],
            GroupState(("c",)),
            id="who was taken back asks for quota",
        ),
        pytest.param(
            [runs("a"), waits("b"), waits("c"), waits("d")],
            GroupState(("d",), ("b", "c")),
            id="no more than are missing are rolled forward",
        ),
        pytest.param(
            [runs("a", 4), waits("b", 4, created_ms=500), waits("c", 4, created_ms=500)],
            GroupState(waiting=waiting_for_gang_members("g", 3, 4)),
            id="half released, and one of the rest is missing",
        ),
    ],
)
def test_what_follows(members: list[Member], expected: GroupState) -> None:
    assert group_state("g", members) == expected
    random.Random(1).shuffle(members)
    assert group_state("g", members) == expected
