"""What a plain resource stands for, by the devices that an agent lists and the number that is advertised."""

import msgspec
import pytest

from fairway.accelerators.listed import Listed, listed
from fairway.kube.node_devices import NodeDevices

SEVEN_OF_EIGHT = Listed("", (("1g.10gb", 56),), 8)
TWO = Listed("", (("", 2),), 2)


@pytest.mark.parametrize(
    ("found", "advertised", "expected"),
    [
        (Listed(), 8, ""),
        (TWO, 2, ""),
        (TWO, 8, ""),
        (SEVEN_OF_EIGHT, 56, "1g.10gb"),
        (SEVEN_OF_EIGHT, 0, "1g.10gb"),
        # Some are unhealthy, or not found by the plugin.
        (SEVEN_OF_EIGHT, 55, "1g.10gb"),
        (SEVEN_OF_EIGHT, 49, "1g.10gb"),
        (SEVEN_OF_EIGHT, 48, "1g.10gb"),
        (SEVEN_OF_EIGHT, 224, "1g.10gb"),
        (SEVEN_OF_EIGHT, 8, None),
        (msgspec.structs.replace(SEVEN_OF_EIGHT, are_replicas=True), 32, None),
        # Whole ones beside those that are cut: the plain name is theirs, unless it counts all.
        (Listed("", (("", 4), ("1g.10gb", 28)), 8), 4, ""),
        (Listed("", (("", 4), ("1g.10gb", 28)), 8), 3, ""),
        (Listed("", (("", 4), ("1g.10gb", 28)), 8), 8, None),
        # MIG is on, and nothing is cut.
        (Listed("", (), 8), 8, None),
        (Listed("", (), 8), 32, None),
    ],
)
def test_what_it_is(found: Listed, advertised: int, expected: str | None) -> None:
    assert found.piece(advertised) == expected


@pytest.mark.parametrize(
    ("are_replicas", "is_partial", "advertised", "expected"),
    [
        (None, False, 8, 4),
        (None, False, 7, 1),
        (None, False, 2, 1),
        (None, False, 1, 1),
        (None, True, 8, 1),
        (False, False, 8, 1),
        (True, True, 8, 4),
        # One of its replicas is not advertised, or more.
        (True, False, 7, 4),
        (True, False, 2, 1),
    ],
)
def test_how_often(are_replicas: bool | None, is_partial: bool, advertised: int, expected: int) -> None:
    found = msgspec.structs.replace(TWO, are_replicas=are_replicas, is_partial=is_partial)
    assert found.times(2, advertised) == expected


@pytest.mark.parametrize(
    ("allocatable", "capacity", "expected"),
    [
        (4, 8, 4),
        # The plugin has started without the device that kubelet may not give.
        (4, 4, 4),
        # What the agent tells is newer, or older, than what the node does.
        (5, 8, 4),
        (2, 8, 4),
        (0, 8, 4),
    ],
)
def test_what_kubelet_may_not_give_is_not_counted_twice(
    allocatable: int, capacity: int, expected: int
) -> None:
    found = msgspec.structs.replace(TWO, are_replicas=True, withheld=(("", 1),), gpus_withheld=1)
    assert found.replicas("", allocatable, capacity) == expected


@pytest.mark.parametrize(
    ("version", "holders", "expected"),
    [
        ("1.0", [], None),
        ("1.0", [("PodResources", 0)], False),
        ("1.0", [("PodResources", 0), ("PodResources", 1)], True),
        # Shares of a scheme are none that the plain resource is advertised by; a process holds none.
        ("1.0", [("Annotation", 1), ("Cgroup", 0)], None),
        # Whoever is no agent knows who holds a device and not what of it.
        ("", [("PodResources", 0)], None),
    ],
)
def test_shares_tell_replicas(version: str, holders: list[tuple[str, int]], expected: bool | None) -> None:
    told = [{"pod": "p", "source": source, "shares": shares} for source, shares in holders]
    devices = [{"id": "GPU-0", "product": "NVIDIA L4", "holders": told}]
    found = listed(msgspec.convert({"agent": {"version": version}, "devices": devices}, NodeDevices))
    assert (found.are_replicas, found.product, found.counts, found.gpus) == (
        *(expected, "NVIDIA L4"),
        (("", 1),),
        1,
    )
