"""Checks of what is held: does anybody release it, can it ever be released?"""

from collections.abc import Iterator
from contextlib import suppress
from typing import Final

from admin.doctor.check import Check
from admin.doctor.evidence import Evidence, NotRead
from admin.doctor.finding import Finding, Patch, Verdict, does_not_apply
from admin.doctor.objects.gathered import Case, gathered
from admin.doctor.objects.local_queues import uncovered
from admin.doctor.objects.seen import Seen, seen, target, title
from admin.doctor.program import DISPATCHER, programs
from fairway.kube.lease import LEASES, Lease
from queue_dispatcher.api.kinds import CLUSTER_QUEUES, LOCAL_QUEUES, RESOURCE_FLAVORS
from queue_dispatcher.bindings.cluster import CLUSTERS
from queue_dispatcher.bindings.objects import CLUSTER_RESOURCE_BINDINGS, RESOURCE_BINDINGS
from queue_dispatcher.bindings.state import Finished, Pending, Unresolved
from queue_dispatcher.bindings.timestamp import parse_ms
from queue_dispatcher.cache.entry import Entry
from queue_dispatcher.cache.objects import NAMESPACES
from queue_dispatcher.cycle.reasons import Reason

LEASE: Final = "fairway-dispatcher"
"""Name of the dispatchers' Lease, unless --leader-elect-resource-name says another."""
SILENT_MS: Final = 60_000
"""How long after its Lease ran out a dispatcher is taken for gone; clocks differ."""
_DEFAULT_LEASE_S: Final = 15
_BINDINGS = (RESOURCE_BINDINGS, CLUSTER_RESOURCE_BINDINGS)
_ROOM = (CLUSTERS, RESOURCE_FLAVORS)
"""What says whether there could ever be room."""


def _held(evidence: Evidence) -> Iterator[Finding]:
    found = seen(evidence, *_BINDINGS, CLUSTER_QUEUES, LOCAL_QUEUES, NAMESPACES)
    if not _has_queues(found):
        return
    yield from gathered(
        (case, title(entry.binding))
        for entry in found.entries.values()
        if entry.binding.is_held and entry.uid not in found.finished_templates
        for case in _why_held(entry, found)
    )
    # Last, so that what hangs on no capacity is told where none was read.
    if any(entry.binding.is_held and isinstance(entry.state, Pending) for entry in found.entries.values()):
        seen(evidence, *_ROOM)


def _why_held(entry: Entry, found: Seen) -> Iterator[Case]:
    """Why what is held will stay so, whatever room there is; nothing for what waits its turn."""
    state = entry.state
    if isinstance(state, Unresolved) and state.reason.kind != "QueueStopped":
        if _needs_template(entry) and not found.knows_template(entry):
            yield Case(
                Verdict.UNKNOWN,
                f"held, and which queue it names is not known: {state.reason.text}",
                "let the kubeconfig's user list these workloads, or give a dump that has them",
            )
        else:
            yield _case("held for ever", state.reason)
        return
    knows_room = not any(kind.name in found.not_read for kind in _ROOM)
    if isinstance(state, Pending) and knows_room and not uncovered(entry, found):
        never = found.never(entry)
        if never is not None:
            yield _case("can never be admitted", never)


def _needs_template(entry: Entry) -> bool:
    return not entry.binding.problems and not entry.binding.queue


def _case(what: str, reason: Reason) -> Case:
    return Case(Verdict.WARNING, f"{what}: {reason.text}", reason.unblock)


def _finished(evidence: Evidence) -> Iterator[Finding]:
    found = seen(evidence, *_BINDINGS)
    yield from gathered(
        (case, title(entry.binding))
        for entry in found.entries.values()
        for case in _why_finished(entry, found)
    )


def _why_finished(entry: Entry, found: Seen) -> Iterator[Case]:
    binding = entry.binding
    if not binding.is_held:
        return
    if isinstance(entry.state, Finished):
        yield Case(
            Verdict.NOTE,
            "held, and the workload has ended in every cluster that had it: nothing is charged for it",
            "delete the workload when its result is no longer needed",
        )
    elif entry.uid in found.finished_templates and not binding.placed:
        yield Case(
            Verdict.WARNING,
            "held, though the workload's own object says that it has ended: once released it would run again",
            "delete the workload, or label it fairway.dev/skip if it has to stay",
        )


