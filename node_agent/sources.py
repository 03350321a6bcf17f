"""Where readings and holders come from on a real node: the one place where the parts of the agent meet."""

import asyncio
import time
from collections.abc import Awaitable, Callable, Coroutine, Mapping
from dataclasses import dataclass, field

from fairway.kube.client import KubeClient
from fairway.kube.observation import ReflectorMetrics
from node_agent.node_reader import NodeReader
from node_agent.reading import NodeReading
from node_agent.sampling import DeviceSource, HolderSource
from node_agent.settings import Settings
from node_agent.xid_events import XidEvents

_STOPS_WITHIN_S = 6.0


@dataclass(frozen=True, slots=True)
class Sources:
    """``tasks``: what has to run beside the looks, by name, such as the watch on the node's pods.

    ``close`` gives up what they hold, once nothing is looked at any more.
    """

    devices: DeviceSource
    holders: HolderSource
    tasks: Mapping[str, Coroutine[object, object, None]] = field(default_factory=dict)
    close: Callable[[], Awaitable[None]] | None = None


class _Nvml:
    """The devices by NVML, read on a thread."""

    def __init__(self) -> None:
        self._xids = XidEvents()
        self._xids.start()
        self._reader = NodeReader(self._xids)

    async def read(self) -> NodeReading:
        """See `DeviceSource.read`."""
        return await asyncio.to_thread(self._reader.read)

    async def close(self) -> None:
        """Let the driver go."""
        await asyncio.to_thread(self._xids.stop, _STOPS_WITHIN_S)


def real_sources(settings: Settings, client: KubeClient, watches: ReflectorMetrics) -> Sources:
    """NVML for the devices; kubelet, /proc and the API server's pods for who holds them."""
    from node_agent.attribution import follow  # gRPC takes 13 MiB, which tests and --help do without

    devices = _Nvml()
    followed = follow(client, settings.node, watches, clock=time.monotonic)

    async def close() -> None:
        await followed.attribution.close()
        await devices.close()

    return Sources(devices, followed.attribution, followed.tasks, close)
