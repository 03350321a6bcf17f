"""What a cluster or a scheduler may say that is wrong, odd or hostile: one test a line.

Nothing here may raise, and everything valid beside the bad part must count as if the bad part were not there.
"""

import msgspec
import pytest

from estimator.capacity.answer import NO_BOUND, UNBOUNDED
from estimator.capacity.request import Component
from estimator.capacity.sets.component_sets import max_sets
from estimator.fit.pod_shape import PodShape
from estimator.pb import estimator_pb2 as pb
from estimator.wire import WireError, decode_replicas, decode_sets, encode_sets
from fairway.kube.objects import Deployment, Node, Pod
from fairway.quantity import MAX_INT64
from tests.builders import (
    Complaints,
    Quantity,
    assumed,
    cluster,
    component,
    delete,
    deployment,
    free_on,
    never,
    node,
    pod,
    quota,
    read,
    replica_set,
    replicas_of,
    requirements,
    room_of,
    sets_of,
    shape,
    term,
    toleration,
    upsert,
)

GARBAGE: list[Quantity] = ["", "lots", "1K", "1e", "--1", "1" * 1_000_000, "\x00", float("inf")]
GARBAGE_IDS = ["empty", "words", "1K", "1e", "--1", "1 MB", "nul", "infinite"]
HUGE_NAME = "example.com/" + "x" * 1_000_000


# --- garbage -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("garbage", GARBAGE, ids=GARBAGE_IDS)
def test_a_garbage_quantity_in_a_pod_makes_it_a_pod_without_requests(garbage: Quantity) -> None:
    complaints = Complaints()
    mirror = cluster(
        node("n").cpu(8),
        pod("bad").on("n").requests(cpu=1, memory=garbage),
        pod("good").on("n").requests(cpu=2),
        report=complaints,
    )
    assert free_on(mirror, "n") == {"cpu": 6000, "pods": 108}
    [(resource, key, message)] = complaints
    assert (resource, key) == ("pods", "default/bad")
    assert message.startswith("memory: ")
    assert message.endswith("the pod is counted as one pod without requests")
    assert len(message) < 300


@pytest.mark.parametrize("garbage", GARBAGE, ids=GARBAGE_IDS)
def test_a_garbage_quantity_in_a_node_counts_as_none_of_that_resource(garbage: Quantity) -> None:
    complaints = Complaints()
    mirror = cluster(node("bad").has(cpu=8, gpu=garbage), node("good").gpus(8), report=complaints)
    assert free_on(mirror, "bad") == {"cpu": 8000, "pods": 110}
    assert replicas_of(mirror, shape(gpu=1)).value == 8
    [(resource, key, message)] = complaints
    assert (resource, key) == ("nodes", "bad")
    assert message.startswith("status.allocatable.nvidia.com/gpu: ")
    assert message.endswith("it counts as none")
    assert len(message) < 300


@pytest.mark.parametrize("garbage", GARBAGE, ids=GARBAGE_IDS)
@pytest.mark.parametrize("part", ["hard", "used"])
def test_a_garbage_quantity_in_a_quota_is_no_limit(garbage: Quantity, part: str) -> None:
    complaints = Complaints()
    good = quota("q").hard(cpu=4, pods=7).used(cpu=1, pods=0)
    bad = good.hard(cpu=garbage, pods=7) if part == "hard" else good.used(cpu=garbage, pods=0)
    mirror = cluster(bad, report=complaints)
    assert [q.free for q in mirror.quotas.of("default")] == [(("pods", 7),)]
    [(resource, key, message)] = complaints
    assert (resource, key) == ("resourcequotas", "default/q")
    assert message.startswith(f"status.{part}.cpu: ")
    assert message.endswith("the entry is ignored")
    assert len(message) < 300


