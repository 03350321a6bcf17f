"""A defect that an API server refuses is told once, whoever meets its consequences."""

import pytest

from admin.doctor.finding import Finding, Verdict
from admin.doctor.once import told_once

REFUSED = Finding(
    Verdict.ERROR,
    "ClusterQueue main",
    "spec.groups[0].flavors: no: it is refused",
    refused_at="spec.groups[0].flavors",
)


def told(*others: Finding) -> list[str]:
    return [
        one.message for _, one in told_once([("queue-fields", REFUSED), *(("other", one) for one in others)])
    ]


@pytest.mark.parametrize(
    ("message", "see"),
    [
        ("spec.groups[0].flavors: it is odd", ""),
        ("spec.groups: it is odd", ""),
        ("spec.groups[0].flavors[1].name: there before", ", see spec.groups[0].flavors[1].name"),
        ("spec.groups[0].flavors[a.b/c]: it is odd", ", see spec.groups[0].flavors[a.b/c]"),
    ],
)
def test_what_another_says_of_the_field_is_left_out_and_names_the_place(message: str, see: str) -> None:
    assert told(Finding(Verdict.WARNING, "ClusterQueue main", message)) == [f"{REFUSED.message}{see}"]


@pytest.mark.parametrize(
    "other",
    [
        Finding(Verdict.ERROR, "ClusterQueue main", "spec.groups[1].flavors: another one"),
        Finding(Verdict.ERROR, "ClusterQueue main", "spec.groups[0].flavorsToo: no field of it"),
        Finding(Verdict.ERROR, "ClusterQueue next", "spec.groups[0].flavors: another object's"),
        Finding(Verdict.NOTE, "ClusterQueue main", "spec.groups: it has queues below it"),
        Finding(Verdict.UNKNOWN, "ClusterQueue main", "spec.groups: of effect with some flags only"),
        Finding(Verdict.WARNING, "ClusterQueue main", "spec.groups selects nothing: quota is never given"),
        Finding(Verdict.ERROR, "ClusterQueue main", "spec.groups: too", refused_at="spec.groups"),
    ],
    ids=lambda one: one.message,
)
def test_everything_else_is_told(other: Finding) -> None:
    assert told(other) == [REFUSED.message, other.message]


def test_a_local_queue_of_no_namespace_is_the_same_to_all() -> None:
    refused = Finding(Verdict.ERROR, "LocalQueue a", "spec.x: no: it is refused", refused_at="spec.x")
    other = Finding(Verdict.ERROR, "LocalQueue /a", "spec.x: there is no ClusterQueue")
    assert told_once([("one", refused), ("two", other)]) == [("one", refused)]
