"""``python -m sandbox``: the real programs around API servers in memory, and a story of two teams.

Webhook, dispatcher and three estimators run as processes of their own, each as it would beside Karmada.
What ``fairway queues`` and ``fairway pending`` would print is printed by their own code. Ends by itself after
about half a minute.
"""

import asyncio
import os
import signal
import sys
import time
from collections.abc import AsyncIterator
from contextlib import AbstractAsyncContextManager, AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from importlib.util import find_spec

import grpc
import msgspec
from rich.console import Console, RenderableType
from rich.text import Text

from admin.dispatcher import Dispatcher
from admin.terminal.queues import Look, queue_tables, workload_pages
from fairway.kube.client import KubeClient
from fairway.kube.errors import KubeError
from sandbox import story
from sandbox.fakeapi.server import FakeApi
from sandbox.karmada import Karmada, Workload
from sandbox.processes import Program, ProgramError, free_ports, running

_LOOPBACK = "127.0.0.1"
_CEL = "cel_expr_python"
_WITHIN_S = 90.0
_PLAIN_WIDTH = 150
_STYLES = {"held": "yellow", "placed": "bold green", "finished": "cyan", "unplaced": "bold red"}
_SCOPE = "--hold-namespaces=all"
_QUIET = ("--metrics-bind-address=0", "--health-probe-bind-address=0", "--logging-format=json")


def main() -> int:
    """Tell the story; 0 when it came to its end, 1 when a program failed."""
    console = Console(highlight=False)
    if not console.is_terminal and "COLUMNS" not in os.environ:
        console = Console(highlight=False, width=_PLAIN_WIDTH)
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    code = 1
    try:
        asyncio.run(_tell(console))
        code = 0
    except* (ProgramError, KubeError, StoryError, grpc.aio.AioRpcError) as broken:
        causes = ", ".join(str(error) or type(error).__name__ for error in broken.exceptions)
        console.print(Text(f"the story broke off: {causes}", style="bold red"))
    except* (KeyboardInterrupt, asyncio.CancelledError):
        console.print("interrupted")
    return code


class StoryError(Exception):
    """The story does not come to its end."""


class _Narrator:
    """Prints what happens, with the seconds since the story began; knows who has finished.

    ``waits_for``: what it is waiting for.
    """

    def __init__(self, console: Console) -> None:
        self.console = console
        self.began_s = time.monotonic()
        self.waits_for = "the programs to start"
        self._happened: dict[str, set[str]] = {}
        self._changed = asyncio.Event()

    def say(self, text: str, style: str = "bold") -> None:
        """A line of narration."""
        self.console.print()
        self.console.print(Text(text, style=style))

    def show(self, command: str, output: RenderableType) -> None:
        """What a command prints."""
        self.console.print()
        self.console.print(Text(f"$ {command}", style="bold cyan"))
        self.console.print(output)

    def told(self, what: str, workload: Workload, cluster: str) -> None:
        """What the stand-in for Karmada saw happen."""
        line = Text(f"  {time.monotonic() - self.began_s:5.1f} s  ")
        line.append(f"{what:9}", style=_STYLES[what])
        line.append(f" {workload.namespace}/{workload.name}")
        gpus = int(workload.request[story.GPU])
        size = f"{workload.pods} x {gpus} GPUs" if workload.pods > 1 else f"{gpus} GPUs"
        line.append(f" ({size})" + (f" on {cluster}" if cluster else ""), style="dim")
        self.console.print(line)
        self._happened.setdefault(what, set()).add(workload.key)
        self._changed.set()

    async def until(self, what: str, *workloads: Workload) -> None:
        """Wait until it has happened to all of them."""
        wanted = {workload.key for workload in workloads}
        while lacking := wanted - self._happened.get(what, set()):
            self.waits_for = f"{', '.join(sorted(lacking))} to be {what}"
            self._changed.clear()
            await self._changed.wait()


@dataclass(frozen=True, slots=True)
class _Stage:
    """Everything that runs."""

    karmada: Karmada
    dispatcher: Dispatcher


async def _tell(console: Console) -> None:
    narrator = _Narrator(console)
    console.print("\nStarting Karmada's API server in memory, three member clusters, their estimators,")
    console.print("Fairway's webhook and Fairway's dispatcher, each in a process of its own ...")
    try:
        async with asyncio.timeout(_WITHIN_S), _stage(narrator) as stage:
            narrator.began_s = time.monotonic()
            await _first_act(narrator, stage)
            await _second_act(narrator, stage)
    except TimeoutError as error:
        raise StoryError(
            f"it took longer than {_WITHIN_S:g} s, waiting for {narrator.waits_for}; on a machine that is "
            "busy with other things, run it again when that is over"
        ) from error
    narrator.say("That was the real webhook, dispatcher, estimators and command.", "bold green")
    console.print("docs/queues.md says what tenants do, docs/dispatcher.md how operators run it.")


