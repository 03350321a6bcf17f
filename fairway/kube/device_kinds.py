"""Where the objects of Dynamic Resource Allocation are served, by version, the newest first.

A server has those of its Kubernetes: v1 since 1.34, v1beta2 since 1.33 and v1beta1 since 1.32 where they are
switched on; or none.
"""

from typing import TypeVar

from fairway.kube.resource import KubeObjectLike, ResourceKind
from fairway.kube.resource_slices import DeviceClass, ResourceClaim, ResourceClaimTemplate, ResourceSlice

_T = TypeVar("_T", bound=KubeObjectLike)

GROUP = "resource.k8s.io"
_VERSIONS = ("v1", "v1beta2", "v1beta1")


def _served(plural: str, type_: type[_T]) -> tuple[ResourceKind[_T], ...]:
    return tuple(
        ResourceKind(f"{plural}.{GROUP}", f"/apis/{GROUP}/{version}/{plural}", type_) for version in _VERSIONS
    )


RESOURCE_SLICES = _served("resourceslices", ResourceSlice)
DEVICE_CLASSES = _served("deviceclasses", DeviceClass)
RESOURCE_CLAIMS = _served("resourceclaims", ResourceClaim)
CLAIM_TEMPLATES = _served("resourceclaimtemplates", ResourceClaimTemplate)
