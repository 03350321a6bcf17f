import json
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from queue_dispatcher.bindings.annotation import MAX_TEXT, Malformed
from queue_dispatcher.bindings.decision import Decision, decision
from queue_dispatcher.bindings.record import MAX_GIVEN, AdmissionRecord, Given, parse_record, write_record
from queue_dispatcher.bindings.requeue import Cause, RequeueRecord, Suspended, parse_requeue, write_requeue
from queue_dispatcher.bindings.timestamp import LATEST_MS, format_ms, parse_ms
from queue_dispatcher.workloads.demand import requests
from tests.dispatcher.bindings.builders import CREATED_MS, record, requeue
from tests.dispatcher.workloads.builders import LAW

TEXT = (
    '{"admittedAt":"2026-09-21T14:14:20.000Z","class":"","copies":1,"enqueuedAt":"2026-09-21T14:13:20.000Z",'
    '"flavors":{"nvidia.com/gpu":["h100"]},"id":"11111111-2222-3333-4444-555555555555","localQueue":"team",'
    '"priority":0,"queue":"research","replicas":4,"requests":{"nvidia.com/gpu":8}}'
)

ONE, EIGHT = (("nvidia.com/gpu", 1),), (("nvidia.com/gpu", 8),)
DECISION = {"members": 2, "digest": "0123456789abcdef" * 2, "requests": {"nvidia.com/gpu": 9}}


def test_the_text_is_compact_with_sorted_keys() -> None:
    assert write_record(record()) == TEXT
    assert parse_record(TEXT) == record()


def test_keys_in_any_order_and_unknown_ones_are_read() -> None:
    values = dict(reversed(json.loads(TEXT).items()))
    assert parse_record(json.dumps({**values, "later": [1]}, indent=1)) == record()


def changed(**of: object) -> str:
    return json.dumps({**json.loads(TEXT), **of})


def without(key: str) -> str:
    return json.dumps({k: v for k, v in json.loads(TEXT).items() if k != key})


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("", "expected JSON"),
        ("null", "expected `object`"),
        ("[" * 300_000, "characters: expected at most"),
        ("[" * 5_000, ""),
        ("{" + " " * MAX_TEXT + "}", "characters: expected at most"),
        (without("id"), "id"),
        (without("requests"), "requests"),
        (changed(id=""), "id: expected a name"),
        (changed(queue=""), "queue: expected a name"),
        (changed(queue=7), "queue: expected `str`"),
        (changed(replicas=-1), "replicas: -1: expected 0 to"),
        (changed(replicas=10**30), "replicas"),
        (changed(copies=0), "copies: 0: expected 1 to"),
        (changed(copies=10**9), "copies"),
        (changed(priority=1.5), "priority"),
        (changed(requests={"nvidia.com/gpu": -8}), "requests[nvidia.com/gpu]: -8: expected 0 to"),
        (changed(requests={"nvidia.com/gpu": "8"}), "requests"),
        (changed(requests={f"r{i}": 1 for i in range(300)}), "requests: 300 resources"),
        (changed(flavors={"nvidia.com/gpu": [f"f{i}" for i in range(5_000)]}), "flavors: expected at most"),
        (changed(flavors={"nvidia.com/gpu": "h100"}), "flavors"),
        (changed(admittedAt="yesterday"), "admittedAt: 'yesterday': expected a time"),
        (changed(enqueuedAt="2026-09-21T14:13:20"), "enqueuedAt"),
        (changed(enqueuedAt=5), "enqueued"),
        (changed(decision={}), "decision"),
        (changed(decision={**DECISION, "members": 0}), "decision.members: 0: expected 1 to"),
        (changed(decision={**DECISION, "digest": "0" * 31}), "decision.digest: '000"),
        (changed(decision={**DECISION, "digest": "G" * 32}), "decision.digest: 'GGG"),
        (changed(decision={**DECISION, "requests": {"cpu": -1}}), "decision.requests[cpu]: -1"),
    ],
)
def test_a_record_that_makes_no_sense_says_where(text: str, told: str) -> None:
    found = parse_record(text)
    assert isinstance(found, Malformed)
    assert found.problem.startswith("metadata.annotations[fairway.dev/admission]: ")
    assert told in found.problem
    assert found.problem.endswith("treated as not admitted by Fairway")


