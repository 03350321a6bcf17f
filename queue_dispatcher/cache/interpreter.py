"""Interpreter: what a binding means among the queues, classes, namespaces and templates that there are."""

from dataclasses import replace

from fairway.names import QUEUEING
from fairway.scope import Queueing, Reach, Scope
from queue_dispatcher.api.selector import EVERYTHING
from queue_dispatcher.bindings.binding import Binding
from queue_dispatcher.bindings.bound import NOT_COUNTED
from queue_dispatcher.bindings.charged import charged_queue
from queue_dispatcher.bindings.derivation import read_state
from queue_dispatcher.bindings.part import part_of
from queue_dispatcher.bindings.phase import Moment, follow, phase
from queue_dispatcher.bindings.requeue import RequeueRecord
from queue_dispatcher.bindings.state import Admitted, Foreign, Growing, Pending, State, Unresolved
from queue_dispatcher.cache.claims import paused_ms
from queue_dispatcher.cache.entry import Entry, Pause
from queue_dispatcher.cache.fleet import Fleet
from queue_dispatcher.cache.items import promised_to
from queue_dispatcher.cache.objects import CLUSTER_PROPAGATION_POLICIES, NAMESPACES, PROPAGATION_POLICIES
from queue_dispatcher.cache.queues import QueueCache
from queue_dispatcher.cache.templates import Templates
from queue_dispatcher.cycle.reasons import Reason, queue_stopped
from queue_dispatcher.workloads.elastic import GROWS_EVERY_MS, Bounds, Elastic, elastic_of
from queue_dispatcher.workloads.priority import PriorityNames, priority_of
from queue_dispatcher.workloads.queue_of import QueueNames, Resolved, may_be_charged, queue_of
from queue_dispatcher.workloads.template import TemplateFacts

_FOREIGN = Foreign()
_CRON_JOB = Foreign(
    "not gated: the Jobs that a CronJob makes are made in the members, where no queue is asked; have them "
    "made on Karmada's API server instead"
)
_NO_FACTS = TemplateFacts()
_NAMERS = (NAMESPACES.name, PROPAGATION_POLICIES.name, CLUSTER_PROPAGATION_POLICIES.name)
"""What may name a queue beside the workload and its binding."""


