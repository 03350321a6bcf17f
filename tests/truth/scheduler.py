"""A real etcd, kube-apiserver and kube-scheduler on loopback, and the truth about cases as they tell it."""

import asyncio
import copy
import json
import signal
import subprocess
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from fairway.kube.client import KubeClient
from fairway.kube.errors import Refused
from tests.envtest import ADMIN, real_api
from tests.truth.fields import Json, labels_of, name_of, namespace_of, objects, strings, table, text, words
from tests.truth.making import PATHS, is_at_end, make, merge
from tests.truth.staging import CASE, PRIORITY, Stage

_ORDER = tuple(PATHS)
_AT_ONCE, _MORE = 24, 6
_ADMISSION_S, _LOOK_S, _QUIET_LOOKS, _PATIENCE_S = 2.0, 0.5, 7, 240.0
_SELECTED = "volume.kubernetes.io/selected-node"
_BOUND = {"pv.kubernetes.io/bind-completed": "yes", "pv.kubernetes.io/bound-by-controller": "yes"}


class NotSettled(Exception):
    """The scheduler has not come to an end with some cases; the message names them."""


@dataclass
class Flood:
    """What became of a stage's pods: how many were made and bound, and what was said of one left over."""

    made: int = 0
    bound: int = 0
    left_over: int = 0
    words: str = ""
    refusal: str = ""
    nodes: dict[str, int] = field(default_factory=dict)

    @property
    def is_over(self) -> bool:
        """Whether one pod was left over and none is still to be looked at."""
        return bool(self.refusal) or (self.left_over > 0 and self.bound + self.left_over == self.made)


@dataclass(frozen=True)
class Scheduler:
    """A running one. ``kubeconfig``: of an administrator of its cluster."""

    kubeconfig: Path
    _process: "subprocess.Popen[bytes]"

    @contextmanager
    def stopped(self) -> Iterator[None]:
        """It does nothing until the end of the context, as if it were busy with others' pods."""
        self._process.send_signal(signal.SIGSTOP)
        try:
            yield
        finally:
            self._process.send_signal(signal.SIGCONT)


@contextmanager
def scheduling(programs: Path, state: Path) -> Iterator[Scheduler]:
    """The three programs until the end of the context."""
    with real_api(programs, state, "--disable-admission-plugins=TaintNodesByCondition") as api:
        config = {
            "apiVersion": "kubescheduler.config.k8s.io/v1",
            "kind": "KubeSchedulerConfiguration",
            "leaderElection": {"leaderElect": False},
            "clientConnection": {"kubeconfig": str(api.kubeconfig), "qps": 5000, "burst": 5000},
            "podMaxBackoffSeconds": 2,
        }
        file = state / "scheduler.json"
        file.write_text(json.dumps(config))
        command: list[str | Path] = [programs / "kube-scheduler", f"--config={file}", "--secure-port=0"]
        with (state / "kube-scheduler.log").open("ab") as log:
            process = subprocess.Popen(command, stdout=log, stderr=log)
        try:
            yield Scheduler(api.kubeconfig, process)
        finally:
            process.kill()
            process.wait()


async def floods(kubeconfig: Path, stages: Sequence[Stage], first: Sequence[int]) -> list[Flood]:
    """Put all stages into the cluster, make pods until one is left over of each, and count.

    ``first`` is how many pods each stage starts with. Raises KubeError, NotSettled.
    """
    async with KubeClient.from_kubeconfig(str(kubeconfig), context=ADMIN, qps=-1) as client:
        cluster = _Cluster(client)
        await cluster.prepare(stages)
        return await cluster.flood(stages, first)


