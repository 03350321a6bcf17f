"""With what the members of a half released group are released that were left behind."""

from collections.abc import Iterable

from queue_dispatcher.bindings.admission import admission_record, components_of, flavors_of
from queue_dispatcher.bindings.record import AdmissionRecord, Flavors
from queue_dispatcher.bindings.state import Pending
from queue_dispatcher.cache.entry import Entry


def forward_record(entry: Entry, group: Iterable[Entry]) -> AdmissionRecord | None:
    """The record of the entry as part of its group's admission; None if none of the group is released.

    As one that was released: the flavors of that one's record, or where it has none, of the first that the
    entry could be charged to.
    """
    state, item = entry.state, entry.item
    released = _released(entry, group)
    if item is None or released is None or not isinstance(state, Pending):
        return None
    flavors = dict(released.flavors)
    components: tuple[tuple[str, Flavors], ...] = ()
    preferred = item.shape.preferred
    if preferred is not None:
        own = dict(flavors_of(preferred))
        flavors = own | flavors
        # Which of its own components goes where is not said by another's record with other flavors.
        components = components_of(preferred) if flavors.items() >= own.items() else ()
    return admission_record(
        state,
        entry.binding,
        queue=released.queue,
        local_queue=item.local_queue,
        service_class=entry.priority.service_class.name if entry.priority.service_class else "",
        priority=item.priority,
        flavors=tuple((name, flavors[name]) for name, _ in state.demand if name in flavors),
        components=components,
        admitted_ms=released.admitted_ms,
        group=released.group,
    )


def _released(entry: Entry, group: Iterable[Entry]) -> AdmissionRecord | None:
    records = (other.record or other.binding.record for other in group)
    name = entry.group[2] if entry.group is not None else ""
    return next((record for record in records if record is not None and record.group == name), None)
