"""NodeDevices (fairway.dev/v1alpha1): what the agent of a node found, cluster-scoped, named as the node.

Written by the node's own agent on change, and every five minutes otherwise. Same rules as in
`fairway.kube.objects`: every field optional, wrong types are located errors, unknown fields are skipped.
"""

from enum import StrEnum

import msgspec

from fairway.kube.objects import ApiObject, KubeStruct
from fairway.kube.resource import ResourceKind


class Health(StrEnum):
    """Whether a device can do work.

    ``DEGRADED``: it works, and somebody has to look (throttled, pages to be retired, corrected errors).
    ``UNHEALTHY``: no pod may be promised it. ``LOST``: the driver does not reach it any more.
    """

    HEALTHY = "Healthy"
    DEGRADED = "Degraded"
    UNHEALTHY = "Unhealthy"
    LOST = "Lost"


class Problem(KubeStruct, frozen=True):
    """What is wrong with a device. ``code``: one word, such as ``Xid79``; ``since``: RFC 3339.

    ``gpu_instance``: the one that it is about, by the driver's number; None for the whole device.
    """

    code: str = ""
    message: str = ""
    since: str = ""
    gpu_instance: int | None = None


class HolderOwner(KubeStruct, frozen=True):
    """The controller of a pod that holds a device."""

    api_version: str = ""
    kind: str = ""
    name: str = ""


class HolderSource(StrEnum):
    """How it is known that a container holds a device.

    ``POD_RESOURCES``: kubelet allocated it. ``ANNOTATION``: kubelet allocated a share, and the sharing scheme
    wrote on the pod of which device. ``CGROUP``: a process of the container runs on it, and was not given it.
    """

    POD_RESOURCES = "PodResources"
    ANNOTATION = "Annotation"
    CGROUP = "Cgroup"


class Holder(KubeStruct, frozen=True):
    """A container that holds a device, or a share of it.

    ``source``: a `HolderSource`. ``shares``: of a device that is shared in time, how many replicas. Names are
    empty where they are not known: of a pod that the API server does not have, only the uid is. ``queue``:
    the LocalQueue that the pod itself names.
    """

    namespace: str = ""
    pod: str = ""
    uid: str = ""
    container: str = ""
    owner: HolderOwner | None = None
    source: str = ""
    shares: int = 0
    queue: str = ""


class DeviceWindow(KubeStruct, frozen=True):
    """What a device did in the last ``windowSeconds`` of the object; None: not measured.

    Utilisation is the percentage of time in which a kernel ran, 0 to 100. ``idle_since``: RFC 3339, set while
    the device does nothing; ``source``: ``NVML``, ``GPM`` or ``DCGM``, and where Prometheus told it ``TPU``,
    ``AMD``, ``Neuron`` or ``Gaudi`` as well.
    """

    utilization_p50: int | None = None
    utilization_p95: int | None = None
    utilization_max: int | None = None
    memory_peak_bytes: int | None = None
    memory_used_bytes: int | None = None
    power_max_milliwatts: int | None = None
    temperature_max_celsius: int | None = None
    throttled_seconds: int | None = None
    samples: int = 0
    idle_since: str | None = None
    source: str = ""


class NodeDevice(KubeStruct, frozen=True):
    """One device, or one MIG instance of the device ``parent``.

    ``id``: its UUID. ``island``: devices of a node that share a number are joined by NVLink, all with all;
    None where there is none. ``clique``: ``<cluster UUID>.<clique>`` as in the label nvidia.com/gpu.clique.
    ``schedulable``: whether kubelet has it, or a share of it, from a device plugin to give to pods, which is
    what the node's allocatable counts: False for one that the plugin calls unhealthy. None where kubelet was
    not asked, or knows none of its kind by id. ``holders``: empty where nobody holds it, None where that is
    not known.
    ``energy_millijoules``: its counter since the driver was loaded, by which a restarted agent knows whether
    the driver still runs that knew what is wrong.
    """

    id: str = ""
    index: int = 0
    product: str = ""
    memory_bytes: int = 0
    bus_id: str = ""
    numa_node: int | None = None
    parent: str = ""
    mig_enabled: bool = False
    mig_profile: str = ""
    island: int | None = None
    clique: str = ""
    schedulable: bool | None = None
    energy_millijoules: int | None = None
    health: str = Health.HEALTHY
    problems: list[Problem] | None = None
    holders: list[Holder] | None = None
    window: DeviceWindow | None = None


class Missing(StrEnum):
    """What of a node the object does not have all of.

    ``DEVICES``: there are more than it lists. ``HOLDERS``: somebody may hold a device and not be listed.
    """

    DEVICES = "Devices"
    HOLDERS = "Holders"


class AgentReport(KubeStruct, frozen=True):
    """The agent that wrote the object. ``problem``: why it knows less than it should, else empty.

    ``missing``: what follows from that for who counts devices, a `Missing` each.
    """

    version: str = ""
    problem: str = ""
    missing: list[str] | None = None


class DriverReport(KubeStruct, frozen=True):
    """The driver of the devices. ``boot_id``: the boot of the node's kernel under which it runs."""

    version: str = ""
    cuda_version: str = ""
    boot_id: str = ""


class NodeDevices(ApiObject, frozen=True):
    """What one node has, in what state, and what it did. ``observed_at``: RFC 3339, by the node's clock.

    ``days``: who held its devices on which day, undecoded: most readers never ask, and what is wrong there
    costs them nothing. See `fairway.kube.usage_days`.
    """

    observed_at: str = ""
    window_seconds: int = 0
    agent: AgentReport = AgentReport()
    driver: DriverReport = DriverReport()
    devices: list[NodeDevice] = msgspec.field(default_factory=list)
    days: msgspec.Raw = msgspec.Raw(b"[]")


NODE_DEVICES = ResourceKind("nodedevices.fairway.dev", "/apis/fairway.dev/v1alpha1/nodedevices", NodeDevices)
