"""Shared devices: what a node's pods take of them, how many more pods they take, and dealing them out.

The scheme here is made for the tests; those that clusters use are tested in ``tests/accelerators``.
"""

from __future__ import annotations

from dataclasses import replace
from functools import cache
from itertools import combinations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from estimator.capacity.devices.dealing import Openable, dealt_side_by_side
from estimator.capacity.devices.device_room import DeviceRoom
from estimator.capacity.devices.state import UNLIMITED
from estimator.capacity.room import Room
from estimator.cluster.columns import NodeColumns
from estimator.cluster.devices import DeviceColumns
from estimator.fit.eligibility import EligibilityCache
from estimator.fit.pod_shape import PodShape
from fairway.accelerators.devices import (
    Device,
    DeviceClaim,
    DeviceFilter,
    DeviceUse,
    PodAsk,
    Read,
    Scheme,
)


def scheme(opens: str = "", memory: int = 10) -> Scheme:
    return Scheme(
        "test",
        frozenset({"example.com/mem"}),
        frozenset(),
        devices=lambda node: None,
        uses=lambda pod: Read(()),
        claims=lambda ask: None,
        opens=opens,
        new_device=(lambda node: Device("", memory, cores=0)) if opens else None,
    )


def table(nodes: dict[int, list[Device]], opens: str = "", memory: int = 10) -> DeviceColumns:
    columns = DeviceColumns(scheme(opens, memory))
    for row, devices in nodes.items():
        columns.set_node(f"n{row}", row, devices, Device("", memory, cores=0) if opens else None)
    return columns


def device(id: str, memory: int = 10, cores: int = 100, slots: int = 10, numa: int = 0) -> Device:
    return Device(id, memory, cores, slots, numa=numa)


EMPTY_PAIR = [device("a"), device("b")]


HALF = 500_000
FULL = 1_000_000
TRIPLE = [*EMPTY_PAIR, device("c")]
BY_NUMA = [*EMPTY_PAIR, device("c", numa=1)]
H100 = replace(device("a"), product="NVIDIA H100 80GB")
BROKEN = replace(device("a"), usable=False)


@pytest.mark.parametrize(
    ("devices", "used", "claim", "pods"),
    [
        pytest.param(EMPTY_PAIR, [], DeviceClaim(1, 4), 4, id="each device holds its own shares"),
        pytest.param(EMPTY_PAIR, [], DeviceClaim(1, 11), 0, id="what fits on no device fits nowhere"),
        pytest.param(EMPTY_PAIR, [DeviceUse("a", 7)], DeviceClaim(1, 4), 2, id="used memory is not free"),
        pytest.param([device("a", slots=2)], [DeviceUse("a", 1)], DeviceClaim(1, 1), 1, id="slots limit"),
        pytest.param(EMPTY_PAIR, [DeviceUse("a", 0, 60)], DeviceClaim(1, 1, cores=30), 4, id="cores limit"),
        pytest.param(
            EMPTY_PAIR, [DeviceUse("a", 1, 100)], DeviceClaim(1, 1), 10, id="no cores left, none asked"
        ),
        pytest.param([device("a", cores=0)], [], DeviceClaim(1, 5, cores=90), 2, id="cores are not divided"),
        pytest.param(
            EMPTY_PAIR, [DeviceUse("a", 1)], DeviceClaim(1, 0, FULL, exclusive=True), 1, id="exclusive"
        ),
        pytest.param(
            EMPTY_PAIR, [DeviceUse("a", 1, exclusive=True)], DeviceClaim(1, 1), 10, id="exclusively used"
        ),
        pytest.param(
            [device("a", 10), device("b", 21)], [], DeviceClaim(1, memory_ppm=HALF), 4, id="share of its own"
        ),
        pytest.param(EMPTY_PAIR, [], DeviceClaim(2, 4), 2, id="two devices a pod must differ"),
        pytest.param(TRIPLE, [DeviceUse("c", 6)], DeviceClaim(2, 4), 2, id="two a pod, one nearly full"),
        pytest.param([BROKEN, device("b")], [], DeviceClaim(1, 5), 2, id="unusable devices take nothing"),
        pytest.param(
            [H100, device("b")], [], DeviceClaim(1, 5, filter=DeviceFilter(("h100",))), 2, id="product"
        ),
        pytest.param(BY_NUMA, [], DeviceClaim(2, 5, same_numa=True), 2, id="all on one NUMA node"),
        pytest.param(BY_NUMA[1:], [], DeviceClaim(2, 5, same_numa=True), 0, id="too few on each NUMA node"),
        pytest.param(
            EMPTY_PAIR, [DeviceUse("z", 10)], DeviceClaim(1, 10), 2, id="an unknown device is nothing"
        ),
    ],
)
def test_pods_that_a_node_takes(
    devices: list[Device], used: list[DeviceUse], claim: DeviceClaim, pods: int
) -> None:
    columns = table({3: devices})
    columns.hold("n3", used)
    limit = DeviceRoom(columns).limit((claim,), 5, None)
    assert limit.tolist() == [UNLIMITED, UNLIMITED, UNLIMITED, pods, UNLIMITED]