def test_with_whom_it_was_released() -> None:
    made = decision({"a": EIGHT, "b": ONE})
    assert made == decision({"b": ONE, "a": EIGHT})
    assert made.digest not in (decision({"a": ONE}).digest, decision({"a": ONE, "c": ONE}).digest)
    assert parse_record(write_record(record(decision=made))) == record(decision=made)
    assert parse_record(changed(decision=DECISION)) == record(
        decision=Decision(2, "0123456789abcdef" * 2, (("nvidia.com/gpu", 9),))
    )


@pytest.mark.parametrize(("resources", "length"), [(128, 4), (9, 253)])
def test_what_a_queue_can_offer_can_be_recorded(resources: int, length: int) -> None:
    flavors = tuple(f"{at:0{length}}" for at in range(32))
    one = record(flavors=tuple((f"r{at:03}", flavors) for at in range(resources)))
    assert parse_record(write_record(one)) == one


def test_flavors_named_twice_or_by_nothing_count_once_or_not() -> None:
    found = parse_record(changed(flavors={"nvidia.com/gpu": ["h100", "", "h100", "a100"], "cpu": []}))
    assert isinstance(found, AdmissionRecord)
    assert found.flavors == (("cpu", ()), ("nvidia.com/gpu", ("h100", "a100")))


def suspended(**changed: object) -> str:
    """A requeue record that says so of where it is suspended."""
    stay = {"cluster": "m1", "flavors": {"nvidia.com/gpu": ["f"]}, **changed}
    return json.dumps({**json.loads(write_requeue(requeue())), "suspended": stay})


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("", "expected JSON"),
        (
            '{"count": -1, "notBefore": "2026-01-01T00:00:00Z", "enqueuedAt": "2026-01-01T00:00:00Z"}',
            "count: -1",
        ),
        ('{"count": 1, "notBefore": "", "enqueuedAt": "2026-01-01T00:00:00Z"}', "notBefore: ''"),
        ('{"count": 1, "notBefore": "2026-01-01T00:00:00Z"}', "enqueuedAt"),
        (suspended(cluster=""), "suspended.cluster: expected a name"),
        (suspended(cluster=None), "suspended"),
        (suspended(flavors=None), "suspended"),
        (suspended(flavors={"nvidia.com/gpu": ["f"] * 5000}), "suspended.flavors: expected at most"),
        (suspended(until="soon"), "suspended.until: 'soon'"),
    ],
)
def test_a_requeue_record_that_makes_no_sense_says_where(text: str, told: str) -> None:
    found = parse_requeue(text)
    assert isinstance(found, Malformed)
    assert found.problem.startswith("metadata.annotations[fairway.dev/requeue]: ")
    assert told in found.problem


def test_a_requeue_record() -> None:
    assert parse_requeue(write_requeue(requeue(3, reason="no room"))) == requeue(3, reason="no room")


@pytest.mark.parametrize("until_ms", [0, CREATED_MS])
def test_where_it_is_suspended(until_ms: int) -> None:
    stay = Suspended("m1", (("cpu", ("c",)), ("nvidia.com/gpu", ("a", "b"))), until_ms)
    one = replace(requeue(0), suspended=stay)
    assert parse_requeue(write_requeue(one)) == one
    assert ("until" in json.loads(write_requeue(one))["suspended"]) == bool(until_ms)
    assert "suspended" not in json.loads(write_requeue(requeue(0)))


@pytest.mark.parametrize("cause", Cause)
def test_the_cause_of_a_requeue_record(cause: Cause) -> None:
    one = replace(requeue(0, reason="so"), cause=cause)
    assert parse_requeue(write_requeue(one)) == one
    assert ("cause" in json.loads(write_requeue(one))) == (cause is not Cause.FAILED)


def test_a_cause_of_a_later_version_is_tried_again() -> None:
    stated = json.loads(write_requeue(requeue(1)))
    assert parse_requeue(json.dumps({**stated, "cause": "Later"})) == requeue(1)


