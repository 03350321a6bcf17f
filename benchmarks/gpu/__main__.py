"""``python -m benchmarks.gpu``: the node agent's reading beside nvidia-smi's, on a machine with a real GPU.

Needs the NVIDIA driver, nvidia-smi and this checkout, nothing else. It allocates memory on one device,
computes, idles and ends, and at each moment compares what the agent reads with what nvidia-smi says; as root
it makes a cgroup for the load, and looks whose the agent takes it for. Then it reads every five seconds and
measures what that costs; with ``--agent-pid`` the agent that runs as that process is measured instead. 0 when
all agrees, 1 when something does not, 2 when nothing could be measured.
"""

import argparse
import os
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from rich.console import Console
from rich.table import Table

from benchmarks.gpu.checks import Check, compare, phase_checks
from benchmarks.gpu.nvidia_smi import SmiError, query
from benchmarks.gpu.own_cgroup import as_container, attribution_check
from benchmarks.proc import NotHere, cpu_s, memory_mib
from node_agent.node_reader import NodeReader
from node_agent.reading import DeviceReading, NodeReading
from node_agent.xid_events import XidEvents

_CPU_PERCENT, _MEMORY_MIB = 1.0, 60.0
_PERIOD_S = 5.0


class Failed(RuntimeError):
    """Nothing could be measured, and why."""


def main(argv: Sequence[str] | None = None) -> int:
    """Measures; see the module."""
    options = _options(argv)
    console = Console(width=None if sys.stdout.isatty() else 175)
    events = XidEvents()
    events.start()
    reader = NodeReader(events)
    try:
        checks = _over_a_load(reader, console, options)
        cost = _cost(reader, options)
    except (Failed, SmiError, NotHere) as error:
        console.print(f"Nothing was measured: {error}", style="bold red", highlight=False)
        return 2
    finally:
        events.stop(1.0)
    _print(console, f"Cost over {options.seconds:g} s", cost)
    wrong = [check for check in (*checks, *cost) if check.holds is False]
    console.print(f"{len(wrong)} of {len(checks) + len(cost)} checks do not hold" if wrong else "All hold")
    return 1 if wrong else 0


def _options(argv: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.gpu", description=__doc__)
    parser.add_argument("--device", type=int, default=0, help="index of the device to load (default 0)")
    parser.add_argument("--mebibytes", type=int, default=2048, help="memory to allocate on it")
    parser.add_argument(
        "--settle", type=float, default=5.0, metavar="S", help="wait in each phase before reading"
    )
    parser.add_argument("--seconds", type=float, default=60.0, help="how long the cost is measured")
    parser.add_argument("--agent-pid", type=int, help="measure the cost of that process instead of our own")
    return parser.parse_args(argv)


def _over_a_load(reader: NodeReader, console: Console, options: argparse.Namespace) -> list[Check]:
    reading = reader.read()
    if not reading.devices:
        raise Failed(f"no NVIDIA device is here: {reading.problem}. Run this on a machine with a GPU")
    if reading.problem:
        raise Failed(reading.problem)
    before = _device(reading, options.device)
    size = options.mebibytes * 2**20
    found = _moment(reader, console, "before", options, None, size)
    with _load(options.device) as tell, as_container(tell.pid) as container:
        for phase, command in (("allocated", f"allocate {size}"), ("computing", "compute"), ("idle", "idle")):
            tell(command)
            found += _moment(reader, console, phase, options, before, size)
        seen = frozenset(one.pid for one in _device(reader.read(), options.device).processes)
        attribution = attribution_check(tell.pid, container, seen)
    _print(console, "Attribution by a cgroup of our own", [attribution])
    found.append(attribution)
    return found + _moment(reader, console, "ended", options, before, size)


def _moment(
    reader: NodeReader,
    console: Console,
    phase: str,
    options: argparse.Namespace,
    before: DeviceReading | None,
    size: int,
) -> list[Check]:
    time.sleep(options.settle)
    reading = reader.read()
    checks, loaded = compare(reading, query()), _device(reading, options.device)
    if before is not None:
        checks += phase_checks(phase, before, loaded, size)
    shown = [check for check in checks if check.device in ("node", loaded.id) or check.holds is False]
    _print(console, f"Load: {phase}", shown)
    others = len(checks) - len(shown)
    console.print(f"{others} checks of other devices hold or are not told\n" if others else "")
    return checks


def _device(reading: NodeReading, index: int) -> DeviceReading:
    for device in reading.devices:
        if device.index == index and not device.parent:
            return device
    raise Failed(f"the device {index} is not among the {len(reading.devices)} that the agent reads")


@contextmanager
def _load(device: int) -> "Iterator[_Tell]":
    # CUDA orders devices by speed unless it is told to order them by bus id, as NVML does.
    environment = {**os.environ, "CUDA_DEVICE_ORDER": "PCI_BUS_ID"}
    command = [sys.executable, "-m", "benchmarks.gpu.cuda_load", str(device)]
    with subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=environment
    ) as process:
        tell = _Tell(process)
        tell.answered()
        yield tell
        if process.stdin is not None:
            process.stdin.close()
        process.wait(60)


class _Tell:
    def __init__(self, process: "subprocess.Popen[str]") -> None:
        self._process = process
        self.pid = process.pid

    def __call__(self, command: str) -> None:
        if self._process.stdin is None:
            raise Failed("the load has no input")
        self._process.stdin.write(f"{command}\n")
        self._process.stdin.flush()
        self.answered()

    def answered(self) -> None:
        answer = self._process.stdout.readline().strip() if self._process.stdout else ""
        if answer != "ok":
            raise Failed(f"the load ended: {answer or 'without a word'}")


def _cost(reader: NodeReader, options: argparse.Namespace) -> list[Check]:
    pid = options.agent_pid or os.getpid()
    began_s, used_s = time.monotonic(), cpu_s(pid)
    while (elapsed_s := time.monotonic() - began_s) < options.seconds:
        if not options.agent_pid:
            reader.read()
        time.sleep(min(_PERIOD_S, options.seconds - elapsed_s))
    percent = 100 * (cpu_s(pid) - used_s) / (time.monotonic() - began_s)
    resident = memory_mib(pid, "VmRSS")
    name = f"process {pid}"
    return [
        Check(name, "CPU, % of a core", f"{percent:.2f}", f"≤ {_CPU_PERCENT:g}", percent <= _CPU_PERCENT),
        Check(name, "memory, MiB", f"{resident:.0f}", f"≤ {_MEMORY_MIB:g}", resident <= _MEMORY_MIB),
    ]


def _print(console: Console, title: str, checks: Sequence[Check]) -> None:
    table = Table(title=title, title_justify="left", title_style="bold")
    for column in ("device", "what", "agent", "expected", ""):
        table.add_column(column)
    for check in checks:
        verdict = {True: "ok", False: "[bold red]WRONG[/]", None: "[dim]not told[/]"}[check.holds]
        table.add_row(check.device, check.what, check.agent, check.expected, verdict)
    console.print(table)


if __name__ == "__main__":
    sys.exit(main())
