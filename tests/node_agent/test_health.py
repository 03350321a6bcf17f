"""What is wrong with a device, and when it is over."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fairway.accelerators.nvidia_codes import XidKind, xid_kind
from fairway.kube.node_devices import Health
from node_agent.health import WATCHED_S, HeldXid, Vitals, held, troubles, was_reset

WELL = Vitals(uncorrected_ecc=0, row_pending=False, row_failed=False, recovery="", energy_millijoules=500)
OLD = Vitals(uncorrected_ecc=0, page_pending=False, energy_millijoules=500)
DEGRADED, UNHEALTHY, LOST = Health.DEGRADED, Health.UNHEALTHY, Health.LOST


@pytest.mark.parametrize(
    ("vitals", "found"),
    [
        (WELL, {}),
        (OLD, {}),
        (Vitals(), {}),
        (Vitals(lost="GPU is lost", uncorrected_ecc=4), {"Lost": LOST}),
        (Vitals(uncorrected_ecc=2, row_pending=False), {"UncorrectedEcc": DEGRADED}),
        (Vitals(uncorrected_ecc=2, recovery=""), {"UncorrectedEcc": DEGRADED}),
        (Vitals(uncorrected_ecc=2, page_pending=False), {"UncorrectedEcc": UNHEALTHY}),
        (Vitals(row_pending=True), {"RowRemapPending": DEGRADED}),
        (Vitals(row_failed=True), {"RowRemapFailed": UNHEALTHY}),
        (Vitals(page_pending=True), {"PageRetirementPending": DEGRADED}),
        (Vitals(recovery="GpuReset"), {"RecoveryAction": UNHEALTHY}),
        (Vitals(recovery="NodeReboot"), {"RecoveryAction": UNHEALTHY}),
        (Vitals(recovery="Action9"), {"RecoveryAction": UNHEALTHY}),
        (Vitals(recovery="RecoverImexDomain"), {"RecoveryAction": DEGRADED}),
        (Vitals(throttled=frozenset({"HwThermalSlowdown"})), {"HwThermalSlowdown": DEGRADED}),
        (
            Vitals(throttled=frozenset({"HwSlowdown", "HwPowerBrakeSlowdown", "SwPowerCap"})),
            {"HwSlowdown": DEGRADED, "HwPowerBrakeSlowdown": DEGRADED},
        ),
        (Vitals(throttled=frozenset({"SwPowerCap", "SwThermalSlowdown"})), {}),
    ],
)
def test_vitals(vitals: Vitals, found: dict[str, Health]) -> None:
    assert {trouble.code: trouble.health for trouble in troubles(vitals)} == found


@pytest.mark.parametrize(
    ("xids", "kind"),
    [
        ((13, 31, 43, 45, 68, 109, 8, 32, 69, 80, 154, 166, 171), XidKind.APPLICATION),
        ((46, 54, 62, 64, 79, 95, 119, 120, 140, 143, 151, 156, 158), XidKind.RESET),
        ((48, 74, 144, 150), XidKind.JUDGED),
        ((63, 92, 94, 121, 157, 5, 999), XidKind.WATCH),
    ],
)
def test_kinds_of_xids(xids: tuple[int, ...], kind: XidKind) -> None:
    assert {xid: xid_kind(xid) for xid in xids} == dict.fromkeys(xids, kind)


@pytest.mark.parametrize(
    ("xid", "recovery", "health"),
    [
        (79, "", UNHEALTHY),
        (79, None, UNHEALTHY),
        (119, "", UNHEALTHY),
        (94, None, DEGRADED),
        (63, "", DEGRADED),
        (48, None, UNHEALTHY),
        (48, "", DEGRADED),
        (48, "GpuReset", UNHEALTHY),
        (145, "", DEGRADED),
        (4711, None, DEGRADED),
    ],
)
def test_what_an_xid_makes_of_the_device(xid: int, recovery: str | None, health: Health) -> None:
    found = {each.code: each for each in troubles(Vitals(recovery=recovery), [HeldXid(xid, 0.0)])}
    assert found[f"Xid{xid}"].health == health
    assert f"XID {xid}: " in found[f"Xid{xid}"].message


@pytest.mark.parametrize(
    ("before", "now", "reset"),
    [
        (WELL, WELL, False),
        (Vitals(energy_millijoules=500), Vitals(energy_millijoules=3), True),
        (Vitals(energy_millijoules=500), Vitals(energy_millijoules=501), False),
        (Vitals(energy_millijoules=500), Vitals(), False),
        (Vitals(uncorrected_ecc=2), Vitals(uncorrected_ecc=0), True),
        (Vitals(recovery="GpuReset"), Vitals(recovery=""), True),
        (Vitals(recovery="GpuReset"), Vitals(recovery=None), False),
        (Vitals(recovery=""), Vitals(recovery="GpuReset"), False),
        (Vitals(lost="no driver"), WELL, True),
        (WELL, Vitals(lost="GPU is lost"), False),
        (Vitals(lost="GPU is lost"), Vitals(lost="GPU is lost"), False),
    ],
)
def test_a_reset_is_seen_by_what_starts_again(before: Vitals, now: Vitals, reset: bool) -> None:
    assert was_reset(before, now) is reset


RESET_NOW = Vitals(energy_millijoules=1)


@pytest.mark.parametrize(
    ("before", "new", "now", "now_s", "holds"),
    [
        ([79], [], WELL, 10 * WATCHED_S, {79}),
        ([79, 94], [], RESET_NOW, 1.0, set()),
        ([79], [119], RESET_NOW, 1.0, {119}),
        ([], [13, 43, 154], WELL, 1.0, set()),
        ([94], [], WELL, WATCHED_S - 1, {94}),
        ([94], [], WELL, WATCHED_S, set()),
        ([48], [], WELL, WATCHED_S, set()),
        ([48], [], OLD, WATCHED_S, {48}),
        ([63, 79], [63], WELL, 1.0, {63, 79}),
    ],
)
def test_how_long_an_xid_holds(
    before: list[int], new: list[int], now: Vitals, now_s: float, holds: set[int]
) -> None:
    xids = held(
        [HeldXid(each, 0.0) for each in before], [HeldXid(each, now_s) for each in new], WELL, now, now_s
    )
    assert {each.xid for each in xids} == holds
    assert len(xids) == len(holds)


def test_an_xid_of_one_instance_is_no_trouble_of_another() -> None:
    xids = [HeldXid(119, 0.0, gpu_instance=3), HeldXid(94, 0.0)]

    def found(gpu_instance: int | None) -> dict[str, Health]:
        return {each.code: each.health for each in troubles(WELL, xids, gpu_instance)}

    assert found(3) == {"Xid119": UNHEALTHY, "Xid94": DEGRADED}
    assert found(5) == {"Xid94": DEGRADED}
    assert found(None) == {"Xid119": DEGRADED, "Xid94": DEGRADED}


xid_lists = st.lists(
    st.builds(HeldXid, st.integers(0, 200), st.floats(0, 9e3), st.none() | st.integers(0, 3))
)


@given(xid_lists, xid_lists, st.floats(0, 1e5))
def test_what_holds_is_never_more_than_was_told_and_holding_is_stable(
    before: list[HeldXid], new: list[HeldXid], now_s: float
) -> None:
    once = held(before, new, WELL, WELL, now_s)
    assert set(once) <= {*before, *new}
    assert held(once, [], WELL, WELL, now_s) == once
