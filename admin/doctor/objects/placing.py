"""Checks of what was released: is it placed, does it stay placed, is it given back at its end?"""

from collections.abc import Iterator, Mapping
from typing import Final

import msgspec

from admin.doctor.check import Check
from admin.doctor.evidence import Evidence
from admin.doctor.finding import Finding, Patch, Verdict
from admin.doctor.objects.gathered import Case, gathered
from admin.doctor.objects.seen import Seen, seen, target, title
from admin.doctor.objects.unseen import is_unseen
from queue_dispatcher.bindings.binding import SchedulingReason
from queue_dispatcher.bindings.objects import CLUSTER_RESOURCE_BINDINGS, RESOURCE_BINDINGS, BindingStatus
from queue_dispatcher.bindings.state import (
    Admitted,
    Adopted,
    Finished,
    Foreign,
    HeldWithin,
    Phase,
    Placed,
    Reassert,
    Shrinking,
    Unplaced,
)
from queue_dispatcher.cache.entry import Entry
from queue_dispatcher.cache.items import promised_to
from queue_dispatcher.workloads.finished import RULES, ConditionRule

SLACK_MS: Final = 60_000
"""How much later than its startTimeout a workload may be taken back before that is told."""
_BINDINGS = (RESOURCE_BINDINGS, CLUSTER_RESOURCE_BINDINGS)
_ENDS: Final = ConditionRule(frozenset(("Complete", "Completed", "Succeeded", "Failed", "Finished")))
_STATUSES = msgspec.json.Decoder(BindingStatus)
_REMEDIES: Final[Mapping[str, str]] = {
    SchedulingReason.UNSCHEDULABLE: "the queues found room where Karmada finds none: see the checks of "
    "resourceModels and estimators first, then kubectl describe it",
    SchedulingReason.NO_CLUSTER_FIT: "its placement rules all clusters out: see kubectl describe, taints "
    "and APIs",
    SchedulingReason.QUOTA_EXCEEDED: "a FederatedResourceQuota of its namespace refuses it: see "
    "federated-quotas",
}


def _unplaced(evidence: Evidence) -> Iterator[Finding]:
    found = seen(evidence, *_BINDINGS)
    yield from gathered(
        (
            Case(
                Verdict.ERROR,
                f"admitted and not placed within its startTimeout of {timeout_ms // 1000} s, and not taken "
                "back: "
                f"its quota is held for nothing{_said(entry)}",
                "see whether a dispatcher leads, and in its log and the binding's Events why it cannot take "
                "it back",
            ),
            title(entry.binding),
        )
        for entry in found.entries.values()
        if _phase(entry) is not None
        for timeout_ms in (promised_to(entry).start_timeout_ms,)
        if _is_overdue(entry, timeout_ms, evidence.now_ms) and not is_unseen(entry, evidence.now_ms)
    )


def _unschedulable(evidence: Evidence) -> Iterator[Finding]:
    found = seen(evidence, *_BINDINGS)
    yield from gathered(
        (
            Case(
                Verdict.WARNING,
                f"released, and Karmada finds no place for it: {phase.reason[:63]}",
                _REMEDIES.get(phase.reason, "kubectl describe it, and see the log of karmada-scheduler"),
            ),
            title(entry.binding),
        )
        for entry in found.entries.values()
        for phase in (_phase(entry),)
        if isinstance(phase, Unplaced)
        and not _is_overdue(entry, promised_to(entry).start_timeout_ms, evidence.now_ms)
    )


def _idle(evidence: Evidence) -> Iterator[Finding]:
    found = seen(evidence, *_BINDINGS)
    yield from gathered(
        (
            Case(
                Verdict.WARNING,
                f"placed more than {timeout_ms // 1000} s ago, and its clusters report pods of it that do "
                f"not run: "
                "its quota is held meanwhile",
                "see its pods in the member cluster: images that cannot be pulled, volumes, nodes that are "
                "gone; "
                "delete the workload if it will not run",
            ),
            title(entry.binding),
        )
        for entry in found.entries.values()
        if entry.binding.progress.idle
        and not entry.binding.progress.silent
        and not entry.binding.progress.unsent
        if isinstance(entry.state, Admitted | Shrinking) and isinstance(entry.state.phase, Placed)
        for timeout_ms in (promised_to(entry).start_timeout_ms,)
        if evidence.now_ms > entry.state.record.admitted_ms + timeout_ms + SLACK_MS
    )


