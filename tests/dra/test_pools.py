"""Which devices a node can use, out of all slices of a cluster."""

from collections.abc import Iterable

import msgspec
import pytest
from kubernetes.client.models import V1DeviceAttribute

from fairway.dra.in_use import read_holdings
from fairway.dra.pools import Pool, by_node, node_devices
from fairway.dra.slices import read_slice
from fairway.kube.resource_slices import DeviceAttribute, ResourceSlice
from tests.dra.objects import (
    DRIVER,
    Fields,
    device,
    devices,
    gather_pools,
    held,
    in_use,
    node_selector,
    published,
)


def gathered(slices: Iterable[ResourceSlice]) -> tuple[Pool, ...]:
    return gather_pools(map(read_slice, slices))


def names(*slices: ResourceSlice, node: str = "a", **labels: str) -> list[str]:
    return [found.id.name for found in node_devices(gathered(slices), node, labels).devices]


def problems(*slices: ResourceSlice) -> str:
    return "\n".join(node_devices(gathered(slices), "a", {}).problems)


def test_only_the_newest_generation_counts_whatever_came_first() -> None:
    old, new = published("s1", devices(2, "old")), published("s2", devices(1, "new"), generation=2)
    assert names(old, new) == names(new, old) == ["new-0"]


def test_a_newer_generation_of_other_nodes_takes_the_old_devices_away() -> None:
    old = published("s1", devices(2))
    new = published("s2", devices(1), generation=2, nodeName="b")
    assert names(old, new) == []
    assert problems(old, new) == ""


def test_attributes_go_by_the_names_that_kubernetes_gives_them_on_the_wire() -> None:
    """In Go and in documents they are called StringValue and so on, in JSON they are not."""
    on_the_wire = {field.encode_name for field in msgspec.structs.fields(DeviceAttribute)}
    assert on_the_wire == set(V1DeviceAttribute.attribute_map.values())


@pytest.mark.parametrize("count", [1, 3])
def test_an_incomplete_pool_is_not_used(count: int) -> None:
    slices = [published("s1", devices(1, "x"), count=count), published("s2", devices(1, "y"), count=count)]
    assert names(*slices) == []
    assert f"resourceSliceCount is {count}, but generation 1 has 2 slices" in problems(*slices)


def test_slices_for_other_nodes_complete_a_pool() -> None:
    slices = [
        published("s1", devices(1, "x"), count=2),
        published("s2", devices(1, "y"), count=2, nodeName="b"),
    ]
    assert names(*slices) == ["x-0"]
    assert problems(*slices) == ""


@pytest.mark.parametrize(
    ("offered", "text"),
    [
        ([device("x"), device("x")], "has x twice"),
        ([device("x", counters={"none": {"n": "1"}})], "counter none/n is consumed"),
        ([device("x", {"memory": "lots"})], "spec.devices[0].capacity[memory].value: 'lots' is not a"),
        ([device("x", {"memory": None})], "spec.devices[0].capacity[memory].value is missing"),
        ([device("x", {"memory": "-1"})], "expected a quantity that is not negative"),
        (
            [device("x", {"memory": {"value": "1", "requestPolicy": {"validRange": {"max": "1"}}}})],
            "requestPolicy.validRange.min is missing",
        ),
        ([device("")], "spec.devices[0].name is missing"),
        ([{"name": "x", "attributes": {"n": {}}}], "spec.devices[0].attributes[n] has 0 values"),
        ([{"name": "x", "attributes": {"n": {"int": 1, "bool": True}}}], "has 2 values"),
    ],
)
def test_a_pool_that_contradicts_itself_is_not_used_and_others_are(offered: list[Fields], text: str) -> None:
    bad, good = published("s1", offered), published("s2", devices(1, "good"), pool="b")
    assert names(bad, good) == ["good-0"]
    assert f"pool a of {DRIVER} is not used: " in problems(bad, good)
    assert text in problems(bad, good)


@pytest.mark.parametrize(
    ("reach", "found"),
    [
        ({"nodeName": "a"}, True),
        ({"nodeName": "b"}, False),
        ({"allNodes": True}, True),
        ({"nodeSelector": node_selector("zone", "x", "y")}, True),
        ({"nodeSelector": node_selector("zone", "y")}, False),
        ({"nodeSelector": node_selector("zone", operator="Exists")}, True),
        ({"nodeSelector": {"nodeSelectorTerms": [{}]}}, False),
        ({"nodeSelector": {"nodeSelectorTerms": []}}, False),
        (
            {
                "nodeSelector": {
                    "nodeSelectorTerms": [
                        {"matchFields": [{"key": "metadata.name", "operator": "In", "values": ["a"]}]}
                    ]
                }
            },
            True,
        ),
        ({"nodeName": None}, False),
    ],
)
def test_which_nodes_reach_a_slice_or_a_device(reach: Fields, found: bool) -> None:
    assert names(published("s", devices(1), more=reach), zone="x") == (["gpu-0"] if found else [])
    each = published("s", [device("gpu-0", more=reach), device("other")], perDeviceNodeSelection=True)
    assert names(each, zone="x") == (["gpu-0"] if found else [])


