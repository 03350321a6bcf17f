"""Things that are broken for a while: contexts, in which they are broken and after which they are mended."""

import copy
from collections.abc import AsyncIterator, Collection, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager, suppress
from typing import Final

from fairway.kube.client import KubeClient
from fairway.kube.errors import NotFound
from tests.e2e.edits import Change
from tests.e2e.fairway_programs import Ours
from tests.e2e.objects import POLICIES, STRICT, Obj
from tests.e2e.process import Served
from tests.e2e.tenant import Tenant
from tests.e2e.watching import eventually
from tests.e2e.workloads import Workload

Broken = AbstractAsyncContextManager[None]
Startable = Ours | Served
_KEPT: Final = ("name", "namespace", "labels", "annotations")


@asynccontextmanager
async def edited(client: KubeClient, path: str, change: Change) -> AsyncIterator[None]:
    """An object that is changed, in place; nothing but its status is its own meanwhile."""
    before = await client.get_json(path, dict)
    after = copy.deepcopy(before)
    change(after)
    assert after != before, f"the change of {path} changes nothing"
    await client.put(path, after, dict)
    try:
        yield
    finally:
        now = await client.get_json(path, dict)
        await client.put(path, {**before, "metadata": now["metadata"]}, dict)


@asynccontextmanager
async def without(client: KubeClient, path: str) -> AsyncIterator[None]:
    """An object that is gone."""
    before = await client.get_json(path, dict)
    metadata = {name: before["metadata"][name] for name in _KEPT if name in before["metadata"]}
    await client.delete(path, dict)
    try:
        yield
    finally:
        await _until_gone(client, path)
        await client.post(path.rpartition("/")[0], {**before, "metadata": metadata}, dict)


@asynccontextmanager
async def beside(client: KubeClient, collection: str, body: Obj) -> AsyncIterator[None]:
    """An object that should not be there."""
    path = f"{collection}/{body['metadata']['name']}"
    await client.post(collection, body, dict, STRICT)
    try:
        yield
    finally:
        await client.delete(path, dict)
        await _until_gone(client, path)


@asynccontextmanager
async def submitted(tenant: Tenant, workload: Workload, placement: Obj) -> AsyncIterator[None]:
    """A workload, and the policy that goes with it."""
    key = await tenant.submit(workload, placement)
    try:
        await tenant.plane.changes.until(lambda: tenant.knows(key), f"binding {key}")
        yield
    finally:
        await tenant.delete(workload.binding)
        await tenant.empty()
        policy = f"{workload.plural}-{workload.name}"
        path = f"{POLICIES}/namespaces/{tenant.namespace}/propagationpolicies/{policy}"
        await tenant.plane.karmada.client.delete(path, dict)


@asynccontextmanager
async def killed(program: Ours) -> AsyncIterator[None]:
    """A program of ours that died."""
    program.program.kill()
    try:
        yield
    finally:
        await program.start()


@asynccontextmanager
async def with_flags(
    program: Startable, *flags: str, leaving_out: Collection[str] = ()
) -> AsyncIterator[None]:
    """A program that runs with more flags, and without those that are named so, dashes included."""
    before = program.program.command
    kept = [word for word in before if word.partition("=")[0] not in leaving_out]
    await restarted(program, [*kept, *flags])
    try:
        yield
    finally:
        await restarted(program, before)


async def restarted(program: Startable, command: Sequence[str]) -> None:
    """Stop a program, and start it with another command line."""
    await program.program.stop()
    program.program.command = command
    await program.start()


async def _until_gone(client: KubeClient, path: str) -> None:
    async def gone() -> bool:
        with suppress(NotFound):
            await client.get_json(path, dict)
            return False
        return True

    await eventually(gone, f"{path} gone")
