"""Everything that the dispatcher watches on Karmada's API server, each resource by a reflector of its own.

Bindings, clusters, our own kinds and namespaces have to be there. What a control plane may lack (Volcano's
queues, a kind of workload) is looked for again every minute. The kinds of workloads come up as bindings do,
and where they are served is asked once a kind.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable
from typing import Generic, Protocol, TypeVar

from fairway.kube.client import KubeClient
from fairway.kube.errors import Forbidden, KubeError, NotFound, Unauthorized
from fairway.kube.objects import KubeStruct
from fairway.kube.observation import ReflectorMetrics, ReflectorState
from fairway.kube.reflector import Reflector, Sink
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
from queue_dispatcher.book.book import Book
from queue_dispatcher.book.objects import (
    CLUSTER_PROPAGATION_POLICIES,
    NAMESPACES,
    PRIORITY_CLASSES,
    PROPAGATION_POLICIES,
    TemplateObject,
)
from queue_dispatcher.book.templates import TemplateKind
from queue_dispatcher.questions import StatedBinding, is_readable

logger = logging.getLogger(__name__)

LOOK_AGAIN_S = 60.0
RETRY_S = 2.0
O = TypeVar("O", bound=KubeObjectLike)  # noqa: E741 - an object


class ApiResource(KubeStruct, frozen=True):
    """meta/v1 APIResource."""

    name: str = ""
    kind: str = ""


class ApiResourceList(KubeStruct, frozen=True):
    """meta/v1 APIResourceList: what a group and version serves."""

    resources: list[ApiResource] | None = None


class Sources:
    """The reflectors of one dispatcher. ``clock`` is monotonic, in seconds."""

    def __init__(
        self,
        client: KubeClient,
        book: Book,
        metrics: ReflectorMetrics,
        changed: Callable[[], None],
        *,
        volcano: bool,
        clock: Callable[[], float],
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
    ) -> None:
        self._client = client
        self._book = book
        self._metrics = metrics
        self._changed = changed
        self._clock = clock
        self._sleep = sleep
        queues = book.queues
        self.followed: list[Followed] = [
            self._follow(RESOURCE_BINDINGS, book.bindings),
            self._follow(CLUSTER_RESOURCE_BINDINGS, book.cluster_bindings),
            self._follow(CLUSTERS, book.clusters),
            self._follow(RESOURCE_FLAVORS, book.flavors),
            self._follow(CLUSTER_QUEUES, queues.cluster_queues),
            self._follow(LOCAL_QUEUES, queues.local_queues),
            self._follow(SERVICE_CLASSES, queues.service_classes),
            self._follow(PRIORITY_CLASSES, queues.priority_classes),
            self._follow(NAMESPACES, queues.known_namespaces),
            self._follow(PROPAGATION_POLICIES, queues.policies),
            self._follow(CLUSTER_PROPAGATION_POLICIES, queues.cluster_policies),
        ]
        if volcano:
            self.followed.append(self._follow(VOLCANO_QUEUES, queues.volcano_queues))
        self._kinds: asyncio.Queue[TemplateKind] = asyncio.Queue()
        self._awaited: set[tuple[str, str]] = set()
        self._was_synced = False
        self.templates: list[Followed] = []
        self._resources: dict[str, dict[str, ApiResource]] = {}
        book.templates.appeared = self._appeared

    @property
    def is_synced(self) -> bool:
        """Whether all has been read completely once, or is known not to be served.

        A kind of workload that comes up later does not end it: its workloads wait until their templates have
        been read, and nobody else does.
        """
        self._was_synced = self._was_synced or not self.missing()
        return self._was_synced

    def missing(self) -> list[str]:
        """What has not been read yet, though it may be soon."""
        missing = [one.name for one in self.followed if not one.is_settled]
        missing += [one.name for one in self.templates if not one.is_settled and not one.state.last_error]
        return [*missing, *(f"templates of {kind}" for _, kind in sorted(self._awaited))]

    def states(self) -> list[ReflectorState]:
        """How each is doing."""
        return [one.state for one in (*self.followed, *self.templates)]

    async def run(self) -> None:
        """Follow everything until cancelled."""
        async with asyncio.TaskGroup() as group:
            for one in self.followed:
                group.create_task(one.run(), name=one.name)
            while True:
                kind = await self._kinds.get()
                group.create_task(self._template(kind), name=f"{kind.kind} templates")

    async def template(self, binding: Binding) -> bytes | StatedBinding:
        """What a question to the estimators is made of; see `queue_dispatcher.probes.Source`."""
        workload = binding.workload
        if is_readable(binding):
            resource = await self._resource(workload.api_version, workload.kind)
            if resource is not None:
                kind = _kind(workload.api_version, resource)
                return await self._client.get_bytes(kind.object_path(workload.name, workload.namespace))
        of = RESOURCE_BINDINGS if binding.namespace else CLUSTER_RESOURCE_BINDINGS
        return await self._client.get_json(of.object_path(binding.name, binding.namespace), StatedBinding)

    def _follow(self, kind: ResourceKind[O], sink: Sink[O]) -> "Followed":
        return _FollowedKind(
            self._client, kind, sink, self._metrics, self._changed, clock=self._clock, sleep=self._sleep
        )

    def _appeared(self, kind: TemplateKind) -> None:
        self._awaited.add(kind.name)
        self._kinds.put_nowait(kind)

    async def _template(self, kind: TemplateKind) -> None:
        """Follow the templates of one kind, once it is known where it is served."""
        while True:
            pause_s = LOOK_AGAIN_S
            absent = f"kind {kind.kind} of {kind.api_version} is not served by Karmada's API server"
            try:
                resource = await self._resource(kind.api_version, kind.kind)
                if resource is None:
                    self._trouble(kind, absent)
                else:
                    followed = self._follow(_kind(kind.api_version, resource), kind)
                    await followed.look()
                    self.templates.append(followed)
                    self._settled(kind)
                    self._book.kind_in_trouble(kind.name, "")
                    await followed.follow()
            except NotFound:
                self._trouble(kind, absent)
            except KubeError as error:
                # Whatever it is, it must not hold up the workloads of other kinds.
                self._trouble(kind, str(error))
                if not isinstance(error, Unauthorized | Forbidden):
                    logger.warning("templates of %s %s: %s", kind.api_version, kind.kind, error)
                    pause_s = RETRY_S
            await self._sleep(pause_s)

    def _trouble(self, kind: TemplateKind, trouble: str) -> None:
        self._settled(kind)
        self._book.kind_in_trouble(kind.name, f"{trouble}; expected to read the workload's own object")

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
    """One resource that is followed, of whatever type."""

    name: str

    @property
    def is_settled(self) -> bool:
        """Whether it has been read completely once, or is known not to be served."""

    @property
    def state(self) -> ReflectorState:
        """How its reflector is doing."""

    async def look(self) -> None:
        """Read a little of it, once. Raises KubeError."""

    async def follow(self) -> None:
        """Follow what is known to be served, until cancelled."""

    async def run(self) -> None:
        """Follow it until cancelled, once it is served."""


class _FollowedKind(Generic[O]):
    def __init__(
        self,
        client: KubeClient,
        kind: ResourceKind[O],
        sink: Sink[O],
        metrics: ReflectorMetrics,
        changed: Callable[[], None],
        *,
        clock: Callable[[], float],
        sleep: Callable[[float], Awaitable[None]],
    ) -> None:
        self.name = kind.name
        self._client = client
        self._path = kind.path
        self._changed = changed
        self._sleep = sleep
        self._is_absent = False
        self._reflector = Reflector(
            client, kind, sink, metrics=metrics, on_state=lambda state: changed(), clock=clock, sleep=sleep
        )

    @property
    def is_settled(self) -> bool:
        return self._is_absent or self._reflector.state.synced_once

    @property
    def state(self) -> ReflectorState:
        return self._reflector.state

    async def look(self) -> None:
        await self._client.get_bytes(self._path, {"limit": "1"})

    async def follow(self) -> None:
        await self._reflector.run()

    async def run(self) -> None:
        while not await self._is_served():
            await self._sleep(LOOK_AGAIN_S if self._is_absent else RETRY_S)
        await self.follow()

    async def _is_served(self) -> bool:
        try:
            await self.look()
        except NotFound:
            if not self._is_absent:
                logger.warning("%s are not served by %s", self.name, self._client.server)
            self._is_absent = True
            self._changed()
            return False
        except KubeError as error:
            logger.warning("%s", error)
            return False
        self._is_absent = False
        return True


def _kind(api_version: str, resource: ApiResource) -> ResourceKind[TemplateObject]:
    """What a reflector follows: whole objects of kinds that Fairway reads, else their metadata."""
    group = api_version.rpartition("/")[0]
    root = f"/apis/{api_version}" if group else f"/api/{api_version}"
    name = f"{resource.name}.{group}" if group else resource.name
    is_read = (resource.kind, group) in KNOWN_KINDS
    return ResourceKind(name, f"{root}/{resource.name}", TemplateObject, metadata_only=not is_read)
