"""Reclaimable pods: how many pods of a Job are still to run at a time, once some have done their work. Pure.

A Job makes no more pods at a time than it lacks completions, so what the last of them leave is given back
before the Job is over. Without ``completions`` it makes none any more once one has succeeded. Never below
what is there. Karmada divides completions over clusters as it sees fit, so of a Job that is divided over
several nothing is known.

Mirrors batch/v1 (Kubernetes 1.36, pkg/controller/job manageJob) and Kueue's reclaimable pods of Jobs.
"""

from collections.abc import Iterable
from dataclasses import dataclass, replace

import msgspec

from fairway.kube.objects import KubeStruct
from queue_dispatcher.workloads.demand import Placed

JOB = ("batch", "Job")
_BROKEN = (msgspec.DecodeError, UnicodeDecodeError, RecursionError)


@dataclass(frozen=True, slots=True)
class Done:
    """Of a Job in one cluster: how many pods have succeeded, and how many are there that have not ended."""

    cluster: str
    succeeded: int
    active: int


class _Status(KubeStruct, frozen=True):
    succeeded: int = 0
    active: int = 0
    terminating: int | None = None


class _Spec(KubeStruct, frozen=True):
    completions: int | None = None


_STATUSES = msgspec.json.Decoder(_Status)
_SPECS = msgspec.json.Decoder(_Spec | None)


def done_of(group: str, kind: str, cluster: str, status: msgspec.Raw) -> Done | None:
    """What a cluster reports of a Job of which any pod has succeeded; None for all else."""
    if (group, kind) != JOB:
        return None
    try:
        said = _STATUSES.decode(status)
    except _BROKEN:
        return None
    if said.succeeded <= 0:
        return None
    return Done(cluster, said.succeeded, max(0, said.active) + max(0, said.terminating or 0))


def there_of(group: str, kind: str, status: msgspec.Raw) -> int:
    """How many pods of a Job a cluster reports that have not ended; 0 of other kinds, or unreadable."""
    if (group, kind) != JOB:
        return 0
    try:
        said = _STATUSES.decode(status)
    except _BROKEN:
        return 0
    return max(0, said.active) + max(0, said.terminating or 0)


def completions_of(group: str, kind: str, spec: msgspec.Raw) -> int | None:
    """How many pods of a Job have to succeed, 0 where it does not say; None of other kinds, or unreadable."""
    if (group, kind) != JOB:
        return None
    try:
        stated = _SPECS.decode(spec)
    except _BROKEN:
        return None
    return max(0, stated.completions or 0) if stated is not None else None


def still_to_run(
    placed: tuple[Placed, ...], done: Iterable[Done], completions: int | None, *, is_divided: bool
) -> tuple[Placed, ...]:
    """What is placed, in each cluster as many replicas as still run at a time; the same where none are done.

    ``is_divided``: over the clusters; else each has a copy of its own.
    """
    by_cluster = {one.cluster: one for one in done}
    if not by_cluster or completions is None or (is_divided and len(placed) > 1):
        return placed
    return tuple(
        replace(share, replicas=_left(share.replicas, completions, by_cluster[share.cluster]))
        if share.cluster in by_cluster
        else share
        for share in placed
    )


def _left(replicas: int, completions: int, done: Done) -> int:
    return min(replicas, max(done.active, completions - done.succeeded))