class Interpreter:
    """Reads entries; ``scope`` says which are to wait. ``states``: releases say where to, as far as the
    estimators are asked.
    """

    def __init__(
        self,
        queues: QueueCache,
        templates: Templates,
        fleet: Fleet,
        scope: Scope,
        *,
        states: bool = False,
    ) -> None:
        self._queues = queues
        self._templates = templates
        self._fleet = fleet
        self._scope = scope
        self._states = states

    def expect(self, binding: Binding) -> None:
        """The binding will be read: if it has a template, that is to be looked for."""
        if _is_scheduled(binding):
            self._templates.kind_of(binding.workload)

    def read(self, entry: Entry, now: Moment) -> State:
        """The state of the entry's binding now; notes its queue and the one that is charged, its template's
        facts, its priority and what is seen of its release on it.
        """
        binding = entry.binding
        if binding.record is None or entry.seen.release != binding.record.admitted_ms:
            entry.counts = NOT_COUNTED
        if not _is_scheduled(binding):
            entry.seen = follow(entry.seen, binding, now.elapsed_ms, entry.counts)
            workload = binding.workload
            return _CRON_JOB if (workload.group, workload.kind) == ("batch", "CronJob") else _FOREIGN
        template = self._templates.facts(binding.workload)
        facts = template if isinstance(template, TemplateFacts) else _NO_FACTS
        elastic, entry.rigid = self._elastic(binding, facts)
        facts = entry.facts = facts if elastic is None else _enough(facts, elastic.least)
        entry.elastic = elastic
        part = part_of(binding) if elastic is not None else binding
        seen = entry.seen = follow(entry.seen, part, now.elapsed_ms, entry.counts)
        namespace = self._queues.namespace(binding.namespace)
        policy = self._queues.policy(binding.policy)
        names = QueueNames(binding.queue, facts, policy, namespace.default_queue)
        queue = queue_of(binding.namespace, namespace.labels, names, self._queues.queues)
        queue = entry.queue = self._as_far_as_read(queue, binding.namespace)
        is_credible = self._is_credible(binding)
        entry.charged_queue = charged_queue(binding, queue, is_credible=is_credible)
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
        seen_ms = entry.growing_ms or now.day_ms
        state = read_state(
            binding if is_credible else _led_to(binding, queue),
            template,
            queue,
            in_scope=self._is_in_scope(binding, names, is_template_known=isinstance(template, TemplateFacts)),
            copies=self._fleet.copies(binding.placement, binding.demand),
            phase=phase(part, seen, now, entry.counts),
            seen_ms=seen_ms,
            elastic=elastic,
        )
        grows = isinstance(state, Growing) or (isinstance(state, Unresolved) and bool(binding.placed))
        entry.growing_ms = seen_ms if grows else 0
        entry.pause = _pause(entry, state, now)
        is_skipped = binding.is_skipped or facts.is_skipped
        if isinstance(state, Foreign) and not (is_skipped or binding.is_held or binding.is_deleting):
            return self._passing_by(binding, names)
        return state

    def _elastic(self, binding: Binding, facts: TemplateFacts) -> tuple[Elastic | None, str]:
        """How it is elastic; where it is not, why what it says has no effect."""
        if not facts.minimum.pods or binding.placement is None:
            return None, ""
        asks = any(map(self._scope.is_accelerator, binding.resources))
        bounds = Bounds(
            in_group=bool(facts.group),
            is_near=facts.is_near,
            is_preserved=binding.is_preserved,
            states=self._states and asks,
        )
        workload = binding.workload
        of = (workload.group, workload.kind)
        return elastic_of(facts.minimum, of, binding.demand, binding.placement, bounds)

    def _passing_by(self, binding: Binding, names: QueueNames) -> Foreign:
        """A workload out of scope; told why where it names a queue, or would be in scope elsewhere."""
        reach = self._scope.reach(self._queues.namespace(binding.namespace).queueing)
        if reach is Reach.NOTHING:
            if not names.is_named and not self._scope.includes(binding.subject, Reach.TERMS):
                return _FOREIGN
            what = f"namespace {binding.namespace}" if binding.namespace else "what is in no namespace"
            return Foreign(f"not gated: queues do not reach into {what}: see its label {QUEUEING}")
        if not names.is_named:
            return _FOREIGN
        return Foreign(
            "not gated: it names a queue and asks for no accelerator, and what names a queue waits only in "
            f"namespaces labelled {QUEUEING}={Queueing.NAMED}; it is charged to nobody"
        )

    def _is_in_scope(self, binding: Binding, names: QueueNames, *, is_template_known: bool) -> bool:
        """Whether it is to wait in a queue; true of what is held while that cannot be told."""
        subject, queues = binding.subject, self._queues
        if not queues.knows_namespace(binding.namespace):
            return binding.is_held or self._scope.includes(subject, Reach.TERMS)
        reach = self._scope.reach(queues.namespace(binding.namespace).queueing)
        if reach is Reach.NAMED and binding.is_held and not is_template_known:
            return True
        return self._scope.includes(subject, reach, named_elsewhere=names.is_named)

    def _is_credible(self, binding: Binding) -> bool:
        """Whether the queue of its record can have admitted it, as far as is known."""
        record, name = binding.record, binding.namespace
        if record is None or not self._queues.knows_namespace(name):
            return True
        labels = self._queues.namespace(name).labels
        return may_be_charged(record.queue, name, labels, self._queues.queues)

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


def _enough(facts: TemplateFacts, least: int) -> TemplateFacts:
    """With no more pods that have to start together than are enough."""
    minimums = tuple(replace(one, pods=min(one.pods, least)) for one in facts.minimums)
    return replace(facts, gang_pods=min(facts.gang_pods, least), minimums=minimums)


def _pause(entry: Entry, state: State, now: Moment) -> Pause:
    """The pause before the entry's next try."""
    waiting = state.growth if isinstance(state, Admitted) else state
    if not isinstance(waiting, Pending | Growing) or not waiting.due_ms:
        return Pause()
    if entry.pause.written_ms == waiting.due_ms:
        return entry.pause
    if waiting is not state:
        lasts_ms = GROWS_EVERY_MS
    else:
        requeue = entry.binding.requeue
        paused = paused_ms(requeue) if isinstance(requeue, RequeueRecord) else 0
        lasts_ms = max(paused, promised_to(entry).backoff_ms(waiting.tries))
    return Pause(waiting.due_ms, min(waiting.due_ms, now.day_ms + lasts_ms))


def _is_scheduled(binding: Binding) -> bool:
    return binding.is_workload and binding.placement is not None


def _led_to(binding: Binding, queue: Resolved | Reason) -> Binding:
    """The binding as if the queue that it leads to had admitted it."""
    if binding.record is None or not isinstance(queue, Resolved):
        return binding
    own = replace(binding.record, queue=queue.cluster_queue, local_queue=queue.local_queue)
    return replace(binding, admission=own)


def _priority_class(binding: Binding) -> str:
    return next((c.priority_class for c in binding.demand.components if c.priority_class), "")
