"""A member cluster as this process serves it: its mirror, how fresh that is, and who waits for it.

The source (`estimator.live_source`, `estimator.snapshot_source`) is the only writer; questions read.
"""

import asyncio
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress

from estimator.capacity.gangs.gang_replicas import Topology
from estimator.capacity.holding import Held, Holding
from estimator.capacity.local import Local, Localizer
from estimator.capacity.promises import Promised
from estimator.capacity.request import Component, WorkloadReference
from estimator.capacity.room import NOBODY, Around, Room
from estimator.capacity.topology.domains import DomainCache
from estimator.capacity.topology.levels import Levels, topology_levels
from estimator.cluster.freshness import Freshness, Verdict, verdict, worst
from estimator.cluster.mirror import ClusterMirror
from estimator.cluster.workloads import PodCounts
from estimator.fit.device_tolerations import TolerationMode, TolerationPolicy
from estimator.fit.eligibility import EligibilityCache
from estimator.reasons import Reason, in_doubt

NODES, PODS, QUOTAS = "nodes", "pods", "resourcequotas"
DEPLOYMENTS, REPLICA_SETS = "deployments", "replicasets"
NAMESPACES, LIMIT_RANGES, RUNTIME_CLASSES = "namespaces", "limitranges", "runtimeclasses"
PERSISTENT_VOLUMES, VOLUME_CLAIMS = "persistentvolumes", "persistentvolumeclaims"
STORAGE_CLASSES, CSI_NODES = "storageclasses", "csinodes"
NODE_DEVICES, PRIORITY_CLASSES = "nodedevices", "priorityclasses"


def unknown_cluster(name: str, known: Iterable[str]) -> Reason:
    """The doubt about a cluster that this process does not serve."""
    shown = name if len(name) <= 63 else name[:60] + "..."
    return in_doubt(
        "unknown_cluster", f"this estimator serves {', '.join(sorted(known))}; it was asked about {shown!r}"
    )


def out_of_date(freshness: Freshness) -> Reason:
    """The doubt about a cluster whose state is not known well enough."""
    return in_doubt("stale" if freshness.synced else "not_synced", freshness.detail)


_MOST_TO_LEARN_S, _STALE_S = 1.0, 5.0


