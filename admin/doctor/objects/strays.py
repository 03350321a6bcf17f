"""Checks of what is written on bindings, and of workloads past the queues: records, labels, opt-outs."""

from collections.abc import Iterator

from admin.doctor.check import Check
from admin.doctor.evidence import Evidence
from admin.doctor.finding import Finding, Patch, Verdict
from admin.doctor.objects.gathered import Case, gathered
from admin.doctor.objects.policies import GANGS
from admin.doctor.objects.seen import Seen, seen, target, title
from fairway.names import ADMISSION, REQUEUE
from queue_dispatcher.api.kinds import CLUSTER_QUEUES
from queue_dispatcher.bindings.annotation import Malformed
from queue_dispatcher.bindings.objects import CLUSTER_RESOURCE_BINDINGS, RESOURCE_BINDINGS
from queue_dispatcher.bindings.record import AdmissionRecord
from queue_dispatcher.bindings.state import Adopted, Finished
from queue_dispatcher.cache.entry import Entry

_BINDINGS = (RESOURCE_BINDINGS, CLUSTER_RESOURCE_BINDINGS)


def _records(evidence: Evidence) -> Iterator[Finding]:
    found = seen(evidence, *_BINDINGS, CLUSTER_QUEUES)
    yield from gathered(
        (case, title(entry.binding))
        for entry in found.entries.values()
        for case in _wrong_with_record(entry, found)
    )


def _wrong_with_record(entry: Entry, found: Seen) -> Iterator[Case]:
    binding, plane = entry.binding, found.name
    for name, value in ((ADMISSION, binding.admission), (REQUEUE, binding.requeue)):
        if isinstance(value, Malformed):
            yield Case(
                Verdict.ERROR,
                value.problem,
                f"somebody edited it: remove the annotation (kubectl annotate BINDING {name}-)",
                _without(plane, entry, name),
            )
    admission = binding.admission
    if not isinstance(admission, AdmissionRecord):
        return
    if admission.id != binding.uid:
        yield Case(
            Verdict.ERROR,
            f"metadata.annotations[{ADMISSION}] is of another binding: it counts for nothing",
            "was it restored from a copy or a backup? remove the annotation",
            _without(plane, entry, ADMISSION),
        )
    elif admission.queue not in found.cache.queues.queues.cluster_queues and not isinstance(
        entry.state, Finished
    ):
        yield Case(
            Verdict.ERROR,
            f"admitted by ClusterQueue {admission.queue[:253]}, which is not there: it is charged to no "
            "quota, and "
            "its growth is held for ever",
            "create the ClusterQueue again, or delete the workload and submit it to another",
        )


def _without(plane: str, entry: Entry, annotation: str) -> Patch:
    return Patch(plane, f'{{"metadata":{{"annotations":{{"{annotation}":null}}}}}}', target(entry.binding))


def _unlabelled(evidence: Evidence) -> Iterator[Finding]:
    found = seen(evidence, *_BINDINGS)
    yield from gathered(
        (
            Case(
                Verdict.ERROR,
                "it has no label of the policy that made it (permanent-id), so karmada-scheduler never "
                "looks at "
                "it: released, it is charged and never placed",
                "have Karmada's detector claim the workload anew: change its template, or re-create its "
                "policy",
            ),
            title(entry.binding),
        )
        for uid, entry in found.entries.items()
        if uid in found.unlabelled and entry.binding.is_workload and entry.binding.placement is not None
    )


def _slipped(evidence: Evidence) -> Iterator[Finding]:
    found = seen(evidence, *_BINDINGS)
    yield from gathered(
        (_why_slipped(entry), title(entry.binding))
        for entry in found.entries.values()
        if isinstance(entry.state, Adopted)
        and not entry.state.restore
        and not _is_skipped(entry)
        and not isinstance(entry.binding.admission, Malformed | AdmissionRecord)
        and found.asks_accelerators(entry)
    )


