"""What follows for the members of a group."""

import dataclasses
import random

import pytest

from queue_dispatcher.bindings.decision import Decision, decision
from queue_dispatcher.cache.groups import GroupState, Member, group_state, left_out
from queue_dispatcher.cycle.reasons import waiting_for_gang_members
from queue_dispatcher.workloads.demand import Requests

ONE: Requests = (("nvidia.com/gpu", 1),)


def waits(uid: str, size: int = 3, *, created_ms: int = 0, taken_back: bool = False, gpus: int = 1) -> Member:
    asked = (("nvidia.com/gpu", gpus),)
    is_new = not taken_back
    return Member(uid, size, created_ms, True, is_new=is_new, was_taken_back=taken_back, asked=asked)


def decided(uids: str) -> Decision:
    """To admit those of one letter each, with a GPU each."""
    return decision(dict.fromkeys(uids, ONE))


def runs(uid: str, size: int = 3, *, admitted_ms: int = 100, of: str = "") -> Member:
    """``of``: with whom it was released."""
    made = decided(of) if of else None
    return Member(uid, size, 0, is_pending=False, asked=ONE, admitted_ms=admitted_ms, decision=made)


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
        pytest.param(
            [runs("a"), runs("b"), runs("c"), waits("d")],
            GroupState(("d",)),
            id="who comes to a whole group asks for quota",
        ),
        pytest.param(
            [runs("a", 4), waits("b", 4), waits("c", 4)],
            GroupState(waiting=waiting_for_gang_members("g", 3, 4)),
            id="one runs, and one of the rest is missing",
        ),
        pytest.param(
            [runs("a", of="ade"), waits("b")],
            GroupState(("b",)),
            id="who was released and is deleted is not waited for",
        ),
        pytest.param(
            [runs("a"), waits("b", taken_back=True), waits("c", taken_back=True)],
            GroupState(alone=("b", "c")),
            id="who was taken back starts alone",
        ),
        pytest.param(
            [waits("b", taken_back=True), waits("c")],
            GroupState(alone=("b",), waiting=waiting_for_gang_members("g", 2, 3)),
            id="who was taken back waits for nobody",
        ),
        pytest.param(
            [runs("a", 4), waits("b", 4, taken_back=True), waits("c", 4), waits("d", 4)],
            GroupState(("c", "d"), ("b",)),
            id="who was taken back keeps nobody waiting",
        ),
        pytest.param(
            [waits("a", taken_back=True), waits("b", taken_back=True), waits("c", taken_back=True)],
            GroupState(("a", "b", "c")),
            id="all were taken back",
        ),
    ],
)
def test_what_follows(members: list[Member], expected: GroupState) -> None:
    assert group_state("g", members) == expected
    random.Random(1).shuffle(members)
    assert group_state("g", members) == expected


def test_who_is_rolled_forward_does_not_stand_in_line_and_is_there() -> None:
    members = [runs("a"), waits("b"), waits("c"), waits("d")]
    assert group_state("g", members, {"b"}) == GroupState(("c", "d"))


@pytest.mark.parametrize(
    ("members", "expected"),
    [
        pytest.param([waits("a"), waits("b"), waits("c")], "", id="nobody is released"),
        pytest.param([runs("a", of="abc"), waits("b"), waits("c")], "bc", id="half released"),
        pytest.param([runs("a", of="abc"), runs("b", of="abc"), waits("c")], "c", id="more than half"),
        pytest.param([runs("a", of="ab"), runs("b", of="ab"), waits("c")], "", id="whole"),
        pytest.param([runs("a", of="ab"), waits("c")], "", id="another has taken one's place"),
        pytest.param([runs("a"), waits("b"), waits("c")], "", id="released with nobody, or it does not say"),
        pytest.param([runs("a", of="abc"), waits("b")], "", id="one that waited is deleted"),
        pytest.param([runs("b", of="abc"), waits("c")], "", id="one that was released is deleted"),
        pytest.param([runs("a", of="abc"), waits("d"), waits("b"), waits("c")], "bc", id="one has joined"),
        pytest.param(
            [runs("a", of="ab"), waits("b", created_ms=101), waits("c", 4, created_ms=102)],
            "b",
            id="whoever released it has a clock that is behind, and one has joined",
        ),
        pytest.param(
            [runs("a", of="ab"), waits("b", taken_back=True)], "", id="who was taken back asks for quota"
        ),
        pytest.param(
            [runs("a", of="abc"), waits("b", gpus=3), waits("c")], "c", id="who asks for more asks for quota"
        ),
        pytest.param(
            [runs("a", of="ab"), waits("b"), runs("c", of="cd"), waits("d")], "bd", id="two decisions"
        ),
    ],
)
def test_whom_a_decision_left_out(members: list[Member], expected: str) -> None:
    assert sorted(left_out(members)) == list(expected)
    random.Random(1).shuffle(members)
    assert sorted(left_out(members)) == list(expected)
