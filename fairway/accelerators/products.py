"""What the devices of one node are: product, pieces, and how many stand behind the advertised number.

Labels describe, allocatable counts. The plain name ``nvidia.com/gpu`` may mean whole GPUs, time-sliced or MPS
replicas, or MIG pieces; only labels tell, and labels can be stale, absent, or speak of one of two models in
a node. So the multiplier that they state is believed only where it agrees with what the node advertises;
where it does not, that is a problem to report and allocatable wins: each advertised device is one device.

Labels as GPU feature discovery writes them (k8s-device-plugin, internal/lm, 2026): ``.replicas`` is per
device, 0 where sharing does not apply; ``.count`` is of devices, or of pieces with MIG strategy single;
``.product`` ends in ``-SHARED`` when replicas keep the plain name and has ``-MIG-<profile>`` with strategy
single; ``.memory`` is in MiB (bytes in old releases). AMD's labeller rounds memory to whole GiB: ``192G``.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass

from fairway.accelerators.catalogue import DeviceClass, Entry, Role
from fairway.accelerators.devices import Read

_SHARED_SUFFIX = "-SHARED"
_MIG_INFIX = "-MIG-"
_INVALID = "INVALID"
# AMD's name for a GPU that is one partition.
_UNCUT = "spx_"
_SHARING = {"time-slicing": "time-slicing", "time-sharing": "time-slicing", "mps": "mps"}
_INTEGER = re.compile(r"[0-9]{1,18}")
_MEMORY = re.compile(r"[0-9]{1,18}(?:[GM](?:i?B|i)?)?")
_SHOWN = 63


@dataclass(frozen=True, slots=True)
class NodeProduct:
    """The devices behind one resource of one node.

    ``device_class`` as name and labels together tell it. ``product`` without the suffixes that sharing and
    MIG add, empty where nothing tells it; ``partition``: the piece that each device is, such as a MIG
    profile. ``advertised_per_device``: each is advertised so many times, by ``sharing`` (``time-slicing``,
    ``mps`` or empty).
    """

    resource: str
    device_class: DeviceClass
    product: str
    partition: str
    advertised_per_device: int
    sharing: str = ""

    @property
    def piece(self) -> str:
        """The piece that one of it is; ``partition`` of hosts that are of use together is their shape."""
        return "" if self.device_class is DeviceClass.ATOMIC else self.partition


def node_product(
    entry: Entry, labels: Mapping[str, str], allocatable: int, capacity: int | None = None
) -> Read[NodeProduct]:
    """What the devices are of which the node advertises ``allocatable`` under the entry's resource."""
    problems: list[str] = []
    key, text = _first(labels, entry.labels.product)
    text, shared = text.removesuffix(_SHARED_SUFFIX), text.endswith(_SHARED_SUFFIX)
    product, _, piece = text.partition(_MIG_INFIX)
    if piece == _INVALID:
        problems.append(
            f"label {key}: says {_shown(text)}: expected one MIG profile on all GPUs (strategy single)"
        )
        piece = ""
    _, layout = _first(labels, entry.labels.partition)
    partition = piece or ("" if layout.startswith(_UNCUT) else layout) or entry.partition
    device_class = entry.device_class
    if device_class is DeviceClass.WHOLE and partition:
        device_class = DeviceClass.PARTITION
    per_device = 1
    if entry.role is Role.COUNT and device_class in _COUNTED:
        # A label that only names the piece says nothing of how many there are of it.
        counts_pieces = bool(piece) or not (layout and device_class is DeviceClass.PARTITION)
        shared |= device_class is DeviceClass.SHARED
        advertised = _Advertised(entry, labels, allocatable, capacity, counts_pieces, shared)
        per_device = advertised.per_device(problems)
    if per_device > 1:
        device_class = DeviceClass.SHARED
    _, sharing = _first(labels, entry.labels.sharing)
    key, memory = _first(labels, entry.labels.memory)
    if memory and not _MEMORY.fullmatch(memory):
        problems.append(f"label {key}: expected MiB, or a size such as 64G, found {_shown(memory)}: not used")
    return Read(
        NodeProduct(
            resource=entry.resource,
            device_class=device_class,
            product=product or entry.product,
            partition=partition,
            advertised_per_device=per_device,
            sharing=_SHARING.get(sharing, "") if per_device > 1 else "",
        ),
        tuple(problems),
    )


_COUNTED = (DeviceClass.WHOLE, DeviceClass.PARTITION, DeviceClass.SHARED)


@dataclass(frozen=True, slots=True)
class _Advertised:
    """What a node advertises of a resource against what its labels say."""

    entry: Entry
    labels: Mapping[str, str]
    allocatable: int
    capacity: int | None
    counts_pieces: bool
    shared: bool

    def per_device(self, problems: list[str]) -> int:
        """How many times each device is advertised, as far as that can be believed."""
        total = self.allocatable if self.capacity is None else max(self.capacity, self.allocatable)
        count_key, count = _integer(self.labels, self.entry.labels.count, problems)
        key, times = _integer(self.labels, self.entry.labels.multiplier, problems)
        if not self.counts_pieces:
            count = 0
        if not total:
            return max(times, 1)
        if times <= 1:
            if count and total > count:
                return self._without_multiplier(count_key, count, total, problems)
            return 1
        if not count:
            if total % times == 0:
                return times
            problems.append(f"label {key}: says {times}: expected {self._seen(total)} to be a multiple of it")
            return 1
        if total == count * times:
            return times
        replicas = total % times == 0 and total != count
        # Fewer of them: the other devices are unhealthy.
        if replicas and total < count * times and self.capacity is None:
            return times
        problems.append(
            f"labels {count_key} and {key}: say {count} times {times}, but the node has {self._seen(total)}: "
            + (f"counted as {total // times} devices" if replicas else "each counted as one device")
        )
        return times if replicas else 1

    def _without_multiplier(self, key: str, count: int, total: int, problems: list[str]) -> int:
        """More are advertised than there are devices, and no label says how many times."""
        if total % count == 0 and (self.shared or not self.entry.labels.multiplier):
            return total // count
        problems.append(
            f"label {key}: says {count}, but the node has {self._seen(total)}: each counted as one device, "
            "and the product may be that of some of them only"
        )
        return 1

    def _seen(self, total: int) -> str:
        return f"{total} of {self.entry.resource}"


def _integer(labels: Mapping[str, str], keys: tuple[str, ...], problems: list[str]) -> tuple[str, int]:
    key, text = _first(labels, keys)
    if text and not _INTEGER.fullmatch(text):
        problems.append(f"label {key}: expected a whole number, found {_shown(text)}: not used")
        return key, 0
    return key, int(text or 0)


def _first(labels: Mapping[str, str], keys: tuple[str, ...]) -> tuple[str, str]:
    """The first of the keys that the node has a value for, and the value; empty where there is none."""
    for key in keys:
        value = labels.get(key)
        if value:
            return key, value
    return "", ""


def _shown(text: str) -> str:
    return repr(text if len(text) <= _SHOWN else f"{text[:_SHOWN]}...")
