"""Who holds which device: kubelet's allocations first, processes where no allocation says it.

An allocation is what a container was given, whether it does anything or not. A process shows who is there: it
adds a holder only where its container was not given the device by anybody, such as one that is privileged or
was told of the device by its environment, and so tells of use that no scheduler knows. Such a holder counts
no shares.

The id under which kubelet gave a device may be none that means a device (HAMi, Volcano, gpushare). Only then
is the pod's annotation believed: whoever makes a pod can write there, but not what kubelet says.
"""

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Protocol

from fairway.accelerators.builtin import builtin_catalogue
from fairway.kube.node_devices import Holder, HolderSource
from node_agent.allocations import Allocation, ClaimedDevice
from node_agent.cgroups import NoPod, PodContainer
from node_agent.device_ids import DeviceIds
from node_agent.local_pods import LocalPod
from node_agent.noted_shares import noted_shares
from node_agent.processes import Process, Unseen
from node_agent.reading import DeviceReading, NodeReading

MOST_HOLDERS = 128
"""Of one device; a time-sliced device has seldom more than 48 replicas."""

_SHOWN = 3
_PASSING = (Unseen.ENDED, Unseen.ZOMBIE, Unseen.REUSED)
# Whose devices must have an id; other drivers give network cards and the like.
_DRIVERS = ("gpu.nvidia.com",)


class Pods(Protocol):
    """The pods of the node, such as `node_agent.local_pods.LocalPods`."""

    def by_uid(self, uid: str) -> LocalPod | None:
        """The pod with this uid, of a static pod also by its hash."""

    def by_name(self, namespace: str, name: str) -> LocalPod | None:
        """The pod of this name."""


@dataclass(frozen=True, slots=True)
class HolderPod:
    """What else is known of a pod that holds devices.

    ``bound_s``: since when it is here, in seconds since the epoch. ``unknown``: how many devices kubelet gave
    it that are none of those that were read.
    """

    bound_s: float | None = None
    unknown: int = 0


@dataclass(frozen=True, slots=True)
class Holdings:
    """Holders by device id, for devices that somebody holds.

    ``outside``: by device, how many processes of no pod run on it. ``problems``: a sentence for each kind of
    holder that is not known, with what helps; the same as long as nothing changes. ``pods``: by namespace and
    name, those of which anything else is known. ``schedulable``: see `node_agent.schedulable`.
    ``allocations_known``: whether kubelet has said what it allocated; where not, nobody knows who holds what.
    ``settled``: whether all that can be asked has been asked once, or was waited for long enough.
    """

    holders: Mapping[str, tuple[Holder, ...]] = field(default_factory=dict)
    outside: Mapping[str, int] = field(default_factory=dict)
    problems: tuple[str, ...] = ()
    pods: Mapping[tuple[str, str], HolderPod] = field(default_factory=dict)
    schedulable: Mapping[str, bool] = field(default_factory=dict)
    allocations_known: bool = True
    settled: bool = True


def holdings(
    reading: NodeReading,
    allocations: Iterable[Allocation],
    processes: Mapping[int, Process | Unseen],
    pods: Pods | None,
    claimed: Mapping[ClaimedDevice, str],
) -> Holdings:
    """Who holds which device of the reading.

    ``processes``: those that the reading names, as they were found. ``pods`` is None while they are not read:
    holders then have no uid and no owner, or nothing but a uid. Once they are read, an allocation of a pod
    that is none of them is told and not counted. Pods that have ended hold nothing, though kubelet before
    1.34 lists them.
    """
    work = _Work(reading, pods, claimed)
    for allocation in allocations:
        work.allocate(allocation)
    work.read_annotations()
    work.close_allocations()
    for device in reading.devices:
        work.attribute(device, processes)
    return work.result()


_PodKey = tuple[str, str, str]
"""Namespace, name and uid."""


