"""Every write of the dispatcher to a binding, as one JSON merge patch.

Only our own fields: the leaf ``spec.suspension.scheduling`` (what a policy suspends stands beside it and
stays byte for byte), our annotations, and ``spec.clusters``: emptied to take a workload back, without those
that are lost where the rest runs on, and filled where a release says where to, with which goes what Karmada
noted when it placed it before. What the gate noted goes with the hold, and the word of a check that said
Retry, so that it is asked again. Each patch carries the uid and the resourceVersion that it was decided on:
an API server answers 409 or, for another uid, 422 where the binding is no longer that one, and nothing is
written. All say by `Binding` what they are about.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import Final

from fairway.names import ADMISSION, CHECK_PREFIX, HELD_AT, REQUEUE
from queue_dispatcher.bindings.binding import Binding
from queue_dispatcher.bindings.record import AdmissionRecord, write_record
from queue_dispatcher.bindings.requeue import RequeueRecord, write_requeue
from queue_dispatcher.workloads.demand import Placed
from queue_dispatcher.workloads.pausing import has_switch

APPLIED_PLACEMENT: Final = "policy.karmada.io/applied-placement"
"""By which policy karmada-scheduler has placed a binding, as it notes there."""

Patch = Mapping[str, object]
"""A JSON merge patch (RFC 7386), ``application/merge-patch+json``."""


def admit(binding: Binding, record: AdmissionRecord, places: Sequence[Placed] = ()) -> Patch:
    """Admission: the record, and Karmada may place it; what was noted of earlier tries goes.

    The same for growth, where the record is the new one, and for a binding whose record is restored.
    ``places``: where to; empty leaves that to Karmada. Of what Karmada placed before by the same policy it
    would check nothing as long as it remembers that, so then it is to forget it.
    """
    clusters = _stated(places)
    annotations = {ADMISSION: write_record(record), REQUEUE: None}
    if clusters:
        annotations[APPLIED_PLACEMENT] = None
    return _patch(binding, annotations=annotations, held=False, clusters=clusters or None)


def shrink(binding: Binding, record: AdmissionRecord, places: Sequence[Placed] = ()) -> Patch:
    """The record lowered to what is still wanted. Does not move the generation, so it wakes nobody.

    ``places``: of what is held, where that stays; empty where it stays as it is.
    """
    return _patch(binding, annotations={ADMISSION: write_record(record)}, clusters=_stated(places) or None)


def resize(binding: Binding, record: AdmissionRecord, places: Sequence[Placed], held_at: str = "") -> Patch:
    """A part of an elastic workload runs from now on, in these places: held, so that Karmada adds nothing.

    ``held_at``: the moment, as the gate would note it, for what is not held yet.
    """
    annotations = {ADMISSION: write_record(record), REQUEUE: None}
    if not binding.is_held:
        annotations[HELD_AT] = held_at
    return _patch(binding, annotations=annotations, held=True, clusters=_stated(places))


def clear_hold(binding: Binding, record: AdmissionRecord | None) -> Patch:
    """Karmada may place it again: it wants no more than it has. ``record``: as it is to stand, if any."""
    annotations = {} if record is None else {ADMISSION: write_record(record)}
    return _patch(binding, annotations=annotations, held=False)


def take_back(binding: Binding, requeue: RequeueRecord) -> Patch:
    """It did not start: held again, its admission gone, and when it is due again."""
    return _patch(binding, annotations={ADMISSION: None, REQUEUE: write_requeue(requeue)}, held=True)


def ask_again(binding: Binding, requeue: RequeueRecord, checks: Iterable[str]) -> Patch:
    """These checks have said Retry: what they said goes, and when it is due again."""
    said = {f"{CHECK_PREFIX}{check}": None for check in checks}
    return _patch(binding, annotations={REQUEUE: write_requeue(requeue), **said})


def stop(binding: Binding, requeue: RequeueRecord) -> Patch:
    """It is placed and never ran, cannot be reached, or is not to run on: as `take_back`, and off all
    clusters.

    Raises ValueError as `clear` does.
    """
    _refuse_preserved(binding)
    annotations = {ADMISSION: None, REQUEUE: write_requeue(requeue)}
    return _patch(binding, annotations=annotations, held=True, clusters=[])


def suspend(binding: Binding, requeue: RequeueRecord) -> Patch:
    """It is not to run on, and keeps what it has done: as `stop`, but it stays in its cluster with no pods.

    Karmada gives the workload there as many pods at a time as the binding says, so none, and it goes on with
    its release. What has a switch stays placed as it is: `suspending_policy` suspends it. Raises ValueError
    where ``requeue`` does not say where it is suspended.
    """
    if requeue.suspended is None:
        raise ValueError(f"{binding.key}: expected where it is suspended")
    annotations = {ADMISSION: None, REQUEUE: write_requeue(requeue)}
    return _patch(binding, annotations=annotations, held=True, clusters=_suspended(binding, requeue))


def wait_on(binding: Binding, requeue: RequeueRecord) -> Patch:
    """It waits on as ``requeue`` says. Does not move the generation."""
    return _patch(binding, annotations={REQUEUE: write_requeue(requeue)})


def give_up(binding: Binding, requeue: RequeueRecord) -> Patch:
    """It was suspended, and is taken off its cluster after all.

    Raises ValueError as `clear` does.
    """
    _refuse_preserved(binding)
    return _patch(binding, annotations={REQUEUE: write_requeue(requeue)}, held=True, clusters=[])


def leave(binding: Binding, stays: Sequence[Placed]) -> Patch:
    """Off all clusters but where it ``stays``, so that Karmada places what is missing as when it grows.

    Raises ValueError as `clear` does.
    """
    _refuse_preserved(binding)
    return _patch(binding, clusters=_stated(stays))


def started(binding: Binding, record: AdmissionRecord) -> Patch:
    """It runs: what was noted of tries in vain before that goes. Does not move the generation either."""
    return _patch(binding, annotations={ADMISSION: write_record(record)})


def began(binding: Binding, record: AdmissionRecord) -> Patch:
    """It was placed long after its release: when that was. Does not move the generation."""
    return _patch(binding, annotations={ADMISSION: write_record(record)})


def take_back_growth(binding: Binding, record: AdmissionRecord) -> Patch:
    """More of it was admitted than Karmada can place: held, with the record lowered to what is placed."""
    return _patch(binding, annotations={ADMISSION: write_record(record)}, held=True)


def hold(binding: Binding) -> Patch:
    """First half of a kick: held for a moment, so that letting go makes Karmada look at it anew.

    The second is `release`, on the binding as the first one left it. A crash in between leaves a held binding
    with a record, which is `HeldWithin` to the next leader, and so let go of.
    """
    return _patch(binding, held=True)


def release(binding: Binding, resource_version: str) -> Patch:
    """Second half of a kick. ``resource_version``: as the answer to the first half says."""
    return _patch(binding, held=False, resource_version=resource_version)


def clear(binding: Binding) -> Patch:
    """Off all clusters and held: what Karmada placed of a workload that was taken back is undone. What was
    suspended is suspended again, where it was.

    Never for a binding that preserves resources on deletion: its pods would run on, managed by nobody.
    Raises ValueError for one.
    """
    _refuse_preserved(binding)
    requeue = binding.requeue if isinstance(binding.requeue, RequeueRecord) else None
    clusters = _suspended(binding, requeue)
    # Where that is not enough it goes.
    is_so = clusters == _stated(binding.placed)
    return _patch(binding, held=True, clusters=[] if is_so else clusters)


def _suspended(binding: Binding, requeue: RequeueRecord | None) -> list[object]:
    """What stands for the clusters of what was taken back."""
    stay = requeue.suspended if requeue is not None else None
    if stay is None:
        return []
    workload, demand = binding.workload, binding.demand
    keeps_pods = has_switch(workload.group, workload.kind) and not demand.is_set
    return _stated((Placed(stay.cluster, demand.replicas if keeps_pods else 0),))


def _stated(places: Sequence[Placed]) -> list[object]:
    return [
        {"name": place.cluster, "replicas": place.replicas} if place.replicas else {"name": place.cluster}
        for place in places
    ]


def _refuse_preserved(binding: Binding) -> None:
    if binding.is_preserved:
        raise ValueError(f"{binding.key}: preserveResourcesOnDeletion: clearing it would strand its pods")


def _patch(
    binding: Binding,
    *,
    annotations: Mapping[str, str | None] | None = None,
    held: bool | None = None,
    clusters: list[object] | None = None,
    resource_version: str = "",
) -> Patch:
    metadata: dict[str, object] = {
        "uid": binding.uid,
        "resourceVersion": resource_version or binding.resource_version,
    }
    if held is False and binding.gated_ms is not None:
        annotations = {**(annotations or {}), HELD_AT: None}
    if annotations:
        metadata["annotations"] = dict(annotations)
    spec: dict[str, object] = {}
    if held is not None:
        spec["suspension"] = {"scheduling": held}
    if clusters is not None:
        spec["clusters"] = clusters
    return {"metadata": metadata, "spec": spec} if spec else {"metadata": metadata}
