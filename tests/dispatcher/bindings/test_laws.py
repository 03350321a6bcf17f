"""What holds for every binding, however it came to be as it is."""

from collections.abc import Mapping

from hypothesis import given
from hypothesis import strategies as st

from queue_dispatcher.bindings.admission import admitted_to
from queue_dispatcher.bindings.binding import Binding
from queue_dispatcher.bindings.charged import charged_queue, is_charged, reserved
from queue_dispatcher.bindings.derivation import read_state
from queue_dispatcher.bindings.record import AdmissionRecord
from queue_dispatcher.bindings.requeue import RequeueRecord
from queue_dispatcher.bindings.state import (
    Admitted,
    Adopted,
    Finished,
    Foreign,
    Growing,
    HeldWithin,
    Pending,
    Reassert,
    Shrinking,
    State,
    Unresolved,
)
from queue_dispatcher.cycle.reasons import Reason, queue_not_found, unreadable
from queue_dispatcher.ledger.cells import CellTable
from queue_dispatcher.workloads.charge import NOWHERE, charge_of
from queue_dispatcher.workloads.demand import beyond
from queue_dispatcher.workloads.flavors import Reaches, offered
from queue_dispatcher.workloads.queue_of import Resolved
from queue_dispatcher.workloads.template import NO_FACTS, TemplateFacts
from tests.dispatcher.bindings.builders import (
    CREATED_MS,
    aggregated,
    binding,
    phase_of,
    record,
    requeue,
    scheduled,
)
from tests.dispatcher.workloads.builders import GPU, LAW, queue, reach

TEAM = queue(((GPU,), ("h100", "spot")), name="research")
REACHES: Reaches = {"h100": reach("a"), "spot": reach("b")}

_RECORDS = st.one_of(
    st.none(),
    st.text(max_size=10),
    st.builds(
        record,
        st.integers(0, 6),
        gpus=st.integers(0, 20),
        copies=st.integers(1, 3),
        uid=st.sampled_from(("11111111-2222-3333-4444-555555555555", "another")),
        flavors=st.sampled_from(((), ((GPU, ()),), ((GPU, ("spot",)),), ((GPU, ("h100", "spot")),))),
    ),
)
_PLACEMENTS = st.sampled_from(
    (
        None,
        {},
        {"replicaScheduling": {"replicaSchedulingType": "Divided"}},
        {"replicaScheduling": {"replicaSchedulingType": "Duplicated"}},
    )
)
_COMPONENTS = st.none() | st.lists(
    st.builds(
        lambda replicas, gpus: {
            "name": "c",
            "replicas": replicas,
            "replicaRequirements": {"resourceRequest": {GPU: gpus}},
        },
        st.integers(-1, 3),
        st.integers(0, 2),
    ),
    max_size=2,
)


def _binding(
    replicas: int,
    gpus: int,
    held: bool | None,
    placed: dict[str, int] | None,
    admission: AdmissionRecord | str | None,
    again: RequeueRecord | str | None,
    placement: Mapping[str, object] | None,
    components: list[object] | None,
    preserved: bool,
    ended: Mapping[str, str],
    status: Mapping[str, object],
    deleted: bool,
) -> Binding:
    return binding(
        replicas=replicas,
        gpus=gpus,
        held=held,
        placed=placed,
        record=admission,
        requeue=again,
        metadata={"deletionTimestamp": "now"} if deleted else {},
        spec={
            "placement": placement,
            "preserveResourcesOnDeletion": preserved,
            **({"components": components} if components else {}),
        },
        status={**status, **aggregated(**ended)},
    )


_BINDINGS = st.builds(
    _binding,
    st.integers(-1, 8),
    st.integers(0, 3),
    st.none() | st.booleans(),
    st.none() | st.dictionaries(st.sampled_from(("a", "b", "unknown")), st.integers(-1, 6)),
    _RECORDS,
    st.none() | st.text(max_size=5) | st.just(requeue()),
    _PLACEMENTS,
    _COMPONENTS,
    st.booleans(),
    st.dictionaries(st.sampled_from(("a", "b")), st.sampled_from(("Complete", "Failed", "Suspended"))),
    st.sampled_from(({}, scheduled("False", "Unschedulable"), scheduled("True", "Success"))),
    st.booleans(),
)
_QUEUES = st.sampled_from((Resolved("research", "team"), queue_not_found("gone")))
_TEMPLATES = st.sampled_from((None, NO_FACTS, unreadable("broken"), TemplateFacts(is_skipped=True)))


SEEN_MS = CREATED_MS + 5


def _state(
    one: Binding, template: TemplateFacts | Reason | None, to: Resolved | Reason, in_scope: bool
) -> State:
    phase = phase_of(one)
    return read_state(one, template, to, in_scope=in_scope, copies=2, phase=phase, seen_ms=SEEN_MS)


@LAW
@given(_BINDINGS, _TEMPLATES, _QUEUES, st.booleans())
def test_a_state_agrees_with_the_facts_that_it_is_derived_from(
    one: Binding, template: TemplateFacts | Reason | None, to: Resolved | Reason, in_scope: bool
) -> None:
    match _state(one, template, to, in_scope):
        case Foreign():
            assert one.record is None
        case Finished():
            assert one.placed
            assert one.finished
        case Pending() | Unresolved() as found:
            assert one.is_held
            assert one.record is None
            assert not (isinstance(found, Pending) and (one.placed or one.is_deleting or one.problems))
        case Admitted(record=kept):
            assert kept == one.record
        case Shrinking(record=lower):
            assert one.record is not None
            assert not beyond(lower.requests, one.record.requests)
            assert lower != one.record
        case Growing(need=need, demand=demand, enqueued_ms=enqueued_ms):
            assert CREATED_MS <= enqueued_ms <= SEEN_MS
            assert one.is_held
            assert not beyond(need, demand)
        case HeldWithin():
            assert one.is_held
        case Adopted(restore=restore):
            assert one.record is None
            assert not restore or (one.is_held and one.is_preserved)
        case Reassert():
            assert one.is_held
            assert one.requeue is not None
            assert not one.is_preserved


@LAW
@given(_BINDINGS, _TEMPLATES, _QUEUES)
def test_what_is_placed_and_goes_on_is_charged_and_what_is_held_and_placed_nowhere_is_not(
    one: Binding, template: TemplateFacts | Reason | None, to: Resolved | Reason
) -> None:
    state = _state(one, template, to, True)
    if isinstance(state, Foreign | Finished) or (isinstance(state, HeldWithin) and not state.is_charged):
        assert not is_charged(state, one)
        assert isinstance(state, Finished) or one.record is None
        return
    running = tuple(share for share in one.placed if share.cluster not in one.finished)
    amount = 0
    if is_charged(state, one):
        flavors = admitted_to(one.record) if one.record else NOWHERE
        charge = charge_of(
            reserved(state, one),
            flavors,
            one.demand,
            one.placed,
            one.finished,
            offered(TEAM),
            REACHES,
            CellTable(),
        )
        amount = sum(amount for _, amount in charge)
    assert amount >= dict(one.demand.held(running)).get(GPU, 0)
    if one.record is None and one.is_held and not one.placed:
        assert amount == 0
    if one.record is not None:
        ended = tuple(share for share in one.placed if share.cluster in one.finished)
        kept = dict(one.record.requests).get(GPU, 0) - dict(one.demand.held(ended)).get(GPU, 0)
        assert amount >= kept
        assert charged_queue(one, to) == one.record.queue
