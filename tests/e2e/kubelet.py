"""A kubelet for all nodes of a member cluster, which runs nothing: bound pods are Running, deleted ones go.

Pods of Jobs end when a test says so, well or badly. Pods that hang stay Pending, as if there were no image.
"""

import asyncio
import time
from contextlib import suppress
from dataclasses import dataclass, field

from fairway.kube.client import KubeClient
from fairway.kube.errors import Conflict, NotFound
from tests.e2e.objects import MERGE, Obj, Pod
from tests.e2e.watching import Watched


@dataclass(slots=True)
class Kubelet:
    """``pods``: all of the cluster. ``hanging``: workloads of which none comes to run."""

    client: KubeClient
    pods: Watched[Pod]
    hanging: set[str] = field(default_factory=set)
    _due: asyncio.Queue[Pod] = field(default_factory=asyncio.Queue)
    _task: asyncio.Task[None] | None = None

    def start(self) -> None:
        """Look after the pods until `stop`."""
        self.pods.listeners.append(self._due.put_nowait)
        self.pods.start(self.client)
        self._task = asyncio.create_task(self._work())

    async def stop(self) -> None:
        """Leave them alone."""
        await self.pods.stop()
        if self._task is not None:
            self._task.cancel()
            with suppress(asyncio.CancelledError):
                await self._task

    def running(self, namespace: str, workload: str = "") -> list[Pod]:
        """Pods that run, of one workload or of all."""
        return [pod for pod in self.pods.within(namespace) if pod.runs and workload in ("", pod.workload)]

    async def finish(self, namespace: str, job: str, *, well: bool = True) -> int:
        """Let the running pods of a Job end; how many there were."""
        pods = self.running(namespace, job)
        for pod in pods:
            await self._set(pod, "Succeeded" if well else "Failed")
        return len(pods)

    def let_run(self, workload: str) -> None:
        """Its pods hang no more, those that do included."""
        self.hanging.discard(workload)
        for pod in self.pods.now.values():
            self._due.put_nowait(pod)

    async def _work(self) -> None:
        while True:
            pod = await self._due.get()
            # Somebody was faster, and its own event says how it is now.
            with suppress(NotFound, Conflict):
                if pod.metadata.deletion_timestamp is not None:
                    await self.client.delete(_path(pod), dict, params={"gracePeriodSeconds": "0"})
                elif pod.is_bound and pod.workload not in self.hanging:
                    await self._set(pod, "Running")

    async def _set(self, pod: Pod, phase: str) -> None:
        now = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
        ready = "True" if phase == "Running" else "False"
        conditions = [
            {"type": kind, "status": status, "lastTransitionTime": now}
            for kind, status in (("Ready", ready), ("ContainersReady", ready), ("PodScheduled", "True"))
        ]
        containers = [
            {
                "name": container.name,
                "image": "none",
                "imageID": "none",
                "ready": phase == "Running",
                "restartCount": 0,
                "state": _state(phase, now),
            }
            for container in pod.spec.containers or ()
        ]
        status = {"phase": phase, "startTime": now, "conditions": conditions, "containerStatuses": containers}
        await self.client.patch(f"{_path(pod)}/status", {"status": status}, dict, content_type=MERGE)


def _path(pod: Pod) -> str:
    return f"/api/v1/namespaces/{pod.metadata.namespace}/pods/{pod.metadata.name}"


def _state(phase: str, now: str) -> Obj:
    if phase == "Running":
        return {"running": {"startedAt": now}}
    code, reason = (0, "Completed") if phase == "Succeeded" else (1, "Error")
    return {"terminated": {"exitCode": code, "reason": reason, "startedAt": now, "finishedAt": now}}
