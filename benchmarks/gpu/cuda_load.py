"""A load on one GPU with nothing but the driver: allocate, compute, idle, by lines on standard input.

Speaks the CUDA driver API (``libcuda.so.1``) through ctypes, so that no toolkit is needed. Commands, each
answered by a line ``ok`` or ``error …``: ``allocate BYTES``, ``compute``, ``idle``; end of input ends it.
"""

import ctypes
import queue
import sys
import threading

_LAUNCHES = 64  # fills in flight between two looks at the commands


class CudaError(RuntimeError):
    """A call of the driver that failed."""


class Load:
    """Memory on a device, and fills of it for as long as it computes."""

    def __init__(self, device: int) -> None:
        try:
            self._cuda = ctypes.CDLL("libcuda.so.1")
        except OSError as error:
            raise CudaError(f"the CUDA driver is not here: {error}") from None
        self._memory = ctypes.c_uint64(0)
        self._words = 0
        context = ctypes.c_void_p()
        number = ctypes.c_int()
        self._do("cuInit", 0)
        self._do("cuDeviceGet", ctypes.byref(number), device)
        self._do("cuCtxCreate_v2", ctypes.byref(context), 0, number)

    def allocate(self, size: int) -> None:
        """Takes memory and writes to it, so that it is really held."""
        self._do("cuMemAlloc_v2", ctypes.byref(self._memory), ctypes.c_size_t(size))
        self._words = size // 4
        self.compute(1)

    def compute(self, launches: int = _LAUNCHES) -> None:
        """Fills all of it, so many times, and waits until that is done."""
        for launch in range(launches):
            self._do("cuMemsetD32Async", self._memory, launch, ctypes.c_size_t(self._words), None)
        self._do("cuCtxSynchronize")

    def _do(self, name: str, *arguments: object) -> None:
        code = getattr(self._cuda, name)(*arguments)
        if code != 0:
            raise CudaError(f"{name} failed with CUDA error {code}")


def main() -> None:
    """Serves the commands."""
    lines: queue.SimpleQueue[str | None] = queue.SimpleQueue()
    threading.Thread(target=_read, args=(lines,), daemon=True).start()
    try:
        load = Load(int(sys.argv[1]))
        print("ok", flush=True)
        _serve(load, lines)
    except CudaError as error:
        print(f"error {error}", flush=True)


def _read(lines: "queue.SimpleQueue[str | None]") -> None:
    for line in sys.stdin:
        lines.put(line)
    lines.put(None)


def _serve(load: Load, lines: "queue.SimpleQueue[str | None]") -> None:
    busy = False
    while True:
        try:
            line = lines.get(block=not busy)
        except queue.Empty:
            load.compute()
            continue
        if line is None:
            return
        command, _, argument = line.strip().partition(" ")
        if command == "allocate":
            load.allocate(int(argument))
        busy = command == "compute"
        print("ok", flush=True)


if __name__ == "__main__":
    main()
