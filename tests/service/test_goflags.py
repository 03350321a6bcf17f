import contextlib
from typing import Final

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fairway.service.goflags import (
    CommandLine,
    Flag,
    FlagError,
    FlagGroup,
    int_between,
    parse_bool,
    parse_float,
    parse_int,
    parse_line,
    parse_text,
    render_help,
)

NAME: Final = Flag("cluster-name", parse_text, "", "Name.", "NAME")
PORT: Final = Flag("server-port", int_between(0, 65535, "a port"), "10352", "Port.", "PORT")
PPROF: Final = Flag("enable-pprof", parse_bool, "false", "Profile.", switch=True)
LEVEL: Final = Flag("v", parse_int, "0", "Verbosity.", "LEVEL", letter="v")
HELP: Final = Flag("help", parse_bool, "false", "Help.", switch=True, letter="h")
FLAGS: Final = (NAME, PORT, PPROF, LEVEL, HELP)


def line(*argv: str) -> CommandLine:
    return parse_line(FLAGS, argv, gone={"secure-port": "gone, use another"})


@pytest.mark.parametrize(
    "argv", [["--cluster-name=m1"], ["--cluster-name", "m1"], ["--cluster_name=m1"], ["--cluster_name", "m1"]]
)
def test_a_value_follows_as_text_or_as_argument(argv: list[str]) -> None:
    assert line(*argv).value(NAME) == "m1"


def test_a_value_may_be_empty_hold_equals_signs_or_begin_with_a_dash() -> None:
    assert line("--cluster-name=").value(NAME) == ""
    assert line("--cluster-name=a=b").value(NAME) == "a=b"
    assert line("--cluster-name", "--enable-pprof").value(NAME) == "--enable-pprof"


@pytest.mark.parametrize("text", ["1", "t", "T", "TRUE", "true", "True"])
def test_switches_take_go_booleans_for_true(text: str) -> None:
    assert line(f"--enable-pprof={text}").value(PPROF) is True


@pytest.mark.parametrize("text", ["0", "f", "F", "FALSE", "false", "False"])
def test_switches_take_go_booleans_for_false(text: str) -> None:
    assert line("--enable-pprof", f"--enable-pprof={text}").value(PPROF) is False


def test_a_switch_alone_is_true_and_leaves_the_next_argument_alone() -> None:
    parsed = line("--enable-pprof", "version")
    assert parsed.value(PPROF) is True
    assert parsed.arguments == ("version",)


@pytest.mark.parametrize("word", ["true", "false", "False"])
def test_a_value_apart_from_its_switch_is_told_how_to_stand(word: str) -> None:
    expected = f"--enable-pprof {word}: expected --enable-pprof={word.lower()}"
    with pytest.raises(FlagError, match=f"^{expected}$"):
        line("--enable-pprof", word)
    assert line("--enable-pprof=true", word).arguments == (word,)


@pytest.mark.parametrize("argv", [["-v=4"], ["-v4"], ["-v", "4"], ["--v=4"], ["--v", "4"]])
def test_one_letter_flags_take_every_form(argv: list[str]) -> None:
    assert line(*argv).value(LEVEL) == 4


def test_letters_share_a_dash() -> None:
    parsed = line("-hv4", "version")
    assert (parsed.value(HELP), parsed.value(LEVEL), parsed.arguments) == (True, 4, ("version",))


def test_the_last_of_repeated_flags_wins_and_all_are_kept() -> None:
    parsed = line("--cluster-name=a", "-v=1", "--cluster-name=b")
    assert parsed.value(NAME) == "b"
    assert parsed.values(NAME) == ["a", "b"]


def test_an_absent_flag_has_its_default_and_no_values() -> None:
    parsed = line()
    assert (parsed.value(PORT), parsed.values(PORT), parsed.is_set(PORT)) == (10352, [], False)


def test_two_dashes_end_the_flags() -> None:
    assert line("-", "--", "--enable-pprof", "--nonsense").arguments == ("-", "--enable-pprof", "--nonsense")


@pytest.mark.parametrize(
    ("argv", "message"),
    [
        (["--cluster-nam=x"], "unknown flag: --cluster-nam; did you mean --cluster-name?"),
        (["--qqqq"], "unknown flag: --qqqq; see --help"),
        (["--secure-port=1"], "unknown flag: --secure-port (gone, use another)"),
        (["--secure_port=1"], "unknown flag: --secure_port (gone, use another)"),
        (["-enable-pprof"], "unknown shorthand flag: 'e' in -enable-pprof; did you mean --enable-pprof?"),
        (["-x"], "unknown shorthand flag: 'x' in -x"),
        (["--=x"], "unknown flag: --; see --help"),
        (["--server-port"], "--server-port needs a value: expected --server-port PORT"),
        (["-v"], "-v needs a value: expected -v LEVEL"),
        (["--server-port=70000"], "--server-port=70000: expected a port between 0 and 65535"),
        (["--server-port=x", "--server-port=1"], "--server-port=x: expected a port between 0 and 65535"),
        (["--enable-pprof=yes"], "--enable-pprof=yes: expected true or false (also t, f, 1, 0)"),
        (["-v=high"], "--v=high: expected an integer"),
    ],
)
def test_errors_name_the_flag_the_value_and_what_was_expected(argv: list[str], message: str) -> None:
    with pytest.raises(FlagError) as caught:
        line(*argv)
    assert str(caught.value) == message


@pytest.mark.parametrize(
    ("text", "value"),
    [("0", 0), ("-5", -5), ("+5", 5), ("0x10", 16), ("010", 8), ("0o10", 8), ("-010", -8), ("0b11", 3)],
)
def test_integers_are_read_as_go_reads_them(text: str, value: int) -> None:
    assert parse_int(text) == value


@pytest.mark.parametrize(
    "text", ["", " 1", "1 ", "1.0", "1e3", "\u0663", "08", "1_000", "--1", "9" * 30, "9" * 5000]
)
def test_other_integers_are_refused(text: str) -> None:
    with pytest.raises(ValueError, match="expected an integer"):
        parse_int(text)


@pytest.mark.parametrize("text", ["", "nan", "inf", "1e999", "-", ".", "1,5", "0x1p3"])
def test_numbers_must_be_finite_decimals(text: str) -> None:
    with pytest.raises(ValueError, match="expected a number"):
        parse_float(text)


@pytest.mark.parametrize(
    ("text", "value"), [("20", 20.0), ("0.5", 0.5), ("-1", -1.0), ("1e2", 100.0), (".5", 0.5)]
)
def test_numbers_are_read(text: str, value: float) -> None:
    assert parse_float(text) == value


def test_help_shows_each_flag_with_meaning_and_default_within_the_width() -> None:
    text = render_help([FlagGroup("All of them", FLAGS)], width=60)
    assert text.startswith("All of them:\n")
    assert "      --server-port PORT\n          Port. (default 10352)" in text
    assert "  -v, --v LEVEL\n" in text
    assert "      --enable-pprof\n" in text
    assert max(map(len, text.splitlines())) <= 60


@given(st.lists(st.text(max_size=12) | st.sampled_from(["--v", "-v", "--help", "--", "4"]), max_size=6))
def test_any_command_line_is_read_or_refused_with_a_flag_error(argv: list[str]) -> None:
    with contextlib.suppress(FlagError):
        line(*argv)
