"""A simulated member: where its pods go, what becomes of them, and what its estimator says of it."""

import random
from collections.abc import Sequence

import msgspec
import pytest

from fairway.capacity.v1 import capacity_pb2 as pb
from queue_dispatcher.bindings.binding import WorkloadReference
from queue_dispatcher.cache.leaving import Departure
from queue_dispatcher.estimates.cluster_room import ClusterRoom
from queue_dispatcher.estimates.promised import Promised
from sandbox.simulation.errors import Unavailable
from sandbox.simulation.estimators import Estimators, Failing
from sandbox.simulation.member import POD_GC_MS, UNREACHABLE_MS, Member
from sandbox.simulation.nodes import Node, Scoring, gpu_nodes
from sandbox.simulation.objects import Obj
from sandbox.simulation.templates import (
    FAILS,
    GPU,
    NEVER_STARTS,
    deployment,
    fated,
    job,
    pod_template,
    pytorch_job,
)
from sandbox.simulation.timeline import Timeline


class World:
    def __init__(self, *gpus: int, scoring: Scoring = Scoring.LEAST_ALLOCATED) -> None:
        self.timeline = Timeline()
        self.member = Member(self.timeline, "a", gpu_nodes("a", *gpus), random.Random(1), scoring=scoring)

    def apply(self, made: Obj, runs_ms: int | None = None, ends: str = "completes", grace_ms: int = 0) -> str:
        made["metadata"]["annotations"] = fated(runs_ms, ends, grace_ms)
        self.member.apply(made)
        return f"{made['kind']}/team/{made['metadata']['name']}"

    def wait(self, for_ms: int = 1_000) -> None:
        self.timeline.run_until(self.timeline.now_ms + for_ms)

    def free(self) -> list[int]:
        return [node.free[GPU] for node in self.member.nodes.values()]

    def status(self, key: str) -> Obj:
        found = self.member.status(key)
        assert found is not None
        return found


def gang(name: str, pods: int, gpus: int, **more: int) -> Obj:
    return job(name, "team", pod_template({GPU: gpus}), pods=pods, **more)


@pytest.mark.parametrize(
    ("scoring", "left"), [(Scoring.LEAST_ALLOCATED, [6, 6, 6]), (Scoring.MOST_ALLOCATED, [2, 8, 8])]
)
def test_pods_are_spread_or_packed(scoring: Scoring, left: list[int]) -> None:
    world = World(8, 8, 8, scoring=scoring)
    for number in range(3):
        world.apply(gang(f"x{number}", 1, 2))
        world.wait()
    assert sorted(world.free()) == left


def test_a_pod_waits_until_one_node_has_all_that_it_asks_for() -> None:
    world = World(8, 8)
    small = world.apply(gang("small", 2, 2), runs_ms=20_000)
    large = world.apply(gang("large", 1, 8))
    world.wait(10_000)
    assert (sorted(world.free()), world.status(large)["ready"]) == ([6, 6], 0)
    assert world.member.summary()[2] == {GPU: 8}
    world.wait(12_000)
    assert world.status(small)["succeeded"] == 2
    assert world.status(large)["ready"] == 1


@pytest.mark.parametrize(
    ("more", "fits"),
    [
        ({}, False),
        ({"tolerations": [{"key": GPU, "operator": "Exists", "effect": "NoSchedule"}]}, True),
        ({"tolerations": [{"operator": "Exists"}], "nodeSelector": {"pool": "gpu"}}, True),
        ({"tolerations": [{"operator": "Exists"}], "nodeSelector": {"pool": "cpu"}}, False),
    ],
)
def test_taints_and_selectors_are_heeded(more: Obj, fits: bool) -> None:
    world = World()
    taint = {"key": GPU, "effect": "NoSchedule"}
    world.member.add_node(Node("n", {GPU: 8}, {"pool": "gpu"}, (taint,)))
    key = world.apply(job("x", "team", pod_template({GPU: 1}, **more)))
    world.wait()
    assert world.status(key)["ready"] == fits


@pytest.mark.parametrize(
    ("ends", "limit", "counts", "types"),
    [
        ("completes", 0, {"succeeded": 2}, ["SuccessCriteriaMet", "Complete"]),
        (FAILS, 0, {"failed": 2}, ["FailureTarget", "Failed"]),
        (NEVER_STARTS, 0, {}, None),
    ],
)
def test_jobs_come_to_their_end_or_not(
    ends: str, limit: int, counts: dict[str, int], types: list[str] | None
) -> None:
    world = World(8)
    key = world.apply(gang("x", 2, 4, backoff_limit=limit), 5_000, ends)
    world.wait(60_000)
    status = world.status(key)
    assert {name: status[name] for name in ("succeeded", "failed") if name in status}.keys() == counts.keys()
    assert [one["type"] for one in status.get("conditions", ())] == (types or [])
    assert world.free() == [0 if types is None else 8]


