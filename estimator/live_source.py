"""A live member cluster as the source of a mirror: a watch per kind, and what their states mean.

A kind is listed and watched when there is need of it (`estimator.member_kinds`): most clusters are never
asked about their Deployments, and each watch is a connection. Nobody waits for a kind that is optional where
it is not served. The objects of Dynamic Resource Allocation count for nothing before all of them have been
read: devices whose claims are not known look free.
"""

import asyncio
import time
from collections.abc import Callable, Collection, Coroutine, Iterable, Sequence
from typing import Generic, TypeVar

from estimator.cluster.freshness import Freshness
from estimator.cluster.kind_mirror import KindMirror
from estimator.heartbeat import Heartbeat
from estimator.member import MemberCluster
from estimator.member_kinds import (
    DEVICE_CLASSES,
    MEMBER_KINDS,
    RESOURCE_CLAIMS,
    RESOURCE_SLICES,
    MemberKind,
    Need,
)
from estimator.permissions import MEMBER
from estimator.settings import ApiSettings, LiveCluster
from fairway.kube.client import KubeClient
from fairway.kube.denials import Denials
from fairway.kube.observation import Phase, ReflectorMetrics, ReflectorState
from fairway.kube.optional_kind import OptionalKind, Standing
from fairway.kube.reflector import Reflector, Sink
from fairway.kube.resource import KubeObjectLike, ResourceKind

_T = TypeVar("_T", bound=KubeObjectLike)

# A list that has brought nothing for so long is no reason to wait for it.
_STUCK_AFTER_S = 5.0
_TICK_S = 10.0


class LiveSource:
    """Keeps a member's mirror equal to its API server. ``clock`` is monotonic, in seconds.

    ``wall_clock``: seconds since the epoch. ``at_once`` names kinds that are known to be needed, so that the
    first question does not wait for them.
    """

    def __init__(
        self,
        member: MemberCluster,
        client: KubeClient,
        metrics: ReflectorMetrics,
        *,
        clock: Callable[[], float],
        wall_clock: Callable[[], float] = time.time,
        at_once: Collection[str] = (),
        kinds: Iterable[MemberKind] = MEMBER_KINDS,
    ) -> None:
        self._member = member
        self._client = client
        self._metrics = metrics
        self._clock = clock
        self._wall_clock = wall_clock
        self._kinds = {kind.name: kind for kind in kinds}
        self._contacts: dict[str, _Contact] = {}
        self._group: asyncio.TaskGroup | None = None
        self._heartbeat = Heartbeat(client, self._last_contact_s, member.changed, clock=clock)
        member.mirror.columns.dra.is_complete = False
        member.follow_on_need(self._need, self._left_out)
        for kind in self._kinds.values():
            if kind.need is Need.ALWAYS or kind.name in at_once:
                self._need(kind.name)

    @classmethod
    def connect(
        cls,
        cluster: LiveCluster,
        api: ApiSettings,
        member: MemberCluster,
        metrics: ReflectorMetrics,
        *,
        clock: Callable[[], float],
        at_once: Collection[str] = (),
    ) -> "LiveSource":
        """A source for the cluster as the settings name it; nothing is sent yet."""
        client = KubeClient.from_flags(
            cluster.kubeconfig, cluster.master, qps=api.qps, burst=api.burst, denials=Denials(MEMBER)
        )
        return cls(member, client, metrics, clock=clock, at_once=at_once)

    async def run(self) -> None:
        """Follow the cluster until cancelled."""
        async with self._client, asyncio.TaskGroup() as group:
            self._group = group
            group.create_task(self._heartbeat.run(), name=f"{self._member.name}/heartbeat")
            group.create_task(self._keep_time(), name=f"{self._member.name}/time")
            for contact in self._contacts.values():
                self._begin(group, contact)

    @property
    def denials(self) -> Denials:
        """What the cluster's API server does not let us read."""
        return self._client.denials

    def watch_lag_s(self) -> dict[str, float]:
        """Per resource that is not optional, how long ago the API server was last heard of."""
        now_s = self._clock()
        return {
            name: now_s - contact.last_contact_s
            for name, contact in self._contacts.items()
            if not contact.kind.is_optional
        }

    def _need(self, name: str) -> None:
        """Follow a kind from now on, if it is not followed already."""
        kind = self._kinds.get(name)
        if kind is None or name in self._contacts:
            return
        contact = self._contacts[name] = kind.followed(self._member.mirror, self._follow)
        self._member.watch(name, contact.freshness)
        if self._group is not None:
            self._begin(self._group, contact)

    def _begin(self, group: asyncio.TaskGroup, contact: "_Contact") -> None:
        group.create_task(contact.run(), name=f"{self._member.name}/{contact.kind.name}")

    def _follow(self, kind: MemberKind, versions: Sequence[ResourceKind[_T]], sink: Sink[_T]) -> "_Contact":
        """See `estimator.member_kinds.Follow`."""
        name = kind.name
        if name == DEVICE_CLASSES:
            sink = _Telling(sink, self._note_devices)
        if kind.is_optional:
            optional = OptionalKind(
                self._client,
                versions,
                sink,
                self._metrics,
                clock=self._clock,
                changed=lambda: self._note_optional(name, optional, sink),
            )
            return _Contact(
                kind,
                optional.run,
                lambda: optional.state,
                lambda: optional.problem if optional.is_left_out else "",
                self._heartbeat.silent_since_s,
                self._clock,
            )
        reflector = Reflector(
            self._client,
            versions[0],
            sink,
            metrics=self._metrics,
            on_state=lambda state: self._note(name, state),
            clock=self._clock,
            sleep=self._heartbeat.pause,
        )
        silent_since_s, clock = self._heartbeat.silent_since_s, self._clock
        return _Contact(kind, reflector.run, lambda: reflector.state, lambda: "", silent_since_s, clock)

    async def _keep_time(self) -> None:
        """Agents that fall silent send no event."""
        # A clock that is set right later must not make all of them silent at once.
        epoch_s = self._wall_clock() - self._clock()
        while True:
            self._member.mirror.node_devices.tick(epoch_s + self._clock())
            await asyncio.sleep(_TICK_S)

    def _left_out(self, name: str) -> str:
        contact = self._contacts.get(name)
        return "" if contact is None else contact.left_out()

    def _last_contact_s(self) -> float:
        return max((contact.last_contact_s for contact in self._contacts.values()), default=0.0)

    def _note(self, name: str, state: ReflectorState) -> None:
        self._contacts[name].note(state)
        if self._kinds[name].need is Need.DEVICE_CLASSES or name == DEVICE_CLASSES:
            self._note_devices()
        self._member.changed()

    def _note_optional(self, name: str, optional: OptionalKind[_T], sink: Sink[_T]) -> None:
        if isinstance(sink, KindMirror):
            # Where a kind is not served there is none of it.
            is_absent = optional.standing is Standing.ABSENT
            sink.synced = is_absent or (optional.state.synced_once and not optional.is_left_out)
        self._note(name, optional.state)

    def _note_devices(self) -> None:
        """Where there is a class, devices count once slices and claims have been read as well."""
        mirror = self._member.mirror
        needed: tuple[str, ...] = (DEVICE_CLASSES,)
        if mirror.dra.classes.keys():
            for kind in self._kinds.values():
                if kind.need is Need.DEVICE_CLASSES:
                    self._need(kind.name)
            needed = (DEVICE_CLASSES, RESOURCE_SLICES, RESOURCE_CLAIMS)
        mirror.columns.dra.is_complete = all(
            name in self._contacts and self._contacts[name].state().synced_once for name in needed
        )


