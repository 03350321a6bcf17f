"""What a device is: what changes only when somebody changes the machine, or cuts the device anew."""

from dataclasses import dataclass

from node_agent import nvml
from node_agent.asking import Asking

_SWITCH = ""


@dataclass(frozen=True, slots=True)
class Attributes:
    """What a device is. ``peers``: bus ids at the other ends of its NVLinks, empty for one that is not told.

    ``fabric``: what is wrong with its fabric. ``links``: how many NVLinks it has, ``links_up``: that work,
    ``links_most_up``: how many did at most since the driver was loaded. ``gpm``: whether it counts how busy
    its MIG instances are; ``read_at_s``: when all that was read.
    """

    product: str
    minor: int | None
    bus_id: str
    numa_node: int | None
    clique: str
    fabric: str
    peers: frozenset[str]
    links: int
    links_up: int
    links_most_up: int
    gpm: bool
    read_at_s: float


def read_attributes(
    asking: Asking, device: nvml.Device, now_s: float, before: Attributes | None
) -> Attributes:
    """Asks for each of them; product and place stay as ``before`` where they are not told this time."""
    fabric = asking.ask(nvml.fabric, device) or nvml.Fabric()
    peers, links, up = _links(device)
    return Attributes(
        product=asking.ask(nvml.name, device) or (before.product if before else ""),
        minor=asking.ask(nvml.minor, device),
        bus_id=asking.ask(nvml.bus_id, device) or (before.bus_id if before else ""),
        numa_node=asking.ask(nvml.numa_node, device),
        clique=fabric.clique,
        fabric=fabric.problem,
        peers=peers,
        links=links,
        links_up=up,
        links_most_up=max(up, before.links_most_up if before else 0),
        gpm=asking.ask(nvml.gpm_supported, device) or False,
        read_at_s=now_s,
    )


def _links(device: nvml.Device) -> tuple[frozenset[str], int, int]:
    """Where its links lead, how many there are, and how many work.

    A link whose other end is not told leads to a switch that is outside of the node.
    """
    peers = set()
    present = up = 0
    for link in range(nvml.MAX_LINKS):
        try:
            is_up = nvml.link_is_up(device, link)
        except (nvml.NothingThere, nvml.NotTold):
            break  # links are numbered without gaps
        present += 1
        if not is_up:
            continue
        up += 1
        try:
            peer = nvml.link_peer(device, link)
        except (nvml.NothingThere, nvml.NotTold):
            peer = _SWITCH
        if peer is not None:
            peers.add(peer)
    return frozenset(peers), present, up


def mig_profile(asking: Asking, device: nvml.Device, instance: nvml.Device) -> str:
    """As NVIDIA names it, such as ``1g.10gb``; of drivers whose names lack it, from its slices.

    The memory in the name is a whole number of eighths of the device's, as in go-nvlib's NewMigProfile.
    """
    _, marker, profile = (asking.ask(nvml.name, instance) or "").partition(" MIG ")
    if marker:
        return profile
    size, memory = asking.ask(nvml.mig_size, instance), asking.ask(nvml.memory, device)
    if size is None or memory is None or not memory.total:
        return ""
    gpu_slices, compute_slices, mebibytes = size
    eighths = -(-mebibytes * 2**20 * 8 // memory.total)
    gigabytes = eighths * -(-memory.total // 2**30) // 8
    cut = "" if gpu_slices == compute_slices else f"{compute_slices}c."
    return f"{cut}{gpu_slices}g.{gigabytes}gb"
