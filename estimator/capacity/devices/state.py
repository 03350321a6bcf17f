"""What devices have and what of it is free, and what a claim makes of that: shares, counted and taken.

All arithmetic is elementwise on arrays of one shape: a vector of all devices of a cluster, or a matrix with
the devices of a node in each row. One rule thus serves both.
"""

from dataclasses import dataclass, fields, replace

import numpy as np

from estimator.cluster.columns import IntVector
from estimator.cluster.devices import DeviceColumns
from fairway.accelerators.devices import PPM, DeviceClaim

UNLIMITED = 2**31 - 1


@dataclass(frozen=True, slots=True)
class DeviceState:
    """Devices, as `estimator.cluster.device_use.NUMBERS` has them; the last four change as pods come."""

    memory: IntVector
    cores: IntVector
    slots: IntVector
    numa: IntVector
    memory_free: IntVector
    cores_free: IntVector
    slots_free: IntVector
    touched: IntVector

    @classmethod
    def of(cls, table: DeviceColumns) -> "DeviceState":
        """The devices as they are. Not to be taken from: `copy` that."""
        return cls(*table.numbers)

    def copy(self) -> "DeviceState":
        """The same, to take from."""
        return replace(self, **{name: getattr(self, name).copy() for name in _CHANGING})

    def at(self, which: IntVector) -> "DeviceState":
        """A copy of some of the devices, in the shape of ``which``."""
        return DeviceState(*(getattr(self, name)[which] for name in _NUMBERS))

    def put(self, which: IntVector, part: "DeviceState") -> None:
        """Take over what has been taken from a part that `at` copied."""
        for name in _CHANGING:
            getattr(self, name)[which] = getattr(part, name)

    def with_new(self, memory: IntVector) -> "DeviceState":
        """These devices and then new ones of so much memory each, for any number of pods."""
        nothing, any_number = np.zeros_like(memory), np.full_like(memory, UNLIMITED)
        new = DeviceState(memory, nothing, any_number, nothing, memory, nothing, any_number, nothing)
        return DeviceState(*(np.concatenate([getattr(self, n), getattr(new, n)]) for n in _NUMBERS))

    def shares(self, claim: DeviceClaim) -> IntVector:
        """How many of the claim's shares each device takes, if it is allowed: each of another pod."""
        need = claim.memory or _memory_of(self.memory, claim)
        need_cores = claim.cores or _cores_of(self.cores, claim)
        asks_cores = claim.cores or claim.cores_ppm
        if claim.exclusive:
            free = (self.touched == 0) & (self.slots_free > 0) & (self.memory_free >= need)
            if asks_cores:
                free &= (self.cores_free >= need_cores) | (self.cores == 0)
            shares: IntVector = free.astype(np.int64)
            return shares
        if claim.memory:
            shares = np.minimum(self.slots_free, self.memory_free // claim.memory)
        else:
            shares = self.slots_free.copy()
            if claim.memory_ppm:
                np.minimum(shares, self.memory_free // np.maximum(need, 1), out=shares, where=need > 0)
        if asks_cores:
            np.minimum(shares, self.cores_free // need_cores, out=shares, where=self.cores > 0)
        return shares

    def take(self, claim: DeviceClaim, taken: IntVector) -> None:
        """Take so many of the claim's shares from each device, no more than it has."""
        memory, cores = self.memory_free, self.cores_free
        memory -= taken * (claim.memory or _memory_of(self.memory, claim))
        cores -= taken * (claim.cores or _cores_of(self.cores, claim)) * (self.cores > 0)
        slots, touched = self.slots_free, self.touched
        slots -= np.minimum(taken * (self.slots if claim.exclusive else 1), slots)
        # A device whose cores are all in use takes nobody, as `DeviceColumns` has it.
        slots *= (cores > 0) | (self.cores == 0)
        touched |= taken > 0


_NUMBERS = tuple(column.name for column in fields(DeviceState))
_CHANGING = ("memory_free", "cores_free", "slots_free", "touched")


def new_shares(memory: IntVector, claim: DeviceClaim) -> IntVector:
    """How many of the claim's shares a new device of so much memory takes."""
    shares = memory // np.maximum(claim.memory or _memory_of(memory, claim), 1)
    return np.minimum(shares, 1) if claim.exclusive else shares


def _memory_of(memory: IntVector, claim: DeviceClaim) -> IntVector:
    return memory if claim.memory_ppm == PPM else memory * claim.memory_ppm // PPM


def _cores_of(cores: IntVector, claim: DeviceClaim) -> IntVector:
    if not claim.cores_ppm:
        return np.zeros_like(cores)
    return np.maximum(cores * claim.cores_ppm // PPM, 1)
