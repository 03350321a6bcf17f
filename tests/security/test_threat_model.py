"""Every claim of the threat model names a test that is there."""

import ast
import re
from pathlib import Path

import pytest

PAGE = Path("docs/threat-model.md")
TEST = re.compile(r"`(tests/[a-z_/]+\.py)::([A-Za-z0-9_:]+)`")


def claims() -> list[str]:
    """The items of all lists, each with its following lines."""
    text = PAGE.read_text()
    return [item.split("\n\n")[0] for item in re.split(r"^- ", text, flags=re.MULTILINE)[1:]]


def names_in(file: Path) -> set[str]:
    """Names of the tests of a file, those in classes as ``Class::test``."""
    found: set[str] = set()
    for node in ast.parse(file.read_text()).body:
        if isinstance(node, ast.FunctionDef):
            found.add(node.name)
        elif isinstance(node, ast.ClassDef):
            found.update(
                f"{node.name}::{each.name}" for each in node.body if isinstance(each, ast.FunctionDef)
            )
    return found


@pytest.mark.parametrize("claim", claims(), ids=lambda claim: claim[:60].replace("\n", " "))
def test_a_claim_names_tests_that_are_there(claim: str) -> None:
    assert claim.startswith("**")
    named = TEST.findall(claim)
    assert named, "a claim without a test"
    for file, name in named:
        assert name.rpartition("::")[2].startswith("test_")
        assert name in names_in(Path(file)), f"{file}::{name} is not there"


def test_there_are_claims_about_everybody() -> None:
    assert len(claims()) > 25
    headings = re.findall(r"^## (.+)$", PAGE.read_text(), flags=re.MULTILINE)
    assert {"Tenants", "Visibility", "Estimators and member clusters", "Secrets"} <= set(headings)
