"""Pods as a resource: how a binding is counted by a queue that has a quota of ``pods``.

Nobody requests pods, and all but few queues have no quota of them. So they are no part of what a workload
asks for, nor of its record: where there is such a quota they follow from how many pods it has, and had.
"""

from dataclasses import replace

from fairway.resources import PODS
from queue_dispatcher.bindings.binding import Binding
from queue_dispatcher.bindings.record import AdmissionRecord
from queue_dispatcher.bindings.state import Growing
from queue_dispatcher.workloads.charge import FlavorsByResource
from queue_dispatcher.workloads.demand import Requests, beyond, largest, requests, with_pods


def counted(binding: Binding, offers: FlavorsByResource) -> Binding:
    """The binding as a queue counts it that offers these flavors, by resource."""
    if PODS not in offers:
        return binding
    admission = binding.admission
    if isinstance(admission, AdmissionRecord):
        admission = counted_record(admission, offers)
    return replace(binding, demand=with_pods(binding.demand), admission=admission)


def counted_record(record: AdmissionRecord, offers: FlavorsByResource) -> AdmissionRecord:
    """The record as a queue counts it that offers these flavors."""
    if PODS not in offers:
        return record
    pods = requests(((PODS, record.replicas * record.copies),))
    return replace(record, requests=largest(record.requests, pods))


def counted_need(state: Growing, binding: Binding) -> Requests:
    """What growth asks for, of a binding that is `counted`: more pods are part of it."""
    had = largest(binding.record.requests if binding.record else (), binding.demand.held(binding.placed))
    more = beyond(binding.demand.total(state.copies), had)
    return tuple(sorted((*state.need, *(pair for pair in more if pair[0] == PODS))))