class _Cluster:
    """One API server that many stages share."""

    def __init__(self, client: KubeClient) -> None:
        self._client = client
        self._slots = asyncio.Semaphore(_AT_ONCE)

    async def prepare(self, stages: Sequence[Stage]) -> None:
        """Everything but the flood."""
        priority = {"metadata": {"name": PRIORITY}, "value": -10, "preemptionPolicy": "Never"}
        await self._client.post("/apis/scheduling.k8s.io/v1/priorityclasses", priority, dict)
        items = [item for stage in stages for item in stage.items()]
        for kind in _ORDER:
            if kind == "Pod":
                # Admission reads RuntimeClasses and LimitRanges from caches that follow.
                await asyncio.sleep(_ADMISSION_S)
            # Finished pods first: a scheduler that sees a pod end frees its host port, whoever else has it.
            for is_over in (True, False):
                made = (item for item in items if item["kind"] == kind and is_at_end(item) == is_over)
                await asyncio.gather(*map(self._make, made))

    async def _make(self, item: Json) -> None:
        async with self._slots:
            await make(self._client, item)

    async def _patch(self, path: str, body: object) -> None:
        await merge(self._client, path, body)

    async def flood(self, stages: Sequence[Stage], first: Sequence[int]) -> list[Flood]:
        """Make pods and look until nothing changes any more. Raises NotSettled."""
        found = [Flood() for _ in stages]
        await asyncio.gather(*map(self._more, stages, found, first))
        settling = any("WaitForFirstConsumer" in stage.case.constraints for stage in stages)
        last: list[Flood] = []
        quiet = 0
        for _ in range(round(_PATIENCE_S / _LOOK_S)):
            await asyncio.sleep(_LOOK_S)
            if settling:
                await self._settle_volumes()
            await self._count(stages, found)
            full = [each for each in found if not each.refusal and each.bound == each.made]
            await asyncio.gather(
                *(
                    self._more(stage, each, _MORE)
                    for stage, each in zip(stages, found, strict=True)
                    if each in full
                )
            )
            quiet = quiet + 1 if found == last else 0
            last = copy.deepcopy(found)
            if quiet >= _QUIET_LOOKS and all(each.is_over for each in found):
                return found
        open_ = [
            f"{stage.name}: {each}" for stage, each in zip(stages, found, strict=True) if not each.is_over
        ]
        raise NotSettled("; ".join(open_) or "pods are still being bound")

    async def _more(self, stage: Stage, flood: Flood, count: int) -> None:
        for number in range(flood.made, flood.made + count):
            async with self._slots:
                try:
                    await self._client.post(PATHS["Pod"].format(stage.namespace), stage.pod(number), dict)
                except Refused as error:
                    flood.refusal = str(error)
                    return
                flood.made += 1

    async def _list(self, path: str, **params: str) -> list[Json]:
        return objects(await self._client.get_json(path, dict, params), "items")

    async def _count(self, stages: Sequence[Stage], floods: Sequence[Flood]) -> None:
        by_name = {stage.name: flood for stage, flood in zip(stages, floods, strict=True)}
        for flood in floods:
            flood.bound, flood.left_over, flood.nodes = 0, 0, {}
        for pod in await self._list("/api/v1/pods", labelSelector=CASE, resourceVersion="0"):
            flood = by_name[labels_of(pod)[CASE]]
            node = text(pod, "spec", "nodeName")
            if node:
                flood.bound += 1
                flood.nodes[node] = flood.nodes.get(node, 0) + 1
                continue
            for condition in objects(pod, "status", "conditions"):
                if text(condition, "type") == "PodScheduled" and text(condition, "status") == "False":
                    flood.left_over += 1
                    flood.words = text(condition, "message")

    async def _settle_volumes(self) -> None:
        """What the volume controller and a provisioner do once a first pod has chosen its node."""
        volumes = await self._list("/api/v1/persistentvolumes")
        taken = {
            (text(volume, "spec", "claimRef", "namespace"), text(volume, "spec", "claimRef", "name")): volume
            for volume in volumes
        }
        for claim in await self._list("/api/v1/persistentvolumeclaims"):
            if text(claim, "spec", "volumeName"):
                continue
            volume = taken.get((namespace_of(claim), name_of(claim)))
            node = strings(claim, "metadata", "annotations").get(_SELECTED)
            if volume is None and node is not None:
                volume = await self._provision(claim, node)
            if volume is not None:
                path = f"{PATHS['PersistentVolumeClaim'].format(namespace_of(claim))}/{name_of(claim)}"
                spec = {"volumeName": name_of(volume)}
                await self._patch(path, {"metadata": {"annotations": _BOUND}, "spec": spec})
                await self._patch(f"{path}/status", {"status": {"phase": "Bound"}})

    async def _provision(self, claim: Json, node: str) -> Json:
        """A volume that the nodes reach which are alike in the topology keys of the class's driver."""
        name = text(claim, "spec", "storageClassName")
        driver = text(await self._client.get_json(f"{PATHS['StorageClass']}/{name}", dict), "provisioner")
        labels = labels_of(await self._client.get_json(f"{PATHS['Node']}/{node}", dict))
        drivers = objects(await self._client.get_json(f"{PATHS['CSINode']}/{node}", dict), "spec", "drivers")
        keys = [
            key for each in drivers if text(each, "name") == driver for key in words(each, "topologyKeys")
        ]
        segment = [{"key": key, "operator": "In", "values": [labels[key]]} for key in keys if key in labels]
        spec: Json = {
            "capacity": table(claim, "spec", "resources", "requests"),
            "accessModes": words(claim, "spec", "accessModes"),
            "storageClassName": name,
            "csi": {"driver": driver, "volumeHandle": f"made-for-{namespace_of(claim)}"},
            "claimRef": {
                "kind": "PersistentVolumeClaim",
                "namespace": namespace_of(claim),
                "name": name_of(claim),
                "uid": text(claim, "metadata", "uid"),
            },
        }
        if segment:
            spec["nodeAffinity"] = {"required": {"nodeSelectorTerms": [{"matchExpressions": segment}]}}
        made: Json = {"metadata": {"name": f"made-for-{namespace_of(claim)}"}, "spec": spec}
        return await self._client.post(PATHS["PersistentVolume"], made, dict)
