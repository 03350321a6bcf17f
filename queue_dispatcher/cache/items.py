"""Items: what stands in line for a binding, or why nothing does."""

from fairway.names import REQUEUE
from queue_dispatcher.api.service_class import ServiceClass
from queue_dispatcher.bindings.part import at_size
from queue_dispatcher.bindings.state import Admitted, Growing, Pending, Unresolved
from queue_dispatcher.cache.entry import Entry
from queue_dispatcher.cache.overrides import KEPT_FIELDS, Overrides
from queue_dispatcher.cache.queues import QueueCache
from queue_dispatcher.cache.shapes import Shapes
from queue_dispatcher.cache.templates import Templates
from queue_dispatcher.cycle.items import Item
from queue_dispatcher.cycle.reasons import Reason, never_fits, queue_not_found
from queue_dispatcher.cycle.runtime import in_steps
from queue_dispatcher.workloads.keeping import can_be_told
from queue_dispatcher.workloads.max_runtime import runtime_limits

DEFAULT_CLASS = ServiceClass("")
"""What a workload without a ServiceClass is promised."""


def promised_to(entry: Entry) -> ServiceClass:
    """What the workload is promised."""
    return entry.priority.service_class or DEFAULT_CLASS


def _runtime_ms(entry: Entry) -> int | None:
    """For how long it runs at the latest once it has started; what has started before has no longer.

    What would leave pods behind is not stopped: then only what Kubernetes itself ends is sure to end.
    """
    limits = runtime_limits(promised_to(entry), entry.facts.limits)
    is_stopped = not entry.binding.is_preserved
    least = next((one for one in limits if is_stopped or not one.is_ours), None)
    return None if least is None else in_steps(least.limit_ms)


class Items:
    """Makes items; keeps nothing."""

    def __init__(
        self, queues: QueueCache, templates: Templates, shapes: Shapes, overrides: Overrides
    ) -> None:
        self._queues = queues
        self._overrides = overrides
        self._templates = templates
        self._shapes = shapes

    def item(self, entry: Entry) -> tuple[Item | None, Reason | None]:
        """The item, or why there is none; neither for what does not wait."""
        state = entry.state
        if entry.record is not None:
            return None, None
        match state:
            case Pending():
                return self._item(entry, state, state.queue.cluster_queue, state.queue.local_queue)
            case Growing(blocked=None):
                return self._item(entry, state, state.queue, state.local_queue)
            case Growing(blocked=reason) | Unresolved(reason=reason):
                return None, reason
            case _:
                return None, None

    def growth(self, entry: Entry) -> Item | None:
        """What an elastic workload of which a part runs would grow by: one pod, or more."""
        state, record = entry.state, entry.effective_record
        growth = state.growth if isinstance(state, Admitted) else None
        if growth is None or growth.blocked is not None or entry.record is not None or record is None:
            return None
        item, _ = self._item(entry, growth, growth.queue, growth.local_queue, record.replicas)
        return item

    def _item(
        self, entry: Entry, state: Pending | Growing, queue: str, local_queue: str, runs: int | None = None
    ) -> tuple[Item | None, Reason | None]:
        """``runs``: of an elastic workload that grows, how many pods it has."""
        binding, promised = entry.binding, promised_to(entry)
        elastic, pods, most = entry.elastic, 0, 0
        if elastic is not None and (runs is not None or isinstance(state, Pending)):
            most = binding.demand.replicas - (runs or 0)
            pods = 1 if runs is not None else elastic.least
            binding = at_size(binding, (runs or 0) + pods)
        known = self._queues.queues.cluster_queues.get(queue)
        if known is None:
            return None, queue_not_found(f"ClusterQueue {queue[:253]} does not exist")
        due_ms = max(entry.retry_ms, entry.pause.until_ms)
        limit = promised.backoff_limit
        # What runs already goes on trying to grow.
        if isinstance(state, Pending) and limit is not None and state.tries > limit:
            return None, never_fits(
                f"it did not start {state.tries} times, more often than its ServiceClass allows "
                f"({state.because}); to have it tried again, remove annotation {REQUEUE} of its binding"
            )
        shape = self._shapes.of(
            state, binding, known, self._templates.question(binding.workload), self._told(entry), most
        )
        if entry.room_in:
            shape = self._shapes.within(shape, entry.room_in)
        item = Item(
            id=binding.uid,
            name=f"{binding.workload.namespace}/{binding.workload.name}".lstrip("/"),
            members=(binding.uid,),
            queue=queue,
            local_queue=local_queue,
            shape=shape,
            priority=entry.priority.value,
            enqueued_ms=state.enqueued_ms,
            due_ms=due_ms,
            is_growth=isinstance(state, Growing),
            ageing=promised.ageing,
            runtime_ms=_runtime_ms(entry),
            max_wait_ms=promised.max_wait_ms if isinstance(state, Pending) else None,
            pods=pods,
            most=most,
            runs=runs or 0,
            in_one=elastic is not None and elastic.in_one,
            line=f"{binding.namespace}/{local_queue}" if known.fair_sharing is not None else "",
        )
        return item, None

    def _told(self, entry: Entry) -> frozenset[str]:
        """The components of which the pods can be told on which nodes to stay."""
        facts, binding = entry.facts, entry.binding
        if not facts.pods or not binding.namespace or not self._shapes.are_kept:
            return frozenset()
        if self._overrides.touch(binding.workload, facts.pods, KEPT_FIELDS):
            return frozenset()
        return can_be_told(facts.pods, facts.pod_sets, binding.demand)
