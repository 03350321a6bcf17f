"""What a device does, read beside what is remembered: utilisation since the last read, and processes."""

from node_agent import nvml
from node_agent.asking import Asking
from node_agent.known import Known
from node_agent.reading import ProcessReading


class DeviceUse:
    """The use of all devices in one pass; ``seen_us``, ``busy_us`` and ``samples`` are for the next one."""

    def __init__(self, known: Known, common: Asking) -> None:
        self.seen_us: dict[str, int] = {}
        self.busy_us: dict[str, int] = {}
        self.samples: dict[str, nvml.Sample] = {}
        self._known, self._common = known, common
        self._busy: dict[str, int | None] = {}

    def since_last(self, asking: Asking, device: nvml.Device, name: str) -> int | None:
        """By the driver's samples since the last read; where there are none, what it says of just now."""
        since_us = self._known.busy_us.get(name, 0)
        busy = asking.ask(nvml.busy_since, device, since_us)
        self.busy_us[name] = since_us if busy is None else busy.at_us
        if busy is not None and busy.percent is not None:
            return busy.percent
        return asking.ask(nvml.utilization_percent, device)

    def share(self, device: nvml.Device, key: str, gpu_instance: int | None) -> int | None:
        """By GPM, between the last read and this one; None at the first."""
        if key not in self._busy:
            self._busy[key] = None
            taken = self._common.ask(nvml.sample, device, gpu_instance)
            before = self._known.samples.get(key)
            if taken is not None:
                self.samples[key] = taken
                if before is not None:
                    self._busy[key] = self._common.ask(nvml.utilization_between, before, taken)
        return self._busy[key]

    def free_samples(self) -> None:
        """Give back what was taken at the last read."""
        for sample in self._known.samples.values():
            self._common.ask(nvml.free_sample, sample)

    def processes(self, asking: Asking, device: nvml.Device, name: str | None) -> tuple[ProcessReading, ...]:
        """All that hold memory there; ``name``: of a device that tells how busy each keeps it."""
        found: dict[int, int | None] = {}
        for call in (nvml.compute_processes, nvml.graphics_processes, nvml.mps_processes):
            for process in asking.ask(call, device) or ():
                told = [each for each in (found.get(process.pid), process.memory_bytes) if each is not None]
                found[process.pid] = max(told, default=None)
        use = self._process_use(asking, device, name) if found and name is not None else None
        return tuple(
            ProcessReading(pid, memory, None if use is None else use.get(pid, 0))
            for pid, memory in sorted(found.items())
        )

    def _process_use(self, asking: Asking, device: nvml.Device, name: str) -> dict[int, int | None] | None:
        """The last sample of each process since the last read: a process without one did nothing."""
        since_us = self._known.seen_us.get(name, 0)
        self.seen_us[name] = since_us
        try:
            samples = asking.told(nvml.process_use, device, since_us)
        except nvml.NothingThere:
            return {}
        if samples is None:
            return None
        self.seen_us[name] = max((since_us, *(sample.at_us for sample in samples)))
        return {sample.pid: sample.percent for sample in sorted(samples, key=lambda sample: sample.at_us)}
