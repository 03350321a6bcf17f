import pytest

from queue_dispatcher.cycle.snapshot import Verdict
from queue_dispatcher.workloads.choice import choice
from queue_dispatcher.workloads.demand import Component, Demand
from queue_dispatcher.workloads.placement import Division, Placement

FOUR = Demand((Component("", 4),))
TWO = Demand((Component("", 2),))
SET = Demand((Component("ps", 1), Component("worker", 4)), is_set=True)
ALL = (frozenset("abc"),)
FREE = {"a": 30, "b": 8, "c": 30}
ONE = Placement(max_clusters=1)
BY_ROOM = Placement(division=Division.DYNAMIC)


@pytest.mark.parametrize(
    ("placement", "demand", "per", "rooms", "preferred", "expected"),
    [
        pytest.param(Placement(), FOUR, 4, {"a": 4, "b": 4, "c": 4}, ALL, {"b": 4}, id="the fullest"),
        pytest.param(Placement(), FOUR, 4, {"c": 4, "a": 4}, ALL, {"a": 4}, id="by name"),
        pytest.param(
            Placement(), FOUR, 4, {"a": 4, "b": 9}, (frozenset("a"), frozenset("b")), {"a": 4}, id="flavors"
        ),
        pytest.param(Placement(), FOUR, 4, {"b": 9}, (frozenset("a"),), None, id="not of its flavor"),
        pytest.param(Placement(), FOUR, 4, {"a": 1, "b": 3}, ALL, {"a": 1, "b": 3}, id="together"),
        pytest.param(Placement(), FOUR, 4, {"a": 1, "b": 3, "c": 2}, ALL, {"b": 3, "c": 1}, id="few"),
        pytest.param(Placement(), FOUR, 4, {"a": 1, "b": 2}, ALL, None, id="used up"),
        pytest.param(Placement(max_clusters=2), FOUR, 4, {"a": 1, "b": 2, "c": 1}, ALL, None, id="too many"),
        pytest.param(BY_ROOM, FOUR, 4, {"a": 6, "b": 2}, ALL, {"a": 3, "b": 1}, id="in proportion"),
        pytest.param(BY_ROOM, FOUR, 4, {"a": 5, "b": 5, "c": 5}, ALL, {"a": 2, "b": 1, "c": 1}, id="rounded"),
        pytest.param(BY_ROOM, TWO, 2, {"a": 4, "b": 2}, ALL, {"a": 1, "b": 1}, id="as Karmada rounds"),
        pytest.param(BY_ROOM, FOUR, 4, {"a": 100, "b": 1}, ALL, {"a": 4}, id="a part of none"),
        pytest.param(ONE, FOUR, 1, {"a": 1, "b": 1}, ALL, {"b": 4}, id="whole"),
        pytest.param(ONE, SET, 1, {"a": 1}, ALL, {"a": 0}, id="a set states no number"),
        pytest.param(ONE, SET, 1, {}, ALL, None, id="a set, and no room is left"),
    ],
)
def test_where_it_goes(
    placement: Placement,
    demand: Demand,
    per: int,
    rooms: dict[str, int],
    preferred: tuple[frozenset[str], ...],
    expected: dict[str, int] | None,
) -> None:
    verdict = Verdict(1, frozenset(rooms), per=per, rooms=tuple(rooms.items()))
    made = choice(placement, demand, verdict, preferred, FREE)
    assert (made and {place.cluster: place.replicas for place in made.places}) == expected
    if made is not None:
        assert all(made.taken[cluster] <= rooms[cluster] for cluster in made.taken)
