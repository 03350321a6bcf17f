import pytest
from hypothesis import given
from hypothesis import strategies as st

from fairway.service.durations import LONGEST, DurationError, TooLongDurationError, parse_duration_s


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("0", 0),
        ("-0", 0),
        ("90s", 90),
        ("2m", 120),
        ("1h30m", 5400),
        ("1.5h", 5400),
        (".5s", 0.5),
        ("1.s", 1),
        ("250ms", 0.25),
        ("1us", 1e-6),
        ("1\u00b5s", 1e-6),
        ("1\u03bcs", 1e-6),
        ("3ns", 3e-9),
        ("-1m5s", -65),
        ("+5s", 5),
        ("1m1m", 120),
    ],
)
def test_durations_are_read_as_go_reads_them(text: str, seconds: float) -> None:
    assert parse_duration_s(text) == seconds


@pytest.mark.parametrize(
    "text", ["", "s", "5", "5 s", "1d", "-", "+", ".s", "1h 5m", "1e3s", "--5s", "\u0665s", "5S"]
)
def test_other_texts_are_refused(text: str) -> None:
    with pytest.raises(DurationError, match="such as 90s, 2m, 1h30m"):
        parse_duration_s(text)


def test_what_overflows_in_go_is_refused() -> None:
    assert parse_duration_s(LONGEST) == 2562047 * 3600
    with pytest.raises(TooLongDurationError, match="too long a duration: expected at most 2562047h"):
        parse_duration_s("2562048h")


@given(st.integers(0, 1000), st.integers(0, 1000), st.integers(0, 1000))
def test_parts_add_up(hours: int, minutes: int, seconds: int) -> None:
    assert parse_duration_s(f"{hours}h{minutes}m{seconds}s") == hours * 3600 + minutes * 60 + seconds
