"""Each label and annotation of ours: what users say, by how the same story ends otherwise; the rest, by which
test shows what it is for.
"""

import ast
from pathlib import Path
from typing import NamedTuple

import pytest

from fairway import names
from fairway.workloads import own
from queue_dispatcher.cache.objects import NAMESPACES
from tests.dispatcher.effects.stories import Told, queued, told
from tests.dispatcher.scenarios.objects import cluster_queue
from tests.dispatcher.turn.builders import Plane
from tests.dispatcher.turn.test_elastic import Elastic

ROOT = Path(__file__).parents[3]
Said = dict[str, str]


class Row(NamedTuple):
    """What is said beside it, its values, and how it ends with each; None for not said."""

    name: str
    values: tuple[str | None, str | None]
    ends: tuple[str, str]
    beside: Said


def _plane() -> Plane:
    return queued(cluster_queue("main", {"m1": 8})["spec"])


def told_of_one(said: Said) -> Told:
    """One of 4 pods that says so, after 100 s of which it ran as many as it may, with its priority."""
    made = Elastic(m1=3) if names.MIN_REPLICAS in said else _plane()
    if names.DEFAULT_QUEUE in said:
        labels = {names.DEFAULT_QUEUE: said[names.DEFAULT_QUEUE]}
        made.feed(NAMESPACES, {"metadata": {"name": "team", "labels": labels}})
    made.submit("x", "", replicas=4, said=said)
    made.turn()
    record = made.record("x")
    if record is None:
        return "is left alone" if made.reason("x") is None else told(made)
    made.place("x", m1=record["replicas"])
    made.passes(100, step_s=5)
    return f"{told(made)} with {record['replicas']} pods, priority {record['priority']}"


MAIN = {names.QUEUE: "main"}
HAS_RUN = "runs with 4 pods, priority"
SAID = (
    Row(names.QUEUE, ("main", "none"), (f"{HAS_RUN} 0", "QueueNotFound"), {}),
    Row(names.DEFAULT_QUEUE, ("main", "none"), (f"{HAS_RUN} 0", "QueueNotFound"), {}),
    Row(names.SERVICE_CLASS, ("low", "high"), (f"{HAS_RUN} 0", f"{HAS_RUN} 10"), MAIN),
    Row(
        names.WORKLOAD_GROUP,
        (None, "g"),
        (f"{HAS_RUN} 0", "WaitingForGangMembers"),
        MAIN | {names.WORKLOAD_GROUP_SIZE: "2"},
    ),
    Row(
        names.WORKLOAD_GROUP_SIZE,
        ("1", "2"),
        (f"{HAS_RUN} 0", "WaitingForGangMembers"),
        MAIN | {names.WORKLOAD_GROUP: "g"},
    ),
    Row(
        names.MAX_RUNTIME, ("1h", "60s"), (f"{HAS_RUN} 0", "MaxRuntimeExceeded with 4 pods, priority 0"), MAIN
    ),
    Row(names.MIN_REPLICAS, ("3", "4"), ("runs with 3 pods, priority 0", "NeverFits"), MAIN),
    Row(names.SKIP, (None, ""), (f"{HAS_RUN} 0", "is left alone"), MAIN),
)

_NOTIFY = "tests/admin/notify/test_command.py"
_RECORD = "tests/dispatcher/bindings/test_record.py"
_ANNOTATIONS = "tests/workloads/test_annotations.py"
SHOWN = {
    names.GUIDANCE: "tests/dispatcher/turn/test_kept.py::test_who_cannot_be_told_is_charged_all_the_same",
    names.QUEUEING: "tests/dispatcher/scenarios/test_scope.py::test_what_becomes_of_what_was_held",
    names.NOTIFY: f"{_NOTIFY}::test_where_nobody_asks_nobody_is_told_and_that_is_said",
    names.HELD_AT: "tests/dispatcher/scenarios/test_scope.py::test_what_becomes_of_what_was_held",
    names.ADMISSION: f"{_RECORD}::test_a_record_comes_back_and_equal_records_give_equal_text",
    names.CHECK_PREFIX: "tests/dispatcher/turn/test_checks.py::test_what_the_answers_mean",
    names.SUSPENDED: (
        "tests/dispatcher/cache/test_overrides.py"
        "::test_what_suspends_a_workload_is_ours_alone_and_told_by_its_binding"
    ),
    names.REQUEUE: f"{_RECORD}::test_a_requeue_record_comes_back",
    own.GANG: f"{_ANNOTATIONS}::test_fairways_gang_says_how_many_pods_start_together",
    own.REQUIRED: f"{_ANNOTATIONS}::test_fairways_own_topology",
    own.PREFERRED: f"{_ANNOTATIONS}::test_fairways_own_topology",
    own.EXCLUSIVE: f"{_ANNOTATIONS}::test_fairways_own_topology",
    own.SLICE_SIZE: f"{_ANNOTATIONS}::test_fairways_own_topology",
}


def test_every_label_and_annotation_has_its_row() -> None:
    stated = {
        value
        for module in (names, own)
        for value in vars(module).values()
        if isinstance(value, str) and f"{names.GROUP}/" in value and "\n" not in value
    } - {names.API_VERSION}
    assert stated == {row.name for row in SAID} | SHOWN.keys()


@pytest.mark.parametrize("row", SAID, ids=lambda row: row.name)
def test_it_ends_otherwise(row: Row) -> None:
    assert row.ends[0] != row.ends[1]
    said = [row.beside | ({} if value is None else {row.name: value}) for value in row.values]
    assert tuple(map(told_of_one, said)) == row.ends


@pytest.mark.parametrize("name", SHOWN)
def test_the_test_that_shows_it_is_there(name: str) -> None:
    path, _, function = SHOWN[name].partition("::")
    parsed = ast.parse((ROOT / path).read_text())
    assert any(isinstance(one, ast.FunctionDef) and one.name == function for one in parsed.body)
