"""Who was told: what a record keeps, what it forgets, and how many it holds."""

import re
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from admin.notify.record import (
    MOST,
    RECORDS,
    Entry,
    Standing,
    State,
    claimed,
    data,
    entries,
    event_id,
    key_of,
    noted,
    record_of,
    settled,
    standing,
)
from fairway.kube.event_series import Regarding

NOON = 1_795_348_800.0
HOUR, DAY = 3600.0, 86_400.0
UID = "00000000-0000-4000-8000-000000000001"
TOLD, CLAIM = Entry(int(NOON), State.TOLD), Entry(int(NOON), State.UNFINISHED)


@pytest.mark.parametrize(
    ("text", "after_s", "expected"),
    [
        ("2026-11-22T12:00:00Z", 0, Standing.TOLD),
        ("2026-11-22T12:00:00Z", DAY - 1, Standing.TOLD),
        ("2026-11-22T12:00:00Z", DAY, Standing.DUE),
        # In whole hours: a daily run that begins a little earlier than yesterday's is in time.
        ("2026-11-22T12:40:00Z", DAY + 60, Standing.DUE),
        ("2026-11-22T12:40:00Z", DAY - 1, Standing.TOLD),
        ("2026-11-22T12:00:00Z unfinished", 0, Standing.UNFINISHED),
        ("2026-11-22T12:00:00Z unfinished", 1800, Standing.UNFINISHED),
        # Events may be forgotten by then, and with them whether there was one.
        ("2026-11-22T12:00:00Z unfinished", 1801, Standing.TOLD),
        ("2026-11-22T12:00:00Z unfinished", DAY, Standing.DUE),
        # By clocks that are ahead, a little and absurdly.
        ("2026-11-22T13:00:00Z", 0, Standing.TOLD),
        ("2099-01-01T00:00:00Z", 0, Standing.DUE),
        # Something that is not to be told at once.
        ("2026-11-22T12:00:00Z seen", 0, Standing.DUE),
        ("yesterday", 0, Standing.DUE),
        ("", 0, Standing.DUE),
    ],
)
def test_whether_a_workload_may_be_told(text: str, after_s: float, expected: Standing) -> None:
    now_s = NOON + after_s
    assert standing(entries({UID: text}, now_s).get(UID), now_s) is expected


@pytest.mark.parametrize(
    ("text", "after_s", "expected"),
    [
        (None, 0, Standing.NEW),
        ("2026-11-22T12:00:00Z seen", 600, Standing.SEEN),
        ("2026-11-22T12:59:00Z seen", 3600, Standing.DUE),
        ("2026-11-22T12:00:00Z seen", DAY, Standing.DUE),
        ("2026-11-22T12:00:00Z seen", 2 * DAY, Standing.NEW),
        ("2026-11-22T12:00:00Z", HOUR, Standing.TOLD),
        ("2026-11-22T12:00:00Z unfinished", 600, Standing.UNFINISHED),
    ],
)
def test_what_may_pass_is_told_when_it_is_seen_in_another_hour(
    text: str | None, after_s: float, expected: Standing
) -> None:
    now_s = NOON + after_s
    kept = entries({UID: text} if text else {}, now_s)
    assert standing(kept.get(UID), now_s, lasts=False) is expected