async def _first_act(narrator: _Narrator, stage: _Stage) -> None:
    narrator.say(
        "40 H100 in the clusters east (24) and west (16). Team research owns 16 and may borrow 8;\n"
        "team product owns 24 and lends 8 of them. Research submits more than it owns,\n"
        "and an urgent fix last:"
    )
    *sweeps, urgent = story.research_jobs()
    for job in sweeps:
        await stage.karmada.submit(job)
        await asyncio.sleep(0.05)
    # The last has to wait for its quota, however slow the machine is.
    await narrator.until("placed", *sweeps[:-1])
    await stage.karmada.submit(urgent)
    await stage.karmada.submit(story.a100_job())
    await narrator.until("placed", story.a100_job())
    await asyncio.sleep(0.8)
    await _queues(narrator, stage)
    narrator.say(
        "Product submits a gang: two whole nodes of one cluster. Its quota has room for it, and 16 GPUs\n"
        "are free in all, but 8 here and 8 there. A quota alone would let it go, and it would be stuck:"
    )
    await stage.karmada.submit(story.gang())
    await asyncio.sleep(1.5)
    await _pending(narrator, stage, story.gang())
    narrator.say("As soon as a node of the right cluster is free, it starts whole:")
    await narrator.until("placed", story.gang())


async def _second_act(narrator: _Narrator, stage: _Stage) -> None:
    await narrator.until("finished", *story.research_jobs(), story.a100_job(), story.gang())
    narrator.say("Everybody has finished, and the quota is back:")
    await asyncio.sleep(0.8)
    await _queues(narrator, stage)


async def _queues(narrator: _Narrator, stage: _Stage) -> None:
    async with stage.dispatcher.connected() as connection:
        narrator.show("fairway queues", queue_tables(await connection.queues(), Look(datetime.now(UTC))))


async def _pending(narrator: _Narrator, stage: _Stage, workload: Workload) -> None:
    async with stage.dispatcher.connected() as connection:
        found = await connection.workloads(workload.namespace, workload.name)
    command = f"fairway pending {workload.name} -n {workload.namespace}"
    narrator.show(command, workload_pages(found.workloads, Look(datetime.now(UTC))))


@asynccontextmanager
async def _stage(narrator: _Narrator) -> AsyncIterator[_Stage]:
    """Everything started, in the order in which an operator would. Raises ProgramError, KubeError."""
    async with AsyncExitStack() as stack:
        control = await stack.enter_async_context(FakeApi())
        # The engine is optional; without it the webhook is asked more often, and decides the same.
        control.admission.has_conditions = find_spec(_CEL) is not None
        client = await stack.enter_async_context(KubeClient.from_url(control.url, qps=1000, burst=1000))
        for path, obj in story.queue_objects():
            await client.post(path, obj, msgspec.Raw)
        members = story.members()
        channels, flags = {}, []
        for name, member in members.items():
            await stack.enter_async_context(member.api)
            member.populate()
            (port,) = free_ports(1)
            await stack.enter_async_context(_estimator(name, member.api.url, port))
            flags.append(f"--estimator={name}={_LOOPBACK}:{port}")
            channel = grpc.aio.insecure_channel(f"{_LOOPBACK}:{port}")
            channels[name] = await stack.enter_async_context(channel)
        karmada = Karmada(client, members, channels, narrator.told)
        await karmada.join()
        await stack.enter_async_context(_webhook(control.url))
        visibility, health = free_ports(2)
        # One machine, one person: in front of a real Karmada it is asked who may see what.
        flags += [f"--visibility-bind-address={_LOOPBACK}:{visibility}", "--visibility-authorization=none"]
        await stack.enter_async_context(_dispatcher(control.url, flags, visibility, health))
        group = await stack.enter_async_context(asyncio.TaskGroup())
        placing = group.create_task(karmada.run())
        stack.callback(placing.cancel)
        await _registered(control)
        yield _Stage(karmada, Dispatcher(f"http://{_LOOPBACK}:{visibility}"))


def _estimator(name: str, url: str, port: int) -> AbstractAsyncContextManager[Program]:
    flags = [f"--cluster-name={name}", f"--master={url}", f"--server-port={port}", *_QUIET]
    return running(f"the estimator of {name}", "estimator", flags, port)


def _webhook(url: str) -> AbstractAsyncContextManager[Program]:
    (port,) = free_ports(1)
    flags = [
        f"--master={url}",
        f"--bind-address={_LOOPBACK}",
        f"--secure-port={port}",
        f"--url=https://{_LOOPBACK}:{port}",
        _SCOPE,
        *_QUIET,
    ]
    return running("the webhook", "webhook", flags, port)


def _dispatcher(
    url: str, flags: list[str], visibility: int, health: int
) -> AbstractAsyncContextManager[Program]:
    own = [f"--master={url}", *flags, _SCOPE, f"--health-probe-bind-address={_LOOPBACK}:{health}"]
    own += ["--metrics-bind-address=0", "--logging-format=json"]
    return running("the dispatcher", "queue_dispatcher", own, visibility)


async def _registered(control: FakeApi) -> None:
    """Return once the webhook has registered itself."""
    path = "/apis/admissionregistration.k8s.io/v1/mutatingwebhookconfigurations"
    async with KubeClient.from_url(control.url, qps=100, burst=100) as client:
        while True:
            found = await client.get_json(path, dict[str, object])
            if found.get("items"):
                return
            await asyncio.sleep(0.05)


if __name__ == "__main__":
    sys.exit(main())