@pytest.mark.parametrize(
    "expression",
    [
        ("zone", "like", ["a"]),
        ("zone", "", ["a"]),
        ("zone", "x" * 1_000_000, ["a"]),
        ("zone", "In", []),
        ("zone", "In", ["a"] * 2 + ["not a value!"]),
        ("zone", "In", ["x" * 1_000_000]),
        ("zone", "Exists", ["a"]),
        ("zone", "Gt", ["a"]),
        ("zone", "Gt", ["1" * 100_000]),
        ("zone", "Lt", ["1", "2"]),
        ("not a key!", "Exists", []),
        ("x" * 1_000_000, "Exists", []),
        ("../../x", "DoesNotExist", []),
    ],
    ids=lambda expression: f"{expression[0][:12]} {expression[1][:12]} {len(expression[2])}",
)
def test_a_garbage_selector_matches_nothing_and_spares_the_terms_beside_it(
    expression: tuple[str, str, list[str]],
) -> None:
    mirror = cluster(node("a").pods(5).label(zone="a"), node("b").pods(3).label(zone="b"))
    assert replicas_of(mirror, shape(affinity=[term(expression)])).value == 0
    beside = [term(expression), term(("zone", "In", ["a"]), expression), term(("zone", "In", ["b"]))]
    assert replicas_of(mirror, shape(affinity=beside)).value == 3


def test_a_garbage_node_selector_is_compared_as_it_is() -> None:
    mirror = cluster(node("a").pods(5).label({"not a key!": "not a value!"}), node("b").pods(3))
    assert replicas_of(mirror, shape(selector={"not a key!": "not a value!"})).value == 5
    assert replicas_of(mirror, shape(selector={"\x00": "x" * 1_000_000})).value == 0


@pytest.mark.parametrize(
    "garbage",
    [
        pb.Toleration(operator="exists"),
        pb.Toleration(key="gpu", operator="Like", value="a"),
        pb.Toleration(key="gpu", operator="Gt", value="1"),
        pb.Toleration(key="gpu", operator="Equal", value="x" * 100_000),
        pb.Toleration(key="gpu", operator="Exists", effect="Never"),
        pb.Toleration(),
    ],
    ids=lambda garbage: f"{garbage.operator} {garbage.effect}",
)
def test_a_garbage_toleration_tolerates_nothing(garbage: pb.Toleration) -> None:
    mirror = cluster(node("a").pods(5).taint("gpu=a:NoSchedule"), node("b").pods(3))
    assert replicas_of(mirror, shape(tolerations=[garbage])).value == 3
    assert replicas_of(mirror, shape(tolerations=[garbage, toleration("gpu")])).value == 8


def test_a_garbage_taint_keeps_nobody_off() -> None:
    mirror = cluster(node("a").pods(5).taint("gpu:Never").taint(":").taint("gpu:PreferNoSchedule"))
    assert replicas_of(mirror, shape()).value == 5


@pytest.mark.parametrize(
    "template",
    [
        b'{"spec":{"replicas":1e999}}',
        b"[" * 900 + b"]" * 900,
        b"null",
        b"3",
        b'"x"',
        b'{"metadata":null}',
        b'{"metadata":3}',
        b'{"metadata":{"labels":null}}',
        b'{"metadata":{"labels":{"pod-template-hash":[]}}}',
    ],
    ids=lambda template: template[:40].decode(),
)
def test_a_template_that_cannot_be_taken_apart_is_still_itself(template: bytes) -> None:
    data = b'{"metadata":{"name":"web","namespace":"default"},"spec":{"template":' + template + b"}}"
    deployed = msgspec.json.decode(data, type=Deployment)
    known, again = (cluster(deployed).controllers.deployments.template_of("default", "web") for _ in range(2))
    assert known is not None
    assert known == again


# --- size --------------------------------------------------------------------------------------------------


def test_ten_thousand_components_of_one_shape() -> None:
    mirror = cluster(*(node(f"n{index}").cpu(1000).pods(10_000) for index in range(20)))
    many = tuple(Component(f"c{index}", 1, shape(cpu="100m")) for index in range(3))
    assert sets_of(mirror, many * 3334).answer.value == 200_000 // 10_002


