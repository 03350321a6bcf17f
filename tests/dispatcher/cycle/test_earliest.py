"""In which cluster room is held for what waits, and the names of the questions that this takes."""

from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from queue_dispatcher.cycle.earliest import MOVES_FOR, Earliest, first_of
from queue_dispatcher.cycle.items import (
    Alternative,
    asked_now,
    earliest_probe,
    is_everywhere,
    plain_probe,
    probe_of,
    probe_through,
    victims_probe,
    workload_of,
)
from tests.dispatcher.cycle.test_kept_nodes import EITHER, ONE

NOW = 1_000_000


def at(cluster: str, after_ms: int | None, pods: int = 1) -> Earliest:
    return Earliest(cluster, None if after_ms is None else NOW + after_ms, pods)


@pytest.mark.parametrize(
    ("found", "before", "chosen"),
    [
        pytest.param([], "", None, id="nowhere"),
        pytest.param([], "a", None, id="nowhere any more"),
        pytest.param([at("a", 20), at("b", 10, 9)], "", "b", id="earlier first"),
        pytest.param([at("a", None), at("b", 10**9, 9)], "", "b", id="known before unknown"),
        pytest.param([at("a", None, 3), at("b", None, 2)], "", "b", id="fewest pods where unknown"),
        pytest.param([at("b", None), at("a", None)], "", "a", id="by name where all is alike"),
        pytest.param([at("b", 10, 1), at("a", 10, 9)], "", "a", id="by name at one time"),
        pytest.param([at("a", 900), at("b", 1_000)], "b", "b", id="a tenth earlier is not enough"),
        pytest.param([at("a", 899), at("b", 1_000)], "b", "a", id="more than a tenth earlier"),
        pytest.param([at("a", None, 1), at("b", None, 9)], "b", "b", id="nobody knows more than before"),
        pytest.param([at("a", 10**9), at("b", None)], "b", "a", id="known now, and not before"),
        pytest.param([at("a", 10), at("c", 11)], "b", "a", id="the one before has no room to come"),
        pytest.param([at("a", -900), at("b", -1)], "b", "b", id="what is late ends any moment"),
        pytest.param([at("a", -1), at("b", 5)], "b", "a", id="late here, later there"),
    ],
)
def test_where_room_is_held(found: Sequence[Earliest], before: str, chosen: str | None) -> None:
    held = at(before, 12_345) if before else None
    best = first_of(found, held, NOW)
    assert (None if best is None else best.cluster) == chosen
    # As it answers now.
    assert best is None or best in found


FOUND = st.lists(
    st.builds(at, st.sampled_from("abcdef"), st.none() | st.integers(-1_000, 10_000), st.integers(0, 3)),
    unique_by=lambda one: one.cluster,
)


@given(found=FOUND, before=st.none() | st.builds(at, st.sampled_from("abcdef"), st.just(0)), data=st.data())
def test_a_choice_stays_and_is_hardly_later_than_the_best(
    found: list[Earliest], before: Earliest | None, data: st.DataObject
) -> None:
    chosen = first_of(found, before, NOW)
    assert first_of(data.draw(st.permutations(found)), before, NOW) == chosen
    assert first_of(found, chosen, NOW) == chosen
    known = [max(0, one.at_ms - NOW) for one in found if one.at_ms is not None]
    if chosen is None:
        assert not found
    elif known:
        assert chosen.at_ms is not None
        left_ms = max(0, chosen.at_ms - NOW)
        assert MOVES_FOR * (left_ms - min(known)) <= left_ms
    else:
        assert chosen.at_ms is None
    if chosen is not None and (before is None or chosen.cluster != before.cluster):
        assert chosen.at_ms is None or max(0, chosen.at_ms - NOW) == min(known)


HERE = Alternative((), (), clusters=frozenset("a"))


@pytest.mark.parametrize("alternative", [Alternative((), ()), ONE, HERE])
def test_questions_through_reservations_and_about_when_are_others_of_the_same_workload(
    alternative: Alternative,
) -> None:
    probe = probe_of(EITHER, alternative)
    through, when = probe_through(probe, {"u", "v"}), earliest_probe(probe)
    names = [probe, through, probe_through(probe, {"u"}), when, earliest_probe(through)]
    names += [victims_probe(probe), victims_probe(through)]
    assert len(set(names)) == len(names)
    for one in names:
        assert workload_of(one) == EITHER.probe
        assert is_everywhere(one) is is_everywhere(probe)
        assert plain_probe(one) == probe
    assert probe_through(probe, ["v", "u"]) == through
    assert probe_through(through, {"u", "v"}) == through
    assert probe_through(through, ()) == probe
    assert (asked_now(when), asked_now(earliest_probe(through)), asked_now(probe)) == (probe, through, probe)
    assert earliest_probe(when) == when
    assert asked_now(victims_probe(through)) == through
    assert victims_probe(when) == victims_probe(probe)
    assert earliest_probe(victims_probe(probe)) == when


def test_nobody_is_asked_through_anything_where_nobody_is_asked() -> None:
    assert probe_through("", {"u"}) == ""