def test_a_selector_that_is_wrong_is_a_problem_of_its_pool() -> None:
    bad = published("s", devices(1), nodeSelector=node_selector("zone", "x", operator="Near"))
    text = "spec.nodeSelector.nodeSelectorTerms[0]: 'Near' on zone is not an operator"
    assert text in problems(bad)


def test_devices_come_in_the_order_in_which_they_are_tried() -> None:
    later = [device("later", more={"bindingConditions": ["attached"]})]
    slices = [
        published("s3", later, pool="a"),
        published("s2", devices(1, "two"), pool="b", count=2),
        published("s1", devices(2, "one"), pool="b", count=2),
        published("s0", devices(1, "other"), pool="z", driver="a.example.com"),
    ]
    assert names(*slices) == ["other-0", "one-0", "one-1", "two-0", "later"]


def test_counters_of_a_pool_are_taken_by_devices_of_all_nodes() -> None:
    taking = {"c": {"n": "1"}}
    pools = gathered(
        [
            published("s0", count=3, counter_sets={"c": {"n": "3"}}, nodeName=None),
            published("s1", [device("x", counters=taking)], count=3),
            published("s2", [device("y", counters=taking)], count=3, nodeName="b"),
        ]
    )
    holds = in_use([held("c", {"device": "y"})])
    assert list(holds.free_counters(pools).values()) == [2 * 10**9]
    assert pools[0].node == ""


def test_a_pool_is_cut_into_what_one_node_has_alone_and_what_several_may_use() -> None:
    offered = [
        device("a0", more={"nodeName": "a"}),
        device("b0", more={"nodeName": "b"}),
        device("b1", counters={"c": {"n": "1"}}, more={"nodeName": "b"}),
        device("all", more={"allNodes": True}),
    ]
    (pool,) = gathered([published("s", offered, counter_sets={"c": {"n": "3"}}, perDeviceNodeSelection=True)])
    own, rest = by_node(pool)
    assert {node: [one.id.name for one in part.devices] for node, part in own.items()} == {
        "a": ["a0"],
        "b": ["b0"],
    }
    assert rest is not None
    assert [one.id.name for one in rest.devices] == ["b1", "all"]
    for node in "abc":
        near = (*(part for name, part in own.items() if name == node), rest)
        expected = {one.id for one in node_devices([pool], node, {}).devices}
        assert {one.id for one in node_devices(near, node, {}).devices} == expected


def test_what_is_wrong_with_a_pool_stays_with_its_parts() -> None:
    offered = [device("a0", more={"nodeName": "a"}), device("b0", more={"nodeName": "b"})]
    (pool,) = gathered([published("s", offered, count=2, perDeviceNodeSelection=True)])
    own, rest = by_node(pool)
    assert rest is None
    assert [bool(part.problem) for part in own.values()] == [True, True]


def test_a_pool_of_one_node_names_it() -> None:
    assert gathered([published("s", devices(2))])[0].node == "a"


def test_names_without_a_domain_are_the_drivers_and_stated_ones_win() -> None:
    offered = [device("x", None, None, (), None, model="plain", **{f"{DRIVER}__model": "full"}, a__b=1)]
    found = node_devices(gathered([published("s", offered)]), "a", {}).devices[0]
    assert [name for name, _ in found.attributes] == ["a/b", f"{DRIVER}/model"]
    model = found.attribute(f"{DRIVER}/model")
    assert model is not None
    assert model.value == "full"


def test_devices_of_v1beta1_are_read() -> None:
    basic = {"attributes": {"n": {"int": 1}}, "capacity": {"memory": {"value": "1Gi"}}}
    found = node_devices(gathered([published("s", [{"name": "x", "basic": basic}])]), "a", {}).devices[0]
    assert found.attribute(f"{DRIVER}/n") is not None
    assert [name for name, _ in found.capacities] == [f"{DRIVER}/memory"]


def test_what_a_claim_holds_that_cannot_be_read_is_told() -> None:
    claim = held("x", {"device": "s", "shareID": "1", "consumedCapacity": {"memory": "lots"}})
    _, told = read_holdings("default/x", claim)
    assert len(told) == 1
    assert told[0].startswith(
        "ResourceClaim default/x: status.allocation.devices.results[0].consumedCapacity: 'lots' is not"
    )


def test_a_wrong_type_is_located() -> None:
    with pytest.raises(msgspec.ValidationError, match=r"\$\.spec\.pool\.generation"):
        msgspec.json.decode(b'{"spec": {"pool": {"generation": "new"}}}', type=ResourceSlice)
