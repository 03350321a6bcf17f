"""What an expression asks for: its series, and the labels that it selects and groups by."""

from collections.abc import Iterator
from dataclasses import dataclass

from promql_parser import (
    AggregateExpr,
    BinaryExpr,
    Call,
    MatrixSelector,
    ParenExpr,
    SubqueryExpr,
    UnaryExpr,
    VectorSelector,
    parse,
)


@dataclass(frozen=True, slots=True)
class Asked:
    """One series with the labels that are matched, and those that the expression groups by."""

    name: str
    matched: tuple[tuple[str, str], ...]
    grouped: frozenset[str]


def asked(expression: str) -> list[Asked]:
    """All series of an expression. Raises ValueError where it is not PromQL."""
    return list(_walk(parse(expression), frozenset()))


def _walk(node: object, grouped: frozenset[str]) -> Iterator[Asked]:
    match node:
        case VectorSelector():
            matchers = tuple((matcher.name, matcher.value) for matcher in node.matchers.matchers)
            yield Asked(node.name or "", matchers, grouped)
        case MatrixSelector():
            yield from _walk(node.vector_selector, grouped)
        case AggregateExpr():
            own = frozenset(node.modifier.labels) if node.modifier is not None else frozenset()
            yield from _walk(node.expr, grouped | own)
        case BinaryExpr():
            matching = node.modifier.matching if node.modifier is not None else None
            if matching is None:
                yield from _walk(node.lhs, grouped)
                yield from _walk(node.rhs, grouped)
            else:
                # Of the other side nothing comes through but whether, or how much of it, there is.
                yield from _walk(node.lhs, grouped | frozenset(matching.labels))
                yield from _walk(node.rhs, frozenset(matching.labels))
        case Call():
            for argument in node.args:
                yield from _walk(argument, grouped)
        case ParenExpr() | UnaryExpr() | SubqueryExpr():
            yield from _walk(node.expr, grouped)
