"""Slices, classes and claims as they come: in any order, twice, wrong, for nodes that are not there."""

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from estimator.cluster.mirror import ClusterMirror
from fairway.dra.cel import cel_when_needed
from fairway.dra.selection import Selector
from fairway.kube.objects import Node, object_key
from fairway.kube.resource_slices import DeviceClass, ResourceClaim, ResourceClaimTemplate, ResourceSlice
from tests.builders import Complaints, delete, node, replicas_of, shape, upsert
from tests.dra.objects import (
    DRIVER,
    Fields,
    claim_spec,
    device,
    device_class,
    devices,
    node_selector,
    published,
    request,
)
from tests.estimator.claiming import (
    GPU,
    Offered,
    allocated,
    claiming,
    claiming_cluster,
    named_claim,
    on,
    upsert_device,
)

ONE = claim_spec(request("g"))
Thing = Offered | Node


def remove(mirror: ClusterMirror, thing: Thing) -> None:
    key = object_key(thing.metadata)
    match thing:
        case ResourceSlice():
            mirror.dra.slices.delete(key)
        case DeviceClass():
            mirror.dra.classes.delete(key)
        case ResourceClaim():
            mirror.dra.claims.delete(key)
        case ResourceClaimTemplate():
            mirror.dra.templates.delete(key)
        case _:
            delete(mirror, thing)


def put(mirror: ClusterMirror, thing: Thing) -> None:
    if isinstance(thing, Offered):
        upsert_device(mirror, thing)
    else:
        upsert(mirror, thing)


def part(name: str, offered: list[Fields], generation: int, count: int, **reach: object) -> ResourceSlice:
    return published(name, offered, pool="p", generation=generation, count=count, more=reach)


OFFERED: list[Thing] = [
    node("a").pods(20).build(),
    node("b").pods(20).build(),
    node("b").pods(20).has({GPU: "1"}).build(),
    device_class("gpu", extended=GPU),
    device_class("gpu", "model=none", extended=GPU),
    device_class("new", extended=GPU, created="2026-01-01T00:00:00Z"),
    on("a", 3),
    on("a", 5),
    on("b", [*devices(2), device("gpu-1")]),
    on("b", 2),
    part("s1", devices(2, "x"), 1, 2, nodeName="a"),
    part("s2", devices(2, "y"), 1, 2, nodeName="b"),
    part("s2", devices(1, "y"), 2, 1, nodeName="b"),
    part("s1", devices(2, "x"), 2, 1, allNodes=True),
    part("s3", devices(2, "z"), 2, 1, nodeSelector=node_selector("zone", "here")),
    allocated("one", "a", "gpu-0"),
    allocated("one", "a", "gpu-1", "gpu-2"),
    allocated("two", "b", "gpu-0"),
    allocated("gone", "nowhere", "gpu-0"),
    named_claim("s", ONE),
    named_claim("s", ONE, "a", "gpu-1"),
]
asked = st.sampled_from(
    [shape({GPU: 1}), claiming(ONE), claiming(claim_spec(request("g", 2, of="new"))), claiming(shared=["s"])]
)


@settings(max_examples=200, deadline=None)
@given(st.lists(st.tuples(st.sampled_from(OFFERED), st.booleans()), max_size=25), st.lists(asked, max_size=3))
def test_whatever_came_before_only_what_is_there_counts(
    events: list[tuple[Thing, bool]], between: list[object]
) -> None:
    mirror = claiming_cluster()
    there: dict[tuple[type, str], Thing] = {}
    for index, (thing, comes) in enumerate(events):
        key = (type(thing), object_key(thing.metadata))
        if comes:
            put(mirror, thing)
            there[key] = thing
        else:
            remove(mirror, thing)
            there.pop(key, None)
        if between and index % 5 == 4:
            replicas_of(mirror, claiming(ONE))
    fresh = claiming_cluster(*reversed(list(there.values())))
    for question in (shape({GPU: 1}), claiming(ONE), claiming(claim_spec(request("g", 2, of="new")))):
        now, then = replicas_of(mirror, question), replicas_of(fresh, question)
        assert (now.value, now.upper_bound) == (then.value, then.upper_bound)
    copied = mirror.columns.copy()
    assert {name: stock.size for name, stock in copied.dra.stocks().items()} == {
        name: stock.size
        for name, stock in (mirror.columns.dra.stocks() if mirror.columns.dra.is_used else {}).items()
    }


