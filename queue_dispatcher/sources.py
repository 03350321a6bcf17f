"""Everything that the dispatcher watches on Karmada's API server, each resource by itself.

Bindings, clusters and queues have to be known before anything is released: where they may not be read,
nothing is, and `Sources.missing` says why. What a control plane may lack, or keep from us (Volcano's queues,
policies, namespaces, priorities, a kind of workload), is gone without and looked for again every minute. The
kinds of workloads come up as bindings do, and where they are served is asked once a kind.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable
from typing import Protocol, TypeVar

from fairway.kube.client import KubeClient
from fairway.kube.errors import Forbidden, KubeError, NotFound
from fairway.kube.objects import KubeStruct
from fairway.kube.observation import ReflectorMetrics, ReflectorState
from fairway.kube.optional_kind import LOOK_AGAIN_S, OptionalKind, Standing
from fairway.kube.reflector import Sink
from fairway.kube.resource import KubeObjectLike, ResourceKind
from fairway.workloads.registry import KNOWN_KINDS
from queue_dispatcher.api.kinds import (
    CLUSTER_QUEUES,
    LOCAL_QUEUES,
    RESOURCE_FLAVORS,
    SERVICE_CLASSES,
    VOLCANO_QUEUES,
)
from queue_dispatcher.bindings.binding import Binding
from queue_dispatcher.bindings.cluster import CLUSTERS
from queue_dispatcher.bindings.objects import CLUSTER_RESOURCE_BINDINGS, RESOURCE_BINDINGS
from queue_dispatcher.cache.cache import Cache
from queue_dispatcher.cache.objects import (
    CLUSTER_PROPAGATION_POLICIES,
    NAMESPACES,
    PRIORITY_CLASSES,
    PROPAGATION_POLICIES,
    TemplateObject,
)
from queue_dispatcher.cache.overrides import CLUSTER_OVERRIDE_POLICIES, OVERRIDE_POLICIES
from queue_dispatcher.cache.templates import TemplateKind
from queue_dispatcher.estimates.questions import StatedBinding, is_readable

RETRY_S = 2.0
logger = logging.getLogger(__name__)
O = TypeVar("O", bound=KubeObjectLike)  # noqa: E741 - an object


class ApiResource(KubeStruct, frozen=True):
    """meta/v1 APIResource."""

    name: str = ""
    kind: str = ""


class ApiResourceList(KubeStruct, frozen=True):
    """meta/v1 APIResourceList: what a group and version serves."""

    resources: list[ApiResource] | None = None


class Sources:
    """The sources of one dispatcher. ``clock`` is monotonic, in seconds."""

    def __init__(
        self,
        client: KubeClient,
        cache: Cache,
        metrics: ReflectorMetrics,
        changed: Callable[[], None],
        *,
        volcano: bool,
        clock: Callable[[], float],
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
    ) -> None:
        self._client = client
        self._cache = cache
        self._metrics = metrics
        self._changed = changed
        self._clock = clock
        self._sleep = sleep
        queues = cache.queues
        self.needed: list[Followed] = [
            self._follow(RESOURCE_BINDINGS, cache.bindings),
            self._follow(CLUSTER_RESOURCE_BINDINGS, cache.cluster_bindings),
            self._follow(CLUSTERS, cache.clusters),
            self._follow(RESOURCE_FLAVORS, cache.flavors),
            self._follow(CLUSTER_QUEUES, queues.cluster_queues),
            self._follow(LOCAL_QUEUES, queues.local_queues),
        ]
        self.forgone: list[Followed] = [
            self._forgo(SERVICE_CLASSES, queues.service_classes),
            self._forgo(PRIORITY_CLASSES, queues.priority_classes),
            self._forgo(NAMESPACES, queues.known_namespaces),
            self._forgo(PROPAGATION_POLICIES, queues.policies),
            self._forgo(CLUSTER_PROPAGATION_POLICIES, queues.cluster_policies),
            self._forgo(OVERRIDE_POLICIES, cache.overrides.policies),
            self._forgo(CLUSTER_OVERRIDE_POLICIES, cache.overrides.cluster_policies),
        ]
        if volcano:
            self.forgone.append(self._forgo(VOLCANO_QUEUES, queues.volcano_queues))
        self._kinds: asyncio.Queue[TemplateKind] = asyncio.Queue()
        self._awaited: set[tuple[str, str]] = set()
        self._was_synced = False
        self.templates: list[Followed] = []
        self._resources: dict[str, dict[str, ApiResource]] = {}
        cache.templates.appeared = self._appeared

    @property
    def is_synced(self) -> bool:
        """Whether all has been read completely once, or is not going to be and can be gone without.

        A kind of workload that comes up later does not end it: its workloads wait until their templates have
        been read, and nobody else does.
        """
        self._was_synced = self._was_synced or not self.missing()
        return self._was_synced

    def missing(self) -> list[str]:
        """What has not been read yet, though it may be soon; with the reason, where it may not."""
        missing = [
            f"{one.name} ({one.problem})" if one.standing is Standing.FORBIDDEN else one.name
            for one in self.needed
            if not one.is_synced and one.standing is not Standing.ABSENT
        ]
        missing += [one.name for one in self.forgone if not one.is_synced and not one.is_left_out]
        missing += [
            one.name
            for one in self.templates
            if not one.is_synced and not one.is_left_out and not one.problem
        ]
        return [*missing, *(f"templates of {kind}" for _, kind in sorted(self._awaited))]

    def states(self) -> list[ReflectorState]:
        """How each is doing."""
        return [one.state for one in (*self.needed, *self.forgone, *self.templates)]

    async def run(self) -> None:
        """Follow everything until cancelled."""
        async with asyncio.TaskGroup() as group:
            for one in (*self.needed, *self.forgone):
                group.create_task(one.run(), name=one.name)
            while True:
                kind = await self._kinds.get()
                group.create_task(self._template(kind), name=f"{kind.kind} templates")

    async def catch_up(self) -> None:
        """Return once all that decides about quota is known as it was when this was called.

        To be waited for before the first write of a term: a watch that is half-open or lags hides what the
        last leader has written, and each write guards its own binding only, not the sum of them all.
        """
        async with asyncio.TaskGroup() as group:
            for one in (*self.needed, *self.forgone):
                group.create_task(self._catch_up(one), name=f"catching up on {one.name}")

    async def _catch_up(self, one: "Followed") -> None:
        while True:
            try:
                await one.catch_up()
            except (Forbidden, NotFound) as error:
                if one in self.forgone:
                    return
                level = logging.INFO if self._client.denials.is_settling else logging.WARNING
                logger.log(level, "not leading yet: %s", error)
                await self._sleep(RETRY_S)
            except KubeError as error:
                logger.warning("not leading yet: how far %s are is not known: %s", one.name, error)
                await self._sleep(RETRY_S)
            else:
                return

    async def template(self, binding: Binding) -> bytes | StatedBinding:
        """What a question to the estimators is made of; see `queue_dispatcher.estimates.asking.Source`."""
        workload = binding.workload
        if is_readable(binding):
            resource = await self._resource(workload.api_version, workload.kind)
            if resource is not None:
                kind = _kind(workload.api_version, resource)
                return await self._client.get_bytes(kind.object_path(workload.name, workload.namespace))
        of = RESOURCE_BINDINGS if binding.namespace else CLUSTER_RESOURCE_BINDINGS
        return await self._client.get_json(of.object_path(binding.name, binding.namespace), StatedBinding)

    def _follow(
        self,
        kind: ResourceKind[O],
        sink: Sink[O],
        changed: Callable[[], None] | None = None,
        *,
        look_again_s: float = RETRY_S,
    ) -> OptionalKind[O]:
        return OptionalKind(
            self._client,
            (kind,),
            sink,
            self._metrics,
            clock=self._clock,
            changed=changed or self._changed,
            sleep=self._sleep,
            look_again_s=look_again_s,
            retry_s=RETRY_S,
            # What is charged does not end because a server forgets for a moment what it serves.
            keeps=True,
            level=logging.WARNING,
        )

    def _forgo(self, kind: ResourceKind[O], sink: Sink[O]) -> OptionalKind[O]:
        """Follow what can be gone without; the cache is told while it may not be read."""

        def changed() -> None:
            if followed.standing is Standing.FORBIDDEN:
                self._cache.queues.cannot_read(kind.name, followed.problem)
            elif followed.is_synced or followed.standing is Standing.ABSENT:
                # Not before it has been read: until then nothing is known of it.
                self._cache.queues.cannot_read(kind.name, "")
            self._changed()

        followed = self._follow(kind, sink, changed, look_again_s=LOOK_AGAIN_S)
        return followed

    def _appeared(self, kind: TemplateKind) -> None:
        self._awaited.add(kind.name)
        self._kinds.put_nowait(kind)

    async def _template(self, kind: TemplateKind) -> None:
        """Follow the templates of one kind, once it is known where it is served."""
        resource = await self._place(kind)
        followed: Followed

        def changed() -> None:
            state = followed.state
            if followed.standing is Standing.ABSENT:
                self._trouble(kind, _not_served(kind))
            elif not followed.is_synced and followed.problem:
                self._trouble(kind, followed.problem)
            elif followed.is_synced or not state.last_error:
                self._settled(kind)
                self._cache.kind_in_trouble(kind.name, "")

        followed = self._follow(_kind(kind.api_version, resource), kind, changed, look_again_s=LOOK_AGAIN_S)
        self.templates.append(followed)
        await followed.run()

    async def _place(self, kind: TemplateKind) -> ApiResource:
        """Where the kind is served, however long it takes until it is."""
        while True:
            pause_s = RETRY_S
            try:
                resource = await self._resource(kind.api_version, kind.kind)
            except KubeError as error:
                # Whatever it is, it must not hold up the workloads of other kinds.
                self._trouble(kind, str(error))
            else:
                if resource is not None:
                    return resource
                self._trouble(kind, _not_served(kind))
                pause_s = LOOK_AGAIN_S
            await self._sleep(pause_s)

    def _trouble(self, kind: TemplateKind, trouble: str) -> None:
        self._settled(kind)
        self._cache.kind_in_trouble(kind.name, f"{trouble}; expected to read the workload's own object")

    def _settled(self, kind: TemplateKind) -> None:
        self._awaited.discard(kind.name)
        self._changed()

    async def _resource(self, api_version: str, kind: str) -> ApiResource | None:
        """Where a kind is served; None if it is not. Raises KubeError."""
        known = self._resources.get(api_version, {}).get(kind)
        if known is not None:
            return known
        if (kind, api_version.rpartition("/")[0]) in KNOWN_KINDS:
            return ApiResource(f"{kind.lower()}s", kind)
        root = f"/apis/{api_version}" if "/" in api_version else f"/api/{api_version}"
        try:
            served = await self._client.get_json(root, ApiResourceList)
        except NotFound:
            return None
        kinds = {one.kind: one for one in served.resources or () if "/" not in one.name}
        self._resources[api_version] = kinds
        return kinds.get(kind)


class Followed(Protocol):
    """One kind that is followed, of whatever type; see `OptionalKind`."""

    name: str
    standing: Standing
    problem: str

    @property
    def is_synced(self) -> bool:
        """Whether it has been read completely once."""

    @property
    def is_left_out(self) -> bool:
        """Whether nothing of it is going to be read as things are."""

    @property
    def state(self) -> ReflectorState:
        """How its reflector is doing."""

    async def catch_up(self) -> None:
        """Return once what there was of it when this was called is known. Raises KubeError."""

    async def run(self) -> None:
        """Follow it until cancelled, whenever it is served."""


def _not_served(kind: TemplateKind) -> str:
    return f"kind {kind.kind} of {kind.api_version} is not served by Karmada's API server"


def _kind(api_version: str, resource: ApiResource) -> ResourceKind[TemplateObject]:
    """What a reflector follows: whole objects of kinds that Fairway reads, else their metadata."""
    group = api_version.rpartition("/")[0]
    root = f"/apis/{api_version}" if group else f"/api/{api_version}"
    name = f"{resource.name}.{group}" if group else resource.name
    is_read = (resource.kind, group) in KNOWN_KINDS
    return ResourceKind(name, f"{root}/{resource.name}", TemplateObject, metadata_only=not is_read)
