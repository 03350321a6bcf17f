"""Switching: what suspends a workload by its own switch follows what its binding says.

That is held and released as all others are; the policy comes after the one and goes after the other, so what
has pods is charged in each moment. What is left to do is seen from both objects, whoever leads. Where the
switch is not heeded the workload is taken off its cluster: its controller is not there, somebody sets the
field back, or the policy cannot be written.
"""

from typing import Final

from queue_dispatcher.bindings.binding import Binding
from queue_dispatcher.bindings.phase import Moment
from queue_dispatcher.bindings.requeue import RequeueRecord
from queue_dispatcher.bindings.suspending_policy import (
    calls_for_policy,
    may_have_policy,
    policy_path,
    suspending_policy,
)
from queue_dispatcher.cache.cache import Cache
from queue_dispatcher.cache.entry import Entry
from queue_dispatcher.cache.overrides import OVERRIDE_POLICIES
from queue_dispatcher.turn.duties import begin, may_write
from queue_dispatcher.turn.writes import Companion, Purpose, Write
from queue_dispatcher.workloads.pausing import Switch

STOPS_MS: Final = 240_000
"""So long after it could go on, what is suspended has to have no pods any more: then it is not heeded."""
REFUSALS: Final = 3
"""So often is tried to write the policy."""
NOT_HEEDED: Final = "its pods did not stop there"
"""Why it was taken off its cluster then."""
_SUSPEND: Final = "suspend it in its cluster"
_RESUME: Final = "let it go on in its cluster"


def may_switch(cache: Cache, binding: Binding, switch: Switch) -> bool:
    """Whether a policy of ours can suspend it, and will be seen to be there or gone."""
    if not may_have_policy(binding) or OVERRIDE_POLICIES.name in cache.queues.unread:
        return False
    return not cache.overrides.set_any(binding.workload, (switch.pointer,))


def switched(cache: Cache, entry: Entry) -> Companion | None:
    """The policy that suspends it, as it is to be there or gone; None if it is so, or that cannot be said."""
    binding, switch = entry.binding, entry.facts.switch
    if entry.uid not in cache.unswitched or binding.is_deleting or not may_have_policy(binding):
        return None
    if binding.suspended is None or not calls_for_policy(binding):
        return Companion(policy_path(binding), None, _RESUME)
    if switch is None:
        return None
    policy = suspending_policy(binding, binding.suspended.by.cluster, switch)
    return Companion(policy_path(binding), policy, _SUSPEND)


def switching(cache: Cache, now: Moment) -> list[Write]:
    """The writes that have such policies come and go."""
    return [
        begin(entry, Purpose.SWITCH, uid)
        for uid in sorted(() if cache.observes else cache.unswitched)
        if may_write(entry := cache.entries[uid], now.day_ms) and switched(cache, entry) is not None
    ]


def is_not_heeded(cache: Cache, entry: Entry, now: Moment) -> bool:
    """Whether its pods do not go, be it that nothing can tell them to; not where nobody would hear of it."""
    stay = entry.binding.suspended
    if stay is None or not calls_for_policy(entry.binding) or not stay.leaving:
        return False
    if stay.by.cluster in cache.fleet.lost:
        return False
    is_refused = entry.uid in cache.unswitched and entry.failures >= REFUSALS
    return is_refused or stops_ms(entry) <= now.day_ms


def stops_ms(entry: Entry) -> int:
    """When what is suspended has to have no pods any more, epoch milliseconds."""
    return due_ms(entry) + STOPS_MS if isinstance(entry.binding.requeue, RequeueRecord) else 0


def due_ms(entry: Entry) -> int:
    """When what was taken back is to be tried again, epoch milliseconds, whatever clock wrote that."""
    requeue = entry.binding.requeue
    if not isinstance(requeue, RequeueRecord):
        return 0
    pause = entry.pause
    return pause.until_ms if pause.written_ms == requeue.not_before_ms else requeue.not_before_ms
