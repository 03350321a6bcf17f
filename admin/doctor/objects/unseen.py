"""Check of what was released and that nobody looks at.

karmada-scheduler takes up what names it as ``spec.schedulerName``, and nothing else. What names another one,
or waits while that does not run, stays released and unplaced: it holds its quota and a place in the release
window, and once enough of it does, nothing more is released at all.
"""

from collections.abc import Iterator, Mapping
from typing import Final

import msgspec

from admin.doctor.check import Check
from admin.doctor.evidence import Evidence, NotRead
from admin.doctor.finding import Finding, Verdict
from admin.doctor.objects.gathered import Case, gathered
from admin.doctor.objects.seen import Seen, seen, title
from admin.doctor.program import SCHEDULER, needed
from fairway.kube.objects import KubeStruct
from queue_dispatcher.bindings.objects import CLUSTER_RESOURCE_BINDINGS, RESOURCE_BINDINGS
from queue_dispatcher.bindings.state import Admitted, InFlight, Shrinking
from queue_dispatcher.cache.entry import Entry

UNSEEN_MS: Final = 60_000
"""How long karmada-scheduler may take to look at what was released."""
DEFAULT_SCHEDULER: Final = "default-scheduler"
"""Karmada's own, unless it runs with --scheduler-name (cmd/scheduler/app/options, Karmada 1.19)."""
_BINDINGS = (RESOURCE_BINDINGS, CLUSTER_RESOURCE_BINDINGS)


class _Spec(KubeStruct, frozen=True):
    scheduler_name: str | None = None


_SPECS = msgspec.json.Decoder(_Spec)


def is_unseen(entry: Entry, now_ms: int) -> bool:
    """Whether it was released so long ago and karmada-scheduler has not looked at it in this try."""
    binding, state = entry.binding, entry.state
    if not isinstance(state, Admitted | Shrinking) or not isinstance(state.phase, InFlight):
        return False
    is_touched = binding.is_held or binding.is_deleting or bool(binding.placed) or binding.is_settled
    return not is_touched and now_ms > state.record.admitted_ms + UNSEEN_MS


def _unseen(evidence: Evidence) -> Iterator[Finding]:
    found = seen(evidence, *_BINDINGS)
    unseen = {
        uid: entry
        for uid, entry in found.entries.items()
        if uid not in found.unlabelled and is_unseen(entry, evidence.now_ms)
    }
    if not unseen:
        return
    named, ours = _schedulers(evidence, unseen), _ours(evidence)
    yield from gathered(
        (_case(entry, named[uid], ours, found), title(entry.binding)) for uid, entry in unseen.items()
    )


def _case(entry: Entry, scheduler: str, ours: frozenset[str], found: Seen) -> Case:
    policy = entry.binding.policy
    by = "" if policy is None else f", made by policy {f'{policy.namespace}/{policy.name}'.lstrip('/')}"
    held = "it holds its quota and a place in the release window"
    if scheduler not in ours:
        return Case(
            Verdict.ERROR,
            f"released more than {UNSEEN_MS // 1000} s ago for scheduler {scheduler[:63]}{by}, and that "
            f"has not "
            f"looked at it, nor does karmada-scheduler: {held}",
            "delete the policy and make it again without schedulerName, which cannot be changed, or run that "
            "scheduler; until then delete the workloads, or stop their queue",
        )
    return Case(
        Verdict.ERROR,
        f"released more than {UNSEEN_MS // 1000} s ago, and karmada-scheduler has not looked at it{by}: "
        f"{held}",
        "see whether karmada-scheduler runs, leads and keeps up: its log, its Lease and client-throttle",
    )


def _schedulers(evidence: Evidence, unseen: Mapping[str, Entry]) -> dict[str, str]:
    """Whom each of these is for, by uid."""
    plane = evidence.on_karmada()
    named = dict.fromkeys(unseen, "")
    for one in (*plane.listed(RESOURCE_BINDINGS), *plane.listed(CLUSTER_RESOURCE_BINDINGS)):
        if one.metadata.uid in named:
            try:
                named[one.metadata.uid] = _SPECS.decode(one.spec).scheduler_name or DEFAULT_SCHEDULER
            except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
                named[one.metadata.uid] = DEFAULT_SCHEDULER
    return named


def _ours(evidence: Evidence) -> frozenset[str]:
    """The names of Karmada's own schedulers."""
    try:
        running = needed(evidence.on_host(), SCHEDULER)
    except NotRead:
        return frozenset((DEFAULT_SCHEDULER,))
    names = (program.arguments.text("scheduler-name") for program in running)
    return frozenset(name or DEFAULT_SCHEDULER for name in names) or frozenset((DEFAULT_SCHEDULER,))


BINDINGS_UNSEEN = Check(
    "bindings-unseen",
    "Does karmada-scheduler look at what the queues release?",
    "karmada-scheduler has looked at everything that was released",
    _unseen,
)
