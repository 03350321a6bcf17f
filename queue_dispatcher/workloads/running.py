"""How many pods of a workload are there, and how many run or have run to their end, as its controller says.

As `queue_dispatcher.workloads.finished` this reads the status that Karmada collects from a member cluster.
What is charged is charged from release to the end that is reported, whatever this says; it tells people how
much of that does not run yet, and the estimators what is still on its way. Of kinds without a rule nothing is
said, nor where Karmada does not collect what is needed: some releases leave out how many pods of a Job are
ready.

Mirrors batch/v1 and apps/v1 (Kubernetes 1.36), Volcano 1.15, Kubeflow training-operator 1.9.
"""

from collections.abc import Callable, Mapping

import msgspec

from fairway.kube.objects import KubeStruct
from queue_dispatcher.workloads.finished import GroupKind
from queue_dispatcher.workloads.pausing import is_still

_BROKEN = (msgspec.DecodeError, UnicodeDecodeError, RecursionError)


class _Counts(KubeStruct, frozen=True):
    """The fields in which the kinds below count their pods."""

    active: int = 0
    ready: int | None = None
    succeeded: int = 0
    failed: int = 0
    replicas: int = 0
    ready_replicas: int = 0
    pending: int = 0
    running: int = 0


class _OfReplicas(KubeStruct, frozen=True):
    active: int = 0
    succeeded: int = 0
    failed: int = 0


class _Training(KubeStruct, frozen=True):
    replica_statuses: dict[str, _OfReplicas] | None = None


_COUNTS = msgspec.json.Decoder(_Counts)
_TRAINING = msgspec.json.Decoder(_Training)

_THERE: Mapping[GroupKind, Callable[[_Counts], int]] = {
    ("batch", "Job"): lambda status: status.active + (status.ready or 0) + status.succeeded + status.failed,
    ("apps", "Deployment"): lambda status: status.replicas,
    ("apps", "StatefulSet"): lambda status: status.replicas,
    ("batch.volcano.sh", "Job"): lambda status: (
        status.pending + status.running + status.succeeded + status.failed
    ),
}
_PODS: Mapping[GroupKind, Callable[[_Counts], int | None]] = {
    ("batch", "Job"): lambda status: _running_of_job(status),
    ("apps", "Deployment"): lambda status: status.ready_replicas,
    ("apps", "StatefulSet"): lambda status: status.ready_replicas,
    ("batch.volcano.sh", "Job"): lambda status: status.running + status.succeeded,
}
_TRAINED = frozenset(
    ("kubeflow.org", kind) for kind in ("JAXJob", "MPIJob", "PaddleJob", "PyTorchJob", "TFJob", "XGBoostJob")
)


def running_pods(group: str, kind: str, status: msgspec.Raw) -> int | None:
    """How many pods run or have done their work; None where the kind does not tell, or not readably."""
    count = _PODS.get((group, kind))
    try:
        if count is not None:
            running = count(_COUNTS.decode(status))
            return None if running is None else max(0, running)
        if (group, kind) in _TRAINED:
            roles = (_TRAINING.decode(status).replica_statuses or {}).values()
            return sum(max(0, role.active) + max(0, role.succeeded) for role in roles)
    except _BROKEN:
        return None
    return None


_STARTING: Mapping[GroupKind, Callable[[_Counts], int]] = {
    ("batch", "Job"): lambda status: 0 if status.ready is None else status.active - status.ready,
    ("apps", "Deployment"): lambda status: status.replicas - status.ready_replicas,
    ("apps", "StatefulSet"): lambda status: status.replicas - status.ready_replicas,
    ("batch.volcano.sh", "Job"): lambda status: status.pending,
}


def starting_pods(group: str, kind: str, status: msgspec.Raw) -> int:
    """How many of its pods are there and do not run; 0 where that is not told."""
    count = _STARTING.get((group, kind))
    try:
        return max(0, count(_COUNTS.decode(status))) if count is not None else 0
    except _BROKEN:
        return 0


_ENDED: Mapping[GroupKind, Callable[[_Counts], int]] = {
    ("batch", "Job"): lambda status: status.succeeded + status.failed,
    ("batch.volcano.sh", "Job"): lambda status: status.succeeded + status.failed,
}


def ended_pods(group: str, kind: str, status: msgspec.Raw) -> int:
    """How many of its pods have ended; 0 where that is not told."""
    count = _ENDED.get((group, kind))
    try:
        if count is not None:
            return max(0, count(_COUNTS.decode(status)))
        if (group, kind) in _TRAINED:
            roles = (_TRAINING.decode(status).replica_statuses or {}).values()
            return sum(max(0, role.succeeded) + max(0, role.failed) for role in roles)
    except _BROKEN:
        return 0
    return 0


def are_seen(group: str, kind: str, status: msgspec.Raw) -> bool:
    """Whether any of its pods are, or were, in the cluster; a kind that does not tell is taken at its word
    once it reports anything but that it is suspended.
    """
    if is_still(group, kind, status):
        return False
    count = _THERE.get((group, kind))
    try:
        if count is not None:
            return count(_COUNTS.decode(status)) > 0
        if (group, kind) in _TRAINED:
            roles = (_TRAINING.decode(status).replica_statuses or {}).values()
            return any(role.active + role.succeeded + role.failed > 0 for role in roles)
    except _BROKEN:
        return True
    return True


def _running_of_job(status: _Counts) -> int | None:
    if status.ready is None:
        return None if status.active else status.succeeded
    return status.ready + status.succeeded
