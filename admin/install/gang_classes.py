"""PriorityClasses that order the pods of gangs: not deleted under a workload that still runs."""

from typing import Final

from admin.install.listing import listed
from admin.install.performing import InstallError
from fairway.kube.client import KubeClient
from fairway.kube.errors import KubeError
from fairway.kube.objects import KubeStruct
from fairway.names import GANG_CLASSES

_PODS: Final = "/api/v1/pods"


class _Spec(KubeStruct, frozen=True):
    priority_class_name: str = ""


class _Pod(KubeStruct, frozen=True):
    spec: _Spec = _Spec()


async def needed_classes(plane: str, member: KubeClient) -> str:
    """Why the classes have to stay in a member; empty where no pod names them. Raises InstallError.

    The API server refuses pods that name a class which is not there, also those that a Job makes anew.
    """
    try:
        pods = await listed(member, _PODS, _Pod)
    except KubeError as error:
        raise InstallError(f"{plane}: pods: {error}") from None
    naming = sum(pod.spec.priority_class_name in GANG_CLASSES for pod in pods)
    if not naming:
        return ""
    return f"{plane}: PriorityClasses {GANG_CLASSES[0]} to {GANG_CLASSES[-1]}: {naming} pods name them"