@pytest.mark.parametrize(
    ("claim", "whole", "used", "pods"),
    [
        (DeviceClaim(1, memory_ppm=500_000), 1, {"g": [5, 2]}, 2),  # V11: the shared one has a quarter left
        (DeviceClaim(1, memory_ppm=250_000), 1, {"g": [5, 2]}, 5),
        (DeviceClaim(1, memory_ppm=250_000), 0, {"g": [5, 2]}, 1),
        (DeviceClaim(2, memory_ppm=500_000), 3, {}, 3),
        (DeviceClaim(1, 9), 2, {"g": [1], "h": [2]}, 3),
    ],
)
def test_devices_opened_out_of_whole_units(
    claim: DeviceClaim, whole: int, used: dict[str, list[int]], pods: int
) -> None:
    columns = table({0: []}, opens="example.com/gpu", memory=10 if claim.memory else 8)
    for group, amounts in used.items():
        scale = 1 if claim.memory else 8 / 10
        columns.hold("n0", [DeviceUse(group, round(amount * scale)) for amount in amounts])
    openable = Openable(np.array([whole, whole]), np.array([110, 110]))
    assert DeviceRoom(columns).limit((claim,), 2, openable).tolist() == [pods, 0]


@pytest.mark.parametrize(
    ("shares", "count", "pods"),
    [
        ([5, 1, 1, 1], 3, 1),
        ([5, 2, 2, 1], 3, 2),
        ([3, 3, 3], 2, 4),
        ([9, 9, 1], 2, 9),
        ([9, 1, 1], 2, 2),
        ([1, 1, 1, 1], 3, 1),
        ([4, 4], 3, 0),
        ([0, 7], 1, 7),
        ([], 1, 0),
    ],
)
def test_shares_are_dealt_to_pods_that_need_different_devices(
    shares: list[int], count: int, pods: int
) -> None:
    side_by_side = np.array(shares, dtype=np.int64)[:, None]
    assert dealt_side_by_side(side_by_side, count).tolist() == [pods]


def test_each_device_gives_a_pod_no_more_than_one_of_the_shares_it_needs() -> None:
    room, two = DeviceRoom(table({0: EMPTY_PAIR})), DeviceClaim(2, 4)
    room.take((two,), np.array([1]), None)
    assert room.limit((two,), 1, None).tolist() == [1]
    room.take((two,), np.array([1]), None)
    assert room.limit((two,), 1, None).tolist() == [0]


def test_a_device_whose_cores_an_answer_has_taken_takes_nobody() -> None:
    room, halves, none = DeviceRoom(table({0: [device("a")]})), DeviceClaim(1, 1, cores=50), DeviceClaim(1, 1)
    room.take((halves,), np.array([1]), None)
    assert room.limit((none,), 1, None).tolist() == [9]
    room.take((halves,), np.array([1]), None)
    assert room.limit((none,), 1, None).tolist() == [0]


