"""How long a workload may run at the most, and by whose word. Pure.

Its ServiceClass may say so, and it itself in a label; what runs for longer the dispatcher takes back. Of Jobs
Kubernetes ends those that run for longer than they state themselves: that is known, and nothing is done for
it. Of several the least counts.

Mirrors Kueue 0.20 (``controller/constants.MaxExecTimeSecondsLabel``), batch/v1 (Kubernetes 1.36) and JobSet
v1alpha2.
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Final

import msgspec

from fairway.kube.objects import KubeStruct
from fairway.names import MAX_RUNTIME
from fairway.selectors import parse_int64
from fairway.service.durations import DurationError, parse_duration_s
from fairway.workloads.fields import shown
from queue_dispatcher.api.service_class import ServiceClass

MAX_EXEC_TIME: Final = "kueue.x-k8s.io/max-exec-time-seconds"
"""Kueue's label of workloads, whole seconds."""
_DEADLINE: Final = b"activeDeadlineSeconds"
_BROKEN = (msgspec.DecodeError, UnicodeDecodeError, RecursionError)


@dataclass(frozen=True, slots=True)
class RuntimeLimit:
    """``limit_ms``: how long it may run, above 0. ``by``: by whose word. ``is_ours``: whether the dispatcher
    sees to it; else Kubernetes does.
    """

    limit_ms: int
    by: str
    is_ours: bool = True


@dataclass(frozen=True, slots=True)
class StatedLimits:
    """What a workload says itself. ``notes``: what of it cannot be read and is passed over."""

    limits: tuple[RuntimeLimit, ...] = ()
    notes: tuple[str, ...] = ()


NO_LIMITS: Final = StatedLimits()


def runtime_limits(promised: ServiceClass, stated: Iterable[RuntimeLimit]) -> tuple[RuntimeLimit, ...]:
    """All that bounds the run of a workload of this class that states so much itself, the least first."""
    limits, limit_ms = list(stated), promised.max_runtime_ms
    if limit_ms is None and not limits:
        # As of most, and asked whenever anything happens.
        return ()
    if limit_ms is not None:
        by = f"its maxRuntime of {shown_duration(limit_ms)} (ServiceClass {promised.name})"
        limits.append(RuntimeLimit(limit_ms, by))
    return tuple(sorted(limits, key=lambda one: (one.limit_ms, not one.is_ours, one.by)))


def labelled_limits(labels: Mapping[str, str], annotations: Mapping[str, str]) -> StatedLimits:
    """What a workload's labels and annotations say of it."""
    limits: list[RuntimeLimit] = []
    notes: list[str] = []
    for where, said in (("labels", labels), ("annotations", annotations)):
        if MAX_RUNTIME in said and (where == "labels" or MAX_RUNTIME not in labels):
            limit_ms = _duration_ms(said[MAX_RUNTIME])
            if limit_ms is None:
                expected = "expected a duration above zero, such as 90s, 4h or 1h30m"
                notes.append(_passed_over(where, MAX_RUNTIME, said[MAX_RUNTIME], expected))
            else:
                limits.append(RuntimeLimit(limit_ms, f"its {MAX_RUNTIME} of {shown_duration(limit_ms)}"))
    if MAX_EXEC_TIME in labels:
        seconds = parse_int64(labels[MAX_EXEC_TIME])
        if seconds is None or seconds < 1:
            expected = "expected whole seconds, 1 or more"
            notes.append(_passed_over("labels", MAX_EXEC_TIME, labels[MAX_EXEC_TIME], expected))
        else:
            limits.append(RuntimeLimit(1000 * seconds, f"its {MAX_EXEC_TIME} of {seconds} s"))
    return StatedLimits(tuple(limits), tuple(notes)) if limits or notes else NO_LIMITS


def deadline(group: str, kind: str, spec: msgspec.Raw) -> RuntimeLimit | None:
    """After how long Kubernetes itself ends a workload of the kind; None where nothing says so.

    A JobSet has none unless each of its Jobs has. Where they start one after the other these add up, and
    once more for each time that it may be restarted.
    """
    if _DEADLINE not in bytes(spec):
        return None
    try:
        if (group, kind) == ("batch", "Job"):
            seconds = _JOBS.decode(spec).active_deadline_seconds
        elif (group, kind) == ("jobset.x-k8s.io", "JobSet"):
            seconds = _of_job_set(_JOB_SETS.decode(spec))
        else:
            return None
    except _BROKEN:
        return None
    if seconds is None or seconds < 1:
        return None
    return RuntimeLimit(1000 * seconds, f"its activeDeadlineSeconds of {seconds} s", is_ours=False)


def shown_duration(duration_ms: int) -> str:
    """A duration as people write it: ``4h``, ``1h30m``, ``1.5s``."""
    seconds, rest_ms = divmod(duration_ms, 1000)
    parts = ((seconds // 3600, "h"), (seconds // 60 % 60, "m"))
    told = "".join(f"{count}{unit}" for count, unit in parts if count)
    if rest_ms:
        return f"{told}{seconds % 60}.{rest_ms:03}".rstrip("0") + "s"
    return told + (f"{seconds % 60}s" if seconds % 60 or not told else "")


class _Job(KubeStruct, frozen=True):
    active_deadline_seconds: int | None = None


class _JobTemplate(KubeStruct, frozen=True):
    spec: _Job | None = None


class _ReplicatedJob(KubeStruct, frozen=True):
    template: _JobTemplate | None = None
    depends_on: list[msgspec.Raw] | None = None


class _StartupPolicy(KubeStruct, frozen=True):
    startup_policy_order: str | None = None


class _FailurePolicy(KubeStruct, frozen=True):
    max_restarts: int = 0
    rules: list[msgspec.Raw] | None = None


class _JobSet(KubeStruct, frozen=True):
    replicated_jobs: list[_ReplicatedJob] | None = None
    startup_policy: _StartupPolicy | None = None
    failure_policy: _FailurePolicy | None = None


_JOBS = msgspec.json.Decoder(_Job)
_JOB_SETS = msgspec.json.Decoder(_JobSet)


def _of_job_set(spec: _JobSet) -> int | None:
    each = list(_deadlines(spec.replicated_jobs or ()))
    stated = [seconds for seconds in each if seconds is not None and seconds >= 1]
    failures = spec.failure_policy or _FailurePolicy()
    if not stated or len(stated) < len(each) or failures.rules or failures.max_restarts < 0:
        # Rules may have it restarted without end.
        return None
    in_order = (spec.startup_policy or _StartupPolicy()).startup_policy_order == "InOrder"
    is_one_by_one = in_order or any(job.depends_on for job in spec.replicated_jobs or ())
    return (sum(stated) if is_one_by_one else max(stated)) * (1 + failures.max_restarts)


def _deadlines(jobs: Iterable[_ReplicatedJob]) -> Iterator[int | None]:
    for job in jobs:
        spec = job.template.spec if job.template is not None else None
        yield spec.active_deadline_seconds if spec is not None else None


def _duration_ms(text: str) -> int | None:
    try:
        milliseconds = round(parse_duration_s(text) * 1000)
    except DurationError:
        return None
    return milliseconds if milliseconds >= 1 else None


def _passed_over(where: str, name: str, text: str, expected: str) -> str:
    return f"metadata.{where}[{name}]: {shown(text)}: {expected}; passed over"