@pytest.mark.parametrize(
    "claim",
    [
        allocated("x", "nowhere", "gpu-0"),
        allocated("x", "a", "no-such-device"),
        allocated("x", "", ""),
        msgspec.convert({"metadata": {"name": "x", "namespace": "default"}}, ResourceClaim),
        msgspec.convert(
            {
                "metadata": {"name": "x", "namespace": "default"},
                "status": {"allocation": {"devices": {"results": None}}},
            },
            ResourceClaim,
        ),
    ],
)
def test_claims_on_what_nobody_offers_take_nothing(claim: ResourceClaim) -> None:
    mirror = claiming_cluster(node("a").pods(20), device_class(), on("a", 2), claim)
    assert replicas_of(mirror, claiming(ONE)).value == 2
    mirror.dra.claims.delete("default/x")
    assert replicas_of(mirror, claiming(ONE)).value == 2


def test_a_device_that_two_claims_hold_is_free_once_both_are_gone() -> None:
    both = [allocated(name, "a", "gpu-0") for name in ("x", "y")]
    mirror = claiming_cluster(node("a").pods(20), device_class(), on("a", 2), *both)
    assert replicas_of(mirror, claiming(ONE)).value == 1
    mirror.dra.claims.delete("default/x")
    assert replicas_of(mirror, claiming(ONE)).value == 1
    mirror.dra.claims.delete("default/y")
    assert replicas_of(mirror, claiming(ONE)).value == 2


def test_shares_that_cannot_be_read_are_told_and_count_as_the_whole_device() -> None:
    result = {
        "driver": DRIVER,
        "pool": "a",
        "device": "gpu-0",
        "shareID": "1",
        "consumedCapacity": {"m": "?"},
    }
    claim = msgspec.convert(
        {
            "metadata": {"name": "x", "namespace": "default"},
            "status": {"allocation": {"devices": {"results": [result]}}},
        },
        ResourceClaim,
    )
    complaints = Complaints()
    mirror = claiming_cluster(node("a").pods(20), device_class(), on("a", 2), claim, report=complaints)
    assert [(resource, key) for resource, key, _ in complaints] == [("resourceclaims", "default/x")]
    assert replicas_of(mirror, claiming(ONE)).value == 1


def test_a_pool_under_way_from_one_generation_to_the_next_offers_nothing_until_it_is_complete() -> None:
    mirror = claiming_cluster(node("a").pods(20), device_class())
    steps: list[tuple[ResourceSlice, int]] = [
        (part("s1", devices(2, "x"), 1, 1, nodeName="a"), 2),
        (part("s2", devices(2, "y"), 2, 2, nodeName="a"), 0),
        (part("s1", devices(3, "x"), 2, 2, nodeName="a"), 5),
    ]
    for published_part, free in steps:
        upsert_device(mirror, published_part)
        assert replicas_of(mirror, claiming(ONE)).value == free


@pytest.mark.parametrize(
    "expression",
    [
        "",
        "(" * 5000,
        "\x00\ud800".encode("utf-8", "surrogatepass").decode("utf-8", "replace"),
        "device.attributes['x'].y.z.w == 1",
        "[1,2,3].all(x, [1,2,3].all(y, " * 20,
        "1 / 0 == 1",
        "device",
        "'" + "a" * 20000 + "' == ''",
    ],
)
def test_hostile_selectors_give_none_and_break_nothing(expression: str) -> None:
    pytest.importorskip("cel_expr_python", reason="the extra [dra] is not installed")
    mirror = claiming_cluster(
        node("a").pods(20),
        device_class("gpu", expression),
        device_class("good", "true"),
        on("a", 2),
        select=cel_when_needed(),
    )
    assert replicas_of(mirror, claiming(ONE)).value == 0
    assert replicas_of(mirror, claiming(claim_spec(request("g", of="good")))).value == 2


def test_nothing_is_compiled_before_it_is_needed() -> None:
    def never(expression: str) -> Selector:
        raise AssertionError(expression)

    mirror = claiming_cluster(node("a").pods(20).has({GPU: "2"}), on("b", 2), select=never)
    assert replicas_of(mirror, shape({GPU: 1})).value == 2
    assert not mirror.columns.dra.is_used


def test_a_request_with_a_thousand_requirements_ends_within_its_steps() -> None:
    selectors = [f"model=m{index}" for index in range(32)]
    spec = claim_spec(*(request(f"g{index}", 1, *selectors) for index in range(32)))
    mirror = claiming_cluster(
        *(node(f"n{index}").pods(20) for index in range(40)),
        device_class(),
        *(on(f"n{index}", devices(60, model=f"m{index}")) for index in range(40)),
    )
    answer = replicas_of(mirror, claiming(spec))
    assert answer.value == 0
