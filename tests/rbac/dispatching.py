"""A dispatcher with all that it does to Karmada's API server, as its ServiceAccount, in virtual time."""

import asyncio
import contextlib
import json
import random
from collections.abc import AsyncIterator, Collection, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass

from prometheus_client import CollectorRegistry

from fairway.accelerators.builtin import builtin_catalogue
from fairway.capacity.v1 import capacity_pb2 as pb
from fairway.kube.client import KubeClient
from fairway.kube.denials import Denials
from fairway.kube.election import Election, Leadership
from fairway.kube.errors import KubeError
from fairway.kube.events import EventWriter
from fairway.names import GUIDANCE, REQUEUE
from fairway.scope import Scope
from fairway.workloads.registry import KNOWN_KINDS
from queue_dispatcher.bindings.binding import Binding
from queue_dispatcher.clock import SteadyClock
from queue_dispatcher.cycle.witness import Witness
from queue_dispatcher.dispatcher import BindingApi, Dispatcher, Estimation
from queue_dispatcher.estimates.cluster_room import ClusterRoom
from queue_dispatcher.estimates.estimates import Departures
from queue_dispatcher.estimates.questions import StatedBinding
from queue_dispatcher.metrics import DispatcherMetrics
from queue_dispatcher.permissions import PERMISSIONS
from queue_dispatcher.sources import Sources
from queue_dispatcher.visibility.events import BindingEvents
from queue_dispatcher.visibility.reviews import Identity, ReviewFailed, Reviews
from queue_dispatcher.visibility.status import QueueStatuses
from sandbox.fakeapi import Seen
from sandbox.fakeapi.seen import Which
from tests.dispatcher.scenarios import objects
from tests.dispatcher.scenarios.objects import FAIRWAY, WORK
from tests.dispatcher.scenarios.world import World, now_s
from tests.rbac.roles import DISPATCHER

VERSIONS = {
    ("Job", "batch.volcano.sh"): "batch.volcano.sh/v1alpha1",
    ("JobSet", "jobset.x-k8s.io"): "jobset.x-k8s.io/v1alpha2",
    ("MPIJob", "kubeflow.org"): "kubeflow.org/v2beta1",
    ("TrainJob", "trainer.kubeflow.org"): "trainer.kubeflow.org/v1alpha1",
}
ADMITTED = "team/plain-job"
EARLIER = "2026-01-01T00:00:00Z"
POLICY = "/apis/policy.karmada.io/v1alpha1"
"""The key of a workload that any dispatcher that can work at all admits."""


@dataclass(slots=True)
class Process:
    """All parts of one; ``task`` ends only by a defect."""

    client: KubeClient
    dispatcher: Dispatcher
    sources: Sources
    events: BindingEvents
    reviews: Reviews
    task: asyncio.Task[None]


class _Fits:
    """Estimators that always say yes, asked with the workloads' own objects."""

    def __init__(self) -> None:
        self.sources: Sources | None = None

    async def ask(
        self,
        clusters: tuple[str, ...],
        gang: pb.Gang,
        assumed: Mapping[str, list[pb.Gang]],
        want_placement: bool,
        endings: Departures | None = None,
        of_choice: bool = False,
    ) -> tuple[ClusterRoom, ...]:
        told = (Witness((("pod", (("node", 1000),)),)),) if want_placement else ()
        return tuple(ClusterRoom(name, 1000, witnesses=told) for name in clusters)

    async def template(self, binding: Binding) -> bytes | StatedBinding:
        assert self.sources is not None
        return await self.sources.template(binding)


@asynccontextmanager
async def process(world: World, *, asks: bool = False) -> AsyncIterator[Process]:
    """Started, and killed at the end."""
    client = KubeClient.from_url(world.api.url, token=DISPATCHER, qps=-1, denials=Denials(PERMISSIONS))
    loop = asyncio.get_running_loop()
    clock = SteadyClock(now_s, loop.time)
    metrics = DispatcherMetrics(CollectorRegistry(), version="test")
    writer = EventWriter(
        client, "fairway-dispatcher", "one", metrics=metrics, clock=loop.time, wall_clock=now_s
    )
    events = BindingEvents(writer, clock.elapsed_ms, clock.now_ms)
    fits, sources = _Fits(), list[Sources]()
    dispatcher = Dispatcher(
        BindingApi(client),
        Scope(builtin_catalogue()),
        metrics,
        clock,
        lambda: sources[0].is_synced,
        lambda: sources[0].catch_up(),
        estimation=Estimation(fits.ask, fits, 5.0) if asks else None,
        teller=events,
        volcano=True,
        rng=random.Random(1),
    )
    changed = dispatcher.controller.changed
    sources.append(
        Sources(client, dispatcher.cache, metrics.reflector(), changed, volcano=True, clock=loop.time)
    )
    fits.sources = sources[0]
    statuses = QueueStatuses(client, dispatcher, clock, metrics.status)
    election = Election(
        client, "fairway-system", "fairway-dispatcher", "one", clock=loop.time, wall_clock=now_s
    )

    async def lead(leadership: Leadership) -> None:
        async with asyncio.TaskGroup() as group:
            group.create_task(dispatcher.lead(leadership.may_write))
            group.create_task(statuses.run(leadership.may_write))
            group.create_task(events.watch(dispatcher))

    async def run() -> None:
        async with asyncio.TaskGroup() as group:
            group.create_task(sources[0].run())
            group.create_task(dispatcher.controller.run())
            group.create_task(writer.run())
            group.create_task(election.run(lead))

    task = asyncio.create_task(run())
    made = Process(client, dispatcher, sources[0], events, Reviews(client, lambda error: None), task)
    try:
        yield made
    finally:
        task.cancel()
        with contextlib.suppress(asyncio.CancelledError, BaseExceptionGroup):
            await task
        await client.close()


