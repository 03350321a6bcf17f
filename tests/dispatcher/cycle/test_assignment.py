"""Which flavor each part of a workload comes from."""

from itertools import product

import pytest
from hypothesis import given
from hypothesis import strategies as st

from queue_dispatcher.cycle.actions import Admit
from queue_dispatcher.cycle.assignment import MAX_RETRIES, Stuck, assign
from queue_dispatcher.cycle.decide import AdmissionCycles
from queue_dispatcher.cycle.items import Shape, joined
from queue_dispatcher.ledger.cells import Cell, Charge, added
from tests.dispatcher.cycle.builders import STRICT, Fleet, admitted, option, shape_of_parts
from tests.dispatcher.ledger.builders import TABLE, charge, queue, root
from tests.dispatcher.workloads.builders import LAW

Option = dict[str, int]


def shape(*parts: list[Option], avoids_borrowing: bool = False) -> Shape:
    stated = ([charge(**one) for one in options] for options in parts)
    return shape_of_parts(*stated, avoids_borrowing=avoids_borrowing)


def told(fleet: Fleet, way: Shape) -> tuple[Option, ...] | str:
    """What each part is charged with if it is submitted now, or the kind and text of why it waits."""
    fleet.submit("a", "job", way)
    decision = fleet.decide()
    for action in decision.actions:
        if isinstance(action, Admit):
            chosen = action.alternative
            return tuple(named(part.charge) for part in chosen.parts or (chosen,))
    reason = fleet.reason(decision, "job")
    assert reason is not None
    return f"{reason.kind}: {reason.text}"


def named(of: Charge) -> Option:
    return {TABLE.name(cell).resource: amount for cell, amount in of}


ONE_OR_TWO: list[Option] = [{"one": 4}, {"two": 4}]


@pytest.mark.parametrize(
    ("owned", "parts", "expected"),
    [
        # Each part is given the first flavor that has room beside what those before it took.
        ({"one": 8, "two": 8}, [ONE_OR_TWO, ONE_OR_TWO], ({"one": 4}, {"one": 4})),
        ({"one": 4, "two": 8}, [ONE_OR_TWO, ONE_OR_TWO], ({"one": 4}, {"two": 4})),
        ({"one": 0, "two": 8}, [ONE_OR_TWO, ONE_OR_TWO], ({"two": 4}, {"two": 4})),
        # A part that has no choice makes one before it choose otherwise.
        ({"one": 4, "two": 4}, [ONE_OR_TWO, [{"one": 4}]], ({"two": 4}, {"one": 4})),
        (
            {"one": 4, "two": 4},
            [ONE_OR_TWO, ONE_OR_TWO, ONE_OR_TWO],
            "NeverFits: it asks for 8 one of flavor default; queue a can never use more than 4, even if it "
            "borrows all that others lend",
        ),
    ],
)
def test_parts_are_given_flavors_one_after_the_other(
    owned: Option, parts: list[list[Option]], expected: object
) -> None:
    assert told(Fleet(root("a", **owned)), shape(*parts)) == expected


def test_why_a_part_waits_counts_what_the_parts_before_it_take() -> None:
    fleet = Fleet(root("a", one=8, two=8))
    fleet.ledger.charge("a", charge(one=6, two=6))
    assert told(fleet, shape([{"one": 2}], ONE_OR_TWO)) == (
        "WaitingForQuota: queue a is short of 4 one of flavor default"
    )


@pytest.mark.parametrize("avoids", [False, True])
@pytest.mark.parametrize(
    ("used", "first_fit", "nearest"),
    [
        # Its own of the first, its own of the second, the cohort's of the first, that of the second.
        ({}, "one", "one"),
        ({"one": 6}, "one", "two"),
        ({"one": 6, "two": 6}, "one", "one"),
        ({"one": 12, "two": 6}, "two", "two"),
        # What comes from the next queue above is nearer than what comes from the root.
        ({"one": 8, "two": 6}, "one", "two"),
    ],
)
def test_a_flavor_is_borrowed_only_if_no_later_one_is_nearer_where_the_queue_says_so(
    used: Option, first_fit: str, nearest: str, avoids: bool
) -> None:
    fleet = Fleet(
        root("org", one=4, two=4),
        queue("division", "org", one=2, two=2),
        queue("a", "division", one=8, two=8),
    )
    fleet.ledger.charge("a", charge(**used))
    answer = told(fleet, shape(ONE_OR_TWO, avoids_borrowing=avoids))
    assert answer == ({nearest if avoids else first_fit: 4},)


