"""What does one read of a node's devices cost the agent?

Eight H100 behind NVSwitches, whole and cut into seven instances each with two processes, on a library that is
simulated below pynvml: what Python and the binding take, without the driver. Time is processor time. The
agent reads every five seconds, and may take one percent of a core: 50 ms a read.
"""

import time

from benchmarks.report import Case, Figure, Result, Target
from benchmarks.sides import Setting
from node_agent import device_reader
from node_agent.known import Known
from tests.node_agent import simulated_nvml as simulated
from tests.node_agent.simulated_nvml import GIB, Instance, Process, SimulatedNvml

_PERIOD_S = 5.0
_READ_MS = 50.0


def measure(setting: Setting) -> Result:
    """Figures for whole devices and for cut ones."""
    reads = 50 if setting.seconds <= 1.0 else 500
    cases = [_case(label, machine, reads) for label, machine in (("whole", _whole()), ("cut by 7", _cut()))]
    return Result("node_agent_read", "Reading eight GPUs of a node, without the driver's share", cases)


def _whole() -> SimulatedNvml:
    library = simulated.h100x8()
    for gpu in library.gpus:
        gpu.processes = [Process(pid, GIB, busy=(50, 10**15)) for pid in (100, 200)]
    return library


def _cut() -> SimulatedNvml:
    library = simulated.h100x8()
    for gpu in library.gpus:
        gpu.mig = True
        gpu.instances = [
            Instance(f"MIG-{gpu.index}-{slot}", slot, slot, processes=[Process(100), Process(200)])
            for slot in range(7)
        ]
    return library


def _case(label: str, library: SimulatedNvml, reads: int) -> Case:
    took_s, known = [], Known()
    with simulated.installed(library):
        for turn in range(reads):
            calls, began_s = sum(library.calls.values()), time.process_time()
            reading, known = device_reader.read(known, (), _PERIOD_S * turn)
            took_s.append(time.process_time() - began_s)
            calls = sum(library.calls.values()) - calls
    took_s.sort()
    return Case(
        label,
        [
            Figure("devices", len(reading.devices), ""),
            Figure("calls", calls, ""),
            Figure("a read, p50", 1e3 * took_s[reads // 2], "ms", Target(_READ_MS)),
            Figure("longest", 1e3 * took_s[-1], "ms", Target(_READ_MS)),
        ],
        [reading.problem] if reading.problem else [],
    )
