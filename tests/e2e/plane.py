"""Everything together, once for all tests of a run: host, Karmada, two members, Fairway in front."""

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from tests.e2e import api_server, member
from tests.e2e.assets import Assets
from tests.e2e.host import Host
from tests.e2e.installation import NAMESPACE, Installation
from tests.e2e.karmada import Karmada
from tests.e2e.member import Member
from tests.e2e.pki import Pki
from tests.e2e.process import Programs
from tests.e2e.watching import Changes

NODES: Final[Mapping[str, Mapping[str, int]]] = {
    "a": {"a1": 8, "a2": 8},
    # Two GPUs more, but most of them in crumbs: only what does not need whole nodes fits.
    "b": {"b1": 8, "b2": 2, "b3": 2, "b4": 2, "b5": 2, "b6": 2},
}
LATE: Final = "c"
"""A cluster that may join later; dispatchers are told from the beginning where its estimator would be."""


@dataclass(slots=True)
class Plane:
    """``members`` by name, those that have joined. ``nodes``: GPUs of each, of those that join at once."""

    assets: Assets
    pki: Pki
    programs: Programs
    changes: Changes
    host: Host
    karmada: Karmada
    fairway: Installation
    nodes: Mapping[str, Mapping[str, int]]
    members: dict[str, Member] = field(default_factory=dict)

    async def begin(self) -> None:
        """Start everything; Karmada and Fairway are ready to schedule then."""
        for name in (*self.nodes, LATE):
            self.fairway.ports.estimator(name)
        servers = {name: self._server(name) for name in self.nodes}
        begun, _, _ = await asyncio.gather(
            asyncio.gather(
                *(member.begin(server, self.changes, self.nodes[name]) for name, server in servers.items())
            ),
            self.host.begin(),
            self.karmada.begin(),
        )
        await self.fairway.objects()
        for each in begun:
            await self.join(each)
        # The scheduler keeps connections to estimators, and waits long before it tries again.
        await asyncio.gather(self.karmada.schedule(), self.fairway.start())
        await self.changes.until(
            lambda: all(
                self.karmada.clusters.now[name].gpus == sum(gpus.values())
                for name, gpus in self.nodes.items()
            ),
            "Karmada knows its clusters' GPUs",
        )

    async def member(self, name: str, gpus: Mapping[str, int]) -> Member:
        """A further cluster that has not joined."""
        return await member.begin(self._server(name), self.changes, gpus)

    async def join(self, each: Member) -> None:
        """An estimator for the cluster, then the cluster itself."""
        await self.fairway.estimator(each)
        await self.karmada.join(each, self.fairway.ports.estimator(each.name))
        self.members[each.name] = each

    async def install_again(self) -> None:
        """After an uninstallation: everything as in the beginning."""
        servers = (self.host.api, self.karmada.api, *(each.api for each in self.members.values()))
        for server in servers:
            await server.until_settled(NAMESPACE)
        await self.fairway.objects()
        for each in self.members.values():
            await self.fairway.estimator(each)
        await self.fairway.start()

    async def part(self, name: str) -> None:
        """End a cluster that has left, and its estimator."""
        if name in self.members:
            await self.members.pop(name).end()
        if name in self.fairway.estimators:
            await self.fairway.estimators.pop(name).program.stop()

    async def end(self) -> None:
        """End everything, whatever has happened."""
        try:
            for each in self.members.values():
                await each.end()
            await self.karmada.end()
            await self.host.end()
        finally:
            self.programs.end()

    def _server(self, name: str) -> api_server.ApiServer:
        return api_server.start(name, self.assets, self.pki, self.programs)


def create(assets: Assets, folder: Path, nodes: Mapping[str, Mapping[str, int]] = NODES) -> Plane:
    """Nothing but the first two API servers is started; whoever calls this ends the plane."""
    (folder / "logs").mkdir()
    pki, programs, changes = Pki.create(folder / "pki"), Programs(folder / "logs"), Changes()
    karmada = Karmada(api_server.start("karmada", assets, pki, programs), changes)
    host = Host(api_server.start("host", assets, pki, programs), changes)
    return Plane(assets, pki, programs, changes, host, karmada, Installation(host, karmada, programs), nodes)
