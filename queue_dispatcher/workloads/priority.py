"""A workload's ServiceClass and its priority.

The class is the one that it names, else its LocalQueue's, else the default one. Its priority is that class's
if it or its LocalQueue names one; else what Karmada was told (schedulePriority on the binding); else its
PriorityClass; else the default class's; else 0. A class that does not exist is passed over and noted: a
workload whose PriorityClass was deleted waits with the priority that it has without, and is never lost. Where
classes may not be read, none is known.
"""

from collections.abc import Mapping
from dataclasses import dataclass

from queue_dispatcher.api.service_class import ServiceClass, default_class

NOTHING_UNREAD: Mapping[str, str] = {}


@dataclass(frozen=True, slots=True)
class PriorityNames:
    """Who states a priority for a workload; empty or None for nobody.

    ``service_class``: named by the workload. ``local_queue_class``: the LocalQueue's default.
    ``schedule_priority``: of the binding. ``priority_class``: of the template, or of the binding's pods.
    """

    service_class: str = ""
    local_queue_class: str = ""
    schedule_priority: int | None = None
    priority_class: str = ""


@dataclass(frozen=True, slots=True)
class Priority:
    """A priority and the ServiceClass that applies besides. ``notes``: classes that do not exist."""

    value: int = 0
    service_class: ServiceClass | None = None
    notes: tuple[str, ...] = ()


def priority_of(
    names: PriorityNames,
    classes: Mapping[str, ServiceClass],
    priority_classes: Mapping[str, int],
    unread: Mapping[str, str] = NOTHING_UNREAD,
) -> Priority:
    """The priority of a workload. ``priority_classes``: values of the PriorityClasses by name.

    ``unread``: why a resource may not be read, by its name.
    """
    notes: list[str] = []
    for name in (names.service_class, names.local_queue_class):
        if name and name in classes:
            return Priority(classes[name].priority, classes[name], tuple(notes))
        if name:
            notes.append(_passed_over("ServiceClass", name, unread.get("serviceclasses.fairway.dev")))
    default = default_class(classes.values())
    if names.schedule_priority is not None:
        return Priority(names.schedule_priority, default, tuple(notes))
    if names.priority_class in priority_classes:
        return Priority(priority_classes[names.priority_class], default, tuple(notes))
    if names.priority_class:
        notes.append(_passed_over("PriorityClass", names.priority_class, unread.get("priorityclasses")))
    return Priority(default.priority if default else 0, default, tuple(notes))


def _passed_over(kind: str, name: str, unread: str | None) -> str:
    if unread is None:
        return f"{kind} {name[:253]} does not exist: passed over"
    return f"{kind} {name[:253]} is not known: passed over; {unread}"
