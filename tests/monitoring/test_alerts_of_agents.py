"""When alerts about devices and agents fire, by Prometheus itself: promtool has to be on PATH."""

import shutil
import subprocess
from collections.abc import Mapping
from pathlib import Path

import pytest
import yaml

from tests.manifests.objects import MANIFESTS

FOLDER = MANIFESTS / "member" / "node-agent" / "monitoring"
DEVICE = 'node="n",uuid="d",index="0",product="H100"'
HELD = f'fairway_node_device_holder{{{DEVICE},namespace="team",pod="p",source="PodResources"}}'
INFO = f'fairway_node_device_info{{{DEVICE},parent=""}}'
CUT = 'H100",mig_profile="1g.10gb'
GPUS = 'kube_node_status_allocatable{node="n",resource="nvidia_com_gpu"}'
READY = 'kube_node_status_condition{node="n",condition="Ready",status="true"}'
DEVICES = 'fairway_node_agent_devices{node="n"}'


def problem(code: str) -> str:
    return f'fairway_node_device_problem{{{DEVICE},code="{code}"}}'


def health(health: str) -> str:
    return f'fairway_node_device_health{{{DEVICE},health="{health}"}}'


def series(what: str) -> str:
    return f"fairway_node_device_{what}{{{DEVICE}}}"


P95 = series("window_utilization_p95_ratio")
THROTTLED_S = series("window_throttled_seconds")
IDLE_S = series("idle_seconds")
UP = 'up{job="fairway-node-agent",node="n"}'
HUNG = 'fairway_node_agent_driver_hung{node="n"}'
LACKS = 'fairway_node_agent_problem{node="n"}'
FAILURES = 'fairway_node_agent_write_failures_total{node="n",reason="forbidden"}'
WRITTEN = 'fairway_node_agent_last_write_timestamp_seconds{node="n"}'
BROKEN = {health("Unhealthy"): "1x600"}
NODE = {GPUS: "8x600", READY: "1x600"}
ALWAYS = "1x600"
REPLACED = "1x100 stale _x3 1x500"
"""A pod of the agents' DaemonSet ends, and the next one is looked at four minutes later."""

Series = Mapping[str, str]
"""Values by the minute, as promtool reads them."""

FIRE: Mapping[str, tuple[tuple[str, int, Series], ...]] = {
    "FairwayDeviceBrokenAndHeld": (
        ("lost", 6, {HELD: ALWAYS, health("Lost"): ALWAYS, P95: "0.9x600"}),
        ("unhealthy", 6, {HELD: ALWAYS, **BROKEN, P95: "0.9x600"}),
    ),
    "FairwayDeviceXid": (("it has to be reset", 3, {problem("Xid79"): ALWAYS, **BROKEN}),),
    "FairwayDeviceNeedsReset": (("asked for", 16, {problem("RecoveryAction"): ALWAYS}),),
    "FairwayDeviceMemoryFailed": (("a row", 6, {problem("RowRemapFailed"): ALWAYS, **BROKEN}),),
    "FairwayDeviceMemoryPending": (
        ("a row", 61, {problem("RowRemapPending"): ALWAYS}),
        ("a page", 61, {problem("PageRetirementPending"): ALWAYS}),
    ),
    "FairwayDeviceThrottled": (("a tenth", 62, {HELD: ALWAYS, THROTTLED_S: "30x600", P95: "0.9x600"}),),
    "FairwayDevicesIdle": (
        ("all the time", 182, {HELD: ALWAYS, P95: "0x600", IDLE_S: "7200+60x600"}),
        (
            "while the agent is replaced",
            182,
            {HELD: REPLACED, P95: "0x100 stale _x3 0x500", IDLE_S: "9000x100 stale _x3 9999x500"},
        ),
    ),
    "FairwayUtilizationUnknown": (("of a device", 31, {HELD: ALWAYS, INFO: ALWAYS}),),
    "FairwayNodeAgentAbsent": (("a node with GPUs", 31, NODE),),
    "FairwayNodeAgentDown": (("no answer", 16, {UP: "0x600"}),),
    "FairwayDriverHung": (("no answer of the driver", 6, {HUNG: ALWAYS}),),
    "FairwayNodeAgentCannotWrite": (("every time", 30, {FAILURES: "1+0.3x600", WRITTEN: "0x600"}),),
    "FairwayNodeAgentProblem": (("it lacks something", 61, {LACKS: ALWAYS}),),
}
"""What makes each alert fire, and that alone, after how many minutes."""