class _Telling(Generic[_T]):
    """A sink that tells when something was put into it."""

    def __init__(self, sink: Sink[_T], tell: Callable[[], None]) -> None:
        self._sink = sink
        self._tell = tell

    def keys(self) -> Collection[str]:
        return self._sink.keys()

    def upsert(self, obj: _T) -> None:
        self._sink.upsert(obj)
        self._tell()

    def delete(self, key: str) -> None:
        self._sink.delete(key)


class _Contact:
    """One kind being followed, and since when it has been out of contact.

    ``left_out``: why it is gone without; empty unless it is.
    """

    def __init__(
        self,
        kind: MemberKind,
        run: Callable[[], Coroutine[None, None, None]],
        state: Callable[[], ReflectorState],
        left_out: Callable[[], str],
        silent_since_s: Callable[[], float | None],
        clock: Callable[[], float],
    ) -> None:
        self.kind, self.run, self.state, self.left_out = kind, run, state, left_out
        self._silent_since_s = silent_since_s
        self._clock = clock
        self._started_s = clock()
        self._lost_since_s: float | None = self._started_s

    @property
    def last_contact_s(self) -> float:
        last_s = self.state().last_contact_s
        return self._started_s if last_s is None else last_s

    def note(self, state: ReflectorState) -> None:
        if state.phase is Phase.WATCHING:
            self._lost_since_s = None
        elif self._lost_since_s is None:
            self._lost_since_s = state.since_s

    def freshness(self) -> Freshness:
        if self.left_out():
            return Freshness(True, None, False, "")
        state = self.state()
        now_s = self._clock()
        is_listing = state.phase is Phase.LISTING
        recovering = is_listing and now_s - max(state.since_s, self.last_contact_s) < _STUCK_AFTER_S
        lost_since_s = self._silent_since_s() if self._lost_since_s is None else self._lost_since_s
        if lost_since_s is None:
            return Freshness(state.synced_once, None, recovering, "")
        lost_s = now_s - lost_since_s
        doing = state.last_error or ("reading the list" if is_listing else "waiting for the API server")
        detail = f"{self.kind.name}: out of contact for {lost_s:.0f} s: {doing}"
        return Freshness(state.synced_once, lost_s, recovering, detail)
