"""Where readings and holders come from on a real node: the one place where the parts of the agent meet."""

import asyncio
import time
from collections.abc import Awaitable, Callable, Coroutine, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path

from fairway.kube.client import KubeClient
from fairway.kube.observation import ReflectorMetrics
from node_agent import bounds
from node_agent.earlier import Earlier
from node_agent.node_reader import NodeReader
from node_agent.reading import NodeReading
from node_agent.sampling import DeviceSource, HolderSource
from node_agent.settings import Settings
from node_agent.xid_events import XidEvents

_STOP_S = 2.0
_BOOT_ID = Path("/proc/sys/kernel/random/boot_id")


@dataclass(frozen=True, slots=True)
class Sources:
    """``tasks``: what has to run beside the looks, by name, such as the watch on the node's pods.

    ``listed``: set once they know, or cannot know, all that there is to list.

    ``close`` gives up what they hold, once nothing is looked at any more. ``boot_id``: the boot of the node's
    kernel, empty where it is not known.
    """

    devices: DeviceSource
    holders: HolderSource
    tasks: Mapping[str, Coroutine[object, object, None]] = field(default_factory=dict)
    close: Callable[[], Awaitable[None]] | None = None
    boot_id: str = ""
    listed: asyncio.Event | None = None


class ThreadedReader:
    """Asks NVML on a thread of its own, always the same; hears of XIDs on another."""

    def __init__(self) -> None:
        self._events = XidEvents(time.monotonic)
        self._reader = NodeReader(self._events, time.monotonic)
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="devices")
        self._events.start()

    async def read(self) -> NodeReading:
        """See `DeviceSource.read`."""
        return await asyncio.get_running_loop().run_in_executor(self._thread, self._reader.read)

    async def resume(self, earlier: Earlier, age_s: float) -> None:
        """See `DeviceSource.resume`."""
        await asyncio.get_running_loop().run_in_executor(self._thread, self._reader.resume, earlier, age_s)

    async def close(self) -> None:
        """End both threads; one that hangs in the driver is left behind."""
        self._thread.shutdown(wait=False, cancel_futures=True)
        await asyncio.to_thread(self._events.stop, _STOP_S)


def real_sources(settings: Settings, client: KubeClient, watches: ReflectorMetrics) -> Sources:
    """NVML for the devices; kubelet, /proc and the API server's pods for who holds them."""
    from node_agent.attribution import follow  # gRPC takes 13 MiB, which tests and --help do without

    devices = ThreadedReader()
    followed = follow(client, settings.node, watches, clock=time.monotonic)

    async def close() -> None:
        await followed.attribution.close()
        await devices.close()

    return Sources(devices, followed.attribution, followed.tasks, close, boot_id(), followed.listed)


def boot_id(file: Path = _BOOT_ID) -> str:
    """The boot of the kernel; empty where nobody tells."""
    try:
        return bounds.BOOT_ID.within(file.read_text("ascii").strip())
    except (OSError, UnicodeDecodeError):
        return ""