def test_when_it_began_is_optional_and_checked() -> None:
    assert parse_record(changed(beganAt="2026-09-21T14:13:20Z")) == replace(record(), began_ms=CREATED_MS)
    found = parse_record(changed(beganAt="soon"))
    assert isinstance(found, Malformed)
    assert "beganAt: 'soon': expected a time" in found.problem


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("2026-09-21T14:13:20Z", CREATED_MS),
        ("2026-09-21T14:13:20.000Z", CREATED_MS),
        ("2026-09-21T16:13:20+02:00", CREATED_MS),
        ("2026-09-21T14:13:20.1239Z", CREATED_MS + 123),
        ("2026-09-21T14:13:20", None),  # of which time zone?
        ("2026-09-21", None),
        ("1969-12-31T23:59:59Z", None),
        ("0001-01-01T00:00:00Z", None),
        ("", None),
        ("x" * 100_000, None),
        ("2026-13-01T00:00:00Z", None),
    ],
)
def test_timestamps(text: str, expected: int | None) -> None:
    assert parse_ms(text) == expected


_MS = st.integers(0, LATEST_MS)
_NAME = st.text(min_size=1, max_size=8)


@LAW
@given(_MS)
def test_a_timestamp_comes_back(moment: int) -> None:
    assert parse_ms(format_ms(moment)) == moment


@LAW
@given(
    st.builds(
        AdmissionRecord,
        id=_NAME,
        queue=_NAME,
        local_queue=st.text(max_size=8),
        service_class=st.text(max_size=8),
        priority=st.integers(-(2**31), 2**31),
        enqueued_ms=_MS,
        admitted_ms=_MS,
        replicas=st.integers(0, 2**31),
        copies=st.integers(1, 1000),
        requests=st.dictionaries(_NAME, st.integers(1, 2**62), max_size=4).map(lambda r: requests(r.items())),
        flavors=st.dictionaries(_NAME, st.lists(_NAME, unique=True, max_size=3).map(tuple), max_size=4).map(
            lambda flavors: tuple(sorted(flavors.items()))
        ),
        group=st.text(max_size=8),
        tries=st.integers(0, 2**31 - 2),
        not_before_ms=st.just(0) | _MS,
        grown=st.booleans(),
        displaced=st.integers(0, 2**31 - 2),
    )
)
def test_a_record_comes_back_and_equal_records_give_equal_text(one: AdmissionRecord) -> None:
    text = write_record(one)
    assert parse_record(text) == one
    assert write_record(parse_record(text)) == text  # type: ignore[arg-type]  # as the line before shows


@LAW
@given(
    st.builds(
        RequeueRecord,
        st.integers(1, 2**31 - 1),
        _MS,
        _MS,
        st.text(max_size=8),
        displaced=st.integers(0, 2**31 - 1),
    )
)
def test_a_requeue_record_comes_back(one: RequeueRecord) -> None:
    assert parse_requeue(write_requeue(one)) == one


@LAW
@given(st.text(max_size=60))
def test_no_text_raises(text: str) -> None:
    assert isinstance(parse_record(text), AdmissionRecord | Malformed)
    assert isinstance(parse_requeue(text), RequeueRecord | Malformed)


def test_for_whom_pods_were_given_up_is_optional_and_checked() -> None:
    given = tuple(Given(f"u{number}", CREATED_MS + number, "so") for number in range(3))
    one = replace(record(), given=given)
    assert parse_record(write_record(one)) == one
    assert "given" not in json.loads(write_record(record()))
    many = replace(record(), given=tuple(Given(f"u{number}", CREATED_MS) for number in range(MAX_GIVEN + 3)))
    read = parse_record(write_record(many))
    assert isinstance(read, AdmissionRecord)
    assert [one.by for one in read.given] == [f"u{number}" for number in range(3, MAX_GIVEN + 3)]
    found = parse_record(changed(given=[{"by": "u", "at": "soon"}]))
    assert isinstance(found, Malformed)
    assert "given.at: 'soon': expected a time" in found.problem