def test_ten_thousand_components_of_as_many_shapes() -> None:
    mirror = cluster(*(node(f"n{index}").cpu(1000).pods(10_000) for index in range(20)))
    asked = tuple(Component(f"c{index}", 1, PodShape((("cpu", index + 1),))) for index in range(10_000))
    looks = iter(range(200_000))
    found = max_sets(room_of(mirror), asked, lambda: next(looks, None) is None)
    # one set takes 50,005 cores of 20,000: the answer is none, and it is certain
    assert (found.answer.value, found.answer.proven) == (0, True)
    small = tuple(
        Component(c.name, 1, PodShape((("cpu", 1 + index % 1000),))) for index, c in enumerate(asked)
    )
    assert sets_of(mirror, small).answer.value == 3


def test_ten_thousand_components_decode() -> None:
    asked = requirements(cpu=1, gpu=1, selector={"zone": "a"}, affinity=[term(("zone", "In", ["a"]))])
    message = pb.MaxAvailableComponentSetsRequest(
        components=[
            pb.Component(name=f"c{index}", replicas=1, replica_requirements=asked) for index in range(10_000)
        ]
    )
    question = decode_sets(message.SerializeToString(), None)
    assert len(question.components) == 10_000
    assert len({c.shape for c in question.components}) == 1


def test_more_components_than_anybody_has_are_an_error_that_names_them() -> None:
    many = [pb.Component(name="c", replicas=1)] * 20_001
    message = pb.MaxAvailableComponentSetsRequest(components=many)
    message.components[7].replica_requirements.CopyFrom(requirements(gpu=1))
    with pytest.raises(WireError, match=r"^components: 20001 components, at most 20000 are read$") as caught:
        decode_sets(message.SerializeToString(), None)
    assert caught.value.names_device
    for workloads in (
        [pb.AssumedWorkload(components=many)],
        [pb.AssumedWorkload(components=many[:1])] * 20_001,
        [pb.AssumedWorkload(components=many[:7])] * 3000,
    ):
        asked = pb.MaxAvailableReplicasRequest(assumed_workloads=workloads)
        with pytest.raises(WireError, match=r"^assumedWorkloads: more than 20000 workloads or components$"):
            decode_replicas(asked.SerializeToString(), None)


def test_ten_thousand_assumed_workloads() -> None:
    mirror = cluster(*(node(f"n{index}").cpu(10) for index in range(10)))
    placed = [assumed("d", Component(f"w{index}", 1, shape(cpu=1))) for index in range(3)] * 3333
    assert replicas_of(mirror, shape(cpu=1), placed).value == 0


def test_a_thousand_distinct_claims_are_each_answered_right() -> None:
    mirror = cluster(*(node(f"n{index}").pods(1).label(rank=str(index)) for index in range(10)))
    room = room_of(mirror)
    asked = tuple(
        Component(f"c{rank}", 1, shape(selector={"rank": str(rank % 10)}, priority=str(rank)))
        for rank in range(10)
    )
    assert max_sets(room, asked, never).answer.value == 1
    claims = tuple(shape(affinity=[term(("rank", "Gt", [str(bound)]))]) for bound in range(1000))
    assert sum(replicas_of(mirror, one).value for one in claims) == 9 + 8 + 7 + 6 + 5 + 4 + 3 + 2 + 1


# --- numbers at the edge -----------------------------------------------------------------------------------


@pytest.mark.parametrize("replicas", [0, -1, -(2**31)])
def test_components_without_replicas_cost_nothing(replicas: int) -> None:
    mirror = cluster(node("n").has(cpu=4, gpu=4))
    nothing, one = component("nothing", replicas, gpu=100), component("one", 1, gpu=1)
    assert sets_of(mirror, (nothing, one)).answer.value == 4
    assert sets_of(mirror, (nothing, nothing)).answer.value == UNBOUNDED
    assert pb.MaxAvailableComponentSetsResponse.FromString(encode_sets(UNBOUNDED)).max_sets == NO_BOUND