def test_a_device_that_changes_is_seen_as_it_is_now() -> None:
    columns = table({0: EMPTY_PAIR})
    claims = (DeviceClaim(2, 5, same_numa=True),), (DeviceClaim(1, 5, filter=DeviceFilter(("h100",))),)

    def limits() -> list[int]:
        return [int(DeviceRoom(columns).limit(claim, 1, None)[0]) for claim in claims]

    assert limits() == [2, 0]
    columns.set_node("n0", 0, [device("a"), device("b", numa=1)], None)
    assert limits() == [0, 0]
    columns.set_node("n0", 0, [H100, device("b")], None)
    assert limits() == [2, 2]
    columns.set_node("n0", 0, [device("b")], None)
    assert limits() == [0, 0]


def test_what_is_remembered_is_forgotten_with_any_change() -> None:
    columns, claims = table({}), [(DeviceClaim(1, memory),) for memory in range(1, 100)]

    def limits() -> list[int]:
        return [int(DeviceRoom(columns).limit(claim, 1, None)[0]) for claim in claims]

    assert limits() == limits() == [UNLIMITED] * 99
    columns.set_node("n0", 0, [], None)
    assert limits() == [0] * 99
    columns.set_node("n0", 0, EMPTY_PAIR, None)
    assert limits() == limits() == [2 * (10 // memory) for memory in range(1, 100)]
    columns.hold("n0", [DeviceUse("a", 10)])
    assert limits() == [10 // memory for memory in range(1, 100)]
    columns.set_node("n0", 0, None, None)
    assert limits() == [UNLIMITED] * 99


def test_what_an_answer_takes_is_not_remembered_for_the_next() -> None:
    columns, claim = table({0: EMPTY_PAIR}), (DeviceClaim(1, 5),)
    room = DeviceRoom(columns)
    room.take(claim, np.array([3]), None)
    assert [int(taken.limit(claim, 1, None)[0]) for taken in (room, room.fork())] == [1, 1]
    assert DeviceRoom(columns).limit(claim, 1, None).tolist() == [4]


def test_events_in_any_order_come_to_the_same() -> None:
    early, late = table({0: EMPTY_PAIR}), DeviceColumns(scheme())
    uses = (DeviceUse("a", 3, 20), DeviceUse("b", 1))
    early.hold("n0", uses)
    late.hold("n0", uses)
    late.set_node("n0", 0, EMPTY_PAIR, None)
    for name in ("memory_free", "cores_free", "slots_free", "touched"):
        assert sorted(early.number(name).tolist()) == sorted(late.number(name).tolist())
    early.release("n0", uses)
    assert early.number("memory_free").tolist() == [10, 10]
    assert early.number("touched").tolist() == [0, 0]
    early.remove_node("n0")
    assert not early.is_used
    assert set(early.node.tolist()) == {-1}


# --- laws --------------------------------------------------------------------------------------------------

Shares = list[int]


def best_dealing(shares: tuple[int, ...], count: int) -> int:
    """The most pods of ``count`` different devices each, by trying everything."""

    @cache
    def best(left: tuple[int, ...]) -> int:
        most = 0
        for chosen in combinations(range(len(left)), count):
            if all(left[i] for i in chosen):
                after = tuple(sorted(n - (i in chosen) for i, n in enumerate(left)))
                most = max(most, 1 + best(after))
        return most

    return best(tuple(sorted(shares)))


@given(st.lists(st.integers(0, 4), min_size=1, max_size=5), st.integers(1, 3))
def test_dealing_is_the_best_there_is(shares: Shares, count: int) -> None:
    columns = table({0: [device(str(i), memory=s) for i, s in enumerate(shares)]})
    room = DeviceRoom(columns)
    claim = DeviceClaim(count, 1)
    assert room.limit((claim,), 1, None).tolist() == [best_dealing(tuple(shares), count)]


CLAIMS = st.builds(
    DeviceClaim,
    count=st.integers(1, 3),
    memory=st.integers(1, 6),
    cores=st.sampled_from((0, 0, 30, 100)),
    same_numa=st.booleans(),
)
DEVICES = st.lists(
    st.builds(
        device,
        id=st.uuids().map(str),
        memory=st.integers(0, 12),
        slots=st.integers(1, 4),
        numa=st.integers(0, 1),
    ),
    max_size=5,
    unique_by=lambda d: d.id,
)


@settings(max_examples=100)
@given(st.lists(DEVICES, min_size=1, max_size=3), st.lists(CLAIMS, min_size=1, max_size=2), st.booleans())
def test_what_is_counted_can_be_taken_and_no_more(
    nodes: list[list[Device]], claims: list[DeviceClaim], opens: bool
) -> None:
    columns = table(dict(enumerate(nodes)), opens="example.com/gpu" if opens else "")
    asked = tuple(replace(claim, same_numa=claim.same_numa and not opens) for claim in claims)
    rows = len(nodes)
    openable = Openable(np.arange(rows), np.arange(rows) * 3) if opens else None
    room = DeviceRoom(columns)
    limit = room.limit(asked, rows, openable)
    opened = room.take(asked, limit, openable)
    if openable is not None:
        assert opened is not None
        assert (opened.units <= openable.units).all()
        assert (opened.units + limit <= openable.slots).all()
        openable = Openable(openable.units - opened.units, openable.slots - opened.units - limit)
    left = room._state
    assert all((free >= 0).all() for free in (left.memory_free, left.cores_free, left.slots_free))
    assert not room.limit(asked, rows, openable).any()


@given(DEVICES, CLAIMS, CLAIMS)
def test_a_fork_leaves_its_origin_alone(
    devices: list[Device], first: DeviceClaim, second: DeviceClaim
) -> None:
    room = DeviceRoom(table({0: devices}))
    before = room.limit((second,), 1, None).tolist()
    fork = room.fork()
    fork.take((first,), fork.limit((first,), 1, None), None)
    assert room.limit((second,), 1, None).tolist() == before


# --- in a room ---------------------------------------------------------------------------------------------


def claiming(scheme_: Scheme, claim: DeviceClaim) -> Scheme:
    def claims(ask: PodAsk) -> Read[tuple[DeviceClaim, ...]] | None:
        asks = scheme_.opens or "example.com/mem" in ask.total
        return Read((claim,)) if asks else None

    return replace(scheme_, claims=claims)


def test_a_managed_resource_is_decided_on_devices_alone() -> None:
    columns = NodeColumns((claiming(scheme(), DeviceClaim(1, 4)),))
    for name in ("sharing", "plain"):
        columns.set_node(name, {"pods": 110, "cpu": 64000}, {}, ())
    columns.devices[0].set_node("sharing", 0, EMPTY_PAIR, None)
    room = Room(columns, EligibilityCache())
    asked = PodShape((("cpu", 1000), ("example.com/mem", 4)))
    assert room.fits(asked).tolist() == [4, 0]
    room.take(asked, np.array([3, 0]))
    assert room.fits(asked).tolist() == [1, 0]
    assert room.fits(PodShape((("cpu", 1000),))).tolist() == [61, 64]


def test_opening_a_device_takes_a_whole_unit() -> None:
    gpu = "example.com/gpu"
    half = replace(scheme(gpu), claims=lambda ask: Read((DeviceClaim(1, 5),)) if ask.annotations else None)
    columns = NodeColumns((half,))
    columns.set_node("a", {"pods": 110, gpu: 2}, {}, ())
    columns.devices[0].set_node("a", 0, (), Device("", 10, cores=0))
    room = Room(columns, EligibilityCache())
    fraction, whole = PodShape(annotations=(("gpu-fraction", "0.5"),)), PodShape(((gpu, 1),))
    assert room.fits(fraction).tolist() == [4]
    assert not room.separable((fraction, whole))
    room.take(fraction, np.array([1]))
    assert room.fits(whole).tolist() == [1]
    assert room.fits(fraction).tolist() == [3]
    earlier = room.fork()
    room.take(whole, np.array([1]))
    assert room.fits(fraction).tolist() == [1]
    room.restore(earlier)
    assert room.fits(fraction).tolist() == [3]


def test_what_cannot_be_read_fits_nowhere() -> None:
    broken = replace(scheme("example.com/gpu"), claims=lambda ask: Read((), ("annotation x: expected y",)))
    columns = NodeColumns((broken,))
    columns.set_node("a", {"pods": 110}, {}, ())
    room = Room(columns, EligibilityCache())
    asked = PodShape(annotations=(("x", "?"),))
    assert room.fits(asked).tolist() == [0]
    assert [limit.problems for limit in room.device_limits(asked)] == [("annotation x: expected y",)]


NODE_KINDS: tuple[list[Device], ...] = (EMPTY_PAIR, BY_NUMA, TRIPLE, [H100, device("b")], [BROKEN], [])
FILTERS = (DeviceFilter(("h100",)), DeviceFilter(not_products=("h100",)), DeviceFilter(ids=("a",)))
SEVERAL = st.lists(
    CLAIMS | st.builds(DeviceClaim, st.integers(1, 2), filter=st.sampled_from(FILTERS)),
    min_size=1,
    max_size=2,
)


@settings(max_examples=100, derandomize=True, deadline=None)
@given(st.data())
def test_nodes_that_are_alike_take_what_each_of_them_takes_by_itself(data: st.DataObject) -> None:
    """Many nodes of few kinds are worked out once for each kind, also while pods come, and nodes go."""
    rows = 16
    kinds = data.draw(st.lists(st.sampled_from(NODE_KINDS), min_size=1, max_size=3))
    columns = table({row: kinds[row % len(kinds)] for row in range(rows)})
    claims = [tuple(data.draw(SEVERAL)) for _ in range(3)]
    for _ in range(data.draw(st.integers(1, 6))):
        row = data.draw(st.integers(0, rows - 1))
        match data.draw(st.sampled_from(("hold", "change", "leave"))):
            case "hold":
                columns.hold(f"n{row}", [DeviceUse("a", data.draw(st.integers(0, 11)), 30)])
            case "change":
                columns.set_node(f"n{row}", row, data.draw(st.sampled_from(kinds)), None)
            case _:
                columns.remove_node(f"n{row}")
        for claim in claims:
            alone = DeviceRoom(columns)
            # Who has taken something, be it nothing, looks at all devices.
            alone.take(claim, np.zeros(rows, dtype=np.int64), None)
            together = DeviceRoom(columns)
            assert together.limit(claim, rows, None).tolist() == alone.limit(claim, rows, None).tolist()
            assert together.bound(claim, rows, None).tolist() == alone.bound(claim, rows, None).tolist()


def test_what_is_known_of_a_kind_of_nodes_outlives_what_changes_on_one() -> None:
    columns = table(dict.fromkeys(range(16), EMPTY_PAIR))
    columns.hold("n3", [DeviceUse("a", 5)])
    first = columns.one_of_each()
    columns.hold("n4", [DeviceUse("a", 5)])
    assert columns.one_of_each() is first
    columns.hold("n5", [DeviceUse("a", 6)])
    assert columns.one_of_each() is not first


def test_nodes_that_are_all_different_are_worked_out_one_by_one() -> None:
    columns = table({row: [device("a", memory=row)] for row in range(16)})
    assert columns.one_of_each() is None
    assert DeviceRoom(columns).limit((DeviceClaim(1, 3),), 16, None).tolist() == [
        row // 3 for row in range(16)
    ]
