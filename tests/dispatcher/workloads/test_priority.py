import pytest

from queue_dispatcher.api.service_class import ServiceClass
from queue_dispatcher.workloads.priority import PriorityNames, priority_of

URGENT, BATCH, DEFAULT = (
    ServiceClass("urgent", 100),
    ServiceClass("batch", 10),
    ServiceClass("any", 5, is_default=True),
)
CLASSES = {c.name: c for c in (URGENT, BATCH)}
PRIORITY_CLASSES = {"high": 1000, "zero": 0}


@pytest.mark.parametrize(
    ("names", "value", "service_class"),
    [
        (PriorityNames("urgent", "batch", 7, "high"), 100, URGENT),
        (PriorityNames("", "batch", 7, "high"), 10, BATCH),
        (PriorityNames("", "", 7, "high"), 7, DEFAULT),
        (PriorityNames("", "", 0, "high"), 0, DEFAULT),
        (PriorityNames("", "", None, "high"), 1000, DEFAULT),
        (PriorityNames("", "", None, "zero"), 0, DEFAULT),
        (PriorityNames(), 5, DEFAULT),
        (PriorityNames("gone", "batch"), 10, BATCH),
        (PriorityNames("gone", "gone", 7), 7, DEFAULT),
    ],
)
def test_who_decides(names: PriorityNames, value: int, service_class: ServiceClass) -> None:
    found = priority_of(names, {**CLASSES, "any": DEFAULT}, PRIORITY_CLASSES)
    assert (found.value, found.service_class) == (value, service_class)


def test_a_deleted_priority_class_costs_its_priority_and_nothing_else() -> None:
    """volcano-global leaves such a workload out: never dispatched, and not counted as usage."""
    found = priority_of(PriorityNames(priority_class="deleted"), CLASSES, PRIORITY_CLASSES)
    assert (found.value, found.service_class) == (0, None)
    assert found.notes == ("PriorityClass deleted does not exist: passed over",)


def test_classes_that_do_not_exist_are_noted() -> None:
    found = priority_of(PriorityNames("gone", "lost"), CLASSES, {})
    assert [note.split()[1] for note in found.notes] == ["gone", "lost"]