@pytest.mark.parametrize("replicas", [0, -1, -(2**31)])
def test_assumed_workloads_without_replicas_hold_nothing(replicas: int) -> None:
    mirror = cluster(node("n").cpu(4))
    placed = assumed("d", component("web", replicas, cpu=100))
    assert replicas_of(mirror, shape(cpu=1), (placed,)).value == 4


def test_the_largest_number_of_replicas_does_not_fit() -> None:
    mirror = cluster(node("n").cpu(4))
    huge = component("huge", 2**31 - 1, cpu="1m")
    assert sets_of(mirror, (huge,)).answer.value == 0
    assert sets_of(mirror, (huge,) * 100).answer.value == 0
    assert replicas_of(mirror, shape(cpu=1), (assumed("d", huge),)).value == 4


def test_room_without_end_stays_within_32_bits() -> None:
    mirror = cluster(*(node(f"n{index}").has(cpu="100E", memory="100E", pods="100E") for index in range(100)))
    assert replicas_of(mirror, shape(cpu="1n", memory="1n")).value == UNBOUNDED
    assert replicas_of(mirror, shape(cpu="100E")).value == 100
    answer = sets_of(mirror, (component("a", 1, cpu="1n"), component("b", 2**31 - 1, memory=1))).answer
    assert 1 <= answer.value <= answer.upper_bound <= NO_BOUND
    assert sets_of(mirror, (component("a", 1), component("b", 1))).answer.value <= NO_BOUND


def test_a_request_for_more_than_there_can_be_is_for_more_than_there_is() -> None:
    mirror = cluster(node("n").has(cpu=8, memory="32Gi", gpu=8))
    for amount in ("100E", str(MAX_INT64), "9223372036854775808", "1e100"):
        assert replicas_of(mirror, shape(gpu=amount)).value == 0
        assert replicas_of(mirror, shape(cpu=amount)).value == 0


def test_pods_that_hold_more_than_there_can_be_leave_nothing() -> None:
    mirror = cluster(node("n").has(cpu="100E", memory=8))
    pods = [
        pod(f"p{index}").on("n").requests(cpu="100E").requests(cpu="100E").requests(memory="3")
        for index in range(3)
    ]
    for one in pods:
        upsert(mirror, one)
    assert free_on(mirror, "n") == {"pods": 107}
    for one in pods:
        delete(mirror, one)
    assert free_on(mirror, "n") == {"cpu": MAX_INT64, "memory": 8, "pods": 110}


# --- names -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "name", ["../../x", "", "/", "a/b/c", "x" * 1_000_000, HUGE_NAME, "\x00", "é"], ids=lambda n: n[:12]
)
def test_a_resource_of_an_impossible_name_is_ignored(name: str) -> None:
    odd: dict[str, Quantity] = {name: 5}
    mirror = cluster(node("n").has(odd).cpu(4), pod("p").on("n").requests(odd, cpu=1))
    assert replicas_of(mirror, shape(odd, cpu=1)).value == 3
    assert name not in mirror.columns.resource_names
    message = pb.MaxAvailableReplicasRequest()
    message.replica_requirements.resource_request[name].string = "5"
    assert decode_replicas(message.SerializeToString(), None).shape == PodShape()


def test_a_device_of_a_long_but_valid_name_counts() -> None:
    name = "d" * 244 + "/" + "g" * 63
    mirror = cluster(node("n").has({name: 4}))
    assert replicas_of(mirror, shape({name: 1})).value == 4


def test_a_pod_cannot_make_columns_grow_nor_a_node_without_end() -> None:
    complaints = Complaints()
    many: dict[str, Quantity] = {f"example.com/r{index}": 1 for index in range(5000)}
    mirror = cluster(node("n").cpu(4), pod("p").on("n").requests(many), report=complaints)
    assert set(mirror.columns.resource_names) == {"cpu", "pods"}
    upsert(mirror, node("m").has(many))
    assert len(mirror.columns.resource_names) < 600
    assert [complaint[:2] for complaint in complaints] == [("nodes", "m")]