def test_a_job_of_no_completions_has_ended() -> None:
    """As Kubernetes has it; Karmada gives a cluster none where it splits few over several."""
    world = World(8)
    world.member.apply(gang("x", 1, 2), 1, 0)
    world.wait(5_000)
    assert world.free() == [8]
    assert [one["type"] for one in world.status("Job/team/x")["conditions"] if one["status"] == "True"] == [
        "SuccessCriteriaMet",
        "Complete",
    ]


def test_a_job_that_may_fail_is_tried_again() -> None:
    world = World(8)
    key = world.apply(gang("x", 1, 8, backoff_limit=2), 1_000, FAILS)
    world.wait(5_000)
    assert world.status(key)["failed"] == 1
    world.wait(60_000)
    assert world.status(key)["conditions"][-1]["type"] == "Failed"


def test_a_deployment_keeps_its_number_and_rolls_when_its_pods_change() -> None:
    world = World(8)
    made = deployment("x", "team", pod_template({GPU: 1}), replicas=4)
    key = world.apply(made, grace_ms=3_000)
    world.wait()
    assert world.status(key)["readyReplicas"] == 4
    world.member.apply(made, 1)
    world.wait()
    assert (world.free(), world.status(key)["replicas"]) == ([4], 1)
    world.wait(3_000)
    assert world.free() == [7]
    world.member.apply({**made, "spec": {**made["spec"], "template": pod_template({GPU: 2})}}, 1)
    world.wait(4_000)
    assert world.free() == [6]
    world.member.delete(key)
    assert world.member.status(key) is None
    world.wait(4_000)
    assert world.free() == [8]


def test_a_set_of_roles_ends_when_all_have() -> None:
    world = World(8)
    pods = [("Master", 1, pod_template({GPU: 1})), ("Worker", 3, pod_template({GPU: 2}))]
    key = world.apply(pytorch_job("x", "team", pods), runs_ms=5_000)
    world.wait(2_000)
    assert world.free() == [1]
    world.wait(10_000)
    assert (world.free(), world.status(key)["conditions"][0]["type"]) == ([8], "Succeeded")


@pytest.mark.parametrize(("event", "after_ms"), [("remove_node", POD_GC_MS), ("fail_node", UNREACHABLE_MS)])
def test_the_pods_of_a_lost_node_are_given_up_later(event: str, after_ms: int) -> None:
    world = World(4, 4)
    key = world.apply(gang("x", 2, 4))
    world.wait()
    getattr(world.member, event)("a-0")
    world.wait(after_ms - 100)
    assert world.status(key)["ready"] == 2
    world.wait(2_000)
    assert world.status(key)["conditions"][-1]["type"] == "Failed"
    assert world.free()[-1] == 4


def test_nobody_reaches_a_member_that_is_cut_off() -> None:
    world = World(8)
    world.member.is_reachable = False
    with pytest.raises(Unavailable):
        world.apply(gang("x", 1, 1))


# Its estimator.


def template(gpus: int) -> bytes:
    return msgspec.json.encode(pod_template({GPU: gpus}))


def asked(*sets: tuple[int, int], name: str = "", copies: int = 0) -> pb.Gang:
    pods = [
        pb.PodSet(name=str(n), count=count, template_json=template(gpus))
        for n, (count, gpus) in enumerate(sets)
    ]
    return pb.Gang(namespace="team", pod_sets=pods, name=name, copies=copies)


@pytest.mark.parametrize(
    ("nodes", "sets", "fits"),
    [
        ((8, 8), [(1, 1)], 16),
        ((8, 8), [(2, 8)], 1),
        ((8, 8), [(3, 8)], 0),
        ((4, 4), [(1, 8)], 0),
        ((6, 4), [(2, 3), (1, 4)], 1),
        ((5, 4, 3), [(1, 4), (2, 3), (1, 2)], 1),
        ((4, 2), [(1, 2), (1, 4)], 1),
        ((8,), [(4, 2), (1, 1)], 0),
    ],
)
def test_gangs_are_packed(nodes: Sequence[int], sets: list[tuple[int, int]], fits: int) -> None:
    world = World(*nodes)
    estimators = Estimators({"a": world.member}, random.Random(1))
    (room,) = estimators.place(["a"], asked(*sets), {})
    assert (room.fits, room.unknown, bool(room.why)) == (fits, "", not fits)


