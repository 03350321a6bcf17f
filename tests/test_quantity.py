import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fairway.quantity import (
    MAX_INT64,
    NANO,
    QuantityError,
    format_bytes,
    format_milli,
    milli,
    parse_nano,
    units,
)
from tests import oracle

CI = settings(max_examples=300, derandomize=True, deadline=None)


@pytest.mark.parametrize(
    ("raw", "nano"),
    [
        ("0", 0),
        ("00", 0),
        ("1", NANO),
        ("007", 7 * NANO),
        ("+5", 5 * NANO),
        ("-1", -NANO),
        (".5", NANO // 2),
        ("5.", 5 * NANO),
        ("-.5", -NANO // 2),
        ("1.500", 3 * NANO // 2),
        # suffixes, those included that the documentation leaves out
        ("1n", 1),
        ("1u", 1_000),
        ("100m", 100_000_000),
        ("2k", 2_000 * NANO),
        ("3M", 3 * 10**6 * NANO),
        ("1.G", 10**9 * NANO),
        ("1T", 10**12 * NANO),
        ("1P", 10**15 * NANO),
        ("1E", 10**18 * NANO),
        ("1Ki", 1024 * NANO),
        ("0.5Gi", 2**29 * NANO),
        ("1.5Gi", 3 * 2**29 * NANO),
        ("6144.000000Mi", 6 * 2**30 * NANO),
        ("1Ti", 2**40 * NANO),
        ("1Pi", 2**50 * NANO),
        ("1Ei", 2**60 * NANO),
        # E is exa alone and ten to the power of before a number
        ("1E3", 1_000 * NANO),
        ("1e3", 1_000 * NANO),
        ("1e+3", 1_000 * NANO),
        ("12E6", 12_000_000 * NANO),
        ("1e-3", NANO // 1000),
        ("1.5e3", 1_500 * NANO),
        # a number left out is zero
        ("Ki", 0),
        ("k", 0),
        ("+", 0),
        ("-", 0),
        (".", 0),
        # finer than nano: away from zero
        ("0.1n", 1),
        ("-0.1n", -1),
        ("1.0000000001", NANO + 1),
        ("1e-30", 1),
        ("1e-999999999999", 1),
        ("0e-999999999999", 0),
        ("0.0000000001Ki", 103),
        # memory as the resource metrics write it
        ("128974848000m", 128_974_848 * NANO),
        # beyond int64: saturated
        ("9223372036854775807", MAX_INT64 * NANO),
        ("9223372036854775808", MAX_INT64 * NANO),
        ("100E", MAX_INT64 * NANO),
        ("100Ei", MAX_INT64 * NANO),
        ("-100Ei", -MAX_INT64 * NANO),
        ("1e999999999999", MAX_INT64 * NANO),
        ("0e999999999999", 0),
        ("1" * 128, MAX_INT64 * NANO),
        # bare numbers, as in hand-written JSON and YAML
        (2, 2 * NANO),
        (0, 0),
        (-3, -3 * NANO),
        (0.5, NANO // 2),
        (1e22, MAX_INT64 * NANO),
        (1e-7, 100),
        (10**30, MAX_INT64 * NANO),
    ],
)
def test_a_quantity_is_read_as_kubernetes_reads_it(raw: str | float, nano: int) -> None:
    assert parse_nano(raw) == nano


@pytest.mark.parametrize(
    "text",
    [
        "",
        " ",
        "1K",
        "1ki",
        "1KB",
        "1kB",
        "1mi",
        "1ni",
        "1Mib",
        "1 Gi",
        " 1",
        "1 ",
        "1\n",
        "1e",
        "1e+",
        "1e0.5",
        "1E-",
        "1e3k",
        "1Ee3",
        "e3e",
        "1.2.3",
        "1..",
        "--1",
        "+-1",
        "1-",
        "1,5",
        "1_000",
        "0x10",
        "inf",
        "nan",
        "NaN",
        "half",
        "\uff11",
        "\u0663",
        "1\x00",
        "1" * 129,
        "\ud800",
    ],
)
def test_other_texts_are_refused_and_shown(text: str) -> None:
    with pytest.raises(QuantityError) as caught:
        parse_nano(text)
    message = str(caught.value)
    assert message.startswith(repr(text)[:37])
    assert "is not a Kubernetes quantity: expected a number such as 2, 500m, 1.5Gi or 1e3" in message
    assert len(message) < 160


@pytest.mark.parametrize("number", [True, False, float("inf"), float("-inf"), float("nan")])
def test_numbers_without_a_value_are_refused(number: float) -> None:
    with pytest.raises(QuantityError):
        parse_nano(number)


@pytest.mark.parametrize(
    ("text", "in_milli", "in_units"),
    [
        ("0", 0, 0),
        ("0.1m", 1, 1),
        ("1n", 1, 1),
        ("1m", 1, 1),
        ("0.5", 500, 1),
        ("1", 1000, 1),
        ("1.0001", 1001, 2),
        ("2.5", 2500, 3),
        ("1Ki", 1_024_000, 1024),
        ("9223372036854775807", MAX_INT64, MAX_INT64),
        ("9223372036854775", 9223372036854775000, 9223372036854775),
        ("9223372036854776", MAX_INT64, 9223372036854776),
    ],
)
def test_amounts_are_rounded_up_and_saturate(text: str, in_milli: int, in_units: int) -> None:
    assert milli(parse_nano(text)) == in_milli
    assert units(parse_nano(text)) == in_units


@pytest.mark.parametrize(
    ("amount", "shown"), [(0, "0"), (1, "1m"), (500, "500m"), (1500, "1500m"), (2000, "2")]
)
def test_cpu_is_printed_in_canonical_form(amount: int, shown: str) -> None:
    assert format_milli(amount) == shown


@pytest.mark.parametrize(
    ("amount", "shown"),
    [
        (0, "0"),
        (100, "100"),
        (1023, "1023"),
        (1024, "1Ki"),
        (1536 << 20, "1536Mi"),
        (6 << 30, "6Gi"),
        (1 << 60, "1Ei"),
    ],
)
def test_bytes_are_printed_in_canonical_form(amount: int, shown: str) -> None:
    assert format_bytes(amount) == shown


NUMBERS = st.builds(
    "{}{}{}".format,
    st.sampled_from(["", "+", "-"]),
    st.text("0123456789", max_size=22),
    st.one_of(st.just(""), st.text("0123456789", max_size=14).map(lambda digits: "." + digits)),
)
SUFFIXES = st.one_of(
    st.sampled_from(["", "n", "u", "m", "k", "M", "G", "T", "P", "E", "Ki", "Mi", "Gi", "Ti", "Pi", "Ei"]),
    st.builds(
        "{}{}".format, st.sampled_from(["e", "E", "e+", "E+", "e-", "E-"]), st.integers(0, 40).map(str)
    ),
)
NEAR_MISSES = st.text("0123456789.+-eEinumkKMGTP ", max_size=8)
TEXTS = st.one_of(st.builds("{}{}".format, NUMBERS, SUFFIXES), NEAR_MISSES)


@CI
@given(TEXTS)
def test_any_text_is_read_as_an_exact_fraction_would_be(text: str) -> None:
    expected = oracle.nano(text)
    if expected is None:
        with pytest.raises(QuantityError):
            parse_nano(text)
    else:
        assert parse_nano(text) == expected


@CI
@given(st.text(max_size=40))
def test_no_text_raises_anything_else(text: str) -> None:
    try:
        parse_nano(text)
    except QuantityError:
        assert oracle.nano(text) is None


@CI
@given(st.integers(-(10**22), 10**22), st.integers(-(10**22), 10**22), SUFFIXES)
def test_a_larger_number_is_never_a_smaller_amount(first: int, second: int, suffix: str) -> None:
    low, high = (parse_nano(f"{number}{suffix}") for number in sorted((first, second)))
    assert low <= high
    assert milli(low) <= milli(high)
    assert units(low) <= units(high)


@CI
@given(st.integers(0, MAX_INT64))
def test_what_is_printed_reads_back_the_same(amount: int) -> None:
    assert units(parse_nano(format_bytes(amount))) == amount
    assert milli(parse_nano(format_milli(amount))) == amount


@CI
@given(st.one_of(st.integers(), st.floats(allow_nan=False, allow_infinity=False)))
def test_a_bare_number_is_the_same_as_its_text(number: float) -> None:
    text = str(number)
    if len(text) <= 128:
        assert parse_nano(number) == parse_nano(text) == oracle.nano(text)
