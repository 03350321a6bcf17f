import pytest

from queue_dispatcher.cycle.snapshot import Verdict
from queue_dispatcher.workloads.choice import choice
from queue_dispatcher.workloads.demand import Component, Demand, Placed
from queue_dispatcher.workloads.placement import Division, Placement

FOUR = Demand((Component("", 4),))
TWO = Demand((Component("", 2),))
SET = Demand((Component("ps", 1), Component("worker", 4)), is_set=True)
ALL = (frozenset("abc"),)
FREE = {"a": 30, "b": 8, "c": 30}
ONE = Placement(max_clusters=1)
BY_ROOM = Placement(division=Division.DYNAMIC)


def verdict(per: int, rooms: dict[str, int]) -> Verdict:
    return Verdict(1, frozenset(rooms), per=per, rooms=tuple(rooms.items()))


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
    made = choice(placement, demand, verdict(per, rooms), preferred, FREE)
    assert (made and {place.cluster: place.replicas for place in made.places}) == expected
    if made is not None:
        assert all(made.taken[cluster] <= rooms[cluster] for cluster in made.taken)


SOME = {"a": 12, "b": 8, "c": 30, "d": 0}


@pytest.mark.parametrize(
    ("placement", "demand", "per", "rooms", "preferred", "there", "packed", "spread"),
    [
        pytest.param(Placement(), FOUR, 4, {"a": 4, "b": 4, "c": 4}, ALL, {}, {"b": 4}, {"c": 4}, id="whole"),
        pytest.param(ONE, SET, 1, {"a": 1, "b": 1, "c": 1}, ALL, {}, {"b": 0}, {"c": 0}, id="a set"),
        pytest.param(Placement(), FOUR, 4, {"a": 4, "b": 4}, ALL, {}, {"b": 4}, {"a": 4}, id="with room"),
        pytest.param(
            Placement(),
            FOUR,
            4,
            {"a": 4, "b": 4, "c": 9},
            (frozenset("ab"), frozenset("c")),
            {},
            {"b": 4},
            {"a": 4},
            id="the flavor comes first",
        ),
        pytest.param(
            Placement(),
            TWO,
            1,
            {"a": 9, "c": 9},
            ALL,
            {"a": 1},
            {"a": 2},
            {"a": 2},
            id="it grows where it is",
        ),
        pytest.param(
            Placement(),
            FOUR,
            2,
            {"a": 9, "b": 9, "c": 9},
            ALL,
            {"d": 2},
            {"b": 2, "d": 2},
            {"c": 2, "d": 2},
            id="it grows elsewhere",
        ),
        pytest.param(
            Placement(),
            FOUR,
            4,
            {"a": 1, "b": 3, "c": 2},
            ALL,
            {},
            {"b": 3, "c": 1},
            {"b": 3, "c": 1},
            id="several together",
        ),
        pytest.param(
            BY_ROOM, FOUR, 4, {"a": 6, "b": 2}, ALL, {}, {"a": 3, "b": 1}, {"a": 3, "b": 1}, id="by room"
        ),
    ],
)
def test_the_emptiest_for_who_spreads(
    placement: Placement,
    demand: Demand,
    per: int,
    rooms: dict[str, int],
    preferred: tuple[frozenset[str], ...],
    there: dict[str, int],
    packed: dict[str, int],
    spread: dict[str, int],
) -> None:
    placed = [Placed(cluster, replicas) for cluster, replicas in there.items()]
    for spreads, expected in ((False, packed), (True, spread)):
        made = choice(placement, demand, verdict(per, rooms), preferred, SOME, placed, spreads=spreads)
        assert made is not None
        assert {place.cluster: place.replicas for place in made.places} == expected


@pytest.mark.parametrize(
    ("spreads", "reason"),
    [
        (False, "of 3 with room it is the fullest, with 8 free"),
        (True, "of 3 with room it is the emptiest, with 30 free"),
    ],
)
def test_it_says_why_there(spreads: bool, reason: str) -> None:
    rooms = dict.fromkeys("abc", 4)
    made = choice(Placement(), FOUR, verdict(4, rooms), ALL, SOME, spreads=spreads)
    assert made is not None
    assert made.reason == reason
