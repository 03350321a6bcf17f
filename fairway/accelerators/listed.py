"""What one of a resource is where no label of the node says it, from the devices that its agent lists.

NVIDIA's plain resource may mean whole GPUs, replicas of them, or MIG instances that are all alike (MIG
strategy ``single``); GPU feature discovery labels which, and is not everywhere. What the agent lists and what
the node advertises tell it mostly: the one is a multiple of the other.
"""

from collections import Counter
from collections.abc import Container
from functools import lru_cache
from sys import intern

import msgspec

from fairway.accelerators.mig_geometry import profile_name
from fairway.kube.node_devices import HolderSource, Missing, NodeDevice, NodeDevices


class Listed(msgspec.Struct, frozen=True, gc=False):
    """The devices that the agent of one node lists.

    ``product``: of all GPUs, empty where they differ. ``counts``: by MIG profile, GPUs that are not cut under
    the empty name; ``gpus``: all GPUs, cut or not.
    ``are_replicas``: whether kubelet gives replicas of them to pods, None where nobody tells.
    ``is_partial``: there are more devices than these. ``withheld``, ``gpus_withheld``: how many of ``counts``
    and ``gpus`` kubelet may not give. ``by_instance``: it gives MIG instances.
    """

    product: str = ""
    counts: tuple[tuple[str, int], ...] = ()
    gpus: int = 0
    are_replicas: bool | None = None
    is_partial: bool = False
    withheld: tuple[tuple[str, int], ...] = ()
    gpus_withheld: int = 0
    by_instance: bool = False

    def count(self, profile: str) -> int:
        """How many of a profile there are."""
        return dict(self.counts).get(profile, 0)

    def piece(self, advertised: int) -> str | None:
        """What a plain resource stands for that is advertised so many times: a profile, empty for GPUs that
        are not cut, None for whole GPUs though MIG is on (MIG strategy ``none``).
        """
        if self.gpus == self.count(""):
            return ""
        profile = self.counts[0][0] if len(self.counts) == 1 else ""
        pieces = self.count(profile)
        if advertised == pieces or not advertised or (profile and self.by_instance):
            return profile
        if advertised == self.gpus:
            return None
        if pieces and (advertised % pieces == 0 or (advertised < pieces and not self.are_replicas)):
            # Fewer of them: some are unhealthy.
            return profile
        return profile if advertised % self.gpus else None

    def replicas(self, piece: str | None, allocatable: int, capacity: int) -> int:
        """How many replicas there are of each of what the resource stands for, by `piece`.

        kubelet keeps in capacity what a plugin withdraws, but not what one that starts does not find: what
        pods may have is counted against the devices that kubelet may give.
        """
        devices, withheld = self.gpus, self.gpus_withheld
        if piece is not None:
            devices, withheld = self.count(piece), dict(self.withheld).get(piece, 0)
        offered = devices - withheld
        if withheld and offered and allocatable % offered == 0 and self.are_replicas is not False:
            times = allocatable // offered
            if times and capacity % times == 0 and offered <= capacity // times <= devices:
                return self.times(offered, allocatable)
        return self.times(devices, capacity)

    def times(self, devices: int, advertised: int) -> int:
        """How many replicas there are of each of so many devices that are advertised so many times."""
        if self.are_replicas is False or not 0 < devices < advertised:
            return 1
        if self.are_replicas:
            # No multiple of them where some are not advertised, being unhealthy.
            return -(-advertised // devices)
        return 1 if self.is_partial or advertised % devices else advertised // devices


def listed(found: NodeDevices) -> Listed:
    """What the object lists."""
    devices = found.devices
    cut = {device.parent for device in devices if device.parent}
    counted = [device for device in devices if is_counted(device, cut)]
    counts = Counter(map(profile_of, counted))
    withheld = Counter(profile_of(device) for device in counted if device.schedulable is False)
    # Only an agent tells of shares; whoever else makes such objects knows just who holds what.
    shares = [
        holder.shares > 0
        for device in devices
        for holder in device.holders or ()
        if holder.source == HolderSource.POD_RESOURCES
    ]
    products = {device.product for device in devices if not device.parent}
    return _shared(
        products.pop() if len(products) == 1 else "",
        tuple(sorted(counts.items())),
        sum(not device.parent for device in devices),
        True if any(shares) else False if shares and found.agent.version else None,
        Missing.DEVICES in (found.agent.missing or ()),
        tuple(sorted(withheld.items())),
        sum(device.schedulable is False for device in devices if not device.parent),
        any(device.parent and device.schedulable for device in devices),
    )


def is_counted(device: NodeDevice, cut: Container[str]) -> bool:
    """Whether it can be given as it is: not a GPU that is cut (is among ``cut``), or may be."""
    return bool(device.parent) or not (device.mig_enabled or device.id in cut)


def profile_of(device: NodeDevice) -> str:
    """The profile of a MIG instance as resource names have it; empty for a GPU."""
    return intern(profile_name(device.mig_profile)) if device.parent else ""


@lru_cache(maxsize=1024)
def _shared(
    product: str,
    counts: tuple[tuple[str, int], ...],
    gpus: int,
    are_replicas: bool | None,
    is_partial: bool,
    withheld: tuple[tuple[str, int], ...],
    gpus_withheld: int,
    by_instance: bool,
) -> Listed:
    """The same object for nodes that have the same."""
    return Listed(product, counts, gpus, are_replicas, is_partial, withheld, gpus_withheld, by_instance)
