"""Which workloads can stand still in a cluster and go on there later, with what they have done. Pure.

A Job whose parallelism is lowered to 0 deletes its pods and counts none of them as failed; it stays, with
what has succeeded, and makes pods again once it is raised. Not one that would end by that, or meanwhile:
without ``completions`` a Job is over once one of its pods has succeeded and none runs, and
``activeDeadlineSeconds`` goes on. Nor what somebody suspends already, or another controller runs.

Mirrors batch/v1 (Kubernetes 1.36, pkg/controller/job), and what Karmada 1.19 does to a Job of which a cluster
is to get 0 replicas: parallelism 0, the same Job. Of other kinds nothing is known for certain.
"""

import msgspec

from fairway.kube.objects import KubeStruct

JOB = ("batch", "Job")
CONTROLLER = "kubernetes.io/job-controller"
_BROKEN = (msgspec.DecodeError, UnicodeDecodeError, RecursionError)


class _Spec(KubeStruct, frozen=True):
    completions: int | None = None
    suspend: bool | None = None
    active_deadline_seconds: int | None = None
    managed_by: str | None = None


_SPECS = msgspec.json.Decoder(_Spec | None)


def may_pause(group: str, kind: str, spec: msgspec.Raw) -> bool:
    """Whether it can; not what cannot be read."""
    if (group, kind) != JOB:
        return False
    try:
        stated = _SPECS.decode(spec)
    except _BROKEN:
        return False
    if stated is None or stated.suspend or stated.active_deadline_seconds is not None:
        return False
    return (stated.completions or 0) > 0 and stated.managed_by in (None, CONTROLLER)