def _leader(evidence: Evidence) -> Iterator[Finding]:
    found = seen(evidence, LEASES, CLUSTER_QUEUES, LOCAL_QUEUES, *_BINDINGS)
    if not _has_queues(found) and not _is_installed(evidence):
        yield does_not_apply("there is no queue, and no dispatcher that is known of")
        return
    plane = evidence.on_karmada()
    if LEASES.name not in plane.objects:
        raise NotRead(plane.name, "the dump has no leases", "name leases when you write it")
    leases = [one for one in plane.listed(LEASES) if one.metadata.name == LEASE]
    trouble = _nobody_leads(leases, evidence.now_ms)
    if not trouble:
        return
    held = sum(entry.binding.is_held for entry in found.entries.values())
    waits = f"; held workloads that wait for it: {held:,}" if held else "; whatever comes will be held"
    yield Finding(
        Verdict.ERROR if held else Verdict.WARNING,
        f"Lease {LEASE}" if not leases else f"Lease {_latest(leases).metadata.namespace}/{LEASE}",
        f"{trouble}{waits}",
        "see whether a fairway-dispatcher runs and reaches karmada-apiserver: kubectl logs -n fairway-system "
        "deployment/fairway-dispatcher; with --leader-elect=false there is no Lease to look at",
    )


def _nobody_leads(leases: list[Lease], now_ms: int) -> str:
    """Why no dispatcher leads; empty if one does."""
    if not leases:
        return "there is no such Lease, so no dispatcher has ever led"
    latest = _latest(leases)
    spec = latest.spec
    if not spec.holder_identity:
        return f"nobody holds it since {(spec.renew_time or 'it was made')[:40]}"
    renewed_ms = parse_ms(spec.renew_time or "")
    if renewed_ms is None:
        return f"spec.renewTime {(spec.renew_time or '')[:40]!r} is no time"
    expires_ms = renewed_ms + 1000 * (spec.lease_duration_seconds or _DEFAULT_LEASE_S)
    if now_ms <= expires_ms + SILENT_MS:
        return ""
    silent_s = (now_ms - renewed_ms) // 1000
    return f"{spec.holder_identity[:120]} has not renewed it for {silent_s:,} s (last at {spec.renew_time})"


def _latest(leases: list[Lease]) -> Lease:
    return max(leases, key=lambda lease: (bool(lease.spec.holder_identity), lease.spec.renew_time or ""))


def _left_behind(evidence: Evidence) -> Iterator[Finding]:
    found = seen(evidence, *_BINDINGS, CLUSTER_QUEUES, LOCAL_QUEUES)
    if _has_queues(found) or _is_led(evidence):
        return
    held = [entry for entry in found.entries.values() if entry.binding.is_held]
    plane = evidence.on_karmada()
    if held and CLUSTER_QUEUES.name not in plane.objects and LEASES.name not in plane.objects:
        raise NotRead(plane.name, "the dump has neither queues nor leases", "name them when you write it")
    yield from gathered(
        (
            Case(
                Verdict.ERROR,
                "held by spec.suspension.scheduling, and there is neither a queue nor a dispatcher that "
                "would "
                "release it: was Fairway removed without giving back what it held?",
                "release it with the patch, or all of them with: fairway uninstall",
                Patch(found.name, '{"spec":{"suspension":{"scheduling":false}}}', target(entry.binding)),
            ),
            title(entry.binding),
        )
        for entry in held
    )


def _has_queues(found: Seen) -> bool:
    queues = found.cache.queues.queues
    return bool(queues.cluster_queues or queues.local_queues)


def _is_installed(evidence: Evidence) -> bool:
    """Whether a dispatcher is known to be there; of a host that could not be read, others tell."""
    if evidence.host is None:
        return False
    with suppress(NotRead):
        return bool(programs(evidence.host, (DISPATCHER,)))
    return False


def _is_led(evidence: Evidence) -> bool:
    plane = evidence.on_karmada()
    if LEASES.name in plane.unread:
        return False
    leases = [one for one in plane.listed(LEASES) if one.metadata.name == LEASE]
    return not _nobody_leads(leases, evidence.now_ms)


BINDINGS_HELD = Check(
    "bindings-held",
    "Can everything that is held be admitted one day?",
    "everything that is held has a queue that can admit it",
    _held,
)
BINDINGS_FINISHED = Check(
    "bindings-finished",
    "Is anything held that has ended already?",
    "nothing is held that has ended",
    _finished,
)
DISPATCHER_LEADS = Check(
    "dispatcher-leads",
    "Does a dispatcher lead, so that anything is released?",
    "a dispatcher leads",
    _leader,
)
BINDINGS_LEFT = Check(
    "bindings-left",
    "Was anything left held by an installation that is gone?",
    "nothing is held without anybody to release it",
    _left_behind,
)
