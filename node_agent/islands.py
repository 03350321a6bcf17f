"""Which devices are joined by NVLink, all with all."""

from collections.abc import Sequence

from node_agent.reading import DeviceReading


def islands(devices: Sequence[DeviceReading]) -> dict[str, int]:
    """The number of each device's island, by id; none for a device that is joined to no other.

    A device goes to the first island, by the indices of its members, with all of which it is joined. That is
    every pair of a bridge and everything behind a switch; of a ring or a cube it is some way to cut it up.
    """
    links = {each.id: each.links for each in devices}
    found: list[list[str]] = []
    for device in sorted(devices, key=lambda each: (each.index, each.id)):
        for members in found:
            if all(device.id in links[other] and other in device.links for other in members):
                members.append(device.id)
                break
        else:
            found.append([device.id])
    joined = (members for members in found if len(members) > 1)
    return {id: number for number, members in enumerate(joined) for id in members}