def furnish(world: World) -> None:
    """Clusters, queues, classes and a plain Job."""
    world.fleet(m1=1000)
    world.queue("main", {"m1": 1000})
    world.submit("plain")


async def everything(
    world: World,
    process: Process,
    kinds: Collection[tuple[str, str]] = KNOWN_KINDS,
    *,
    repeats_events: bool = True,
) -> None:
    """Every request that a dispatcher ever makes, at least once, with workloads of these kinds.

    Events that repeat take five minutes, with all that happens meanwhile.
    """
    api = world.api
    api.fail(409, times=1, when=_is_patch_of("/resourcebindings/"))
    api.fail(409, times=1, when=_is_patch_of("/clusterresourcebindings/"))
    named = {"fairway.dev/queue": "main"}
    for kind, group in kinds:
        api_version = VERSIONS.get((kind, group), f"{group}/v1" if group else "v1")
        world.bind(f"of-{group or 'core'}", kind=kind, api_version=api_version, labels=named)
    world.add("/apis/batch/v1/jobs", objects.job("wide"))
    # What was taken back: its policy of that time is replaced, or goes where it is told nothing any more.
    again = {REQUEUE: json.dumps({"count": 1, "notBefore": EARLIER, "enqueuedAt": EARLIER})}
    told = world.submit("told", labels=named, annotations=again)
    untold = world.submit("untold", said={GUIDANCE: "off"}, labels=named, annotations=again)
    for one in (told, untold):
        name = f"fairway-{world.binding(one)['metadata']['name']}"
        policy = {"metadata": {"name": name, "labels": {GUIDANCE: "true"}}}
        world.add(f"{POLICY}/namespaces/team/overridepolicies", policy)
    world.add(f"{WORK}/clusterresourcebindings", objects.binding("wide", "", labels=named))
    # With fields that have no effect, which their statuses tell; or that had none in an earlier version.
    told_before = {
        "type": "Effective",
        "status": "False",
        "reason": "FieldsWithoutEffect",
        "message": "spec.minRuntime: no effect yet",
        "lastTransitionTime": EARLIER,
    }
    urgent = objects.service_class("urgent", 5, minRuntime="1h") | {"status": {"conditions": [told_before]}}
    world.add(f"{FAIRWAY}/serviceclasses", urgent)
    tolerations = [{"key": "spot", "operator": "Exists"}]
    world.add(f"{FAIRWAY}/resourceflavors", objects.flavor("spot", "m1", tolerations=tolerations))
    await _passes(world, 6, 0.5)
    for entry in list(process.dispatcher.cache.entries.values()):
        with contextlib.suppress(KubeError):
            await process.sources.template(entry.binding)
    for entry in list(process.dispatcher.cache.entries.values())[: int(repeats_events)]:
        # A reason that comes back after minutes is the same Event, once more.
        process.events.tell(entry, "Admitted", "for the first time")
        await _passes(world, 320, 8)
        process.events.tell(entry, "Admitted", "again")
        await _passes(world, 1, 0.2)
    with contextlib.suppress(ReviewFailed):
        await process.reviews.identity("somebody")
    with contextlib.suppress(ReviewFailed):
        await process.reviews.may(Identity("somebody"), {"resourceAttributes": {}})


async def _passes(world: World, seconds: float, step_s: float) -> None:
    """As `World.passes`, in steps of that size."""
    for _ in range(round(seconds / step_s)):
        world.karmada.step(now_s())
        await asyncio.sleep(step_s)


def _is_patch_of(part: str) -> Which:
    return lambda seen: seen.verb == "patch" and part in seen.path


def ours(seen: list[Seen]) -> list[Seen]:
    """Requests of the dispatcher."""
    return [one for one in seen if one.user == DISPATCHER]