def test_what_is_on_its_way_takes_room_unless_its_pods_are_there() -> None:
    world = World(8)
    estimators = Estimators({"a": world.member}, random.Random(1))

    def fits(*assumed: pb.Gang) -> int:
        return estimators.place(["a"], asked((1, 1)), {"a": assumed})[0].fits

    coming = asked((2, 3), name="x")
    assert (fits(), fits(coming)) == (8, 2)
    world.apply(gang("x", 2, 3))
    world.wait()
    assert (fits(), fits(coming)) == (2, 2)


def test_what_is_promised_takes_room_from_others_until_its_pods_have_nodes_or_its_time_is_up() -> None:
    world = World(8)
    estimators = Estimators({"a": world.member}, random.Random(1))
    coming = Promised("uid", WorkloadReference("batch/v1", "Job", "team", "x"), asked((2, 3)))

    def promise(since_ms: int, *promised: Promised) -> dict[str, tuple[int | None, ...]]:
        return estimators.promise(f"since {since_ms}", since_ms, {"a": promised}, world.timeline.now_ms)

    def fits() -> list[int | None]:
        one = {"resourceRequest": {GPU: "1"}}
        return [estimators.replicas("a", one, f"Job/team/{who}") for who in ("other", "x")]

    assert fits() == [8, 8]
    assert promise(5, coming) == {"a": (0,)}
    assert fits() == [2, 8]
    # One that leads no more says nothing.
    assert promise(4) == {}
    assert fits() == [2, 8]
    world.apply(gang("x", 2, 3))
    world.wait()
    assert promise(5, coming) == {"a": (2,)}
    assert fits() == [2, 2]
    world.member.delete("Job/team/x")
    world.wait()
    assert fits() == [2, 8]
    assert promise(5) == {"a": ()}
    assert fits() == [8, 8]
    promise(5, coming)
    world.wait(9_999)
    assert fits() == [2, 8]
    world.wait(1)
    assert fits() == [8, 8]


def job_named(name: str) -> WorkloadReference:
    return WorkloadReference("batch/v1", "Job", "team", name)


def waiting(gang: pb.Gang, *where: tuple[str, int]) -> pb.Gang:
    """Of one pod set."""
    gang.waits = True
    gang.where.extend(pb.Assignment(pod_set="0", node=node, pods=pods) for node, pods in where)
    return gang


@pytest.mark.parametrize(
    ("running", "ends", "wanted", "after_s", "pods", "nodes"),
    [
        # Two nodes of eight GPUs; what runs is bound in this order, each where most is free.
        pytest.param([(1, 8), (1, 4)], {"j0": 9, "j1": 5}, (1, 8), 5, 1, {"a-1"}, id="who ends first"),
        pytest.param([(1, 8), (1, 4)], {"j0": 4, "j1": 5}, (2, 8), 5, 2, {"a-0", "a-1"}, id="both"),
        pytest.param([(1, 8), (1, 8)], {"j0": 4}, (1, 8), 4, 1, {"a-0"}, id="known before unknown"),
        pytest.param([(1, 8), (1, 8)], {"j0": 4}, (2, 8), None, 2, {"a-0", "a-1"}, id="nobody knows"),
        pytest.param([(1, 8), (4, 2)], {}, (1, 8), None, 1, {"a-0"}, id="the fewest pods"),
        pytest.param([(1, 7), (1, 7), (1, 1)], {"j0": 3, "j2": 3}, (1, 7), 3, 1, {"a-0"}, id="no more"),
        pytest.param([(1, 8), (1, 8)], {"j0": 4, "j1": 4}, (3, 8), None, None, set(), id="never"),
    ],
)
def test_when_a_gang_fits_at_the_earliest(
    running: list[tuple[int, int]],
    ends: dict[str, int],
    wanted: tuple[int, int],
    after_s: int | None,
    pods: int | None,
    nodes: set[str],
) -> None:
    world = World(8, 8, scoring=Scoring.LEAST_ALLOCATED)
    for number, (count, gpus) in enumerate(running):
        world.apply(gang(f"j{number}", count, gpus))
        world.wait()
    now_ms = world.timeline.now_ms
    told = tuple(Departure(job_named(name), now_ms + 1_000 * s) for name, s in ends.items())
    estimators = Estimators({"a": world.member}, random.Random(1))
    (room,) = estimators.place(["a"], asked(wanted, copies=1), {}, endings={"a": told})
    if pods is None:
        assert room.earliest is None
        return
    assert room.earliest is not None
    assert room.earliest.at_ms == (None if after_s is None else now_ms + 1_000 * after_s)
    assert room.earliest.pods == pods
    assert {node for _, node, _ in room.earliest.where} == nodes
    assert sum(count for _, _, count in room.earliest.where) == wanted[0]
    # Who does not ask, and what fits, is told nothing of it.
    assert estimators.place(["a"], asked(wanted, copies=1), {})[0].earliest is None
    world.member.add_node(gpu_nodes("b", 8 * wanted[0])[0])
    assert estimators.place(["a"], asked((1, 1), copies=1), {}, endings={"a": told})[0].earliest is None


