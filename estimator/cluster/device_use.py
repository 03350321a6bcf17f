"""What pods use of one device, and what of it that leaves."""

from dataclasses import dataclass, field

from fairway.accelerators.devices import PPM, Device, DeviceUse

NUMBERS = ("memory", "cores", "slots", "numa", "memory_free", "cores_free", "slots_free", "touched")
"""What is said of each device in numbers; nothing is free on one that takes no pods."""

# Whatever is counted stays exact in the floating point that sums are taken in.
_MOST = 2**40


@dataclass(slots=True)
class Use:
    """All that the pods of a node use of one device, whether or not the node has it.

    ``parts``: how often a part of the device's memory is used, by its millionths; each is rounded by itself.
    """

    memory: int = 0
    parts: dict[int, int] = field(default_factory=dict)
    cores: int = 0
    pods: int = 0
    exclusive: int = 0

    def add(self, use: DeviceUse, pods: int) -> None:
        """So many more pods (fewer, if negative) use this of the device."""
        self.memory += pods * use.memory
        if use.memory_ppm:
            self.parts[use.memory_ppm] = self.parts.get(use.memory_ppm, 0) + pods
            if not self.parts[use.memory_ppm]:
                del self.parts[use.memory_ppm]
        self.cores += pods * use.cores
        self.pods += pods
        self.exclusive += pods * use.exclusive

    def numbers(self, device: Device) -> tuple[int, ...]:
        """The `NUMBERS` of the device with this used of it."""
        memory_used = self.memory + sum(
            device.memory * ppm // PPM * times for ppm, times in self.parts.items()
        )
        slots_used = device.slots if self.exclusive else self.pods
        # More than a device has leaves nothing on it, and all of its cores not even what asks for none.
        is_open = memory_used <= device.memory and (self.cores < device.cores or not device.cores)
        numbers = (
            device.memory,
            device.cores,
            device.slots,
            device.numa,
            device.memory - memory_used if device.usable else 0,
            device.cores - self.cores if device.usable else 0,
            device.slots - slots_used if device.usable and is_open else 0,
            int(self.pods > 0),
        )
        return tuple(min(_MOST, max(0, number)) for number in numbers)


UNUSED = Use()
"""Nothing is used. Not to be added to."""
