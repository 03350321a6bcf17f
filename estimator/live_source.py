"""A live member cluster as the source of a mirror: one reflector per resource, and what their states mean.

Kueue's Topology objects are followed where they are served, and nobody waits for them. Nor for the objects of
Dynamic Resource Allocation, but none of these counts before all of them have been read: devices whose claims
are not known look free.
"""

import asyncio
from collections.abc import Callable, Coroutine, Sequence
from typing import TypeVar

from estimator.cluster.freshness import Freshness
from estimator.heartbeat import Heartbeat
from estimator.member import DEPLOYMENTS, NODES, PODS, QUOTAS, REPLICA_SETS, MemberCluster
from estimator.permissions import MEMBER
from estimator.settings import ApiSettings, LiveCluster
from fairway.kube import device_kinds, resource
from fairway.kube.client import KubeClient
from fairway.kube.denials import Denials
from fairway.kube.observation import Phase, ReflectorMetrics, ReflectorState
from fairway.kube.optional_kind import OptionalKind
from fairway.kube.reflector import Reflector, Sink
from fairway.kube.resource import KubeObjectLike, ResourceKind

_T = TypeVar("_T", bound=KubeObjectLike)

# A list that has brought nothing for so long is no reason to wait for it.
_STUCK_AFTER_S = 5.0


class LiveSource:
    """Keeps a member's mirror equal to its API server. ``clock`` is monotonic, in seconds."""

    def __init__(
        self,
        member: MemberCluster,
        client: KubeClient,
        metrics: ReflectorMetrics,
        *,
        with_quotas: bool,
        clock: Callable[[], float],
    ) -> None:
        self._member = member
        self._client = client
        self._metrics = metrics
        self._clock = clock
        self._contacts: dict[str, _Contact] = {}
        self._heartbeat = Heartbeat(client, self._last_contact_s, member.changed, clock=clock)
        mirror = member.mirror
        self._follow(NODES, resource.NODES, mirror.nodes)
        self._follow(PODS, resource.PODS, mirror.pods)
        self._follow(DEPLOYMENTS, resource.DEPLOYMENTS, mirror.controllers.deployments)
        self._follow(REPLICA_SETS, resource.REPLICA_SETS, mirror.controllers.replica_sets)
        if with_quotas:
            self._follow(QUOTAS, resource.RESOURCE_QUOTAS, mirror.quotas)
        self._topologies = OptionalKind(
            client, resource.KUEUE_TOPOLOGIES, mirror.topologies, metrics, clock=clock
        )
        self._unread_devices = {"resourceslices", "deviceclasses", "resourceclaims"}
        mirror.columns.dra.is_complete = False
        dra = mirror.dra
        self._devices = (
            self._device_kind("resourceslices", device_kinds.RESOURCE_SLICES, dra.slices),
            self._device_kind("deviceclasses", device_kinds.DEVICE_CLASSES, dra.classes),
            self._device_kind("resourceclaims", device_kinds.RESOURCE_CLAIMS, dra.claims),
            self._device_kind("resourceclaimtemplates", device_kinds.CLAIM_TEMPLATES, dra.templates),
        )

    @classmethod
    def connect(
        cls,
        cluster: LiveCluster,
        api: ApiSettings,
        member: MemberCluster,
        metrics: ReflectorMetrics,
        *,
        with_quotas: bool,
        clock: Callable[[], float],
    ) -> "LiveSource":
        """A source for the cluster as the settings name it; nothing is sent yet."""
        if cluster.kubeconfig is None and not cluster.master:
            client = KubeClient.in_cluster(qps=api.qps, burst=api.burst, denials=Denials(MEMBER))
        else:
            path = None if cluster.kubeconfig is None else str(cluster.kubeconfig)
            client = KubeClient.from_kubeconfig(
                path,
                master=cluster.master or None,
                qps=api.qps,
                burst=api.burst,
                denials=Denials(MEMBER),
            )
        return cls(member, client, metrics, with_quotas=with_quotas, clock=clock)

    async def run(self) -> None:
        """Follow the cluster until cancelled."""
        async with self._client, asyncio.TaskGroup() as group:
            group.create_task(self._heartbeat.run(), name=f"{self._member.name}/heartbeat")
            for contact in self._contacts.values():
                group.create_task(contact.run(), name=f"{self._member.name}/{contact.name}")
            group.create_task(self._topologies.run(), name=f"{self._member.name}/topologies")
            for followed in self._devices:
                group.create_task(followed.run(), name=f"{self._member.name}/{followed.name}")

    @property
    def denials(self) -> Denials:
        """What the cluster's API server does not let us read."""
        return self._client.denials

    def watch_lag_s(self) -> dict[str, float]:
        """Per resource, how long ago the API server was last heard of."""
        now_s = self._clock()
        return {name: now_s - contact.last_contact_s for name, contact in self._contacts.items()}

    def _follow(self, name: str, kind: ResourceKind[_T], sink: Sink[_T]) -> None:
        reflector = Reflector(
            self._client,
            kind,
            sink,
            metrics=self._metrics,
            on_state=lambda state: self._note(name, state),
            clock=self._clock,
            sleep=self._heartbeat.pause,
        )
        contact = _Contact(
            name, reflector.run, lambda: reflector.state, self._heartbeat.silent_since_s, self._clock
        )
        self._contacts[name] = contact
        self._member.watch(name, contact.freshness)

    def _device_kind(
        self, name: str, kinds: Sequence[ResourceKind[_T]], sink: Sink[_T]
    ) -> "OptionalKind[_T]":
        followed = OptionalKind(
            self._client,
            kinds,
            sink,
            self._metrics,
            clock=self._clock,
            changed=lambda: self._note_devices(name, followed.is_synced),
        )
        return followed

    def _note_devices(self, name: str, is_synced: bool) -> None:
        if is_synced:
            self._unread_devices.discard(name)
            self._member.mirror.columns.dra.is_complete = not self._unread_devices

    def _last_contact_s(self) -> float:
        return max((contact.last_contact_s for contact in self._contacts.values()), default=0.0)

    def _note(self, name: str, state: ReflectorState) -> None:
        self._contacts[name].note(state)
        self._member.changed()