def test_what_is_seen_is_noted_once_and_leaves_room_for_claims() -> None:
    seen = Entry(int(NOON), State.SEEN)
    assert noted({"a": TOLD}, ["a", "b"], NOON) == {"a": TOLD, "b": seen}
    assert noted({"b": seen}, ["b"], NOON + HOUR) == {"b": seen}
    half = {str(number): TOLD for number in range(MOST // 2)}
    assert noted(half, ["a"], NOON) == half
    assert claimed({"b": seen}, ["b"], NOON + HOUR) == {"b": Entry(int(NOON + HOUR), State.UNFINISHED)}


def test_what_is_a_day_old_or_cannot_be_read_is_forgotten() -> None:
    kept = entries({UID: "2026-11-22T12:00:00Z", UID[:-1] + "2": "2026-11-21T11:59:59Z", "c": "x"}, NOON)
    assert kept == {UID: TOLD}
    assert entries(None, NOON) == {}


@pytest.mark.parametrize(
    ("key", "text", "stays"),
    [
        (UID, "2026-11-20T12:00:00Z", False),
        ("stated." + "0" * 32, "2026-11-20T12:00:00Z unfinished", False),
        (UID, "kept by hand", True),
        ("last-backup", "2026-11-20T12:00:00Z", True),
        ("stated.readme", "", True),
    ],
)
def test_only_entries_are_forgotten(key: str, text: str, stays: bool) -> None:
    before = {key: text}
    assert data(entries(before, NOON), before) == (before if stays else {})
    assert entries(before, NOON) == {}


SECRET = Regarding("example.com/v1", "Thing", "team", "x", UID)


@pytest.mark.parametrize("field", ["kind", "namespace", "name", "uid", "api_version"])
@pytest.mark.parametrize("text", ["not a key! 3", "", "x" * 5_000, "\0", "\ud800", "../..", UID[:-1] + "2"])
def test_whatever_pods_say_of_their_owner_its_key_is_its_own(field: str, text: str) -> None:
    said = key_of(replace(SECRET, **{field: text}), is_read=False)
    assert re.fullmatch(r"[-._a-zA-Z0-9]{1,40}", said)
    assert said not in {key_of(SECRET, is_read=False), key_of(SECRET, is_read=True), text}


def test_what_was_read_is_kept_by_its_uid_in_every_version() -> None:
    assert key_of(SECRET, is_read=True) == UID
    for is_read in (True, False):
        again = replace(SECRET, api_version="example.com/v2")
        assert key_of(again, is_read=is_read) == key_of(SECRET, is_read=is_read)
    odd = key_of(replace(SECRET, uid="not a key! 3"), is_read=True)
    assert odd.startswith("stated.")


def test_a_claim_is_made_once_and_for_as_many_as_there_is_room_for() -> None:
    assert claimed({"a": TOLD}, ["a", "b"], NOON + 60) == {
        "a": TOLD,
        "b": Entry(int(NOON) + 60, State.UNFINISHED),
    }
    full = {str(number): TOLD for number in range(MOST - 1)}
    assert set(claimed(full, ["a", "b"], NOON)) - set(full) == {"a"}


def test_a_full_record_fits_into_an_object() -> None:
    uid = "00000000-0000-4000-8000-{:012}"
    full = {uid.format(number): CLAIM for number in range(MOST)}
    assert sum(len(f'"{key}":"{value}",') for key, value in data(full).items()) < 1_000_000


def test_a_claim_that_somebody_has_used_is_not_given_back() -> None:
    kept = {"a": CLAIM, "b": TOLD, "c": Entry(int(NOON) + 5, State.UNFINISHED)}
    back = {"a": CLAIM, "b": CLAIM, "c": CLAIM}
    assert settled(kept, {}, back) == {"b": TOLD, "c": kept["c"]}
    assert settled(kept, {"a": CLAIM}, {}) == kept | {"a": TOLD}


def test_the_event_of_a_claim_has_one_name_and_the_next_claim_another() -> None:
    assert event_id("uid", CLAIM) == event_id("uid", TOLD)
    assert (
        len({event_id("uid", CLAIM), event_id("other", CLAIM), event_id("uid", Entry(1, State.UNFINISHED))})
        == 3
    )


@given(
    st.dictionaries(
        st.uuids().map(str),
        st.builds(Entry, st.integers(int(NOON - HOUR), int(NOON)), st.sampled_from(State)),
    )
)
def test_what_is_written_is_what_is_read(kept: dict[str, Entry]) -> None:
    assert entries(data(kept), NOON) == kept


def test_every_record_is_used() -> None:
    assert {record_of(f"uid-{number}") for number in range(200)} == set(RECORDS)