class MemberCluster:
    """One cluster. ``clock`` is monotonic, in seconds; ``levels`` None: as the cluster itself shows."""

    def __init__(
        self,
        name: str,
        mirror: ClusterMirror,
        clock: Callable[[], float],
        levels: Levels | None = None,
        tolerations: TolerationMode = TolerationMode.AUTO,
    ) -> None:
        self.name = name
        self._levels = levels
        self._mode = tolerations
        self.install(mirror)
        self._clock = clock
        self._known: dict[str, Callable[[], Freshness]] = {}
        self._needed: set[str] = set()
        # A source that reads everything at once needs no telling.
        self._follow: Callable[[str], None] = lambda resource: None
        self._why_left_out: Callable[[str], str] = lambda resource: ""
        self._started_s = clock()
        self._news = asyncio.Event()

    def install(self, mirror: ClusterMirror) -> None:
        """Replace the whole mirror at once, as a source does that reads all or nothing."""
        self.mirror = mirror
        self._eligible = EligibilityCache()
        self._localizer = Localizer(mirror, self._eligible, self._mode)
        self._holding = Holding(mirror, self._eligible, self._localizer)
        self._domains = DomainCache()
        self._detected: tuple[tuple[int, int], Levels] | None = None

    def watch(self, resource: str, freshness: Callable[[], Freshness]) -> None:
        """Ask this whenever the freshness of a resource matters."""
        self._known[resource] = freshness

    def follow_on_need(self, follow: Callable[[str], None], left_out: Callable[[str], str]) -> None:
        """Call ``follow`` with each resource that a question needs, and ask ``left_out`` why one is."""
        self._follow, self._why_left_out = follow, left_out
        self.need(*sorted(self._needed))

    def need(self, *resources: str) -> None:
        """Have the source follow these from now on; nobody waits for them here (see `settle`)."""
        for resource in resources:
            self._needed.add(resource)
            self._follow(resource)

    def left_out(self, resource: str) -> str:
        """Why a resource that need not be there is gone without: not served, or not allowed. Else empty."""
        return self._why_left_out(resource)

    def bound_pods(self, namespace: str, name: str) -> Mapping[str, int]:
        """How many pods of the workloads of this name hold room, by kind.

        Of Deployments none are known yet when this is asked for the first time.
        """
        self.need(REPLICA_SETS)
        return self.mirror.controllers.bound_pods(namespace, name)

    def pods_of(self, namespace: str, name: str, kind: str, group: str) -> PodCounts | None:
        """The pods of a workload; None where pods of such workloads are not known by them."""
        return self.mirror.controllers.pods_of(namespace, name, kind, group)

    def changed(self) -> None:
        """The freshness of some resource has changed: whoever waits shall look again."""
        self._news.set()
        self._news = asyncio.Event()

    async def learn(self, components: Iterable[Component], within_s: float) -> tuple[str, ...]:
        """Read what decides about these besides nodes and pods; what of it is not known as it is now.

        Returns early where that takes long. What was never read is told with the answer, see `Local.unknown`.
        """
        resources = self._deciding(components)
        if not resources:
            return ()
        stale = await self.settle(resources, _STALE_S, min(within_s, _MOST_TO_LEARN_S))
        return () if stale is None or not stale.synced else (stale.detail,)

    async def ranks_by_size(self, within_s: float) -> bool:
        """Whether PriorityClasses order the pods of a gang by size here, as `PriorityClassMirror` says.

        False where that is not known as it is now: a pod that names a class that is gone is refused.
        """
        stale = await self.settle((PRIORITY_CLASSES,), _STALE_S, min(within_s, _MOST_TO_LEARN_S))
        return stale is None and self.mirror.priority_classes.ranks_by_size

    def prepare(self, components: Iterable[Component]) -> None:
        """Have the source follow what decides about these, for questions to come."""
        self.need(*self._deciding(components))

    def _deciding(self, components: Iterable[Component]) -> tuple[str, ...]:
        found: dict[str, None] = {}
        for component in components:
            template, shape = component.template, component.shape
            if template is None:
                continue
            found[LIMIT_RANGES] = None
            if template.spec.runtime_class_name:
                found[RUNTIME_CLASSES] = None
            if shape.volumes:
                found.update(dict.fromkeys((VOLUME_CLAIMS, PERSISTENT_VOLUMES, STORAGE_CLASSES, CSI_NODES)))
            terms = (*shape.inter_pod.affinity, *shape.inter_pod.anti_affinity)
            chosen = any(term.namespace_selector for term in terms)
            if chosen or self.mirror.columns.occupancy.chooses_namespaces:
                found[NAMESPACES] = None
        return tuple(found)

    def local(self, components: Iterable[Component]) -> Local:
        """The components as this cluster has them now, and what its pods leave to them."""
        return self._localizer.local(components)

    @property
    def tolerations(self) -> TolerationPolicy:
        """For which devices this cluster's admission adds tolerations to pods."""
        return self._localizer.tolerations

    def room(self, around: Around = NOBODY) -> Room:
        """The free room now; valid until the event loop runs on."""
        return Room(self.mirror.columns, self._eligible, around)

    def snapshot(self, around: Around = NOBODY) -> Room:
        """The free room as it is now, for work on another thread."""
        return Room(self.mirror.columns.copy(), EligibilityCache(), around)

    def held(self, promised: Promised, asking: WorkloadReference | None) -> Held | None:
        """What is held now of the room for others than the workload that is ``asking``; None for nothing."""
        return self._holding.held(promised, asking)

    def topology(self) -> Topology:
        """The topology now; valid until the event loop runs on."""
        return Topology(self._levels_now(), self._domains)

    def topology_of_snapshot(self) -> Topology:
        """The topology as it is now, for work on another thread."""
        return Topology(self._levels_now(), DomainCache())

    def _levels_now(self) -> Levels:
        if self._levels is not None:
            return self._levels
        columns, topologies = self.mirror.columns, self.mirror.topologies
        version = (columns.eligibility_version, topologies.version)
        if self._detected is None or self._detected[0] != version:
            self._detected = (version, topology_levels(topologies.levels, columns))
        return self._detected[1]

    def freshness(self, resources: Iterable[str]) -> Freshness:
        """How fresh all of these resources are."""
        return worst(tuple(self._freshness_of(resource) for resource in resources))

    async def settle(
        self, resources: tuple[str, ...], stale_after_s: float, within_s: float
    ) -> Freshness | None:
        """None once the resources are fresh enough to answer from; else, in doubt, what is known of them.

        Waits at most ``within_s``, and only while a complete state may come soon. Resources that nobody
        needed before are followed from now on; one that is left out is not waited for.
        """
        deadline_s = self._clock() + within_s
        self.need(*resources)
        while True:
            freshness = self.freshness(resources)
            match verdict(freshness, stale_after_s):
                case Verdict.ANSWER:
                    return None
                case Verdict.DOUBT:
                    return freshness
                case Verdict.WAIT:
                    left_s = deadline_s - self._clock()
                    if left_s <= 0:
                        return freshness
                    await self._change(left_s)

    async def synced(self, resources: tuple[str, ...]) -> None:
        """Return once all of these resources have been read completely, however long that takes."""
        self.need(*resources)
        while not self.freshness(resources).synced:
            await self._change(None)

    async def _change(self, within_s: float | None) -> None:
        with suppress(TimeoutError):
            async with asyncio.timeout(within_s):
                await self._news.wait()

    def _freshness_of(self, resource: str) -> Freshness:
        known = self._known.get(resource)
        if known is not None:
            return known()
        waited_s = self._clock() - self._started_s
        return Freshness(synced=False, lost_s=waited_s, recovering=False, detail=f"{resource}: not read yet")
