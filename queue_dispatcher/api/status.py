"""The statuses that the dispatcher writes on its objects, and reads again after a restart.

They say what changes seldom: whether the queue admits, how many workloads there are, what of its quota is in
use, and on objects of every kind which fields have no effect. Why each workload waits is asked of the
visibility API, because writing it here would cost the API server a write for every change of order.
"""

from collections.abc import Sequence

from fairway.kube.objects import KubeStruct
from fairway.resources import format_amount
from queue_dispatcher.api.problem import Problem

ACTIVE = "Active"
"""Type of the condition that says whether a queue admits workloads."""
EFFECTIVE = "Effective"
"""Type of the condition that is there, and False, while fields are stated that have no effect."""
WITHOUT_EFFECT = "FieldsWithoutEffect"
"""Its reason."""
WITHIN_QUOTA = "WithinQuota"
"""Type of the condition that is there, and False, while a queue uses more than it may, as long as that is not
to last.
"""
QUOTA_EXCEEDED = "QuotaExceeded"
"""Its reason."""
_MAX_MESSAGE = 4096


class QueueCondition(KubeStruct, frozen=True):
    """meta/v1 Condition. ``status``: True, False or Unknown; ``last_transition_time``: RFC 3339."""

    type: str = ""
    status: str = ""
    reason: str = ""
    message: str = ""
    last_transition_time: str = ""
    observed_generation: int = 0


class ResourceUsage(KubeStruct, frozen=True):
    """What of one resource is in use, as Kubernetes quantities; ``borrowed`` is the part beyond nominal, and
    ``reserved`` what is kept for workloads that wait.
    """

    name: str = ""
    total: str | int = "0"
    borrowed: str | int = "0"
    reserved: str | int = "0"


class FlavorUsage(KubeStruct, frozen=True):
    """What of one flavor is in use."""

    flavor: str = ""
    resources: tuple[ResourceUsage, ...] = ()


class BudgetUsage(KubeStruct, frozen=True):
    """What was used of a budget in the period that is under way ``since`` then, device-milliseconds."""

    name: str = ""
    device_milliseconds: str = ""
    since: str = ""


class QueueHistory(KubeStruct, frozen=True):
    """What a queue has used until a time, RFC 3339. Amounts are whole numbers, written as strings.

    ``cost``: by price, thousandths of that of device-milliseconds.
    """

    time: str = ""
    device_milliseconds: str = ""
    cost: str = ""


class ClusterQueueHistory(QueueHistory, frozen=True):
    """What a ClusterQueue has used; ``displaced_device_milliseconds``: of `spec.preemption.budget`, in the
    period that is under way since ``displaced_since``.
    """

    budgets: tuple[BudgetUsage, ...] = ()
    displaced_device_milliseconds: str = ""
    displaced_since: str = ""


class LocalQueueHistory(QueueHistory, frozen=True):
    """What a LocalQueue has used; ``decayed``: as ``cost``, by half-life."""

    decayed: str = ""


class ClusterQueueStatus(KubeStruct, frozen=True):
    """Status of a ClusterQueue; the workloads are its own, not those of queues below."""

    pending: int = 0
    admitted: int = 0
    conditions: tuple[QueueCondition, ...] = ()
    flavors_usage: tuple[FlavorUsage, ...] = ()
    history: ClusterQueueHistory | None = None


class LocalQueueStatus(KubeStruct, frozen=True):
    """Status of a LocalQueue."""

    pending: int = 0
    admitted: int = 0
    conditions: tuple[QueueCondition, ...] = ()
    history: LocalQueueHistory | None = None


class ConditionsStatus(KubeStruct, frozen=True):
    """Status of a ResourceFlavor or a ServiceClass: there only while there is something to tell."""

    conditions: tuple[QueueCondition, ...] = ()


def resource_usage(name: str, total: int, borrowed: int, reserved: int) -> ResourceUsage:
    """The usage of amounts: milli-cores of cpu, whole units of all else."""
    return ResourceUsage(name, *(format_amount(name, amount) for amount in (total, borrowed, reserved)))


def active(
    is_active: bool, reason: str, message: str, generation: int, now: str, before: Sequence[QueueCondition]
) -> QueueCondition:
    """The condition Active as of ``now`` (RFC 3339), given the conditions ``before``.

    The time of transition stays as it was while the status does. ``reason``: one CamelCase word.
    """
    return _condition(ACTIVE, is_active, reason, message, generation, now, before)


def effective(
    without_effect: Sequence[Problem], generation: int, now: str, before: Sequence[QueueCondition]
) -> tuple[QueueCondition, ...]:
    """The condition Effective, as `active`; none where every field that is stated has its effect."""
    if not without_effect:
        return ()
    message = "; ".join(map(str, without_effect))
    return (_condition(EFFECTIVE, False, WITHOUT_EFFECT, message, generation, now, before),)


def within_quota(
    exceeded: str, generation: int, now: str, before: Sequence[QueueCondition]
) -> tuple[QueueCondition, ...]:
    """The condition WithinQuota, as `active`, with what is ``exceeded``; none where that is empty."""
    if not exceeded:
        return ()
    return (_condition(WITHIN_QUOTA, False, QUOTA_EXCEEDED, exceeded, generation, now, before),)


def _condition(
    type_: str,
    is_true: bool,
    reason: str,
    message: str,
    generation: int,
    now: str,
    before: Sequence[QueueCondition],
) -> QueueCondition:
    if len(message) > _MAX_MESSAGE:
        message = f"{message[: _MAX_MESSAGE - 3]}..."
    status = "True" if is_true else "False"
    since = next((c.last_transition_time for c in before if c.type == type_ and c.status == status), "")
    return QueueCondition(type_, status, reason, message, since or now, generation)
