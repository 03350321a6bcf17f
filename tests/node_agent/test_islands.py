"""Which devices are joined by NVLink, all with all."""

import pytest

from node_agent.islands import islands
from tests.node_agent.readings import device, uuid


def joined(*pairs: str, count: int = 4) -> dict[int, int]:
    """By index: the island, where each pair such as ``01`` is linked both ways."""
    links: dict[int, set[int]] = {index: set() for index in range(count)}
    for a, b in (map(int, pair) for pair in pairs):
        links[a].add(b)
        links[b].add(a)
    devices = [device(at, links=frozenset(map(uuid, others))) for at, others in links.items()]
    found = islands(list(reversed(devices)))
    return {index: found[uuid(index)] for index in range(count) if uuid(index) in found}


@pytest.mark.parametrize(
    ("pairs", "expected"),
    [
        ((), {}),
        (("01", "23"), {0: 0, 1: 0, 2: 1, 3: 1}),
        (("12",), {1: 0, 2: 0}),
        (("01", "02", "03", "12", "13", "23"), {0: 0, 1: 0, 2: 0, 3: 0}),
        (("01", "12", "23", "30"), {0: 0, 1: 0, 2: 1, 3: 1}),
    ],
    ids=["no links", "two bridges", "one bridge", "a switch", "a ring is cut into pairs"],
)
def test_islands(pairs: tuple[str, ...], expected: dict[int, int]) -> None:
    assert joined(*pairs) == expected


def test_a_link_that_only_one_end_tells_of_joins_nothing() -> None:
    assert islands([device(0, links=frozenset({uuid(1)})), device(1)]) == {}
