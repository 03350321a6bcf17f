"""What NVIDIA's driver tells by number: errors (XIDs), and why clocks are held down.

    RESET    the device is out until it was reset or its driver reloaded
    JUDGED   the driver says by its recovery action whether a reset is needed; as RESET where it says nothing
    WATCH    it works and somebody has to look
    the application's own faults are not the device's

What XIDs mean is from NVIDIA's catalogue (docs.nvidia.com/deploy/xid-errors, immediate action); the first six
of the application's are those that NVIDIA's device plugin ignores.
"""

from enum import StrEnum


class XidKind(StrEnum):
    """What follows from an XID; see the module."""

    APPLICATION = "Application"
    RESET = "Reset"
    JUDGED = "Judged"
    WATCH = "Watch"


APPLICATION_XIDS = frozenset(
    {13, 31, 43, 45, 68, 109}
    | {8, 11, 25, 32, 37, 38, 39, 40, 41, 44, 60, 66, 67, 69, *range(70, 73), *range(75, 78), 80}
    | {82, 83, 84, 85, 86, 88, 89, *range(96, 108), *range(126, 136), 139, 141, 152, 153}
    | {154, 160, 161, *range(162, 167), 170, 171, 172}
)
"""The application restarts, or nothing is to be done; 154, 171 and 172 only explain another XID."""

RESET_XIDS = {
    46: "the GPU stopped processing",
    54: "the board has no auxiliary power",
    62: "a microcontroller of the GPU halted",
    64: "a bad memory row or page could not be taken out of use",
    79: "the GPU has fallen off the bus",
    95: "an uncontained memory error",
    110: "a security fault",
    119: "the GPU's system processor does not answer",
    120: "an error of the GPU's system processor",
    136: "NVLink training failed",
    140: "an ECC error that was not recovered from",
    143: "the GPU could not be initialised",
    151: "a key rotation failed",
    155: "an NVLink error defined by software",
    156: "a part of the GPU was taken out of use",
    158: "a fatal timeout of the GPU",
    167: "a fatal timeout of PCIe",
    168: "errors in write-protected memory",
    169: "a microcontroller of the GPU halted",
}
JUDGED_XIDS = {
    48: "a double-bit ECC error",
    74: "an NVLink error",
    **dict.fromkeys(range(144, 151), "an NVLink error"),
}
WATCHED_XIDS = {
    63: "a bad memory row or page is taken out of use",
    78: "a vGPU could not be started",
    92: "a high rate of single-bit ECC errors",
    93: "the wear limit of the InfoROM is exceeded",
    94: "a memory error that was contained to its application",
    121: "an error of the link to the CPU",
    137: "an NVLink privilege error",
    142: "an error of a video encoder",
    157: "a part of the GPU could not be taken out of use",
    159: "an error of the link to the CPU",
}

THROTTLE_REASONS = {
    0x04: "SwPowerCap",
    0x08: "HwSlowdown",
    0x20: "SwThermalSlowdown",
    0x40: "HwThermalSlowdown",
    0x80: "HwPowerBrakeSlowdown",
}
"""NVML's ``nvmlClocksEventReason*`` that heat or power is behind, by bit.

Clocks that idling (0x01), somebody's choice (0x02, 0x100), other devices (0x10) or the board's make (0x200,
0x400) keep down are not throttled: nobody can do anything about them.
"""


def xid_kind(xid: int) -> XidKind:
    """What follows from that XID; one that the catalogue does not know is watched."""
    if xid in APPLICATION_XIDS:
        return XidKind.APPLICATION
    if xid in RESET_XIDS:
        return XidKind.RESET
    return XidKind.JUDGED if xid in JUDGED_XIDS else XidKind.WATCH


def xid_meaning(xid: int) -> str:
    """What happened, in a few words."""
    tables = (RESET_XIDS, JUDGED_XIDS, WATCHED_XIDS)
    return next((table[xid] for table in tables if xid in table), "not in the catalogue that is known here")
