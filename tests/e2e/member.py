"""A member cluster: an API server with Kubernetes' controllers and scheduler, GPU nodes, a fake kubelet."""

import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass

from fairway.kube.errors import Conflict
from tests.e2e.api_server import ApiServer
from tests.e2e.kubectl import apply_files
from tests.e2e.kubelet import Kubelet
from tests.e2e.objects import GPU, MERGE, PODS, Obj
from tests.e2e.process import Program
from tests.e2e.watching import Changes, Watched

# Nodes stay as they are written, and no address is given to anything.
_CONTROLLERS = "*,-node-lifecycle-controller,-taint-eviction-controller,-pod-garbage-collector-controller"


@dataclass(slots=True)
class Member:
    """``kubelet`` runs its pods."""

    api: ApiServer
    kubelet: Kubelet
    running: Sequence[Program]

    @property
    def name(self) -> str:
        return self.api.name

    async def nodes(self, gpus: Mapping[str, int]) -> None:
        """Make these nodes, or change them."""
        for name, count in gpus.items():
            await self._node(name, count)

    async def _node(self, name: str, gpus: int) -> None:
        client, path = self.api.client, f"/api/v1/nodes/{name}"
        made = {"metadata": {"name": name, "labels": {"kubernetes.io/hostname": name}}}
        with suppress(Conflict):
            await client.post("/api/v1/nodes", made, dict)
        amounts = {"cpu": "96", "memory": "512Gi", "pods": "110", GPU: str(gpus)}
        now = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
        ready = {
            "type": "Ready",
            "status": "True",
            "reason": "KubeletReady",
            "lastHeartbeatTime": now,
            "lastTransitionTime": now,
        }
        status = {"capacity": amounts, "allocatable": amounts, "conditions": [ready]}
        await client.patch(f"{path}/status", {"status": status}, dict, content_type=MERGE)
        await client.patch(path, {"spec": {"taints": None}}, dict, content_type=MERGE)

    async def end(self) -> None:
        """End its programs."""
        await self.kubelet.stop()
        await self.api.client.close()
        for program in self.running:
            program.kill()

    async def get(self, path: str) -> Obj:
        """An object as it stands there. Raises NotFound."""
        return await self.api.client.get_json(path, dict)


async def begin(api: ApiServer, changes: Changes, gpus: Mapping[str, int]) -> Member:
    """Make a member cluster of an API server that was started."""
    await api.ready()
    running = (*api.running, api.controllers(_CONTROLLERS), api.pods())
    member = Member(api, Kubelet(api.client, Watched(PODS, changes)), running)
    member.kubelet.start()
    await apply_files(api, api.assets.workload_schemas)
    await member.nodes(gpus)
    return member