def test_names_of_a_megabyte_in_labels_and_taints() -> None:
    huge = "x" * 1_000_000
    mirror = cluster(
        node("n").pods(5).label({huge: huge}), node(huge).pods(3).taint(f"{huge}={huge}:NoSchedule")
    )
    answer = replicas_of(mirror, shape(selector={huge: huge}))
    assert answer.value == 5


# --- nodes -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "raw",
    [
        b'{"metadata":{"name":"odd"}}',
        b'{"metadata":{"name":"odd"},"status":{}}',
        b'{"metadata":{"name":"odd"},"status":{"allocatable":null}}',
        b'{"metadata":{"name":"odd"},"status":{"allocatable":{}}}',
        b'{"metadata":{"name":"odd"},"status":{"allocatable":{"cpu":null,"pods":null}}}',
        b'{"metadata":{"name":"odd"},"status":{"capacity":{"cpu":"8","pods":"110"}}}',
        b'{"metadata":{"name":"odd","labels":null},"spec":{"taints":null},"status":{"allocatable":{"cpu":"8"}}}',
    ],
)
def test_a_node_without_allocatable_has_no_room_and_does_no_harm(raw: bytes) -> None:
    mirror = cluster(msgspec.json.decode(raw, type=Node), node("n").cpu(4))
    assert replicas_of(mirror, shape(cpu=1)).value == 4
    assert replicas_of(mirror, shape()).value == 110
    assert mirror.columns.node_count == 2


def test_a_node_whose_allocatable_is_negative_has_no_room() -> None:
    mirror = cluster(node("n").has(cpu="-4", gpu=-1, pods=-3), pod("p").on("n").requests(cpu=1))
    assert free_on(mirror, "n") == {}
    assert replicas_of(mirror, shape()).value == 0


def test_a_node_that_loses_a_resource_has_none_of_it_left() -> None:
    mirror = cluster(node("n").has(cpu=4, gpu=8), pod("p").on("n").requests(gpu=2))
    upsert(mirror, node("n").cpu(4))
    assert replicas_of(mirror, shape(gpu=1)).value == 0
    upsert(mirror, node("n").has(cpu=4, gpu=8))
    assert replicas_of(mirror, shape(gpu=1)).value == 6


def test_a_node_deleted_and_added_again_with_other_labels() -> None:
    mirror = cluster(node("n").gpus(8).label(zone="a"), pod("p").on("n").requests(gpu=2))
    in_a, in_b = shape(gpu=1, selector={"zone": "a"}), shape(gpu=1, selector={"zone": "b"})
    assert (replicas_of(mirror, in_a).value, replicas_of(mirror, in_b).value) == (6, 0)
    delete(mirror, node("n"))
    assert (replicas_of(mirror, in_a).value, replicas_of(mirror, in_b).value) == (0, 0)
    upsert(mirror, node("n").gpus(4).label(zone="b"))
    assert (replicas_of(mirror, in_a).value, replicas_of(mirror, in_b).value) == (0, 2)
    delete(mirror, pod("p"))
    assert replicas_of(mirror, in_b).value == 4


# --- pods and the order of events --------------------------------------------------------------------------


def test_a_pod_on_an_unknown_node_holds_nothing_of_others() -> None:
    mirror = cluster(node("n").cpu(4), pod("p").on("ghost").requests(cpu=3))
    assert replicas_of(mirror, shape(cpu=1)).value == 4
    delete(mirror, pod("p"))
    upsert(mirror, node("ghost").cpu(4))
    assert replicas_of(mirror, shape(cpu=1)).value == 8


