"""Dispatcher: cache, desk, cycles and writes put together, with everything from outside as arguments.

What it talks to (the API server's bindings, the estimators, who is told) comes in, so that the whole of it
runs in a test on a clock of its own.
"""

import asyncio
import random
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from typing import Protocol

from fairway.accelerators.catalogue import Catalogue
from fairway.kube.client import KubeClient
from fairway.kube.patching import PatchResult, Preconditions, merge_patch
from queue_dispatcher.bindings.objects import ResourceBinding
from queue_dispatcher.bindings.record import AdmissionRecord
from queue_dispatcher.bindings.requeue import RequeueRecord
from queue_dispatcher.cache.cache import Cache
from queue_dispatcher.cache.entry import Entry
from queue_dispatcher.clock import SteadyClock
from queue_dispatcher.controller import Controller
from queue_dispatcher.estimates.probes import Ask, Probes, Source
from queue_dispatcher.metrics import DispatcherMetrics
from queue_dispatcher.release.desk import BindingDesk
from queue_dispatcher.release.executor import Api, Executor, Purpose
from queue_dispatcher.turn.window import ReleaseWindow


class Teller(Protocol):
    """Who tells people what happens to their workloads; never raises, never waits."""

    def tell(self, entry: Entry, reason: str, message: str, *, is_warning: bool = False) -> None:
        """Something happened to the binding; ``reason`` is one CamelCase word."""


class Nobody:
    """Tells nothing."""

    def tell(self, entry: Entry, reason: str, message: str, *, is_warning: bool = False) -> None:
        """See `Teller`."""


class BindingApi:
    """Bindings on Karmada's API server."""

    def __init__(self, client: KubeClient) -> None:
        self._client = client

    async def patch(
        self, path: str, body: Mapping[str, object], when: Preconditions
    ) -> PatchResult[ResourceBinding]:
        """See `queue_dispatcher.release.executor.Api`."""
        return await merge_patch(self._client, path, body, ResourceBinding, when)

    async def read(self, path: str) -> ResourceBinding:
        """See `queue_dispatcher.release.executor.Api`."""
        return await self._client.get_json(path, ResourceBinding)


@dataclass(frozen=True, slots=True)
class Estimation:
    """How estimators are asked: ``wait_s`` is how long a workload waits for those that do not answer."""

    ask: Ask
    source: Source
    wait_s: float


class Dispatcher:
    """One process's dispatcher. Its ``cache`` has the sinks to feed; ``controller.run`` has to run.

    ``is_synced`` tells whether all sinks have been fed completely once.
    """

    def __init__(
        self,
        api: Api[ResourceBinding],
        catalogue: Catalogue,
        metrics: DispatcherMetrics,
        clock: SteadyClock,
        is_synced: Callable[[], bool],
        *,
        estimation: Estimation | None = None,
        teller: Teller | None = None,
        volcano: bool = False,
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
        rng: random.Random | None = None,
    ) -> None:
        self._api = api
        self._metrics = metrics
        self._clock = clock
        self._sleep = sleep
        self._rng = rng
        self.executor: Executor[ResourceBinding] | None = None
        self.cache = Cache(
            lambda resource: (known := catalogue.lookup(resource)) is not None and known.is_accelerator,
            self._changed,
            probes=estimation is not None,
            volcano=volcano,
        )
        self.window = ReleaseWindow()
        self.desk = BindingDesk(
            self.cache, _Witness(metrics, teller or Nobody()), clock.now_ms, clock.elapsed_ms
        )
        self.probes = (
            Probes(
                estimation.ask,
                estimation.source,
                estimation.wait_s,
                clock.elapsed_ms,
                self._changed,
                metrics.probe,
            )
            if estimation is not None
            else None
        )
        self.controller = Controller(
            self.cache, self.desk, self.window, self.probes, metrics, clock, is_synced, sleep=sleep
        )

    async def lead(self, may_write: Callable[[], bool]) -> None:
        """Write, until cancelled, what is decided; ``may_write`` is asked before each write."""
        executor = self.executor = Executor(
            self._api,
            self.desk,
            may_write,
            observe=lambda purpose, outcome: self._metrics.write(purpose, outcome),
            clock=lambda: self._clock.elapsed_ms() / 1000,
            sleep=self._sleep,
            rng=self._rng,
        )
        self.controller.lead(executor)
        try:
            async with asyncio.TaskGroup() as group:
                group.create_task(executor.run(), name="writes")
                if self.probes is not None:
                    group.create_task(self.probes.run(), name="probes")
        finally:
            self.executor = None
            self.controller.lead(None)

    def _changed(self) -> None:
        # The cache is made before the controller, and begins to change only afterwards.
        self.controller.changed()


class _Witness:
    """Tells metrics and people; see `queue_dispatcher.release.desk.Witness`."""

    def __init__(self, metrics: DispatcherMetrics, teller: Teller) -> None:
        self._metrics = metrics
        self._teller = teller

    def admitted(self, entry: Entry, record: AdmissionRecord, waited_ms: int) -> None:
        self._metrics.admitted(record.queue, record.service_class, waited_ms / 1000)
        flavors = ", ".join(sorted({name for _, names in record.flavors for name in names}))
        charged = f", charged to {flavors}" if flavors else ""
        self._teller.tell(
            entry,
            "Admitted",
            f"admitted by ClusterQueue {record.queue}{charged}, after {waited_ms // 1000} s in the line",
        )

    def taken_back(self, entry: Entry, queue: str, requeue: RequeueRecord) -> None:
        self._metrics.taken_back(queue, "StartTimeout")
        self._teller.tell(
            entry,
            "TakenBack",
            f"did not start ({requeue.reason}), time {requeue.count}; waits again, in its old place",
            is_warning=True,
        )

    def refused(self, entry: Entry, purpose: Purpose, message: str) -> None:
        self._teller.tell(entry, "WriteRefused", f"{purpose}: {message}", is_warning=True)
