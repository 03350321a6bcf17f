"""PromQL at one moment, as far as the recording rules use it; what it does not know it refuses.

That Prometheus says the same is a test, wherever promtool is (`tests.monitoring.test_rules`).
"""

import math
import operator
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from promql_parser import (
    AggregateExpr,
    BinaryExpr,
    Call,
    MatchOp,
    NumberLiteral,
    ParenExpr,
    VectorSelector,
    parse,
)

from manifests.observability.rules import Rule

NAME = "__name__"


@dataclass(frozen=True, slots=True)
class Series:
    """A value with its labels, its name among them."""

    labels: Mapping[str, str]
    value: float

    def key(self, names: Iterable[str] | None) -> tuple[tuple[str, str], ...]:
        """The labels of these names, of all but the metric's where None is given; absent ones are empty."""
        wanted = self.labels.keys() - {NAME} if names is None else set(names)
        return tuple(sorted((name, text) for name in wanted if (text := self.labels.get(name, ""))))


Vector = list[Series]
_ARITHMETIC: Mapping[str, Callable[[float, float], float]] = {
    "+": operator.add,
    "-": operator.sub,
    "*": operator.mul,
    "/": lambda a, b: a / b if b else (math.nan if a == 0 or math.isnan(a) else math.copysign(math.inf, a)),
}
_COMPARISON: Mapping[str, Callable[[float, float], bool]] = {
    ">": operator.gt,
    "<": operator.lt,
    ">=": operator.ge,
    "<=": operator.le,
    "==": operator.eq,
    "!=": operator.ne,
}
_AGGREGATE: Mapping[str, Callable[[Sequence[float]], float]] = {
    "sum": math.fsum,
    "max": max,
    "min": min,
    "count": len,
}


def recorded(rules: Iterable[Rule], series: Iterable[Series], now_s: float) -> Vector:
    """The series together with what the rules record of them, one after the other."""
    known = list(series)
    for rule in rules:
        found = evaluate(rule.expression, known, now_s)
        assert isinstance(found, list)
        new = [Series({**one.labels, **rule.labels, NAME: rule.record}, one.value) for one in found]
        assert len({one.key(None) for one in new}) == len(new), f"{rule.record}: the same series twice"
        known += new
    return known


def evaluate(expression: str, series: Iterable[Series], now_s: float) -> Vector | float:
    """What the expression is at ``now_s``, where each of the series has one value."""
    return _value(parse(expression), list(series), now_s)


def _value(node: Any, series: Vector, now_s: float) -> Vector | float:  # noqa: ANN401 - the parser's
    match node:
        case NumberLiteral():
            return float(node.val)
        case ParenExpr():
            return _value(node.expr, series, now_s)
        case VectorSelector():
            assert node.offset is None
            return [one for one in series if _is_selected(node, one)]
        case AggregateExpr() if str(node.op) == "topk":
            found = sorted(_vector(node.expr, series, now_s), key=lambda one: -one.value)
            assert isinstance(node.param, NumberLiteral)
            return found[: int(node.param.val)]
        case AggregateExpr():
            return _aggregate(node, _vector(node.expr, series, now_s))
        case Call() if node.func.name == "time":
            return now_s
        case Call() if node.func.name == "vector":
            return [Series({}, node.args[0].val)]
        case Call() if node.func.name == "label_replace":
            of, *texts = node.args
            return [_relabelled(one, *(text.val for text in texts)) for one in _vector(of, series, now_s)]
        case BinaryExpr():
            return _binary(node, _value(node.lhs, series, now_s), _value(node.rhs, series, now_s))
    raise NotImplementedError(type(node).__name__)


def _vector(node: Any, series: Vector, now_s: float) -> Vector:  # noqa: ANN401 - the parser's
    found = _value(node, series, now_s)
    assert isinstance(found, list)
    return found


def _is_selected(node: VectorSelector, one: Series) -> bool:
    return (not node.name or one.labels[NAME] == node.name) and all(
        _matches(matcher.op, matcher.value, one.labels.get(matcher.name, ""))
        for matcher in node.matchers.matchers
    )


def _matches(op: MatchOp, wanted: str, text: str) -> bool:
    if op in (MatchOp.Equal, MatchOp.NotEqual):
        return (text == wanted) is bool(op == MatchOp.Equal)
    return bool(re.fullmatch(wanted, text)) is bool(op == MatchOp.Re)


def _aggregate(node: AggregateExpr, found: Vector) -> Vector:
    names = node.modifier.labels if node.modifier is not None else []
    groups: dict[tuple[tuple[str, str], ...], list[float]] = {}
    for one in found:
        groups.setdefault(one.key(names), []).append(one.value)
    return [Series(dict(key), _AGGREGATE[str(node.op)](values)) for key, values in groups.items()]


def _relabelled(one: Series, label: str, text: str, source: str, pattern: str) -> Series:
    found = re.fullmatch(pattern, one.labels.get(source, ""))
    if found is None:
        return one
    return Series({**one.labels, label: found.expand(re.sub(r"\$(\d)", r"\\\1", text))}, one.value)


def _binary(node: BinaryExpr, left: Vector | float, right: Vector | float) -> Vector | float:
    name, modifier = str(node.op), node.modifier
    on = modifier.matching.labels if modifier is not None and modifier.matching is not None else None
    if isinstance(left, list) and isinstance(right, list):
        if name in ("and", "unless", "or"):
            return _set(name, left, right, on)
        return _joined(name, left, right, on, is_many="ManyToOne" in str(modifier and modifier.card))
    if isinstance(left, list) and isinstance(right, float):
        return [new for one in left if (new := _counted(name, one, one.value, right)) is not None]
    if isinstance(left, float) and isinstance(right, list):
        return [new for one in right if (new := _counted(name, one, left, one.value)) is not None]
    assert isinstance(left, float)
    assert isinstance(right, float)
    return _ARITHMETIC[name](left, right)


def _set(name: str, left: Vector, right: Vector, on: list[str] | None) -> Vector:
    there = {one.key(on) for one in right}
    if name == "or":
        here = {one.key(on) for one in left}
        return left + [one for one in right if one.key(on) not in here]
    return [one for one in left if (one.key(on) in there) == (name == "and")]


def _joined(name: str, left: Vector, right: Vector, on: list[str] | None, *, is_many: bool) -> Vector:
    other = {one.key(on): one for one in right}
    assert len(other) == len(right), "many on the side of one"
    assert is_many or len({one.key(on) for one in left}) == len(left), "many on the side of one"
    found = []
    for one in left:
        match = other.get(one.key(on))
        new = _counted(name, one, one.value, match.value) if match is not None else None
        if new is not None:
            found.append(new if is_many or on is None else Series(dict(new.key(on)), new.value))
    return found


def _counted(name: str, one: Series, left: float, right: float) -> Series | None:
    if name in _COMPARISON:
        return one if _COMPARISON[name](left, right) else None
    labels = {label: text for label, text in one.labels.items() if label != NAME}
    return Series(labels, _ARITHMETIC[name](left, right))