def _phase(entry: Entry) -> Phase | None:
    """How far the placing of what was released is; None for all else, and for what is placed."""
    state = entry.state
    if not isinstance(state, Admitted | Shrinking) or isinstance(state.phase, Placed):
        return None
    return None if entry.binding.is_held else state.phase


def _is_overdue(entry: Entry, timeout_ms: int, now_ms: int) -> bool:
    record = entry.binding.record
    if record is None or entry.binding.placed:
        return False
    return now_ms > record.admitted_ms + timeout_ms + SLACK_MS


def _said(entry: Entry) -> str:
    scheduled = entry.binding.scheduled
    if scheduled is None or scheduled.is_scheduled:
        return ""
    return f"; Karmada says {scheduled.reason[:63]}"


def _placed_while_held(evidence: Evidence) -> Iterator[Finding]:
    found = seen(evidence, *_BINDINGS)
    yield from gathered(
        (case, title(entry.binding)) for entry in found.entries.values() for case in _why_placed(entry, found)
    )


def _why_placed(entry: Entry, found: Seen) -> Iterator[Case]:
    binding, waits = entry.binding, "a dispatcher that leads does so at once: see whether one does"
    match entry.state:
        case Reassert():
            yield Case(
                Verdict.ERROR,
                "taken back, and placed again by Karmada while it is held: it runs and nobody counts on it",
                f"clear its clusters; {waits}",
                Patch(found.name, '{"spec":{"clusters":[]}}', target(binding)),
            )
        case Adopted(restore=True):
            yield Case(
                Verdict.WARNING,
                "taken back, and placed again by Karmada, where it preserves its pods: it can only be kept",
                f"let it be admitted again; {waits}",
            )
        case HeldWithin() if binding.placed:
            yield Case(
                Verdict.WARNING,
                "held although it wants no more than it has: neither failover nor scaling down gets through",
                f"let go of it; {waits}",
                Patch(found.name, '{"spec":{"suspension":{"scheduling":false}}}', target(binding)),
            )
        case _:
            pass


def _charged(evidence: Evidence) -> Iterator[Finding]:
    found = seen(evidence, *_BINDINGS)
    plane = evidence.on_karmada()
    stated = (*plane.listed(RESOURCE_BINDINGS), *plane.listed(CLUSTER_RESOURCE_BINDINGS))
    remedy = "delete the workload, or tell the dispatcher how the kind ends"
    yield from gathered(
        (
            Case(
                Verdict.WARNING,
                f"its status says that it has ended, and Fairway knows no end of kind {kind}: it is charged "
                "until it is deleted",
                remedy,
            ),
            title(entry.binding),
        )
        for one in stated
        if (entry := found.entries.get(one.metadata.uid)) is not None
        and not isinstance(entry.state, Foreign | Finished)
        and entry.binding.placed
        and (entry.binding.workload.group, entry.binding.workload.kind) not in RULES
        and _has_ended(one.status)
        for kind in (f"{entry.binding.workload.kind}.{entry.binding.workload.group}".rstrip("."),)
    )


def _has_ended(status: msgspec.Raw) -> bool:
    """Whether a status says of every cluster that the workload has ended there, as most kinds say it."""
    try:
        items = _STATUSES.decode(status).aggregated_status or ()
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return False
    return bool(items) and all(_ENDS.holds(item.status) for item in items)


BINDINGS_UNPLACED = Check(
    "bindings-unplaced",
    "Was everything that was admitted placed in time, or taken back?",
    "everything that was admitted is placed, or still in time",
    _unplaced,
)
BINDINGS_UNSCHEDULABLE = Check(
    "bindings-unschedulable",
    "Does Karmada find a place for what the queues release?",
    "Karmada finds a place for what the queues release",
    _unschedulable,
)
BINDINGS_RUNNING = Check(
    "bindings-running",
    "Does everything run that was placed?",
    "everything that was placed runs, or is still in time",
    _idle,
)
BINDINGS_PLACED = Check(
    "bindings-placed",
    "Is anything placed that is held, beyond what waits to grow?",
    "nothing is placed that should not be",
    _placed_while_held,
)
BINDINGS_CHARGED = Check(
    "bindings-charged",
    "Is anything charged that has ended?",
    "what has ended is charged no more",
    _charged,
)
