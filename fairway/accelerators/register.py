"""The devices of a node as a device plugin registers them in an annotation, in every form HAMi has used.

The newer form is a JSON list of objects. The older one is text: devices ended by ``:``, their fields
divided by ``,`` in a fixed order of seven (``id,count,memory,cores,type,numa,healthy``) or nine (with
``index,mode`` after them). Each device is read by itself, so one broken entry does not cost the others;
HAMi drops the whole node then, until its next reading.

Mirrors pkg/device/devices.go of HAMi 2.4 to 2.10. As there, whatever JSON leaves out is zero, false or empty:
a device without ``health`` is unhealthy. Memory is in MiB.
"""

from collections.abc import Callable, Iterator

import msgspec

from fairway.accelerators.annotation import (
    MOST,
    MOST_ENTRIES,
    UNDECODABLE,
    json_bytes,
    shown,
    summed_up,
    truth,
    whole_number,
)
from fairway.accelerators.devices import Read

MIG = "mig"
"""The mode of a device that is cut into parts as pods come."""

_DEFAULT_MODE = "hami-core"
_UNKNOWN_NUMA = 63

ReadEntry = Callable[[str, int], "Registered | str"]
"""The device of an entry of the older form, by its number from 1; or what is wrong with it."""


class _Part(msgspec.Struct):
    memory: int = msgspec.field(default=0, name="memoryMB")


class Registered(msgspec.Struct):
    """One device as it was registered, in the fields of the newer form.

    ``count``: how many pods may share it. ``parts``: those that can be cut out of a device in MIG mode.
    ``numa``: to be read by `numa_node`.
    """

    id: str = ""
    index: int = 0
    count: int = 0
    memory: int = msgspec.field(default=0, name="devmem")
    cores: int = msgspec.field(default=0, name="devcore")
    product: str = msgspec.field(default="", name="type")
    numa: int = 0
    mode: str = ""
    healthy: bool = msgspec.field(default=False, name="health")
    parts: list[_Part] | None = msgspec.field(default=None, name="migProfiles")

    @property
    def memory_to_cut(self) -> int:
        """The memory of the largest part, or all of it where the annotation does not say."""
        largest = max((part.memory for part in self.parts or ()), default=0)
        return min(largest, self.memory) if largest > 0 else self.memory


def read_register(name: str, text: str, read: ReadEntry) -> Read[tuple[Registered, ...]]:
    """The devices that the annotation of this name lists, each id once; those unreadable are left out."""
    problems: list[str] = []
    twice: list[str] = []
    by_id: dict[str, Registered] = {}
    is_json = text.lstrip().startswith(("[", "{")) or text.strip() == "null"
    listed = _json_devices(name, text, problems) if is_json else _text_devices(name, text, read, problems)
    for where, device in listed:
        if isinstance(device, str):
            problems.append(f"annotation {name}, device {where}: {device}; it takes no pods")
        elif device.id in by_id:
            twice.append(f"annotation {name} lists device {shown(device.id)} twice; the first one counts")
        else:
            by_id[device.id] = device
    return Read(tuple(by_id.values()), summed_up(problems + twice, name))


def numa_node(number: int) -> int:
    """The number of a NUMA node; whatever is negative or beyond reason counts as one node by itself."""
    return number if 0 <= number < _UNKNOWN_NUMA else _UNKNOWN_NUMA


def _json_devices(name: str, text: str, problems: list[str]) -> Iterator[tuple[str, Registered | str]]:
    try:
        entries = msgspec.json.decode(json_bytes(text), type=list[msgspec.Raw] | None) or []
    except UNDECODABLE as error:
        problems.append(f"annotation {name} is no JSON list of devices ({error}); its devices take no pods")
        return
    if len(entries) > MOST_ENTRIES:
        problems.append(f"annotation {name} lists {len(entries)} devices; only {MOST_ENTRIES} are read")
    for number, raw in enumerate(entries[:MOST_ENTRIES], start=1):
        try:
            device = msgspec.json.decode(raw, type=Registered)
            yield str(number), _fault(device) or device
        except UNDECODABLE as error:
            yield str(number), str(error)


def _fault(entry: Registered) -> str:
    if not entry.id:
        return "it has no id"
    amounts = {"index": entry.index, "count": entry.count, "devmem": entry.memory, "devcore": entry.cores}
    for field, amount in amounts.items():
        if not 0 <= amount <= MOST:
            return f"{field} is {shown(str(amount)[:80])}, expected a number from 0 to {MOST}"
    return ""


def _text_devices(
    name: str, text: str, read: ReadEntry, problems: list[str]
) -> Iterator[tuple[str, Registered | str]]:
    entries = [entry for entry in text.split(":", 4 * MOST_ENTRIES) if entry]
    if not entries:
        problems.append(f"annotation {name} is empty; expected a list of devices")
    if len(entries) > MOST_ENTRIES:
        problems.append(f"annotation {name} lists more than {MOST_ENTRIES} devices; no more are read")
    for number, entry in enumerate(entries[:MOST_ENTRIES], start=1):
        yield f"{number} ({shown(entry)})", read(entry, number)


def text_device(entry: str, number: int) -> Registered | str:
    """The device of an entry of HAMi's older form."""
    fields = entry.split(",", 16)
    if len(fields) not in (7, 9):
        return f"it has {len(fields)} fields, expected 7 or 9"
    count, memory, cores = (whole_number(field) for field in fields[1:4])
    numa = whole_number(fields[5].removeprefix("-"))
    healthy = truth(fields[6])
    index, mode = (whole_number(fields[7]), fields[8]) if len(fields) == 9 else (0, _DEFAULT_MODE)
    if not fields[0]:
        return "it has no id"
    if count is None or memory is None or cores is None or index is None:
        return f"count, memory, cores and index must be numbers from 0 to {MOST}"
    if numa is None or healthy is None:
        return "its NUMA node must be a number and its health true or false"
    node = -1 if fields[5].startswith("-") else numa
    return Registered(fields[0], index, count, memory, cores, fields[4], node, mode, healthy)
