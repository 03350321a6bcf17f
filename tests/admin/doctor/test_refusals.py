"""What an API server refuses by a schema: a table of what Kubernetes 1.36 was seen to say of such values."""

import msgspec
import pytest

from admin.doctor.object_metadata import METADATA
from admin.doctor.refusals import refusals
from admin.doctor.structural_schema import Schema, completed, read_schema

TEXT = b'{"type": "string", "minLength": 1, "maxLength": 3, "pattern": "^[a-z]*$"}'
AMOUNT = (
    b'{"x-kubernetes-int-or-string": true, "anyOf": [{"type": "integer"}, {"type": "string"}],'
    b' "minimum": 0, "maximum": 9, "pattern": "^[0-9](\\\\.[0-9])?$"}'
)
COUNT = b'{"type": "integer", "minimum": 1}'
WORD = b'{"type": "string", "enum": ["Hold", "None"]}'
SWITCH = b'{"type": "boolean"}'
SET = (
    b'{"type": "array", "minItems": 1, "maxItems": 2, "x-kubernetes-list-type": "set",'
    b' "items": {"type": "string"}}'
)
BY_NAME = (
    b'{"type": "array", "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["name"],'
    b' "items": {"type": "object", "properties": {"name": {"type": "string"}}}}'
)
LABELS = b'{"type": "object", "maxProperties": 1, "additionalProperties": {"type": "string"}}'
OBJECT = (
    b'{"type": "object", "required": ["spec"], "properties": {"spec": {"type": "object", "properties":'
    b' {"weight": {"type": "integer", "default": 1}, "parent": {"type": "string"}}}}}'
)


def said(schema: Schema, value: object) -> list[str]:
    return [
        f"{one.field}: {one.told}{f' ({one.mend})' if one.mend else ''}"
        for one in refusals(schema, value, None)
    ]


@pytest.mark.parametrize(
    ("schema", "value", "told"),
    [
        (TEXT, "abc", ""),
        (TEXT, "", "expected at least 1 character, found none"),
        (TEXT, "abcd", "expected at most 3 characters, found 4"),
        (TEXT, "äöü", 'expected text that matches ^[a-z]*$, found "äöü"'),
        (TEXT, "ab\n", 'expected text that matches ^[a-z]*$, found "ab\\n"'),
        (TEXT, 5, "expected text, found 5"),
        (TEXT, None, "expected text, found null"),
        (AMOUNT, 2, ""),
        (AMOUNT, 2.0, ""),
        (AMOUNT, "0.5", ""),
        (AMOUNT, 0.5, 'expected a whole number or text, found 0.5 (write it in quotes: "0.5")'),
        (AMOUNT, 0.55, "expected a whole number or text, found 0.55"),
        (AMOUNT, True, "expected a whole number or text, found true"),
        (AMOUNT, -1, "expected 0 to 9, found -1"),
        (AMOUNT, 1e30, "expected a whole number or text, found 1e30"),
        (AMOUNT, "+8", 'expected text that matches ^[0-9](\\.[0-9])?$, found "+8"'),
        (AMOUNT, [1], "expected a whole number or text, found [1]"),
        (COUNT, 2**63 - 1, ""),
        (COUNT, 2**63, "expected a whole number, found 9223372036854775808"),
        (COUNT, 2.0**53, "expected a whole number, found 9007199254740992.0"),
        (COUNT, 0, "expected at least 1, found 0"),
        (COUNT, "5", 'expected a whole number, found "5" (write it without quotes: 5)'),
        (COUNT, "0", 'expected a whole number, found "0"'),
        (COUNT, {}, "expected a whole number, found {}"),
        (WORD, "hold", 'expected one of Hold, None, found "hold"; did you mean Hold?'),
        (WORD, "", 'expected one of Hold, None, found ""'),
        (SWITCH, "true", 'expected true or false, found "true" (write it without quotes: true)'),
        (SWITCH, 1, "expected true or false, found 1"),
        (SET, ["a", "b"], ""),
        (SET, [], "expected at least 1 item, found none"),
        (SET, ["a", "b", "b"], "expected at most 2 items, found 3"),
        (SET, {"a": 1}, 'expected a list, found {"a":1}'),
        (LABELS, {"a": "b"}, ""),
        (LABELS, {"a": None, "b": "c"}, ""),
        (LABELS, {"a": "b", "c": "d"}, "expected at most 1 entries, found 2"),
        (LABELS, ["a"], 'expected a map, found ["a"]'),
    ],
)
def test_one_value(schema: bytes, value: object, told: str) -> None:
    assert said(read_schema(schema), value) == ([f": {told}"] if told else [])


