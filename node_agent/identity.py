"""Who the API server takes us for: the node of our token, as it says in the token itself.

A pod's token names the node that its pod runs on (Kubernetes 1.30: KEP-4193), and admission compares that
with the object that is written. Asking the server needs no permission that not everybody has.
"""

from dataclasses import dataclass
from typing import Final

import msgspec

from fairway.kube.client import KubeClient
from fairway.kube.objects import KubeStruct

PATH: Final = "/apis/authentication.k8s.io/v1/selfsubjectreviews"
NODE_NAME: Final = "authentication.kubernetes.io/node-name"
NODE_UID: Final = "authentication.kubernetes.io/node-uid"
_REVIEW: Final = {"apiVersion": "authentication.k8s.io/v1", "kind": "SelfSubjectReview"}


class _UserInfo(KubeStruct, frozen=True):
    username: str = ""
    extra: dict[str, list[str]] = msgspec.field(default_factory=dict)


class _Status(KubeStruct, frozen=True):
    user_info: _UserInfo = _UserInfo()


class _Review(KubeStruct, frozen=True):
    status: _Status = _Status()


@dataclass(frozen=True, slots=True)
class Identity:
    """``node`` and ``node_uid`` are empty where the token names none."""

    user: str = ""
    node: str = ""
    node_uid: str = ""


async def who_am_i(client: KubeClient) -> Identity:
    """Ask the API server. Raises KubeError."""
    user = (await client.post(PATH, _REVIEW, _Review)).status.user_info
    return Identity(user.username, _first(user, NODE_NAME), _first(user, NODE_UID))


def _first(user: _UserInfo, key: str) -> str:
    return next(iter(user.extra.get(key, ())), "")
