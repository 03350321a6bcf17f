"""What is wrong with the NVLinks of a device, and with the fabric that switches make of them.

*The fabric.* On machines with NVSwitches (Hopper and newer) each GPU registers with the fabric at start.
Until it has, CUDA refuses to start there (cudaErrorSystemNotReady), so that no pod can use it; one that
failed to register lacks NVLink alone (NVIDIA Fabric Manager User Guide). A GPU without NVLinks, as one that
was passed into a machine of its own, has no fabric to wait for; one that is cut does not use it.

*A link that is down* is told where it ought to be up: it was since the driver was loaded, or the device's
siblings at the same switches have more. Cards with room for bridges have links that lead nowhere, for good.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from fairway.kube.node_devices import Health
from node_agent.reading import Trouble

_TROUBLES = {
    "FabricNotReady": Trouble(
        "FabricNotReady",
        "not registered with the NVLink fabric, so that CUDA does not start: does the fabric manager run?",
        Health.UNHEALTHY,
    ),
    "FabricFailed": Trouble(
        "FabricFailed",
        "the GPU could not be registered with the NVLink fabric: it works alone, without NVLink",
        Health.DEGRADED,
    ),
    "FabricDegraded": Trouble(
        "FabricDegraded",
        "the NVLink fabric is slower than it should be, or set up wrongly, for this GPU",
        Health.DEGRADED,
    ),
}
_APART = frozenset({"FabricNotReady", "FabricFailed"})


@dataclass(frozen=True, slots=True)
class LinkState:
    """The NVLinks of one device. ``fabric``: a code of what is wrong with its fabric, empty for nothing.

    ``present``: how many links it has; ``up``: how many of them work; ``most_up``: how many did at most
    since the driver was loaded; ``switched``: whether any leads to a switch.
    """

    product: str = ""
    fabric: str = ""
    present: int = 0
    up: int = 0
    most_up: int = 0
    switched: bool = False


def link_troubles(devices: Mapping[str, LinkState]) -> dict[str, tuple[Trouble, ...]]:
    """What is wrong with the links of each device of a node, by id; those without trouble are left out."""
    most: dict[str, int] = {}
    for state in devices.values():
        if state.switched:
            most[state.product] = max(state.up, most.get(state.product, 0))
    found: dict[str, tuple[Trouble, ...]] = {}
    for device, state in devices.items():
        at_switches = state.switched or not state.up
        expected = max(state.most_up, most.get(state.product, 0) if at_switches else 0)
        troubles = [_TROUBLES[state.fabric]] if state.fabric in _TROUBLES and state.present else []
        if state.present and expected > state.up:
            message = f"{expected - state.up} of {expected} NVLinks are down"
            troubles.append(Trouble("NvLinkDown", message, Health.DEGRADED))
        if troubles:
            found[device] = tuple(troubles)
    return found


def stands_apart(state: LinkState, troubles: Iterable[Trouble]) -> bool:
    """Whether the device reaches no other by NVLink, or not as the others do: it is in no island.

    By default a fabric manager takes a GPU with a broken link to a switch out of NVLink altogether; where
    links lead from device to device, those that are left still count.
    """
    codes = {trouble.code for trouble in troubles}
    at_switches = state.switched or not state.up
    return bool(codes & _APART) or (at_switches and "NvLinkDown" in codes)
