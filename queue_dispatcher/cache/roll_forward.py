"""With what the members of a half released group are released that were left behind."""

from queue_dispatcher.bindings.admission import admission_record, components_of, flavors_of
from queue_dispatcher.bindings.record import AdmissionRecord, Flavors
from queue_dispatcher.bindings.state import Pending
from queue_dispatcher.cache.entry import Entry
from queue_dispatcher.cycle.items import Alternative, Item
from queue_dispatcher.cycle.keeping import Keeping


def forward_record(entry: Entry, mate: Entry) -> AdmissionRecord | None:
    """The record of the entry as part of the admission that its mate is released with; None if it is not.

    As its mate was: the flavors of that one's record, or where it has none, of the first that the entry could
    be charged to.
    """
    state, item, released = entry.state, entry.item, mate.effective_record
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
        decision=released.decision,
    )


def forward_keeps(item: Item, record: AdmissionRecord) -> tuple[Keeping, ...]:
    """What keeps its pods on the nodes of what the record charges, of each part that could be charged so."""
    components = dict(record.components)

    def is_charged(option: Alternative) -> bool:
        charged = dict(components.get(option.component, record.flavors))
        return all(flavor in charged.get(resource, ()) for resource, flavor in option.flavors)

    return tuple(
        keeping
        for options in item.shape.parts
        for keeping in next((one.keeps for one in options if is_charged(one)), ())
    )