@pytest.mark.parametrize(
    ("running", "rather", "wanted", "ending", "pods", "nodes"),
    [
        # Two nodes of eight GPUs; what runs is bound in this order, each where most is free.
        pytest.param([(1, 8), (1, 8)], ("j1", "j0"), (1, 8), ["j1"], 1, {"a-1"}, id="the rather"),
        pytest.param([(1, 8), (1, 4), (1, 4)], ("j1", "j0"), (1, 8), ["j0"], 1, {"a-0"}, id="one is enough"),
        pytest.param(
            [(1, 8), (1, 4), (1, 4)], ("j1", "j2", "j0"), (1, 8), ["j1", "j2"], 2, {"a-1"}, id="both"
        ),
        pytest.param([(2, 8)], ("j0",), (1, 8), ["j0"], 2, {"a-0"}, id="all pods of it"),
        pytest.param([(1, 8), (1, 8)], ("j0",), (2, 8), None, 0, set(), id="nobody else"),
        pytest.param([(1, 8), (1, 8)], ("j7",), (1, 8), None, 0, set(), id="nobody of that name"),
    ],
)
def test_who_has_to_end_for_a_gang(
    running: list[tuple[int, int]],
    rather: tuple[str, ...],
    wanted: tuple[int, int],
    ending: list[str] | None,
    pods: int,
    nodes: set[str],
) -> None:
    world = World(8, 8, scoring=Scoring.LEAST_ALLOCATED)
    for number, (count, gpus) in enumerate(running):
        world.apply(gang(f"j{number}", count, gpus))
        world.wait()
    told = {"a": tuple(Departure(job_named(name), number) for number, name in enumerate(rather))}
    estimators = Estimators({"a": world.member}, random.Random(1))
    (room,) = estimators.place(["a"], asked(wanted, copies=1), {}, endings=told, of_choice=True)
    if ending is None:
        assert room.earliest is None
        return
    assert room.earliest is not None
    assert [one.name for one in room.earliest.workloads] == ending
    assert (room.earliest.at_ms, room.earliest.pods) == (rather.index(ending[-1]), pods)
    assert {node for _, node, _ in room.earliest.where} == nodes


@pytest.mark.parametrize(
    ("surplus", "kept", "wanted", "gives"),
    [
        # Four pods of a GPU each on two nodes of two: the youngest go first, each from another node.
        (3, 4, (1, 1), 1),
        (3, 4, (1, 2), 3),
        (2, 4, (1, 2), None),
        # What is to be there and is not goes first, and what is not to be there is on its way out already.
        (3, 5, (1, 1), 2),
        (3, 3, (2, 1), 1),
    ],
)
def test_with_how_many_pods_fewer_it_fits(
    surplus: int, kept: int, wanted: tuple[int, int], gives: int | None
) -> None:
    world = World(2, 2, scoring=Scoring.LEAST_ALLOCATED)
    world.apply(gang("j", 4, 1))
    world.wait()
    told = {"a": (Departure(job_named("j"), 1, surplus, kept),)}
    estimators = Estimators({"a": world.member}, random.Random(1))
    (room,) = estimators.place(["a"], asked(wanted, copies=1), {}, endings=told, of_choice=True)
    assert (None if room.earliest is None else room.earliest.gives) == (None if gives is None else (gives,))


