import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fairway.selectors import (
    Requirement,
    SelectorError,
    Term,
    equality,
    field_requirement,
    is_label_key,
    label_requirement,
    parse_int64,
)

CI = settings(max_examples=200, derandomize=True, deadline=None)
ABSENT = None


@pytest.mark.parametrize(
    ("operator", "values", "allowed", "refused"),
    [
        ("In", ["a", "b"], ["a", "b"], ["c", "", "A", "ab", ABSENT]),
        ("In", [""], [""], ["a", ABSENT]),
        ("In", ["3"], ["3"], ["03", "+3"]),
        ("NotIn", ["a", "b"], ["c", "", ABSENT], ["a", "b"]),
        ("NotIn", [""], ["a", ABSENT], [""]),
        ("Exists", [], ["a", "", "3"], [ABSENT]),
        ("DoesNotExist", [], [ABSENT], ["a", "", "3"]),
        ("Gt", ["4"], ["5", "0005", "+5", "9223372036854775807"], ["4", "3", "-5", "x", "", "5.5", ABSENT]),
        ("Lt", ["4"], ["3", "0", "-5", "-9223372036854775808"], ["4", "5", "x", "", "3m", ABSENT]),
        ("Gt", ["9223372036854775806"], ["9223372036854775807"], ["9223372036854775808", "1e30"]),
        ("Lt", ["0"], ["-1"], ["-9223372036854775809", "0"]),
        ("Gt", ["0" * 40 + "4"], ["5", "0" * 60 + "5"], ["4"]),
    ],
)
def test_an_operator_allows_values_and_absence(
    operator: str, values: list[str], allowed: list[str | None], refused: list[str | None]
) -> None:
    requirement = label_requirement("key", operator, tuple(values))
    assert [value for value in (*allowed, *refused) if requirement.allows(value)] == allowed


@pytest.mark.parametrize(
    ("operator", "values", "message"),
    [
        ("In", [], "In on key names no values: expected at least one"),
        ("NotIn", [], "NotIn on key names no values: expected at least one"),
        ("Exists", ["a"], "Exists on key names values: expected none"),
        ("DoesNotExist", [""], "DoesNotExist on key names values: expected none"),
        ("Gt", [], "Gt on key: expected exactly one integer"),
        ("Gt", ["1", "2"], "Gt on key: expected exactly one integer"),
        ("Lt", ["x"], "Lt on key: expected exactly one integer"),
        ("Lt", [""], "Lt on key: expected exactly one integer"),
        ("Lt", ["1.5"], "Lt on key: expected exactly one integer"),
        ("Lt", ["9223372036854775808"], "Lt on key: expected exactly one integer"),
        ("Gt", ["\u0663"], "Gt on key: expected exactly one integer"),
        # a label value has no sign, so Kubernetes refuses to compare with one
        ("Lt", ["-3"], "'-3' is not a label value"),
        ("Gt", ["+3"], "'+3' is not a label value"),
        ("Gt", ["0" * 63 + "4"], "is not a label value"),
        ("In", ["-a"], "In on key: '-a' is not a label value"),
        ("In", ["a", "b "], "'b ' is not a label value"),
        ("NotIn", ["x" * 64], "is not a label value"),
        ("In", ["東京"], "is not a label value"),
        (
            "in",
            ["a"],
            "'in' on key is not an operator: expected one of In, NotIn, Exists, DoesNotExist, Gt, Lt",
        ),
        ("", [], "'' on key is not an operator"),
        ("Equals" * 100, [], "EqualsEquals"),
    ],
)
def test_an_invalid_requirement_is_refused_with_its_reason(
    operator: str, values: list[str], message: str
) -> None:
    with pytest.raises(SelectorError) as caught:
        label_requirement("key", operator, tuple(values))
    assert message in str(caught.value)
    assert len(str(caught.value)) < 200


@pytest.mark.parametrize(
    "key",
    [
        "a",
        "A",
        "9",
        "nvidia.com/gpu",
        "nvidia.com/gpu.product",
        "topology.kubernetes.io/zone",
        "a_b-c.d",
        "a" * 63,
        "a.b.c/" + "n" * 63,
        "x" * 253 + "/n",
    ],
)
def test_label_keys(key: str) -> None:
    assert is_label_key(key)
    assert label_requirement(key, "Exists", ()).key == key


@pytest.mark.parametrize(
    "key",
    [
        "",
        "-a",
        "a-",
        ".a",
        "a b",
        "a" * 64,
        "/a",
        "a/",
        "a/b/c",
        "A.com/x",
        "a..b/x",
        "-a.com/x",
        "../../x",
        "x" * 254 + "/n",
        "é",
        "a\n",
        "a\x00b",
        "x" * 1_000_000,
    ],
)
def test_texts_that_are_no_label_keys(key: str) -> None:
    assert not is_label_key(key)
    with pytest.raises(SelectorError, match="is not a label key") as caught:
        label_requirement(key, "Exists", ())
    assert len(str(caught.value)) < 200