class _Contact:
    """One reflector, and since when it has been out of contact."""

    def __init__(
        self,
        name: str,
        run: Callable[[], Coroutine[None, None, None]],
        state: Callable[[], ReflectorState],
        silent_since_s: Callable[[], float | None],
        clock: Callable[[], float],
    ) -> None:
        self.name = name
        self.run = run
        self._state = state
        self._silent_since_s = silent_since_s
        self._clock = clock
        self._started_s = clock()
        self._lost_since_s: float | None = self._started_s

    @property
    def last_contact_s(self) -> float:
        last_s = self._state().last_contact_s
        return self._started_s if last_s is None else last_s

    def note(self, state: ReflectorState) -> None:
        if state.phase is Phase.WATCHING:
            self._lost_since_s = None
        elif self._lost_since_s is None:
            self._lost_since_s = state.since_s

    def freshness(self) -> Freshness:
        state = self._state()
        now_s = self._clock()
        is_listing = state.phase is Phase.LISTING
        recovering = is_listing and now_s - max(state.since_s, self.last_contact_s) < _STUCK_AFTER_S
        lost_since_s = self._silent_since_s() if self._lost_since_s is None else self._lost_since_s
        if lost_since_s is None:
            return Freshness(state.synced_once, None, recovering, "")
        lost_s = now_s - lost_since_s
        doing = state.last_error or ("reading the list" if is_listing else "waiting for the API server")
        detail = f"{self.name}: out of contact for {lost_s:.0f} s: {doing}"
        return Freshness(state.synced_once, lost_s, recovering, detail)
