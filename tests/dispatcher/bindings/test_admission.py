from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from queue_dispatcher.bindings.admission import (
    admission_record,
    admitted_to,
    alternatives_of,
    flavors_of,
    flavors_of_placed,
)
from queue_dispatcher.bindings.binding import Binding
from queue_dispatcher.bindings.charged import reserved
from queue_dispatcher.bindings.derivation import read_state
from queue_dispatcher.bindings.state import Admitted, Adopted, Growing, HeldWithin, Pending, Placed, State
from queue_dispatcher.cycle.items import Alternative
from queue_dispatcher.cycle.reasons import Reason, never_fits
from queue_dispatcher.ledger.cells import CellTable, Charge, added
from queue_dispatcher.workloads.charge import NOWHERE, charge_of
from queue_dispatcher.workloads.flavors import Reaches, offered
from queue_dispatcher.workloads.queue_of import Resolved
from queue_dispatcher.workloads.template import NO_FACTS
from tests.dispatcher.bindings.builders import ADMITTED_MS, CREATED_MS, binding, record, requeue
from tests.dispatcher.workloads.builders import GPU, LAW, is_accelerator, queue, reach

TEAM = queue(((GPU,), ("h100", "a100", "spot")), name="research")
REACHES: Reaches = {"h100": reach("a"), "a100": reach("a", "c"), "spot": reach("b")}


def state(one: Binding) -> State:
    return read_state(
        one, NO_FACTS, Resolved("research", "team"), in_scope=True, copies=1, seen_ms=CREATED_MS
    )


def alternatives(
    found: State, one: Binding, table: CellTable, permitted: frozenset[str]
) -> tuple[Alternative, ...]:
    assert isinstance(found, Pending | Growing)
    answer = alternatives_of(found, one, TEAM, REACHES, permitted, is_accelerator, table)
    assert not isinstance(answer, Reason)
    (options,) = answer
    return options


def charge(found: State, one: Binding, table: CellTable) -> Charge:
    flavors = admitted_to(one.record) if one.record else NOWHERE
    return charge_of(
        reserved(found, one),
        flavors,
        one.demand,
        one.placed,
        one.finished,
        offered(TEAM),
        REACHES,
        table,
    )


def test_the_record_of_an_admission() -> None:
    one, table = binding(requeue=requeue()), CellTable()
    found = state(one)
    alternative, second = alternatives(found, one, table, frozenset("ab"))
    assert flavors_of(second) == ((GPU, ("a100", "spot")),)
    assert isinstance(found, Pending)
    written = admission_record(
        found,
        one,
        queue="research",
        local_queue="team",
        service_class="batch",
        priority=7,
        flavors=flavors_of(alternative),
        admitted_ms=ADMITTED_MS,
        group="g",
    )
    assert written == record(
        4, service_class="batch", priority=7, flavors=((GPU, ("h100", "spot")),), group="g", tries=1
    )
    assert written.enqueued_ms == CREATED_MS


@pytest.mark.parametrize("placed", [None, {"a": 3}, {"a": 4}, {"b": 4}, {"unknown": 4}])
def test_growth_keeps_to_the_flavors_of_its_record(placed: dict[str, int] | None) -> None:
    one, table = binding(replicas=6, record=record(4), placed=placed), CellTable()
    found = alternatives(state(one), one, table, frozenset("b"))
    assert [a.flavors for a in found] == [((GPU, "h100"),)]
    assert flavors_of(found[0], one.record) == ((GPU, ("h100",)),)


@pytest.mark.parametrize(
    ("placed", "flavors"),
    [({"b": 4}, ("spot",)), ({"b": 2, "a": 2}, ("h100", "spot")), ({"unknown": 4}, ("h100",))],
)
def test_growth_of_adopted_work_keeps_to_where_it_runs(
    placed: dict[str, int], flavors: tuple[str, ...]
) -> None:
    one, table = binding(replicas=6, placed=placed), CellTable()
    found = alternatives(state(one), one, table, frozenset("a"))
    assert [flavors_of(a) for a in found] == [((GPU, flavors),)]


def test_growth_in_an_accelerator_without_quota_never_fits() -> None:
    one = binding(replicas=6, record=record(4), placed={"a": 4})
    found = state(one)
    assert isinstance(found, Growing)
    found = replace(found, need=(("amd.com/gpu", 1), ("cpu", 1)))
    answer = alternatives_of(found, one, TEAM, REACHES, frozenset("a"), is_accelerator, CellTable())
    assert answer == never_fits("queue research has no quota for amd.com/gpu")


def test_flavors_of_what_did_not_grow_stay_as_they_were() -> None:
    old = record(flavors=(("cpu", ("x",)), (GPU, ("h100",))))
    assert flavors_of(Alternative(((GPU, "spot"),), ()), old) == (("cpu", ("x",)), (GPU, ("spot",)))


def test_the_record_that_is_restored_names_the_flavors_where_it_runs() -> None:
    spec = {"preserveResourcesOnDeletion": True}
    one, table = binding(placed={"a": 2, "b": 2}, requeue=requeue(), spec=spec), CellTable()
    found = state(one)
    assert isinstance(found, Adopted)
    assert found.restore
    written = admission_record(
        found,
        one,
        queue="research",
        local_queue="team",
        service_class="",
        priority=0,
        flavors=flavors_of_placed(charge(found, one, table), table),
        admitted_ms=ADMITTED_MS,
    )
    assert written == record(4, flavors=((GPU, ("h100", "spot")),))
    after = binding(held=False, placed={"a": 2, "b": 2}, record=written, spec=spec)
    assert state(after) == Admitted(written, Placed())
    assert charge(state(after), after, table) == charge(found, one, table)


_PLACED = st.dictionaries(st.sampled_from(("a", "b", "c", "unknown")), st.integers(0, 8))


@LAW
@given(
    st.integers(0, 8),
    st.integers(0, 12),
    st.none() | _PLACED,
    st.none() | st.lists(st.sampled_from(("h100", "a100", "spot")), unique=True).map(tuple),
    st.sampled_from((frozenset("a"), frozenset("b"), frozenset("ab"))),
)
def test_growth_is_never_charged_more_than_was_found_room_for(
    admitted: int,
    wanted: int,
    placed: dict[str, int] | None,
    flavors: tuple[str, ...] | None,
    permitted: frozenset[str],
) -> None:
    """What is charged after an admission of growth is in no flavor more than what was charged before and
    what the growth was admitted with: so what the record says afterwards exceeds no quota.
    """
    table = CellTable()
    old = None if flavors is None else record(admitted, flavors=((GPU, flavors),))
    before = binding(replicas=wanted, record=old, placed=placed)
    found = state(before)
    if not isinstance(found, Growing):
        assert isinstance(found, HeldWithin | Pending)
        return
    for alternative in alternatives(found, before, table, permitted):
        written = admission_record(
            found,
            before,
            queue=found.queue,
            local_queue=found.local_queue,
            service_class="",
            priority=0,
            flavors=flavors_of(alternative, found.record),
            admitted_ms=ADMITTED_MS,
        )
        after = binding(replicas=wanted, held=False, record=written, placed=placed)
        allowed = dict(added(charge(found, before, table), alternative.charge))
        assert all(amount <= allowed.get(cell, 0) for cell, amount in charge(state(after), after, table))