@pytest.mark.parametrize(
    ("key", "operator", "value", "matching"),
    [
        ("metadata.name", "In", "n1", ["n1"]),
        ("metadata.name", "NotIn", "n1", ["n2"]),
        ("metadata.name", "In", "n3", []),
        # a node has no other field, which reads as empty
        ("metadata.namespace", "In", "n1", []),
        ("metadata.namespace", "In", "", ["n1", "n2"]),
        ("metadata.namespace", "NotIn", "n1", ["n1", "n2"]),
        ("spec.unschedulable", "NotIn", "", []),
    ],
)
def test_fields_select_by_name(key: str, operator: str, value: str, matching: list[str]) -> None:
    term = Term(fields=(field_requirement(key, operator, (value,)),))
    assert [name for name in ("n1", "n2") if term.matches(name, {"metadata.name": "n9"})] == matching


@pytest.mark.parametrize(
    ("operator", "values", "message"),
    [
        ("In", [], "has 0 values: expected exactly one"),
        ("In", ["a", "b"], "has 2 values: expected exactly one"),
        ("NotIn", [], "has 0 values: expected exactly one"),
        ("Exists", [], "'Exists' on field 'metadata.name': expected In or NotIn"),
        ("Gt", ["1"], "expected In or NotIn"),
    ],
)
def test_fields_know_in_and_not_in_with_one_value(operator: str, values: list[str], message: str) -> None:
    with pytest.raises(SelectorError) as caught:
        field_requirement("metadata.name", operator, tuple(values))
    assert message in str(caught.value)


def test_all_requirements_of_a_term_must_hold() -> None:
    term = Term(
        labels=(label_requirement("zone", "In", ("a",)), label_requirement("gpu", "Exists", ())),
        fields=(field_requirement("metadata.name", "NotIn", ("n3",)),),
    )
    nodes = {
        "n1": {"zone": "a", "gpu": ""},
        "n2": {"zone": "a"},
        "n3": {"zone": "a", "gpu": "x"},
        "n4": {"zone": "b", "gpu": "x"},
    }
    assert [name for name, labels in nodes.items() if term.matches(name, labels)] == ["n1"]


def test_a_node_selector_entry_is_not_validated() -> None:
    requirement = equality("not a key!", "not a value!")
    assert requirement.allows("not a value!")
    assert not requirement.allows("other")
    assert not requirement.allows(ABSENT)


@pytest.mark.parametrize(
    ("text", "number"),
    [
        ("0", 0),
        ("-0", 0),
        ("+7", 7),
        ("007", 7),
        ("9223372036854775807", 2**63 - 1),
        ("-9223372036854775808", -(2**63)),
        ("9223372036854775808", None),
        ("-9223372036854775809", None),
        ("0" * 30 + "7", 7),
        ("", None),
        ("+", None),
        ("1_000", None),
        (" 1", None),
        ("1\n", None),
        ("0x1", None),
        ("\u0663", None),
        ("9" * 100_000, None),
    ],
)
def test_integers_are_those_of_go(text: str, number: int | None) -> None:
    assert parse_int64(text) == number


VALUES = st.sampled_from(["", "a", "b", "c", "0", "3", "4", "5", "-1", "x9"])
REQUIREMENTS = st.one_of(
    st.builds(
        lambda operator, values: label_requirement("k", operator, tuple(values)),
        st.sampled_from(["In", "NotIn"]),
        st.lists(VALUES.filter(lambda value: value != "-1"), min_size=1, max_size=3),
    ),
    st.builds(
        lambda operator: label_requirement("k", operator, ()), st.sampled_from(["Exists", "DoesNotExist"])
    ),
    st.builds(
        lambda operator, bound: label_requirement("k", operator, (bound,)),
        st.sampled_from(["Gt", "Lt"]),
        st.integers(0, 6).map(str),
    ),
)


@CI
@given(st.lists(VALUES.filter(lambda value: value != "-1"), min_size=1, max_size=4), st.none() | VALUES)
def test_not_in_is_everything_but_in(values: list[str], value: str | None) -> None:
    inside = label_requirement("k", "In", tuple(values))
    outside = label_requirement("k", "NotIn", tuple(values))
    assert inside.allows(value) is not outside.allows(value)


@CI
@given(st.integers(0, 9), st.integers(-9, 9))
def test_a_number_is_above_below_or_the_bound(bound: int, number: int) -> None:
    above = label_requirement("k", "Gt", (str(bound),)).allows(str(number))
    below = label_requirement("k", "Lt", (str(bound),)).allows(str(number))
    assert (above, below) == (number > bound, number < bound)


@CI
@given(st.lists(REQUIREMENTS, max_size=3), st.none() | VALUES)
def test_more_requirements_never_match_more(requirements: list[Requirement], value: str | None) -> None:
    labels = {} if value is None else {"k": value}
    matches = [
        Term(tuple(requirements[:count])).matches("n", labels) for count in range(len(requirements) + 1)
    ]
    assert matches == sorted(matches, reverse=True)
