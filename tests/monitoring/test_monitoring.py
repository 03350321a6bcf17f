"""Alerts and dashboards ask for metrics that exist, and every alert says what to do."""

import json
import re
import shutil
import subprocess
from functools import cache
from pathlib import Path
from typing import Any

import pytest
import yaml

from manifests.observability.dashboards import DASHBOARDS
from tests.monitoring.evaluator import evaluate
from tests.monitoring.metrics import of_agents, shown
from tests.monitoring.promql import asked
from tests.usage.agents import NOW

_ROOT = Path(__file__).resolve().parents[2]
_MONITORING = _ROOT / "manifests" / "monitoring"
_AGENTS = _ROOT / "manifests" / "member" / "node-agent" / "monitoring"
_RULE_FILES = [
    _MONITORING / "prometheus-rules.yaml",
    _AGENTS / "recording-rules.yaml",
    _AGENTS / "alerts.yaml",
]
_DASHBOARDS = sorted(path.name for path in (_MONITORING / "grafana").glob("*.json"))
_OF_PROMETHEUS = {"pod", "namespace", "job"}
_VARIABLE = re.compile(r"\$\w+")

Json = dict[str, Any]


@cache
def _metrics() -> dict[str, frozenset[str]]:
    return shown()


def _rules() -> list[Json]:
    groups = [group for file in _RULE_FILES for group in yaml.safe_load(file.read_text())["spec"]["groups"]]
    return [rule for group in groups for rule in group["rules"]]


def _alerts() -> list[Json]:
    return [rule for rule in _rules() if "alert" in rule]


def _dashboard(name: str) -> Json:
    loaded: Json = json.loads((_MONITORING / "grafana" / name).read_text())
    return loaded


def _panels(name: str) -> list[Json]:
    return [panel for panel in _dashboard(name)["panels"] if panel["type"] != "row"]


_RULES = [pytest.param(rule, id=rule.get("alert") or rule["record"]) for rule in _rules()]
_ALERTS = [pytest.param(rule, id=rule["alert"]) for rule in _alerts()]
_OF_DEVICES = [dashboard.file for dashboard in DASHBOARDS]


def _params(name: str) -> list[Any]:
    return [pytest.param(panel, id=f"{name}: {panel['title']}") for panel in _panels(name)]


_PANELS = [panel for name in _DASHBOARDS for panel in _params(name)]


def _unknown(expression: str) -> list[str]:
    """What an expression asks for that no program shows."""
    wrong = []
    for one in asked(expression):
        labels = _metrics().get(one.name)
        if labels is None:
            wrong.append(f"there is no metric {one.name}")
            continue
        named = {label for label, _ in one.matched} | one.grouped
        wrong += [f"{one.name} has no label {label}" for label in sorted(named - labels - _OF_PROMETHEUS)]
    return wrong


@pytest.mark.parametrize("rule", _RULES)
def test_a_rule_asks_for_what_is_there(rule: Json) -> None:
    assert asked(rule["expr"])
    assert _unknown(rule["expr"]) == []


@pytest.mark.parametrize("rule", _ALERTS)
def test_an_alert_has_a_section_in_the_docs(rule: Json) -> None:
    page, _, anchor = rule["annotations"]["runbook_url"].rpartition("#")
    assert page.endswith("/docs/alerts.md")
    text = (_ROOT / "docs" / "alerts.md").read_text()
    assert f"\n### {rule['alert']}\n" in text
    assert anchor == rule["alert"].lower()
    assert rule["labels"]["severity"] in ("critical", "warning", "info")
    assert rule["annotations"]["summary"]
    assert rule["annotations"]["description"]


def test_the_docs_have_no_section_without_an_alert() -> None:
    told = re.findall(r"^### (\w+)$", (_ROOT / "docs" / "alerts.md").read_text(), re.MULTILINE)
    assert sorted(told) == sorted(rule["alert"] for rule in _alerts())


@pytest.mark.parametrize("panel", _PANELS)
def test_a_panel_asks_for_what_is_there(panel: Json) -> None:
    for target in panel["targets"]:
        expression = _VARIABLE.sub("x", target["expr"])
        assert asked(expression)
        assert _unknown(expression) == []
        named = set(re.findall(r"\{\{(\w+)\}\}", target["legendFormat"]))
        grouped = frozenset().union(*(one.grouped for one in asked(expression)))
        assert named <= grouped, "the legend names a label that the query sums away"


@pytest.mark.parametrize("panel", [panel for name in _OF_DEVICES for panel in _params(name)])
def test_a_panel_about_devices_shows_something(panel: Json) -> None:
    series = of_agents()
    for target in panel["targets"]:
        expression = re.sub(r"\$\w+", ".*", target["expr"])
        if not re.search(r"rate\(|increase\(", expression):
            found = evaluate(expression, series, NOW.timestamp())
            assert isinstance(found, list)
            assert any(one.value == one.value for one in found), expression


@pytest.mark.parametrize("name", _DASHBOARDS)
def test_a_dashboard_has_no_two_panels_in_one_place(name: str) -> None:
    panels = _dashboard(name)["panels"]
    assert len({panel["id"] for panel in panels}) == len(panels)
    seen: set[tuple[int, int]] = set()
    for panel in panels:
        at = panel["gridPos"]
        assert at["x"] + at["w"] <= 24
        cells = {(at["x"] + x, at["y"] + y) for x in range(at["w"]) for y in range(at["h"])}
        assert not cells & seen, panel["title"]
        seen |= cells


@pytest.mark.parametrize("name", _DASHBOARDS)
def test_a_dashboard_uses_only_variables_that_it_has(name: str) -> None:
    dashboard = _dashboard(name)
    variables = {variable["name"] for variable in dashboard["templating"]["list"]}
    used = set(re.findall(r"\$\{?(\w+)\}?", json.dumps(dashboard["panels"])))
    assert used <= variables
    for variable in dashboard["templating"]["list"]:
        if variable["type"] == "query":
            asks = re.fullmatch(r"label_values\((.+), (\w+)\)", variable["definition"])
            assert asks is not None
            (series,) = asked(_VARIABLE.sub("x", asks[1]))
            assert asks[2] in _metrics()[series.name]
            assert _unknown(_VARIABLE.sub("x", asks[1])) == []


def test_states_in_queries_are_states_of_bindings() -> None:
    expressions = [rule["expr"] for rule in _rules()]
    expressions += [t["expr"] for name in _DASHBOARDS for panel in _panels(name) for t in panel["targets"]]
    states = {
        value
        for expression in expressions
        for one in asked(_VARIABLE.sub("x", expression))
        for label, value in one.matched
        if one.name == "fairway_bindings" and label == "state"
    }
    assert states
    # The words of `queue_dispatcher.cache.tally.state_name`.
    assert states <= {"Held", "Pending", "Admitted", "Placed", "Growing", "Adopted", "Finished"}


def test_promtool_takes_the_rules(tmp_path: Path) -> None:
    promtool = shutil.which("promtool")
    if promtool is None:
        pytest.skip("promtool is not on PATH")
    groups = [group for file in _RULE_FILES for group in yaml.safe_load(file.read_text())["spec"]["groups"]]
    (tmp_path / "rules.yaml").write_text(yaml.safe_dump({"groups": groups}))
    done = subprocess.run(
        [promtool, "check", "rules", str(tmp_path / "rules.yaml")],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
