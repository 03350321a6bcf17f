"""The devices that a pod was given, as HAMi and Volcano write them into an annotation.

The text is one part per container, ended by ``;``, and in it one entry per device, ended by ``:``, of the
fields ``id,type,memory,cores``; a container without devices leaves its part empty. An entry that names its
device but not how much of it was given counts as all of that device; one that names none cannot be counted.
HAMi takes a pod whose annotation it cannot read for one without devices, so neither is ever less than what
HAMi counts.

Mirrors DecodePodDevices in pkg/device/devices.go of HAMi 2.4 to 2.10 and in
pkg/scheduler/api/devices/nvidia/vgpu/utils.go of Volcano 1.9. Init containers count like the others:
HAMi gives back what only they used once they are done, which the annotation does not show.
"""

from fairway.accelerators.annotation import MOST, MOST_ENTRIES, shown, summed_up, whole_number
from fairway.accelerators.devices import DeviceUse, Read


def read_allocation(name: str, text: str) -> Read[tuple[DeviceUse, ...]]:
    """What the annotation of this name says the pod uses: one use per container and device.

    The part of an id in brackets, which says where on a device a MIG instance lies, is left out.
    """
    uses: list[DeviceUse] = []
    problems: list[str] = []
    entries = 0
    for container, part in enumerate(text.split(";", MOST_ENTRIES), start=1):
        for number, entry in enumerate(part.split(":", MOST_ENTRIES), start=1):
            if not entry:
                continue
            entries += 1
            if entries > MOST_ENTRIES:
                problems.append(f"annotation {name} has more than {MOST_ENTRIES} entries; no more are read")
                return Read(tuple(uses), summed_up(problems, name))
            fields = entry.split(",", 4)
            device = fields[0].partition("[")[0]
            given = [whole_number(field) for field in fields[2:4]]
            memory, cores = given if len(given) == 2 else (None, None)
            if memory is not None and cores is not None and device:
                uses.append(DeviceUse(device, memory, cores))
                continue
            where = f"annotation {name}, container {container}, device {number} ({shown(entry)})"
            expected = f"expected id,type,memory,cores with numbers from 0 to {MOST}"
            if device:
                uses.append(DeviceUse(device, 0, exclusive=True))
                problems.append(f"{where}: {expected}; all of that device counts as used")
            else:
                problems.append(f"{where}: {expected}; it names no device and is not counted")
    return Read(tuple(uses), summed_up(problems, name))
