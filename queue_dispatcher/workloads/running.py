"""How many pods of a workload run, or have run to their end, by what its own controller writes of it.

As `queue_dispatcher.workloads.finished` this reads the status that Karmada collects from a member cluster. It
decides nothing: what is charged is charged from release to the end that is reported. It tells people how much
of what is charged does not run yet, and whom to look at. Of kinds without a rule nothing is said.

Mirrors batch/v1 and apps/v1 (Kubernetes 1.36), Volcano 1.15, Kubeflow training-operator 1.9.
"""

from collections.abc import Callable, Mapping

import msgspec

from fairway.kube.objects import KubeStruct
from queue_dispatcher.workloads.finished import GroupKind

_BROKEN = (msgspec.DecodeError, UnicodeDecodeError, RecursionError)


class _Counts(KubeStruct, frozen=True):
    """The fields in which the kinds below count their pods."""

    ready: int = 0
    succeeded: int = 0
    ready_replicas: int = 0
    running: int = 0


class _OfReplicas(KubeStruct, frozen=True):
    active: int = 0
    succeeded: int = 0


class _Training(KubeStruct, frozen=True):
    replica_statuses: dict[str, _OfReplicas] | None = None


_COUNTS = msgspec.json.Decoder(_Counts)
_TRAINING = msgspec.json.Decoder(_Training)

_PODS: Mapping[GroupKind, Callable[[_Counts], int]] = {
    ("batch", "Job"): lambda status: status.ready + status.succeeded,
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
            return max(0, count(_COUNTS.decode(status)))
        if (group, kind) in _TRAINED:
            roles = (_TRAINING.decode(status).replica_statuses or {}).values()
            return sum(max(0, role.active) + max(0, role.succeeded) for role in roles)
    except _BROKEN:
        return None
    return None
