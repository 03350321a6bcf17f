"""A control plane in this process, and the real program as a child of it."""

import asyncio
import socket
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path

from sandbox.fakeapi import FakeApi, Write
from sandbox.fakeapi.store import Collection
from tests.crash.fleet import LEASE_FLAGS
from tests.crash.guard import LEASE
from tests.crash.objects import binding, fixed_objects, template
from tests.crash.processes import Child, Interpreters, kubeconfig
from tests.crash.quota import Limits, Queue
from tests.crash.schedule import CLUSTERS, LOOSE, ROOT, STRICT, Schedule, Workload
from tests.crash.views import View, bindings, changes, view_of

WITHIN_S = 180.0
"""Longer than anything takes, also beside much else; only a failing test waits for it."""
LOOK_S = 0.02
QUIET = ("--health-probe-bind-address=0", "--metrics-bind-address=0", "--visibility-bind-address=0")
ALONE = ("--leader-elect=false", *QUIET)
ELECTED = (*LEASE_FLAGS, *QUIET)
QUOTA = 8


def fleet_of(*workloads: Workload) -> Schedule:
    """Two queues with room for eight GPUs in each cluster."""
    quotas = {cluster: Limits(QUOTA) for cluster in CLUSTERS}
    queues = (Queue(ROOT), Queue(STRICT, ROOT, quotas), Queue(LOOSE, ROOT, quotas))
    return Schedule(0, queues, dict.fromkeys(CLUSTERS, 2 * QUOTA), workloads)


def workload(name: str, gpus: int = 1) -> Workload:
    """One pod that never ends."""
    return Workload(LOOSE, name, 1, gpus, (CLUSTERS[0],), 0.0, None)


@dataclass(slots=True)
class Plane:
    """An API server with queues, and all dispatchers that were started on it."""

    api: FakeApi
    folder: Path
    children: list[Child] = field(default_factory=list)
    written: list[tuple[str, str]] = field(default_factory=list)
    """Who wrote which binding, in order."""

    async def start(self, *flags: str, name: str = "dispatcher") -> Child:
        """The program, with ``name`` as its token."""
        config = kubeconfig(self.folder / f"{name}.json", self.api.url, name)
        argv = (f"--kubeconfig={config}", "--hold-namespaces=all", *flags)
        child = await Interpreters().start(argv, self.folder / f"{name}.log")
        self.children.append(child)
        return child

    def submit(self, *workloads: Workload) -> None:
        """As Karmada and the webhook would: template and held binding."""
        for one in workloads:
            for path, obj in (template(one), binding(one)):
                self.api.create(path, obj)

    def seen(self, workload: Workload) -> View:
        """Its binding now."""
        namespace, _, name = workload.key.partition("/")
        return view_of(self.bindings.records[namespace, name])

    @property
    def bindings(self) -> Collection:
        return bindings(self.api.store)

    @property
    def leases(self) -> Collection:
        return self.api.store.collection("coordination.k8s.io/v1", "leases")

    @property
    def holder(self) -> str:
        """The identity in the Lease; empty if nobody holds it."""
        record = self.leases.records.get(("karmada-system", LEASE.rpartition("/")[2]))
        return (record.decode()["spec"].get("holderIdentity") or "") if record is not None else ""

    async def admitted(self, *workloads: Workload) -> None:
        """Wait until all of them are."""
        await until(self.bindings, lambda: all(self.seen(one).record is not None for one in workloads))

    def note(self, write: Write) -> None:
        if write.resource == "resourcebindings":
            self.written.append((write.seen.user, write.path.rpartition("/")[2]))


async def until(collection: Collection, condition: Callable[[], bool]) -> None:
    """Wait for something that a change of the collection makes true."""
    async with asyncio.timeout(WITHIN_S):
        if condition():
            return
        async for _ in changes(collection):
            if condition():
                return


async def said(child: Child, text: str) -> None:
    """Wait until its log has the text."""
    for _ in range(int(WITHIN_S / LOOK_S)):
        if text in child.last_words():
            return
        await asyncio.sleep(LOOK_S)
    raise TimeoutError(text)


@asynccontextmanager
async def control_plane(folder: Path, *, port: int = 0) -> AsyncIterator[Plane]:
    """With the fixed objects of `fleet_of`; every child is killed at the end."""
    async with FakeApi(port=port) as api:
        for path, obj in fixed_objects(fleet_of()):
            api.create(path, obj)
        plane = Plane(api, folder)
        api.writes.after = plane.note
        try:
            yield plane
        except TimeoutError as error:
            words = "\n".join(child.last_words() for child in plane.children)
            raise AssertionError(f"it does not come to pass; the last words:\n{words}") from error
        finally:
            for child in plane.children:
                await child.end()


def free_port() -> int:
    """A port that nobody listens on."""
    with socket.create_server(("127.0.0.1", 0)) as listening:
        port: int = listening.getsockname()[1]
    return port
