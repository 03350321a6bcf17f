"""What is wrong with a device, and since when it is not any more: rules, as tables.

Two sources. *Vitals* are read each time, and a trouble that they show ends with the first read that does not
show it. *XIDs* are errors that the driver tells of once, so that they are held, by their kind
(`fairway.accelerators.nvidia_codes`): those after which a device needs a reset until it was reset
(`was_reset`), those to be watched until `WATCHED_S` pass without another, the application's own not at all.

A reset shows in NVML as counters that start again: the energy since the driver was loaded, the memory errors
since the last reset; as a recovery action that the driver withdraws; and as a device that comes back after it
was lost.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from fairway.accelerators.nvidia_codes import JUDGED_XIDS, RESET_XIDS, XidKind, xid_kind, xid_meaning
from fairway.kube.node_devices import Health
from node_agent.reading import Trouble

WATCHED_S = 3600.0


_THROTTLES = {
    "HwSlowdown": "the hardware holds the clocks down to half or less",
    "HwThermalSlowdown": "the hardware holds the clocks down because it is too hot",
    "HwPowerBrakeSlowdown": "the power supply makes the hardware hold the clocks down",
}
_MILD_ACTIONS = frozenset({"RecoverImexDomain"})
"""Recovery actions that are not about the device itself: pods without multi-node NVLink can use it."""


@dataclass(frozen=True, slots=True)
class Vitals:
    """What a device tells of its health at one moment; None where it does not tell.

    ``recovery``: the driver's recovery action, empty for none. ``row_pending``, ``row_failed``: of the row
    remapping that Ampere and newer have; ``page_pending``: of the page retirement before.
    """

    lost: str = ""
    uncorrected_ecc: int | None = None
    row_pending: bool | None = None
    row_failed: bool | None = None
    page_pending: bool | None = None
    recovery: str | None = None
    energy_millijoules: int | None = None
    throttled: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True)
class HeldXid:
    """An XID that is not over. ``gpu_instance``: the one that it is about, None for the whole device."""

    xid: int
    at_s: float
    gpu_instance: int | None = None


def was_reset(before: Vitals, now: Vitals) -> bool:
    """Whether the device was reset, or its driver reloaded, between two reads."""
    if now.lost:
        return False
    if before.lost:
        return True
    return (
        _fell(before.energy_millijoules, now.energy_millijoules)
        or _fell(before.uncorrected_ecc, now.uncorrected_ecc)
        or bool(before.recovery and now.recovery == "")
    )


def _fell(before: int | None, now: int | None) -> bool:
    return before is not None and now is not None and now < before


def held(
    before: Sequence[HeldXid], new: Iterable[HeldXid], then: Vitals, now: Vitals, now_s: float
) -> tuple[HeldXid, ...]:
    """The XIDs that hold now, the latest of each number and instance.

    ``then``: the vitals of the read before. A reset between the two ends all XIDs that were held; an event
    that is told together with it counts as after it: held too long is safer than forgotten.
    """
    latest: dict[tuple[int, int | None], HeldXid] = {}
    for each in (*(() if was_reset(then, now) else before), *new):
        if not _is_over(each, now, now_s):
            latest[each.xid, each.gpu_instance] = each
    return tuple(sorted(latest.values(), key=lambda each: (each.xid, each.gpu_instance or -1)))


def _is_over(xid: HeldXid, now: Vitals, now_s: float) -> bool:
    kind = xid_kind(xid.xid)
    watched = kind is XidKind.WATCH or (kind is XidKind.JUDGED and now.recovery == "")
    return kind is XidKind.APPLICATION or (watched and now_s - xid.at_s >= WATCHED_S)


def troubles(
    vitals: Vitals, xids: Iterable[HeldXid] = (), gpu_instance: int | None = None
) -> tuple[Trouble, ...]:
    """All that is wrong with a device; with one MIG instance of it where ``gpu_instance`` is given.

    XIDs of one instance are no trouble of the others, and make their parent degraded at most.
    """
    if vitals.lost:
        return (Trouble("Lost", vitals.lost, Health.LOST),)
    found = [*_vital_troubles(vitals)]
    for each in xids:
        about_others = each.gpu_instance is not None and each.gpu_instance != gpu_instance
        if about_others and gpu_instance is not None:
            continue
        trouble = _xid_trouble(each, vitals)
        if about_others:
            message = f"{trouble.message}, on its GPU instance {each.gpu_instance}"
            trouble = replace(trouble, message=message, health=Health.DEGRADED)
        found.append(replace(trouble, gpu_instance=each.gpu_instance))
    return tuple({trouble.code: trouble for trouble in found}.values())


def _xid_trouble(held: HeldXid, vitals: Vitals) -> Trouble:
    code, message = f"Xid{held.xid}", f"XID {held.xid}: {xid_meaning(held.xid)}"
    if held.xid in RESET_XIDS:
        return Trouble(code, f"{message}; reset it, or restart its node", Health.UNHEALTHY)
    if held.xid in JUDGED_XIDS:
        if vitals.recovery == "":
            return Trouble(code, f"{message}; the driver asks for nothing", Health.DEGRADED)
        return Trouble(code, f"{message}; reset it, or restart its node", Health.UNHEALTHY)
    return Trouble(code, message, Health.DEGRADED)


def _vital_troubles(vitals: Vitals) -> Iterable[Trouble]:
    if vitals.recovery:
        health = Health.DEGRADED if vitals.recovery in _MILD_ACTIONS else Health.UNHEALTHY
        yield Trouble("RecoveryAction", f"the driver asks for its recovery: {vitals.recovery}", health)
    if vitals.uncorrected_ecc:
        # With row remapping an error is contained and its page avoided at once; before, it stays in use.
        contained = vitals.row_pending is not None or vitals.recovery is not None
        yield Trouble(
            "UncorrectedEcc",
            f"{vitals.uncorrected_ecc} memory errors since its last reset could not be corrected",
            Health.DEGRADED if contained else Health.UNHEALTHY,
        )
    if vitals.row_failed:
        yield Trouble(
            "RowRemapFailed",
            "a bad memory row could not be replaced: have the board replaced",
            Health.UNHEALTHY,
        )
    if vitals.row_pending:
        yield Trouble("RowRemapPending", "a bad memory row waits for a reset to be replaced", Health.DEGRADED)
    if vitals.page_pending:
        yield Trouble(
            "PageRetirementPending",
            "a bad memory page waits for a reload of the driver to be retired",
            Health.DEGRADED,
        )
    for reason, message in _THROTTLES.items():
        if reason in vitals.throttled:
            yield Trouble(reason, message, Health.DEGRADED)