def test_a_pod_may_come_before_its_node() -> None:
    mirror = cluster(pod("p").on("n").requests(cpu=3, gpu=2), node("n").has(cpu=4, gpu=8))
    assert free_on(mirror, "n") == {"cpu": 1000, "nvidia.com/gpu": 6, "pods": 109}


def test_a_pod_may_go_before_its_node_comes() -> None:
    mirror = cluster(pod("p").on("n").requests(cpu=3))
    delete(mirror, pod("p"))
    upsert(mirror, node("n").cpu(4))
    assert free_on(mirror, "n") == {"cpu": 4000, "pods": 110}


def test_the_same_event_twice_counts_once() -> None:
    one, load = node("n").cpu(4), pod("p").on("n").requests(cpu=1)
    mirror = cluster(one, load, load, one, load, quota("q").hard(cpu=1), quota("q").hard(cpu=1))
    assert free_on(mirror, "n") == {"cpu": 3000, "pods": 109}
    assert len(mirror.quotas.of("default")) == 1
    for gone in (load, load, one, one):
        delete(mirror, gone)
    assert mirror.columns.node_count == 0
    upsert(mirror, one)
    assert free_on(mirror, "n") == {"cpu": 4000, "pods": 110}


def test_deletions_of_what_was_never_there_do_nothing() -> None:
    mirror = cluster(node("n").cpu(4))
    for thing in (node("x"), pod("x"), quota("x"), deployment("x"), replica_set("x", "y")):
        delete(mirror, thing)
    assert free_on(mirror, "n") == {"cpu": 4000, "pods": 110}


def test_events_out_of_order_end_where_the_last_one_says() -> None:
    bound, waiting = pod("p").on("n").requests(cpu=3), pod("p").requests(cpu=3).phase("Pending")
    mirror = cluster(node("n").cpu(4), node("m").cpu(4))
    for event in (bound, waiting, bound.on("m"), waiting, bound):
        upsert(mirror, event)
    assert (free_on(mirror, "n")["cpu"], free_on(mirror, "m")["cpu"]) == (1000, 4000)
    upsert(mirror, bound.phase("Succeeded"))
    upsert(mirror, bound.phase("Succeeded"))
    assert free_on(mirror, "n") == {"cpu": 4000, "pods": 110}
    upsert(mirror, bound)
    assert free_on(mirror, "n") == {"cpu": 1000, "pods": 109}


@pytest.mark.parametrize(
    "raw",
    [
        b"{}",
        b'{"metadata":{"name":"p"}}',
        b'{"metadata":{"name":"p"},"spec":{"nodeName":"n"}}',
        b'{"metadata":{"name":"p"},"spec":{"nodeName":"n","containers":null,"initContainers":null,"overhead":null}}',
        b'{"metadata":{"name":"p"},"spec":{"nodeName":"n","containers":[{}],"initContainers":[{"restartPolicy":"?"}]}}',
        b'{"metadata":{"name":"p"},"spec":{"nodeName":"n","containers":[{"resources":{"requests":{"cpu":null}}}]}}',
        b'{"metadata":{"name":"p","ownerReferences":[{"controller":true}]},"spec":{"nodeName":"n"}}',
        b'{"metadata":{"name":"p"},"spec":{"nodeName":"n"},"status":{"conditions":[{"type":"PodScheduled"}]}}',
    ],
)
def test_a_pod_that_says_little_is_at_most_one_pod(raw: bytes) -> None:
    mirror = cluster(node("n").cpu(4), msgspec.json.decode(raw, type=Pod))
    assert free_on(mirror, "n")["cpu"] == 4000
    assert 109 <= free_on(mirror, "n")["pods"] <= 110


def test_a_request_that_names_one_thing_in_every_way() -> None:
    mirror = cluster(node("n").cpu(4))
    odd = requirements({"requests.cpu": 100, "limits.cpu": 100, "pods": 100, "storage": 100}, cpu=1)
    assert replicas_of(mirror, read("x", 1, odd).shape).value == 4
