"""A part of an elastic workload: it runs with fewer pods than it asks for, held so that Karmada adds none.

What runs counts as started, like any release: `part_of` is the binding as if it asked for no more.
"""

from dataclasses import replace

from queue_dispatcher.bindings.binding import Binding
from queue_dispatcher.workloads.elastic import sized


def is_part(binding: Binding) -> bool:
    """Whether it is held where it runs, admitted with fewer pods than it asks for."""
    record = binding.record
    return (
        record is not None
        and binding.is_held
        and bool(binding.placed)
        and not binding.demand.is_set
        and 0 < record.replicas < binding.demand.replicas
    )


def at_size(binding: Binding, replicas: int) -> Binding:
    """The binding as if it asked for so many pods."""
    return replace(binding, demand=sized(binding.demand, replicas))


def part_of(binding: Binding) -> Binding:
    """The binding as if it asked for what it was admitted with; itself where it is no part.

    Karmada's scheduler has nothing to do for it, and what it said of earlier tries is over.
    """
    record = binding.record
    if record is None or not is_part(binding):
        return binding
    return replace(
        at_size(binding, record.replicas),
        is_held=False,
        observed_generation=binding.generation,
        scheduled=None,
    )
