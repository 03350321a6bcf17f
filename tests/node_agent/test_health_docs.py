"""docs/device-health.md has a row for each code, and no others."""

import re
from pathlib import Path

from fairway.accelerators.nvidia_codes import JUDGED_XIDS, RESET_XIDS, WATCHED_XIDS
from fairway.kube.node_devices import Health
from node_agent.health import Vitals, troubles
from node_agent.link_health import LinkState, link_troubles
from node_agent.nvml import RECOVERY_ACTIONS

TEXT = (Path(__file__).parents[2] / "docs" / "device-health.md").read_text("utf-8")

FABRIC_PROBLEMS = ("FabricNotReady", "FabricFailed", "FabricDegraded")
EVERY_VITAL = Vitals(
    uncorrected_ecc=1,
    row_pending=True,
    row_failed=True,
    page_pending=True,
    recovery="GpuReset",
    throttled=frozenset({"HwSlowdown", "HwThermalSlowdown", "HwPowerBrakeSlowdown"}),
)


def test_every_code_has_its_row() -> None:
    rows = [line.split("|")[1] for line in TEXT.splitlines() if line.startswith("| `")]
    named = set(re.findall(r"`(\w+)`", " ".join(rows))) - {str(health) for health in Health}
    broken = {
        f"g{number}": LinkState("H100", code, 18, 17, 18, True) for number, code in enumerate(FABRIC_PROBLEMS)
    }
    of_links = {each.code for found in link_troubles(broken).values() for each in found}
    found = {each.code for each in (*troubles(EVERY_VITAL), *troubles(Vitals(lost="gone")))}
    xids = {f"Xid{xid}" for xid in (*RESET_XIDS, *JUDGED_XIDS, *WATCHED_XIDS)}
    assert named - {"Lost"} == (found | xids | of_links) - {"Lost"}
    assert "Lost" in found


def test_every_recovery_action_is_named() -> None:
    assert {action for action in RECOVERY_ACTIONS.values() if f"`{action}`" not in TEXT} <= {""}
