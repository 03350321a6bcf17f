"""Interpreter: what a binding means among the queues, classes, namespaces and templates that there are."""

from collections.abc import Callable
from dataclasses import replace

from queue_dispatcher.api.selector import EVERYTHING
from queue_dispatcher.bindings.binding import Binding
from queue_dispatcher.bindings.derivation import is_in_scope, read_state
from queue_dispatcher.bindings.phase import Moment, follow, phase
from queue_dispatcher.bindings.state import Foreign, State
from queue_dispatcher.cache.entry import Entry
from queue_dispatcher.cache.fleet import Fleet
from queue_dispatcher.cache.objects import CLUSTER_PROPAGATION_POLICIES, NAMESPACES, PROPAGATION_POLICIES
from queue_dispatcher.cache.queues import QueueCache
from queue_dispatcher.cache.templates import Templates
from queue_dispatcher.cycle.reasons import Reason, queue_stopped
from queue_dispatcher.workloads.priority import PriorityNames, priority_of
from queue_dispatcher.workloads.queue_of import QueueNames, Resolved, queue_of
from queue_dispatcher.workloads.template import TemplateFacts

_FOREIGN = Foreign()
_NO_FACTS = TemplateFacts()
_NAMERS = (NAMESPACES.name, PROPAGATION_POLICIES.name, CLUSTER_PROPAGATION_POLICIES.name)
"""What may name a queue beside the workload and its binding."""


class Interpreter:
    """Reads entries; ``is_accelerator`` tells whether a resource is one."""

    def __init__(
        self,
        queues: QueueCache,
        templates: Templates,
        fleet: Fleet,
        is_accelerator: Callable[[str], bool],
    ) -> None:
        self._queues = queues
        self._templates = templates
        self._fleet = fleet
        self._is_accelerator = is_accelerator

    def expect(self, binding: Binding) -> None:
        """The binding will be read: if it has a template, that is to be looked for."""
        if _is_scheduled(binding):
            self._templates.kind_of(binding.workload)

    def read(self, entry: Entry, now: Moment) -> State:
        """The state of the entry's binding now; notes its queue, its template's facts, its priority and what
        is seen of its release on it.
        """
        binding = entry.binding
        seen = entry.seen = follow(entry.seen, binding, now.elapsed_ms)
        if not _is_scheduled(binding):
            return _FOREIGN
        template = self._templates.facts(binding.workload)
        facts = entry.facts = template if isinstance(template, TemplateFacts) else _NO_FACTS
        namespace = self._queues.namespace(binding.namespace)
        policy = self._queues.policy(binding.policy)
        names = QueueNames(binding.queue, facts, policy, namespace.default_queue)
        queue = queue_of(binding.namespace, namespace.labels, names, self._queues.queues)
        queue = entry.queue = self._as_far_as_read(queue, binding.namespace)
        stated = PriorityNames(
            service_class=binding.service_class or facts.service_class,
            local_queue_class=queue.default_class if isinstance(queue, Resolved) else "",
            schedule_priority=binding.schedule_priority,
            priority_class=facts.priority_class or _priority_class(binding),
        )
        classes = self._queues.service_classes.values
        entry.priority = priority_of(
            stated, classes, self._queues.priority_classes.values, self._queues.unread
        )
        return read_state(
            binding,
            template,
            queue,
            in_scope=is_in_scope(binding, names, namespace.is_managed, self._is_accelerator),
            copies=self._fleet.copies(binding.placement, binding.demand),
            phase=phase(binding, seen, now),
        )

    def _as_far_as_read(self, queue: Resolved | Reason, namespace: str) -> Resolved | Reason:
        """The queue, with what cannot be known of it for want of a permission."""
        queues = self._queues
        if not queues.unread:
            return queue
        if isinstance(queue, Reason) and queue.kind == "QueueNotFound":
            why = [queues.unread[one] for one in _NAMERS if one in queues.unread]
            return replace(queue, text="; ".join([queue.text, *why]))
        why_unknown = queues.unread.get(NAMESPACES.name)
        if why_unknown is None or not namespace:
            return queue
        cluster_queue = queue.about if isinstance(queue, Reason) else queue.cluster_queue
        selector = queues.queues.cluster_queues[cluster_queue].namespace_selector
        if selector is None or selector == EVERYTHING:
            return queue
        why_stopped = f"whether its namespaceSelector takes namespace {namespace} is not known: {why_unknown}"
        # What runs is charged to it all the same.
        resolved = Resolved(cluster_queue) if isinstance(queue, Reason) else queue
        return replace(resolved, stopped=queue_stopped(cluster_queue, why_stopped))


def _is_scheduled(binding: Binding) -> bool:
    return binding.is_workload and binding.placement is not None


def _priority_class(binding: Binding) -> str:
    return next((c.priority_class for c in binding.demand.components if c.priority_class), "")