QUIET: tuple[tuple[str, Series], ...] = (
    ("lost, and held by nobody", {health("Lost"): ALWAYS}),
    ("an XID that is watched", {problem("Xid63"): ALWAYS, health("Degraded"): ALWAYS}),
    ("a recovery that is over", {problem("RecoveryAction"): "1x10 stale"}),
    ("throttled a little", {HELD: ALWAYS, THROTTLED_S: "29x600", P95: "0.9x600"}),
    ("idle for two hours", {HELD: ALWAYS, P95: "0x160 0.9x430", IDLE_S: "3600x160 0x430"}),
    ("an instance that is not measured", {of.replace("H100", CUT): ALWAYS for of in (HELD, INFO)}),
    ("a node with GPUs that is down", {GPUS: "8x600", READY: "0x600"}),
    ("a node that goes", {GPUS: "8x20 stale", READY: "1x20 stale"}),
    (
        "an agent whose series name the cluster",
        {**NODE, DEVICES.replace("{", '{cluster="a",'): "8x600"},
    ),
    ("a write that fails now and then", {FAILURES: "1+0.1x600", WRITTEN: "0+60x600"}),
    (
        "a DaemonSet that is replaced",
        {
            **NODE,
            DEVICES: REPLACED,
            HELD: REPLACED,
            INFO: REPLACED,
            P95: "0.9x100 stale _x3 0.9x500",
            UP: "1x100 0x3 1x500",
            LACKS: "0x100 stale _x3 1x3 0x497",
            FAILURES: "0x100 stale _x3 0x500",
            WRITTEN: "0+60x100 stale _x3 0x5 6600+60x495",
        },
    ),
)
"""What fires nothing in ten hours."""

CASES = [
    *(
        (f"{name}: {what}", one, minutes, name)
        for name, cases in FIRE.items()
        for what, minutes, one in cases
    ),
    *((what, one, 600, "") for what, one in QUIET),
]


@pytest.fixture
def promtool() -> str:
    found = shutil.which("promtool")
    if found is None:
        pytest.skip("promtool is not on PATH")
    return found


@pytest.mark.parametrize(("what", "given", "minutes", "fires"), CASES, ids=[case[0] for case in CASES])
def test_what_fires(
    what: str, given: Series, minutes: int, fires: str, promtool: str, tmp_path: Path
) -> None:
    files = []
    for name in ("recording-rules.yaml", "alerts.yaml"):
        groups = yaml.safe_load((FOLDER / name).read_text())["spec"]["groups"]
        (tmp_path / name).write_text(yaml.safe_dump({"groups": groups}))
        files.append(name)
    fired = 'count by (alertname) (max_over_time(ALERTS{alertstate="firing"}[10h]))'
    expected = [{"labels": f'{{alertname="{fires}"}}', "value": 1}] if fires else []
    test = {
        "rule_files": files,
        "evaluation_interval": "1m",
        "tests": [
            {
                "interval": "1m",
                "input_series": [{"series": name, "values": text} for name, text in given.items()],
                "promql_expr_test": [{"expr": fired, "eval_time": f"{minutes}m", "exp_samples": expected}],
            }
        ],
    }
    (tmp_path / "test.yaml").write_text(yaml.safe_dump(test))
    done = subprocess.run(
        [promtool, "test", "rules", "test.yaml"], cwd=tmp_path, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr


def test_every_alert_has_a_case() -> None:
    groups = yaml.safe_load((FOLDER / "alerts.yaml").read_text())["spec"]["groups"]
    assert FIRE.keys() == {rule["alert"] for group in groups for rule in group["rules"]}