@pytest.mark.parametrize(
    ("schema", "value", "told"),
    [
        (SET, ["a", "a"], "[1]: expected each once, found a before"),
        (SET, ["a", None], "[1]: expected text, found null"),
        (BY_NAME, [{"name": "a"}, {"name": "b"}], ""),
        (BY_NAME, [{"name": "a"}, {"name": "a"}], "[1]: expected each once, found a before"),
        (BY_NAME, [{}, {}, None], "[2]: expected a map, found null"),
        (LABELS, {"a": 1}, '[a]: expected text, found 1 (write it in quotes: "1")'),
        (LABELS, {"a": True}, "[a]: expected text, found true (write it in quotes)"),
        (OBJECT, {"spec": {}}, ""),
        (OBJECT, {}, "spec: expected a value, found none"),
        (OBJECT, {"spec": None}, "spec: expected a value, found none"),
        (OBJECT, {"spec": {"weight": None, "parent": None}}, ""),
        (OBJECT, {"spec": {"weight": "much"}}, 'spec.weight: expected a whole number, found "much"'),
    ],
)
def test_where_it_is(schema: bytes, value: object, told: str) -> None:
    assert said(read_schema(schema), value) == ([told] if told else [])


@pytest.mark.parametrize(
    ("metadata", "told"),
    [
        ({"name": "a.b-c", "labels": {"x.io/A_b": "C-d"}, "annotations": {"X.io/a": "any"}}, ""),
        ({}, "name: expected a value, found none"),
        ({"name": ""}, "name: expected at least 1 character, found none"),
        ({"name": "Main"}, 'name: expected a name of lower case letters, digits, - and ., found "Main"'),
        ({"name": "a" * 254}, "name: expected at most 253 characters, found 254"),
        ({"name": 5}, 'name: expected text, found 5 (write it in quotes: "5")'),
        ({"name": "a", "labels": {"b": 5}}, 'labels[b]: expected text, found 5 (write it in quotes: "5")'),
        (
            {"name": "a", "labels": {"b": "c d"}},
            'labels[b]: expected a label\'s value of letters, digits, -, _ and ., found "c d"',
        ),
        ({"name": "a", "labels": {"b": "c" * 64}}, "labels[b]: expected at most 63 characters, found 64"),
        (
            {"name": "a", "labels": {"b c": "d"}},
            'labels[b c]: expected a key such as team or example.com/team, found "b c"',
        ),
        (
            {"name": "a", "labels": {"X.io/b": "c"}},
            'labels[X.io/b]: expected a key such as team or example.com/team, found "X.io/b"',
        ),
        (
            {"name": "a", "namespace": "A"},
            'namespace: expected a name of lower case letters, digits and -, found "A"',
        ),
        (
            {"name": "a", "creationTimestamp": "soon"},
            'creationTimestamp: expected a moment such as 2026-01-31T12:00:00Z, found "soon"',
        ),
        (
            {"name": "a", "ownerReferences": [{"apiVersion": "v1", "kind": "A", "name": "b"}]},
            "ownerReferences[0].uid: expected a value, found none",
        ),
    ],
)
def test_metadata(metadata: object, told: str) -> None:
    assert said(METADATA, metadata) == ([told] if told else [])


def test_a_field_that_there_is_not_may_be_meant_otherwise() -> None:
    (one,) = refusals(read_schema(OBJECT), {"spec": {"wieght": 2}}, None)
    assert (one.field, one.is_unknown, one.told[-22:]) == ("spec.wieght", True, "; did you mean weight?")


RULED = (
    b'{"type": "object",'
    b' "properties": {"low": {"type": "integer", "default": 3}, "high": {"type": "integer"}},'
    b' "x-kubernetes-validations": [{"rule": "low", "message": "too low", "fieldPath": ".low"},'
    b' {"rule": "self == oldSelf", "message": "cannot be changed"}]}'
)


@pytest.mark.parametrize(
    ("value", "told"),
    [
        ({"low": 4, "high": 3}, ["low: too low, found 4"]),
        ({"high": 2}, ["low: too low, found 3"]),
        ({"low": 4, "high": 4}, []),
        # What is refused already is not asked about.
        ({"low": 4, "high": "3"}, ['high: expected a whole number, found "3"']),
        ({"low": 4, "high": 3, "middle": 1}, ["middle: there is no such field"]),
    ],
)
def test_rules_are_of_what_is_in_order_otherwise_and_of_new_objects(
    value: dict[str, object], told: list[str]
) -> None:
    def holds(rule: str, of: object) -> bool:
        assert rule == "low"
        assert isinstance(of, dict)
        return bool(of["low"] <= of["high"])

    found = [f"{one.field}: {one.told}" for one in refusals(read_schema(RULED), value, holds)]
    assert len(found) == len(told)
    assert all(one.startswith(start) for one, start in zip(found, told, strict=True))


def test_a_keyword_that_is_not_judged_is_no_schema() -> None:
    with pytest.raises(msgspec.ValidationError, match="multipleOf"):
        read_schema(b'{"type": "object", "properties": {"a": {"type": "integer", "multipleOf": 2}}}')


def test_nulls_are_left_out_and_defaults_filled_in_as_a_server_does() -> None:
    schema = read_schema(OBJECT)
    assert completed(schema, {"spec": {"parent": None}}) == {"spec": {"weight": 1}}
    assert completed(schema, {"spec": {"weight": None, "other": None}}) == {
        "spec": {"weight": 1, "other": None}
    }
    assert completed(schema, {"spec": [None]}) == {"spec": [None]}