def _why_slipped(entry: Entry) -> Case:
    binding = entry.binding
    where = "running" if binding.placed else "free to be placed"
    charged = f"it is {where}, and charged only where its queue can be told"
    if binding.let_go_by:
        who = binding.let_go_by.partition(" at ")[0]
        return Case(
            Verdict.WARNING,
            f"asks for accelerators, and no queue let go of it: its hold was cleared by {who}; {charged}",
            "who may patch bindings may pass every queue: see who is allowed to (kubectl auth can-i), and "
            "kubectl get -o yaml --show-managed-fields for when it was",
        )
    return Case(
        Verdict.WARNING,
        "asks for accelerators and was never held: it is older than the webhook, or was made while that "
        "could "
        f"not be reached; {charged}",
        "see the checks of the webhook; to queue it, delete the workload and submit it again",
    )


def _skipped(evidence: Evidence) -> Iterator[Finding]:
    found = seen(evidence, *_BINDINGS)
    yield from gathered(
        (_why_skipped(entry, found), title(entry.binding))
        for entry in found.entries.values()
        if _is_skipped(entry) and found.asks_accelerators(entry)
    )


def _why_skipped(entry: Entry, found: Seen) -> Case:
    opts_out = "asks for accelerators and is skipped (fairway.dev/skip)"
    if entry.binding.is_held and not entry.binding.placed:
        return Case(
            Verdict.WARNING,
            f"{opts_out}, and is held all the same (spec.suspension.scheduling): it is not placed",
            "see whether a dispatcher leads, or release it with the patch; to have the workload queued, "
            "remove "
            "the label from it",
            Patch(found.name, '{"spec":{"suspension":{"scheduling":false}}}', target(entry.binding)),
        )
    where = "it is placed" if entry.binding.placed else "it may be placed at once"
    return Case(
        Verdict.NOTE,
        f"{opts_out}: {where}, and charged to no quota",
        "remove the label from the workload to have the next one queued",
    )


def _is_skipped(entry: Entry) -> bool:
    return entry.binding.is_skipped or entry.facts.is_skipped


def _components(evidence: Evidence) -> Iterator[Finding]:
    found = seen(evidence, *_BINDINGS)
    yield from gathered(
        (
            Case(
                Verdict.ERROR,
                f"Karmada sees neither replicas nor components of this {workload.kind}: it is copied to "
                "every "
                "cluster like a ConfigMap, never held and never estimated",
                "turn on gate MultiplePodTemplatesScheduling of karmada-controller-manager, "
                "karmada-scheduler and "
                "karmada-webhook (Karmada 1.16.6, 1.17.3, 1.18 or later), and apply "
                "manifests/karmada/interpreters "
                "for kinds that Karmada does not know",
            ),
            title(entry.binding),
        )
        for entry in found.entries.values()
        for workload in (entry.binding.workload,)
        if (workload.group, workload.kind) in GANGS
        and not entry.binding.is_workload
        and entry.binding.placement is not None
    )


BINDINGS_RECORDS = Check(
    "bindings-records",
    "Is every admission record whole and of a queue that is there?",
    "every admission record is whole and of a queue that is there",
    _records,
)
BINDINGS_LABELS = Check(
    "bindings-labels",
    "Does karmada-scheduler look at every binding?",
    "every workload's binding has the label that karmada-scheduler looks for",
    _unlabelled,
)
BINDINGS_SLIPPED = Check(
    "bindings-slipped",
    "Did any accelerator workload get past the queues?",
    "every accelerator workload was held and admitted",
    _slipped,
)
BINDINGS_SKIPPED = Check(
    "bindings-skipped",
    "Does any accelerator workload opt out?",
    "no accelerator workload opts out",
    _skipped,
)
BINDINGS_COMPONENTS = Check(
    "bindings-components",
    "Does Karmada see the components of gangs?",
    "Karmada sees the components of every gang",
    _components,
)
