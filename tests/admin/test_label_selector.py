"""Label selectors as kubectl takes them."""

import pytest

from admin.label_selector import matches, parse_selector
from fairway.selectors import SelectorError

LABELS = {"app": "train", "rack": "r1", "gpus": "8"}


@pytest.mark.parametrize(
    ("text", "selected"),
    [
        ("app=train", True),
        ("app==train", True),
        ("app = train , rack=r1", True),
        ("app=train,rack=r2", False),
        ("app!=train", False),
        ("team!=web", True),
        ("rack in (r1, r2)", True),
        ("rack in(r3)", False),
        ("rack notin (r1,r2)", False),
        ("team notin (x)", True),
        ("app", True),
        ("team", False),
        ("!team", True),
        ("!app", False),
        ("gpus>4", True),
        ("gpus<4", False),
        ("app=", False),
        ("example.com/block=b1", False),
    ],
)
def test_a_selector_selects_as_kubectl_does(text: str, selected: bool) -> None:
    assert matches(parse_selector(text), LABELS) is selected
    assert matches(parse_selector("!app"), None)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "cannot be read from character 1"),
        ("app=train,", "cannot be read from character 11"),
        ("app=train rack=r1", "cannot be read"),
        ("rack in r1", "cannot be read"),
        ("rack in (r1", "cannot be read"),
        ("a(b)", "cannot be read"),
        ("rack in ()", ""),
        ("-app=x", "is not a label key"),
        ("app=-x-", "is not a label value"),
        ("gpus>many", "expected exactly one integer"),
    ],
)
def test_a_malformed_selector_is_told(text: str, said: str) -> None:
    if not said:
        # An empty list is a list of one empty value, as for kubectl.
        assert not matches(parse_selector(text), LABELS)
        return
    with pytest.raises(SelectorError) as raised:
        parse_selector(text)
    assert said in str(raised.value)