class _Work:
    def __init__(self, reading: NodeReading, pods: Pods | None, claimed: Mapping[ClaimedDevice, str]) -> None:
        self._ids = DeviceIds(reading.devices)
        self._pids = {device.id: {one.pid for one in device.processes} for device in reading.devices}
        self._pods, self._claimed = pods, claimed
        self._holders: dict[str, dict[_PodKey, dict[str, Holder]]] = {}
        self._given: dict[str, dict[_PodKey, frozenset[str]]] = {}
        self._unnamed: dict[tuple[str, str], list[Allocation]] = {}
        self._outside: Counter[str] = Counter()
        self._told: dict[str, set[str]] = {}
        self._bound_s: dict[tuple[str, str], float] = {}
        self._unknown: Counter[tuple[str, str]] = Counter()

    def allocate(self, allocation: Allocation) -> None:
        """Take what kubelet says of one container."""
        pod = self._pod(allocation)
        if pod is None:
            return
        unnamed = False
        for given in allocation.devices:
            share = self._ids.find(given.id)
            if share is not None:
                self._hold(
                    share.device, pod, allocation.container, HolderSource.POD_RESOURCES, share.is_replica
                )
            elif _is_accelerator(given.resource):
                unnamed = True
        for one in allocation.claimed:
            share = self._ids.find(self._claimed.get(one, ""))
            if share is not None:
                self._hold(share.device, pod, allocation.container, HolderSource.POD_RESOURCES)
            elif one.driver in _DRIVERS:
                self._unknown[pod.namespace, pod.name] += 1
                self._tell(
                    "claimed devices are none of the node, or in no ResourceSlice that the agent may read",
                    f"{one.driver}/{one.pool}/{one.device}",
                )
        if unnamed:
            self._unnamed.setdefault((pod.namespace, pod.name), []).append(allocation)

    def read_annotations(self) -> None:
        """Look up the devices of which kubelet gave shares under names of their own."""
        for (namespace, name), allocations in self._unnamed.items():
            pod = self._known(namespace, name)
            noted = noted_shares(pod, [allocation.container for allocation in allocations], self._ids)
            for share in noted:
                self._hold(share.device, pod, share.container, HolderSource.ANNOTATION, True)
            for given in () if noted else (given for one in allocations for given in one.devices):
                if _is_accelerator(given.resource) and self._ids.find(given.id) is None:
                    self._unknown[namespace, name] += 1
                    self._tell(
                        "kubelet allocated devices by ids that are none of the node's, and the pod has no "
                        "annotation of a sharing scheme that says which they are",
                        f"{given.resource} {given.id[:64]} of {namespace}/{name}",
                    )

    def close_allocations(self) -> None:
        """From here on processes are taken, which are compared with what was given and not with each
        other."""
        self._given = {
            device: {pod: frozenset(containers) for pod, containers in by_pod.items()}
            for device, by_pod in self._holders.items()
        }

    def attribute(self, device: DeviceReading, processes: Mapping[int, Process | Unseen]) -> None:
        """Take the processes of one device; those that one of its parts shows as well are that part's."""
        relatives = self._ids.relatives(device.id)
        parts = relatives - {device.id, device.parent}
        of_parts = set[int]().union(*(self._pids[part] for part in parts))
        for reading in device.processes:
            if reading.pid in of_parts:
                continue
            process = processes.get(reading.pid, Unseen.ENDED)
            if isinstance(process, Unseen):
                if process not in _PASSING:
                    self._tell(f"a process {process.value}", f"on {device.id}")
            elif isinstance(process.containers, NoPod):
                self._outside[device.id] += 1
                if process.containers in (NoPod.HIDDEN, NoPod.UNREADABLE):
                    self._tell(
                        f"no pod is found for a process: {process.containers.value}", f"on {device.id}"
                    )
            else:
                self._run(device.id, relatives, process.containers)

    def _run(self, device: str, relatives: frozenset[str], containers: tuple[PodContainer, ...]) -> None:
        given = [self._given[relative] for relative in relatives if relative in self._given]
        if self._pods is None and given:
            # Whether a uid and a name are the same pod is not known; whose it is, kubelet has said.
            return
        pod, id = self._pod_of(containers)
        name = pod.containers.get(id, "")
        for by_pod in given:
            known = by_pod.get(_key(pod))
            if known is not None and (not name or "" in known or name in known):
                return
        self._hold(device, pod, name, HolderSource.CGROUP)

    def _pod_of(self, containers: tuple[PodContainer, ...]) -> tuple[LocalPod, str]:
        """The outermost pod that is the node's, and the id of its container; else the outermost of all."""
        if self._pods is not None:
            for one in containers:
                pod = self._pods.by_uid(one.pod_uid)
                if pod is not None:
                    return pod, one.container_id
            uid = containers[0].pod_uid
            self._tell("processes run in pods that the API server does not have on this node", f"uid {uid}")
        return LocalPod("", "", containers[0].pod_uid), containers[0].container_id

    def result(self) -> Holdings:
        """All that was found, in an order that does not depend on anybody's."""
        holders: dict[str, tuple[Holder, ...]] = {}
        for device, by_pod in self._holders.items():
            ordered = [one for pod in sorted(by_pod) for one in _containers(by_pod[pod])]
            if len(ordered) > MOST_HOLDERS:
                self._tell(f"a device has more than {MOST_HOLDERS} holders, and the rest is left out", device)
            holders[device] = tuple(ordered[:MOST_HOLDERS])
        problems = tuple(sorted(_sentence(what, about) for what, about in self._told.items()))
        return Holdings(holders, dict(self._outside), problems, self._pods_known())

    def _pods_known(self) -> dict[tuple[str, str], HolderPod]:
        return {
            name: HolderPod(self._bound_s.get(name), self._unknown[name])
            for name in sorted(self._bound_s.keys() | self._unknown.keys())
        }

    def _pod(self, allocation: Allocation) -> LocalPod | None:
        if self._pods is None:
            return LocalPod(allocation.namespace, allocation.pod, "")
        pod = self._pods.by_name(allocation.namespace, allocation.pod)
        if pod is None:
            self._tell(
                "kubelet lists pods with devices that the API server does not have on this node",
                f"{allocation.namespace}/{allocation.pod}",
            )
        return None if pod is None or pod.has_ended else pod

    def _known(self, namespace: str, name: str) -> LocalPod:
        pod = self._pods.by_name(namespace, name) if self._pods is not None else None
        return pod if pod is not None else LocalPod(namespace, name, "")

    def _hold(
        self, device: str, pod: LocalPod, container: str, source: HolderSource, is_replica: bool = False
    ) -> None:
        if pod.bound_s is not None:
            self._bound_s[pod.namespace, pod.name] = pod.bound_s
        of_pod = self._holders.setdefault(device, {}).setdefault(_key(pod), {})
        shares = (of_pod[container].shares if container in of_pod else 0) + is_replica
        of_pod[container] = Holder(
            pod.namespace, pod.name, pod.uid, container, pod.owner, source, shares, pod.queue
        )

    def _tell(self, what: str, about: str) -> None:
        self._told.setdefault(what, set()).add(about)


def _key(pod: LocalPod) -> _PodKey:
    return pod.namespace, pod.name, pod.uid


def _containers(by_name: Mapping[str, Holder]) -> list[Holder]:
    """In order; a process of a container that is not known yet tells nothing beside one that is."""
    holders = [by_name[name] for name in sorted(by_name)]
    if len(holders) > 1 and not holders[0].container and holders[0].source == HolderSource.CGROUP:
        return holders[1:]
    return holders


def _is_accelerator(resource: str) -> bool:
    entry = builtin_catalogue().device(resource)
    return entry is not None and entry.catalogued and entry.is_accelerator


def _sentence(what: str, about: set[str]) -> str:
    shown = ", ".join(sorted(about)[:_SHOWN])
    return f"{what} ({shown}{f' and {len(about) - _SHOWN} more' if len(about) > _SHOWN else ''})"