def test_nobody_has_to_end_where_pods_are_on_their_way_out() -> None:
    world = World(8, 8)
    for name in ("j", "k"):
        world.apply(gang(name, 1, 8), grace_ms=30_000)
    world.wait()
    world.member.delete("Job/team/j")
    estimators = Estimators({"a": world.member}, random.Random(1))

    def ending(count: int) -> tuple[list[str], int | None]:
        told = {"a": (Departure(job_named("j"), 1), Departure(job_named("k"), 2))}
        (room,) = estimators.place(["a"], asked((count, 8), copies=1), {}, endings=told, of_choice=True)
        assert room.earliest is not None
        return [one.name for one in room.earliest.workloads], room.earliest.at_ms

    assert ending(1) == ([], world.timeline.now_ms + 30_000)
    assert ending(2) == (["k"], 2)


def test_pods_on_their_way_out_end_when_their_grace_is_over() -> None:
    world = World(8)
    world.apply(gang("j", 1, 8), grace_ms=30_000)
    world.wait()
    world.member.delete("Job/team/j")
    estimators = Estimators({"a": world.member}, random.Random(1))
    (room,) = estimators.place(["a"], asked((1, 8), copies=1), {}, endings={})
    assert room.earliest is not None
    assert room.earliest.at_ms == world.timeline.now_ms + 30_000


def test_what_waits_holds_what_is_free_of_its_nodes_and_others_are_told_to_keep_off() -> None:
    world = World(8, 8, 8)
    world.apply(gang("j", 1, 3))
    world.wait()
    busy = next(name for name, node in world.member.nodes.items() if node.free[GPU] == 5)
    (whole, empty) = sorted(world.member.nodes.keys() - {busy})
    estimators = Estimators({"a": world.member}, random.Random(1))
    big = waiting(asked((2, 8), name="big"), (busy, 1), (whole, 1))

    def room(gpus: int, *assumed: pb.Gang) -> ClusterRoom:
        wanted = asked((1, gpus), copies=1)
        return estimators.place(["a"], wanted, {"a": assumed}, True, {"a": ()})[0]

    assert (room(1).fits, room(1, big).fits, room(5, big).fits) == (21, 8, 1)
    (witness, *_) = room(8, big).witnesses
    assert (witness.nodes, witness.is_needed) == ((("0", ((empty, 1),)),), True)
    # Behind what is on its way, in whatever order they are told.
    coming = waiting(asked((1, 8), name="coming"), (whole, 1))
    coming.waits = False
    assert [room(1, *told).fits for told in ([big, coming], [coming, big])] == [8, 8]
    # What comes to its nodes is its own.
    other = room(8, big, waiting(asked((1, 8), name="third"), (empty, 1)))
    assert (other.fits, other.earliest) == (0, None)
    # And on no other nodes anything is held.
    assert room(1, waiting(asked((2, 8), name="big"))).fits == 21


def test_what_waits_holds_its_nodes_against_karmada_as_well() -> None:
    world = World(8, 8)
    estimators = Estimators({"a": world.member}, random.Random(1))
    big = Promised("u", job_named("big"), waiting(asked((1, 8), name="big"), ("a-0", 1)))
    coming = Promised("v", job_named("coming"), asked((1, 8), name="coming"))
    coming.gang.where.append(pb.Assignment(pod_set="0", node="a-0", pods=1))
    one = {"resourceRequest": {GPU: "1"}}

    def fits(*promised: Promised) -> list[int | None]:
        estimators.promise("one", 1, {"a": promised}, world.timeline.now_ms)
        return [estimators.replicas("a", one, f"Job/team/{who}") for who in ("other", "big")]

    assert fits(big) == [8, 16]
    # The room that it was to have goes to what is on its way.
    assert fits(big, coming) == fits(coming, big) == [8, 8]


@pytest.mark.parametrize(
    ("failing", "fits", "replicas"),
    [
        (Failing(), 8, 8),
        (Failing(extra=3), 11, 11),
        (Failing(extra=-9), 0, 0),
        (Failing(is_gone=True), None, None),
        (Failing(delay_ms=4_000), 8, None),
        (Failing(frozen={"a-0": {GPU: 2}}), 2, 2),
    ],
)
def test_an_estimator_may_be_wrong_late_or_gone(
    failing: Failing, fits: int | None, replicas: int | None
) -> None:
    world = World(8)
    estimators = Estimators({"a": world.member}, random.Random(1))
    estimators.failing["a"] = failing
    (room,) = estimators.place(["a"], asked((1, 1)), {})
    assert (None if room.unknown else room.fits) == fits
    assert estimators.replicas("a", {"resourceRequest": {GPU: "1"}}) == replicas
    assert estimators.delay_ms(["a"]) >= failing.delay_ms
