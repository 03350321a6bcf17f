"""The pure decisions of Kubernetes access: backoff, lines, positions, recovery."""

import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fairway.kube.backoff import Backoff, ceiling_s
from fairway.kube.errors import BadConfig, BadObject, KubeError, Silent, Unreachable, refusal
from fairway.kube.lines import LineSplitter, LineTooLong
from fairway.kube.position import Position
from fairway.kube.recovery import relist_reason


def test_the_longest_pause_doubles_up_to_half_a_minute() -> None:
    assert [ceiling_s(failures) for failures in range(1, 10)] == [0.5, 1, 2, 4, 8, 16, 30, 30, 30]
    assert ceiling_s(10**6) == 30


def test_pauses_are_drawn_from_the_whole_range() -> None:
    drawn_s = [Backoff(random.Random(seed)).next_s() for seed in range(200)]
    assert min(drawn_s) < 0.05
    assert max(drawn_s) > 0.45
    assert all(0.0 <= pause_s <= 0.5 for pause_s in drawn_s)


def test_the_sequence_is_that_of_the_random_source() -> None:
    expected = random.Random(7)
    backoff = Backoff(random.Random(7))
    for top_s in (0.5, 1.0, 2.0):
        assert backoff.next_s() == expected.uniform(0, top_s)
    backoff.reset()
    assert backoff.next_s() == expected.uniform(0, 0.5)


def test_the_server_may_ask_for_a_longer_pause_but_not_for_a_shorter() -> None:
    assert Backoff(random.Random(1)).next_s(retry_after_s=60) == 60
    assert Backoff(random.Random(1)).next_s(retry_after_s=0) == Backoff(random.Random(1)).next_s()


@given(st.lists(st.binary(max_size=20).filter(lambda line: b"\n" not in line)), st.data())
def test_lines_do_not_depend_on_how_they_were_cut(lines: list[bytes], data: st.DataObject) -> None:
    text = b"".join(line + b"\n" for line in lines) + b"rest"
    cuts = sorted(data.draw(st.lists(st.integers(0, len(text)))))
    splitter = LineSplitter(100)
    found: list[bytes] = []
    for begin, end in zip([0, *cuts], [*cuts, len(text)], strict=True):
        found += splitter.feed(text[begin:end])
    assert found == [line for line in lines if line]
    assert splitter.pending_bytes == len(b"rest")


@pytest.mark.parametrize(
    "chunks", [[b"x" * 11], [b"x" * 6, b"x" * 5], [b"short\n" + b"x" * 11 + b"\n"], [b"a\nb\n" + b"x" * 11]]
)
def test_a_line_above_the_limit_is_refused_wherever_it_ends(chunks: list[bytes]) -> None:
    splitter = LineSplitter(10)
    for chunk in chunks[:-1]:
        splitter.feed(chunk)
    with pytest.raises(LineTooLong, match="more than 10 bytes"):
        splitter.feed(chunks[-1])


def test_lines_up_to_the_limit_pass() -> None:
    assert LineSplitter(10).feed(b"x" * 10 + b"\n" + b"y" * 10) == [b"x" * 10]


def test_a_position_only_moves_forward() -> None:
    position = Position()
    position.restart("9")
    moves = [(version, position.advance(version)) for version in ("10", "10", "9", "100", "99", "101")]
    assert moves == [("10", True), ("10", False), ("9", False), ("100", True), ("99", False), ("101", True)]
    assert position.resource_version == "101"
    position.restart("5")
    assert position.advance("6")


def test_versions_that_are_no_numbers_are_taken_as_they_come() -> None:
    position = Position()
    position.restart("abc")
    assert position.advance("abb")
    assert position.resource_version == "abb"
    assert position.advance("")
    assert position.resource_version == "abb"


def refused(status: int) -> KubeError:
    return refusal("server: GET /path", status, "no")


@pytest.mark.parametrize(
    ("error", "silent_streams", "failures", "reason"),
    [
        (refused(410), 0, 1, "expired"),
        (refused(400), 0, 1, "refused"),
        (refused(404), 0, 1, "refused"),
        (BadObject("a line without end"), 0, 1, "refused"),
        (refused(401), 0, 50, None),
        (refused(403), 0, 50, None),
        (refused(429), 0, 50, None),
        (refused(500), 0, 7, None),
        (refused(503), 0, 8, "refused"),
        (Unreachable("gone"), 0, 50, None),
        (BadConfig("no token"), 0, 50, None),
        (Silent("hush"), 1, 1, None),
        (Silent("hush"), 2, 2, "silent"),
    ],
)
def test_what_a_failure_means_for_the_position(
    error: KubeError, silent_streams: int, failures: int, reason: str | None
) -> None:
    assert relist_reason(error, silent_streams, failures) == reason
