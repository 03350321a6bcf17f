"""NVLink: who reaches whom, and the islands."""

from itertools import combinations, pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from node_agent.links import islands, reached

SWITCH = "0000:ff:00.0"


def bus(device: str) -> str:
    return f"0000:{ord(device):02x}:00.0"


def buses(devices: str) -> dict[str, str]:
    return {device: bus(device) for device in devices}


@pytest.mark.parametrize(
    ("devices", "peers", "reach"),
    [
        ("ab", {"a": [], "b": []}, {"a": "", "b": ""}),
        ("ab", {"a": [bus("b")], "b": [bus("a")]}, {"a": "b", "b": "a"}),
        ("ab", {"a": [bus("b")]}, {"a": "b", "b": "a"}),
        ("abc", {each: [SWITCH] for each in "abc"}, {"a": "bc", "b": "ac", "c": "ab"}),
        ("abc", {"a": [SWITCH, "0000:fe:00.0"], "b": ["0000:fe:00.0"]}, {"a": "b", "b": "a", "c": ""}),
        ("ab", {"a": [""], "b": [""]}, {"a": "b", "b": "a"}),
        ("a", {"a": [SWITCH, bus("a")]}, {"a": ""}),
    ],
)
def test_a_link_leads_to_a_device_or_through_switches(
    devices: str, peers: dict[str, list[str]], reach: dict[str, str]
) -> None:
    assert reached(peers, buses(devices)) == {device: frozenset(others) for device, others in reach.items()}


def joined(*groups: str) -> dict[str, set[str]]:
    """Links of groups that are joined all with all."""
    links: dict[str, set[str]] = {}
    for group in groups:
        for device in group:
            links.setdefault(device, set()).update(set(group) - {device})
    return links


# The hybrid cube mesh of an 8-way V100 machine: two quads, and each device linked to its twin.
CUBE_MESH = joined("abcd", "efgh", "ae", "bf", "cg", "dh")


@pytest.mark.parametrize(
    ("links", "found"),
    [
        (joined("a", "b"), {}),
        (joined("abcdefgh"), dict.fromkeys("abcdefgh", 0)),
        (joined("ab", "cd"), {"a": 0, "b": 0, "c": 2, "d": 2}),
        (joined("a", "bc"), {"b": 1, "c": 1}),
        (joined("ab", "cde"), {"a": 0, "b": 0, "c": 2, "d": 2, "e": 2}),
        (joined(*("".join(pair) for pair in pairwise("abcd"))), {"a": 0, "b": 0, "c": 2, "d": 2}),
        (CUBE_MESH, {**dict.fromkeys("abcd", 0), **dict.fromkeys("efgh", 4)}),
        ({"a": {"b"}, "b": set()}, {}),
        ({}, {}),
    ],
)
def test_islands_are_groups_joined_all_with_all(links: dict[str, set[str]], found: dict[str, int]) -> None:
    assert islands(links, buses("abcdefgh")) == found


def test_an_island_keeps_its_number_when_another_falls_apart() -> None:
    assert islands(joined("ab", "cd"), buses("abcd"))["c"] == 2
    assert islands(joined("a", "b", "cd"), buses("abcd")) == {"c": 2, "d": 2}


@st.composite
def link_maps(draw: st.DrawFn) -> dict[str, frozenset[str]]:
    devices = "abcdefgh"[: draw(st.integers(0, 8))]
    pairs = [pair for pair in combinations(devices, 2) if draw(st.booleans())]
    return {
        device: frozenset(other for pair in pairs if device in pair for other in pair if other != device)
        for device in devices
    }


@given(link_maps(), st.permutations("abcdefgh"))
def test_islands_hold_whatever_order_devices_are_read_in(
    links: dict[str, frozenset[str]], order: list[str]
) -> None:
    found = islands(links, buses("abcdefgh"))
    for one, other in combinations(found, 2):
        assert found[one] != found[other] or other in links[one]
    assert all(list(found.values()).count(number) >= 2 for number in found.values())
    assert islands({device: links[device] for device in order if device in links}, buses("abcdefgh")) == found