def test_what_is_nearest_is_looked_for_anew_once_somebody_else_has_borrowed() -> None:
    """The flavor found in the cycle before would still fit, but is no nearer than the first any more."""
    fleet = Fleet(
        root("org", one=8, two=8),
        queue("division", "org", one=4),
        queue("a", "division"),
        queue("b", "division"),
    )
    fleet.submit("a", "job", shape([{"two": 4}, {"one": 4}], avoids_borrowing=True))
    cycles = AdmissionCycles()
    assert cycles.decide(fleet.snapshot(tokens=0), 0).actions == ()
    fleet.ledger.charge("b", charge(one=4))
    (action,) = cycles.decide(fleet.snapshot(), 0).actions
    assert isinstance(action, Admit)
    assert named(action.alternative.charge) == {"two": 4}


@pytest.mark.parametrize(
    ("owned", "cover", "expected"),
    [
        # While nobody knows where it goes it is charged to both,
        ({"one": 8, "two": 8}, {"one": 8, "two": 8}, ({"one": 8, "two": 8},)),
        # but a flavor that can never take it sets no limit,
        ({"one": 8, "two": 4}, {"one": 8, "two": 8}, ({"one": 8},)),
        ({"one": 4, "two": 8}, {"one": 8, "two": 8}, ({"two": 8},)),
        ({"one": 8, "two": 4, "three": 8}, {"one": 8, "two": 8, "three": 8}, ({"one": 8, "three": 8},)),
        # unless none can.
        (
            {"one": 4, "two": 4},
            {"one": 8, "two": 8},
            "NeverFits: it asks for 8 one of flavor default; queue a can never use more than 4, even if it "
            "borrows all that others lend",
        ),
    ],
)
def test_the_smallest_flavor_does_not_set_the_largest_workload(
    owned: Option, cover: Option, expected: object
) -> None:
    assert told(Fleet(root("a", **owned)), shape([cover])) == expected


def test_a_flavor_that_is_full_now_is_waited_for() -> None:
    """It could take the workload: what is left out is what never can."""
    fleet = Fleet(root("a", one=8, two=8))
    fleet.ledger.charge("a", charge(two=8))
    assert told(fleet, shape([{"one": 8, "two": 8}])) == (
        "WaitingForQuota: queue a is short of 8 two of flavor default"
    )


def test_what_fits_in_no_way_at_all_blocks_no_strict_queue() -> None:
    fleet = Fleet(root("a", one=4, two=4), strategy=STRICT)
    fleet.submit("a", "never", shape(ONE_OR_TWO, ONE_OR_TWO, ONE_OR_TWO), at=1)
    fleet.submit("a", "later", shape(ONE_OR_TWO, [{"one": 4}]), at=2)
    assert admitted(fleet.decide()) == ["later"]


_AMOUNTS = st.dictionaries(
    st.sampled_from(("one", "two", "three")), st.integers(1, 5), min_size=1, max_size=1
)
_PARTS = st.lists(st.lists(_AMOUNTS, min_size=1, max_size=3), min_size=1, max_size=4)


@LAW
@given(_PARTS, st.fixed_dictionaries({name: st.integers(0, 8) for name in ("one", "two", "three")}))
def test_an_assignment_is_found_where_there_is_one_and_is_the_first(
    stated: list[list[Option]], owned: Option
) -> None:
    parts = [[option(charge(**one)) for one in options] for options in stated]

    def fits(cell: Cell, amount: int) -> bool:
        return amount <= owned[TABLE.name(cell).resource]

    def fit(of: Charge) -> bool:
        return all(fits(*pair) for pair in of)

    found = assign(parts, fits)
    fitting = [way for way in product(*parts) if fit(added(*(one.charge for one in way)))]
    if fitting:
        assert found == joined(fitting[0])
    else:
        assert isinstance(found, Stuck)
        assert not found.is_undecided
        assert not any(fit(one.charge) for one in found.options)


def test_a_search_that_leads_nowhere_ends() -> None:
    """30 parts of two flavors that all fit but for the last, which fits nowhere: 2^29 ways to look at."""
    looks = 0

    def fits(cell: Cell, amount: int) -> bool:
        nonlocal looks
        looks += 1
        return TABLE.name(cell).resource != "none"

    fitting = [option(charge(one=1)), option(charge(two=1))]
    found = assign([fitting] * 29 + [[option(charge(none=1))]], fits)
    assert isinstance(found, Stuck)
    assert found.is_undecided
    assert [named(one.charge) for one in found.options] == [{"none": 1}]
    assert looks <= 59 + MAX_RETRIES
