"""kubelet's PodResources API: which devices each container of the node was given, used or not.

Names pods by namespace and name, without a uid; gives devices the ids of their plugin (see `device_ids`) or,
for Dynamic Resource Allocation, the names that a ResourceSlice has. kubelet answers 100 requests a second to
all who ask (``pkg/kubelet/apis/grpc/ratelimit.go``), and before 1.34 lists pods that have ended as well.
"""

from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING

import grpc
from google.protobuf.message import DecodeError, Message

from node_agent.allocations import Allocation, ClaimedDevice, PluginDevice
from node_agent.pb import podresources_pb2 as pb

if TYPE_CHECKING:
    Channel = grpc.aio.Channel

SOCKET = Path("/var/lib/kubelet/pod-resources/kubelet.sock")
TIMEOUT_S = 10.0
MOST_BYTES = 16 * 2**20
"""As kubelet's own client takes; 10,000 pods of 8 devices are 5 MiB."""

_SERVICE = "/v1.PodResourcesLister"
_OPTIONS = (
    ("grpc.max_receive_message_length", MOST_BYTES),
    ("grpc.enable_http_proxy", 0),
    # Else a new channel would go on waiting where the one before had failed.
    ("grpc.use_local_subchannel_pool", 1),
)


class Failure(StrEnum):
    """What went wrong with a question to kubelet, one word each."""

    GONE = "gone"
    UNREACHABLE = "unreachable"
    DENIED = "denied"
    SLOW = "slow"
    LIMITED = "limited"
    TOO_LARGE = "too-large"
    UNSUPPORTED = "unsupported"
    BROKEN = "broken"


_REMEDIES = {
    Failure.GONE: "is not there: expected kubelet's folder pod-resources to be mounted, and kubelet to run",
    Failure.UNREACHABLE: "does not answer: kubelet has ended or starts just now",
    Failure.DENIED: "may not be opened: the agent has to run as root, and SELinux has to let it",
    Failure.LIMITED: "refused by its rate limit of 100 requests a second, which all who ask share",
    Failure.TOO_LARGE: f"answered more than {MOST_BYTES // 2**20} MiB, which is not read",
    Failure.UNSUPPORTED: "does not serve PodResources v1: expected kubelet 1.20 or newer",
    Failure.BROKEN: "answered what is no PodResources v1 message",
}


class PodResourcesError(Exception):
    """kubelet did not say. ``failure``: why, in one word; the message names the socket and what helps."""

    def __init__(self, failure: Failure, message: str) -> None:
        super().__init__(message)
        self.failure = failure


class PodResources:
    """A client of one kubelet. Each question is answered within ``timeout_s`` or fails; nothing is tried
    again.

    After a failure it connects anew, so that a kubelet that was restarted is found by the next question.
    """

    def __init__(self, socket: Path = SOCKET, *, timeout_s: float = TIMEOUT_S) -> None:
        self._socket = socket
        self._timeout_s = timeout_s
        self._channel: Channel | None = None

    async def list(self) -> tuple[Allocation, ...]:
        """What the containers of the node were given, those with a device only. Raises PodResourcesError."""
        answer = pb.ListPodResourcesResponse()
        await self._ask("List", answer)
        return tuple(_allocations(answer))

    async def allocatable(self) -> tuple[PluginDevice, ...]:
        """All devices of device plugins that kubelet takes for healthy. Raises PodResourcesError.

        UNSUPPORTED before kubelet 1.23, and where its feature is off.
        """
        answer = pb.AllocatableResourcesResponse()
        await self._ask("GetAllocatableResources", answer)
        return tuple(PluginDevice(of.resource_name, id) for of in answer.devices for id in of.device_ids)

    async def close(self) -> None:
        """Give the connection up; the next question opens another."""
        channel, self._channel = self._channel, None
        if channel is not None:
            await channel.close()

    async def _ask(self, method: str, answer: Message) -> None:
        if not _is_there(self._socket):
            await self.close()
            raise self._error(Failure.GONE, "")
        if self._channel is None:
            self._channel = grpc.aio.insecure_channel(f"unix:{self._socket}", options=_OPTIONS)
        # Without serializers, a method takes and gives bytes.
        call: grpc.aio.UnaryUnaryMultiCallable[bytes, bytes] = self._channel.unary_unary(
            f"{_SERVICE}/{method}"
        )
        try:
            answer.ParseFromString(await call(b"", timeout=self._timeout_s))
        except grpc.aio.AioRpcError as error:
            await self.close()
            raise self._error(_failure(error), error.details() or "") from error
        except DecodeError as error:
            await self.close()
            raise self._error(Failure.BROKEN, str(error)) from error

    def _error(self, failure: Failure, details: str) -> PodResourcesError:
        slow = f"did not answer within {self._timeout_s:g} s"
        said = f" ({details[:200]})" if details else ""
        return PodResourcesError(failure, f"kubelet at {self._socket} {_REMEDIES.get(failure, slow)}{said}")


def _is_there(socket: Path) -> bool:
    try:
        return socket.exists()
    except OSError:
        return True


def _failure(error: "grpc.aio.AioRpcError") -> Failure:
    details = (error.details() or "").lower()
    match error.code():
        case grpc.StatusCode.DEADLINE_EXCEEDED:
            return Failure.SLOW
        case grpc.StatusCode.RESOURCE_EXHAUSTED:
            return Failure.LIMITED if "rate limit" in details else Failure.TOO_LARGE
        case grpc.StatusCode.UNIMPLEMENTED:
            return Failure.UNSUPPORTED
        case grpc.StatusCode.UNAVAILABLE:
            return Failure.DENIED if "permission denied" in details else Failure.UNREACHABLE
        case grpc.StatusCode.UNKNOWN if "disabled" in details:
            # The text of a kubelet whose feature is off.
            return Failure.UNSUPPORTED
        case _:
            return Failure.BROKEN


def _allocations(answer: pb.ListPodResourcesResponse) -> "list[Allocation]":
    found: list[Allocation] = []
    for pod in answer.pod_resources:
        for container in pod.containers:
            # A device that is near several NUMA nodes is listed once for each.
            devices = tuple(
                dict.fromkeys(
                    PluginDevice(of.resource_name, id) for of in container.devices for id in of.device_ids
                )
            )
            claimed = tuple(
                ClaimedDevice(one.driver_name, one.pool_name, one.device_name)
                for claim in container.dynamic_resources
                for one in claim.claim_resources
            )
            if devices or claimed:
                found.append(Allocation(pod.namespace, pod.name, container.name, devices, claimed))
    return found
