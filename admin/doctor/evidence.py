"""What the doctor has read: the objects of each API server, and what was tried over the network.

Checks see only this, so each of them is tested with a few objects and no cluster. A plane that was not given,
and a kind that may not be read, are not the same as none of them: `Plane.listed` raises `NotRead` then.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import TypeVar

import msgspec

from fairway.kube.decoding import UNDECODABLE
from fairway.kube.objects import ApiObject
from fairway.kube.resource import KubeObjectLike, ResourceKind

T = TypeVar("T", bound=KubeObjectLike)
_STORED = msgspec.json.Decoder(ApiObject)


class Role(StrEnum):
    """What an API server is to Karmada."""

    HOST = "host"
    """Where Karmada's components and ours run as pods."""
    KARMADA = "karmada"
    """karmada-apiserver."""
    MEMBER = "member"


class NotRead(Exception):
    """A check cannot be made: ``why`` says what is missing, ``remedy`` how to give it."""

    def __init__(self, plane: str, why: str, remedy: str) -> None:
        super().__init__(f"{plane}: {why}")
        self.plane = plane
        self.why = why
        self.remedy = remedy


@dataclass(frozen=True, slots=True)
class Written:
    """An object of Fairway's own group as a file has it; ``api_version`` is empty where it says none."""

    file: str
    kind: str
    api_version: str
    text: bytes

    @property
    def is_stored(self) -> bool:
        """Whether an API server wrote it: nobody else gives uids."""
        try:
            return bool(_STORED.decode(self.text).metadata.uid)
        except UNDECODABLE:
            return False


@dataclass(frozen=True, slots=True)
class Plane:
    """One API server as it was read.

    ``name``: ``host``, ``karmada`` or the member cluster's name. ``version``: its ``gitVersion``, empty where
    it is not known (a dump tells none). ``objects``: by the name of their `ResourceKind`. ``unread``: why a
    kind is missing, by that name. ``written``: the objects of Fairway's group as files have them, those that
    no API server would take among them; none of an API server.
    """

    role: Role
    name: str
    version: str = ""
    objects: Mapping[str, Sequence[KubeObjectLike]] = field(default_factory=dict)
    unread: Mapping[str, str] = field(default_factory=dict)
    written: Sequence[Written] = ()

    def listed(self, kind: ResourceKind[T]) -> tuple[T, ...]:
        """All objects of a kind, none where the server has none or does not serve it. Raises NotRead."""
        if (why := self.unread.get(kind.name)) is not None:
            remedy = f"let the kubeconfig's user list {kind.name} there, or give a dump that has them"
            raise NotRead(self.name, f"{kind.name} could not be read: {why}", remedy)
        found = self.objects.get(kind.name, ())
        return tuple(one for one in found if isinstance(one, kind.type))


@dataclass(frozen=True, slots=True)
class Reached:
    """What came of trying to reach something. ``problem`` empty: it answered as it should.

    ``names``: what its certificate is made out to. ``not_after_ms``: when that ends, epoch milliseconds; 0
    where there is none. ``detail``: what it said of itself, such as the clusters that an estimator serves.
    """

    address: str
    problem: str = ""
    names: tuple[str, ...] = ()
    not_after_ms: int = 0
    detail: str = ""


@dataclass(frozen=True, slots=True)
class Evidence:
    """Everything a check may look at.

    ``host`` and ``karmada``: None where not given. ``members``: by cluster name, as many as were given.
    ``estimators``: what came of asking each cluster's estimator, by cluster name; ``webhooks``: of asking
    each webhook, by URL; both empty where nothing was tried (dumps, ``--offline``). ``now_ms``: epoch
    milliseconds.
    """

    now_ms: int
    host: Plane | None = None
    karmada: Plane | None = None
    members: Mapping[str, Plane] = field(default_factory=dict)
    estimators: Mapping[str, Reached] = field(default_factory=dict)
    webhooks: Mapping[str, Reached] = field(default_factory=dict)

    def on_host(self) -> Plane:
        """The host cluster. Raises NotRead."""
        return _given(self.host, Role.HOST)

    def on_karmada(self) -> Plane:
        """Karmada's API server. Raises NotRead."""
        return _given(self.karmada, Role.KARMADA)


def _given(plane: Plane | None, role: Role) -> Plane:
    if plane is None:
        raise NotRead(
            role, f"the {role} API server was not given", f"add --{role} KUBECONFIG or a dump of it"
        )
    return plane
