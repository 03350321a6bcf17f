"""docs/prometheus.md names no metric that is not asked for."""

import re
from pathlib import Path

from fairway.prometheus.queries import MEASURES
from tests.monitoring.promql import asked

PAGE = (Path(__file__).parents[2] / "docs" / "prometheus.md").read_text()
METRIC = re.compile(
    r"`((?:DCGM_FI|fairway_node_device|duty|memory|tensorcore|gpu|neuroncore|hardware|habanalabs)_[a-zA-Z_]+)`"
)
PATTERNS = {
    one.name or dict(one.matched)["__name__"]
    for measure in MEASURES
    for query in measure.queries.values()
    for one in asked(query)
}


def test_every_metric_of_the_page_is_asked_for() -> None:
    _, _, table = PAGE.partition("## What is asked")
    table, _, _ = table.partition("- **Doubled")
    named = set(METRIC.findall(table)) - {"fairway_node_device_holder", "fairway_node_device_health"}
    assert len(named) > 30
    assert [name for name in sorted(named) if not any(re.fullmatch(one, name) for one in PATTERNS)] == []
