"""Expressions of DRA selectors, which tenants write: what they cost."""

import pytest

from fairway.dra.cel import _TEXT, cel_selectors
from fairway.dra.devices import Device, DeviceId
from fairway.dra.selection import Undecided, Unknown

LONGEST = 10 << 10
"""What Kubernetes takes of a selector."""


@pytest.mark.parametrize(
    "text",
    [
        '"' + '\\"' * (LONGEST // 2),
        "'" * LONGEST,
        "\"'" * (LONGEST // 2),
        '\\"' * (LONGEST // 2),
        '"' + "\\" * LONGEST,
    ],
)
def test_quotes_in_comments_are_looked_at_once(text: str) -> None:
    """Matches do not overlap and begin at each quote, so that no character is looked at twice."""
    looked_at = 0
    for match in _TEXT.finditer(f"true // {text}"):
        assert match.end() > match.start() >= looked_at
        looked_at = match.end()
    begun = f"true // {text}"
    # Nothing that could begin a match is left between them, which is what is tried again and again.
    rest = _TEXT.sub("", begun)
    assert '"' not in rest
    assert "'" not in rest


@pytest.mark.parametrize(
    ("expression", "texts"),
    [
        ('device.attributes["a.example"].x == "y"', {"a.example", "y"}),
        (
            "device.attributes['a.example'].x // don't\n && device.attributes['b.example'].y",
            {"a.example", "b.example"},
        ),
        (r'"a\"b" == "c"', {r"a\"b", "c"}),
    ],
)
def test_the_texts_of_an_expression_are_found(expression: str, texts: set[str]) -> None:
    assert {double or single for double, single in _TEXT.findall(expression)} >= texts


def test_an_expression_that_runs_too_long_is_ended() -> None:
    compile_selector = cel_selectors()
    numbers = "[0,1,2,3,4,5,6,7,8,9]"
    expression = "true"
    for depth in range(9):
        expression = f"{numbers}.all(v{depth}, {expression})"
    selector = compile_selector(expression)
    if isinstance(selector, Undecided):
        pytest.skip("needs the optional package cel-expr-python")
    verdict = selector.matches(Device(DeviceId("gpu.example.com", "pool", "d")))
    assert isinstance(verdict, Unknown)
    assert "budget" in verdict.reason
