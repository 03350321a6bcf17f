"""Against a real library in C: NVIDIA's published mock of libnvidia-ml (k8s-test-infra, pkg/gpu/mocknvml).

Built with ``make`` there; ``NVML_MOCK`` names the folder with ``libnvidia-ml.so.1`` and the profiles
(``configs/mock-nvml-config-*.yaml``). Each profile is read in a process of its own, since a library is loaded
once in a process.
"""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

_READ = """
import json, sys, threading
from node_agent import device_reader, nvml
from node_agent.known import Known
from node_agent.xid_events import XidEvents

wanted, events, known = int(sys.argv[1]), XidEvents(lambda: 0.0, wait_s=0.2), Known()
events.start()
for turn in range(400):
    reading, known = device_reader.read(known, events.take(), 5.0 * turn)
    events.follow(known.parents, known.session)
    if turn > 2 and sum(len(each.troubles) for each in reading.devices) >= wanted:
        break
    threading.Event().wait(0.02)

def busy_by_gpm():
    device = nvml.device(0)
    if not nvml.gpm_supported(device):
        return None
    samples = nvml.sample(device, None), nvml.sample(device, None)
    try:
        return nvml.utilization_between(*samples)
    finally:
        for sample in samples:
            nvml.free_sample(sample)

print(json.dumps({
    "gpm": busy_by_gpm() if wanted == 0 else None,
    "driver": reading.driver_version,
    "cuda": reading.cuda_version,
    "problem": reading.problem,
    "unread": list(reading.unread),
    "devices": [
        [each.product, each.memory_bytes >> 30, each.bus_id, len(each.links), each.clique,
         each.utilization_percent is not None, [trouble.code for trouble in each.troubles]]
        for each in reading.devices
    ],
}))
events.stop(5.0)
"""


@pytest.fixture(scope="module")
def folder() -> Path:
    named = os.environ.get("NVML_MOCK", "")
    if not named or not (Path(named) / "libnvidia-ml.so.1").exists():
        pytest.skip("NVML_MOCK names no folder with NVIDIA's mock of libnvidia-ml.so.1 and its configs")
    return Path(named)


def read(folder: Path, config: Path, troubles: int) -> dict[str, object]:
    """Reads again and again until there are so many troubles, for eight seconds at most."""
    environment = {**os.environ, "LD_LIBRARY_PATH": str(folder), "MOCK_NVML_CONFIG": str(config)}
    done = subprocess.run(
        [sys.executable, "-c", _READ, str(troubles)],
        env=environment,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    answer = json.loads(done.stdout.splitlines()[-1])
    assert isinstance(answer, dict)
    return answer


@pytest.mark.parametrize(
    ("profile", "product", "gibibytes", "number", "partners", "clique", "gpm"),
    [
        ("t4", "NVIDIA T4", 16, 4, 0, False, None),
        ("a100", "NVIDIA A100-SXM4-40GB", 40, 8, 7, False, None),
        ("h100", "NVIDIA H100 80GB HBM3", 80, 8, 7, True, 0),
        ("gb200", "NVIDIA GB200", 192, 8, 7, True, 0),
    ],
)
def test_machines(
    folder: Path,
    profile: str,
    product: str,
    gibibytes: int,
    number: int,
    partners: int,
    clique: bool,
    gpm: int | None,
) -> None:
    answer = read(folder, folder / "configs" / f"mock-nvml-config-{profile}.yaml", troubles=0)
    devices = answer["devices"]
    assert isinstance(devices, list)
    assert (answer["problem"], answer["gpm"]) == ("", gpm)
    assert answer["driver"]
    assert answer["cuda"]
    assert len({device[2] for device in devices}) == number
    assert [[*device[:2], device[3], bool(device[4]), *device[5:]] for device in devices] == [
        [product, gibibytes, partners, clique, True, []]
    ] * number


@pytest.mark.parametrize(
    ("failure", "troubles"),
    [
        ("mode: lost", {"Lost"}),
        ("mode: ecc_uncorrectable, xid: {code: 119}", {"UncorrectedEcc", "RowRemapFailed", "Xid119"}),
    ],
)
def test_a_device_that_fails_between_two_reads(
    folder: Path, failure: str, troubles: set[str], tmp_path: Path
) -> None:
    profile = (folder / "configs" / "mock-nvml-config-h100.yaml").read_text()
    head, marker, tail = profile.rpartition("  - index: 7\n")
    assert marker
    config = tmp_path / "failing.yaml"
    config.write_text(f"{head}{marker}    failure: {{{failure}, after_calls: 60}}\n{tail}")
    devices = read(folder, config, len(troubles))["devices"]
    assert isinstance(devices, list)
    assert [set(device[6]) for device in devices] == [set()] * 7 + [troubles]
