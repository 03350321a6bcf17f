"""Who holds which device: of allocations, processes and pods, all of which may be missing or disagree."""

from collections.abc import Mapping
from dataclasses import replace

import msgspec
import pytest
from hypothesis import given as given_by_hypothesis
from hypothesis import strategies as st

from fairway.kube.node_devices import Holder, HolderOwner, HolderSource
from fairway.kube.objects import Condition
from node_agent.allocations import Allocation, ClaimedDevice, PluginDevice
from node_agent.cgroups import NoPod, PodContainer
from node_agent.holders import MOST_HOLDERS, HolderPod, Holdings, holdings
from node_agent.local_pods import LocalPods, StatusOnNode
from node_agent.processes import Process, Unseen
from node_agent.reading import DeviceReading, NodeReading, ProcessReading
from tests.node_agent.pods import owned_by, pod, pods

GPU0 = "GPU-00000000-aaaa-4bbb-8ccc-000000000000"
GPU1 = "GPU-11111111-aaaa-4bbb-8ccc-111111111111"
MIG7 = "MIG-77777777-aaaa-4bbb-8ccc-777777777777"
MIG9 = "MIG-99999999-aaaa-4bbb-8ccc-999999999999"
MAIN, SIDE = "1a" * 32, "2b" * 32
IDS = {"main": f"containerd://{MAIN}", "side": f"containerd://{SIDE}"}
GPU = "nvidia.com/gpu"
GIVEN, RUNS, WRITTEN = HolderSource.POD_RESOURCES, HolderSource.CGROUP, HolderSource.ANNOTATION
HAMI = "hami.io/vgpu-devices-allocated"


def device(id: str, *pids: int, parent: str = "") -> DeviceReading:
    return DeviceReading(id, 0, parent=parent, processes=tuple(ProcessReading(pid) for pid in pids))


def given(pod: str, container: str, *ids: str, resource: str = GPU) -> Allocation:
    namespace, _, name = pod.partition("/")
    return Allocation(namespace, name, container, tuple(PluginDevice(resource, id) for id in ids))


def runs(pid: int, *containers: PodContainer) -> dict[int, Process | Unseen]:
    return {pid: Process(pid, 1, "python", containers)}


def outside(pid: int, why: NoPod) -> dict[int, Process | Unseen]:
    return {pid: Process(pid, 1, "python", why)}


def found(
    devices: list[DeviceReading],
    allocations: list[Allocation] | None = None,
    processes: Mapping[int, Process | Unseen] | None = None,
    of: LocalPods | None = None,
    claimed: Mapping[ClaimedDevice, str] | None = None,
) -> Holdings:
    return holdings(
        NodeReading(devices=tuple(devices)), allocations or [], processes or {}, of, claimed or {}
    )


def told(holdings: Holdings) -> list[tuple[str, str, str, str, int]]:
    """Device, pod, container, source and shares of every holder."""
    return [
        (device, f"{one.namespace}/{one.pod}", one.container, one.source, one.shares)
        for device, holders in sorted(holdings.holders.items())
        for one in holders
    ]


TEAM = pods(pod("team/a", "uid-a", IDS), pod("team/b", "uid-b", IDS))
A, B = PodContainer("uid-a", MAIN), PodContainer("uid-b", MAIN)


def test_a_holder_has_the_pod_s_uid_and_owner() -> None:
    owner = owned_by("Job", "train", controller=True)
    of = pods(pod("team/train-0", "uid-0", IDS, owners=[owner]))
    holder = Holder("team", "train-0", "uid-0", "main", HolderOwner("apps/v1", "Job", "train"), GIVEN, 0)
    assert found([device(GPU0)], [given("team/train-0", "main", GPU0)], of=of) == Holdings({GPU0: (holder,)})


def test_a_holder_s_pod_tells_since_when_and_what_it_was_given_that_nobody_can_read() -> None:
    bound = Condition("PodScheduled", "True", "", "2026-11-22T12:00:00Z")
    here = msgspec.structs.replace(pod("team/a", "uid-a", IDS), status=StatusOnNode([bound]))
    read = found([device(GPU0)], [given("team/a", "main", GPU0, GPU1)], of=pods(here))
    assert read.pods == {("team", "a"): HolderPod(1795348800.0, 1)}


@pytest.mark.parametrize(
    ("what", "devices", "allocations", "expected"),
    [
        (
            "whole devices",
            [device(GPU0), device(GPU1)],
            [given("team/a", "main", GPU0, GPU1)],
            [(GPU0, "team/a", "main", GIVEN, 0), (GPU1, "team/a", "main", GIVEN, 0)],
        ),
        (
            "two containers of one pod",
            [device(GPU0), device(GPU1)],
            [given("team/a", "main", GPU0), given("team/a", "side", GPU1)],
            [(GPU0, "team/a", "main", GIVEN, 0), (GPU1, "team/a", "side", GIVEN, 0)],
        ),
        (
            "replicas of a device that is shared in time",
            [device(GPU0)],
            [given("team/b", "main", f"{GPU0}::2"), given("team/a", "main", f"{GPU0}::0", f"{GPU0}::3")],
            [(GPU0, "team/a", "main", GIVEN, 2), (GPU0, "team/b", "main", GIVEN, 1)],
        ),
        (
            "MIG instances",
            [device(GPU1), device(MIG7, parent=GPU1), device(MIG9, parent=GPU1)],
            [given("team/a", "main", MIG7, resource="nvidia.com/mig-1g.10gb")],
            [(MIG7, "team/a", "main", GIVEN, 0)],
        ),
        ("network cards", [device(GPU0)], [given("team/a", "main", "0000:5e:00.2", resource="rdma/hca")], []),
        ("nothing", [device(GPU0)], [], []),
    ],
)
def test_allocations(
    what: str, devices: list[DeviceReading], allocations: list[Allocation], expected: list[object]
) -> None:
    read = found(devices, allocations, of=TEAM)
    assert told(read) == expected, what
    assert read.problems == ()


@pytest.mark.parametrize(
    ("what", "devices", "allocations", "processes", "expected"),
    [
        (
            "of the container that was given it",
            [device(GPU0, 7)],
            [given("team/a", "main", GPU0)],
            runs(7, A),
            [(GPU0, "team/a", "main", GIVEN, 0)],
        ),
        (
            "of nobody who was given it",
            [device(GPU0, 7)],
            [],
            runs(7, A),
            [(GPU0, "team/a", "main", RUNS, 0)],
        ),
        (
            "of another pod than was given it",
            [device(GPU0, 7)],
            [given("team/a", "main", GPU0)],
            runs(7, B),
            [(GPU0, "team/a", "main", GIVEN, 0), (GPU0, "team/b", "main", RUNS, 0)],
        ),
        (
            "of another container of the pod",
            [device(GPU0, 7)],
            [given("team/a", "main", GPU0)],
            runs(7, PodContainer("uid-a", SIDE)),
            [(GPU0, "team/a", "main", GIVEN, 0), (GPU0, "team/a", "side", RUNS, 0)],
        ),
        (
            "of a container that the pod's status does not have yet",
            [device(GPU0, 7)],
            [given("team/a", "main", GPU0)],
            runs(7, PodContainer("uid-a", "3c" * 32)),
            [(GPU0, "team/a", "main", GIVEN, 0)],
        ),
        (
            "of a pod's own cgroup",
            [device(GPU0, 7)],
            [],
            runs(7, PodContainer("uid-a")),
            [(GPU0, "team/a", "", RUNS, 0)],
        ),
        (
            "on another device than was given",
            [device(GPU0), device(GPU1, 7)],
            [given("team/a", "main", GPU0)],
            runs(7, A),
            [(GPU0, "team/a", "main", GIVEN, 0), (GPU1, "team/a", "main", RUNS, 0)],
        ),
        (
            "shown on the device of which an instance was given",
            [device(GPU1, 7), device(MIG7, parent=GPU1)],
            [given("team/a", "main", MIG7)],
            runs(7, A),
            [(MIG7, "team/a", "main", GIVEN, 0)],
        ),
        (
            "shown on device and instance, given by nobody",
            [device(GPU1, 7), device(MIG7, 7, parent=GPU1)],
            [],
            runs(7, A),
            [(MIG7, "team/a", "main", RUNS, 0)],
        ),
        (
            "on another instance than was given",
            [device(GPU1), device(MIG7, parent=GPU1), device(MIG9, 7, parent=GPU1)],
            [given("team/a", "main", MIG7)],
            runs(7, A),
            [(MIG7, "team/a", "main", GIVEN, 0), (MIG9, "team/a", "main", RUNS, 0)],
        ),
        (
            "of a cluster in a pod: the pod that this kubelet runs",
            [device(GPU0, 7)],
            [],
            runs(7, A, PodContainer("uid-inner", SIDE)),
            [(GPU0, "team/a", "main", RUNS, 0)],
        ),
        (
            "of a cluster in a pod, seen from within",
            [device(GPU0, 7)],
            [],
            runs(7, PodContainer("uid-outer", SIDE), A),
            [(GPU0, "team/a", "main", RUNS, 0)],
        ),
        (
            "which made a cgroup by another pod's name",
            [device(GPU0, 7)],
            [],
            runs(7, A, B),
            [(GPU0, "team/a", "main", RUNS, 0)],
        ),
        ("that has ended", [device(GPU0, 7)], [], {7: Unseen.ENDED}, []),
        ("a zombie", [device(GPU0, 7)], [], {7: Unseen.ZOMBIE}, []),
        ("that was not looked at", [device(GPU0, 7)], [], {}, []),
    ],
)
def test_processes(
    what: str,
    devices: list[DeviceReading],
    allocations: list[Allocation],
    processes: Mapping[int, Process | Unseen],
    expected: list[object],
) -> None:
    read = found(devices, allocations, processes, TEAM)
    assert told(read) == expected, what
    assert read.problems == ()


def test_two_pods_of_one_hostname_and_one_on_the_host_s_network_are_told_apart() -> None:
    """By its hostname a process would be whoever answers to it: the other pod, or the node."""
    host = "3c" * 32
    of = pods(
        pod("east/worker-0", "uid-east", {"main": f"containerd://{MAIN}"}),
        pod("west/worker-0", "uid-west", {"main": f"containerd://{SIDE}"}),
        pod("west/on-host-network", "uid-host", {"main": f"containerd://{host}"}),
    )
    processes = {
        **runs(7, PodContainer("uid-east", MAIN)),
        **runs(8, PodContainer("uid-west", SIDE)),
        **runs(9, PodContainer("uid-host", host)),
    }
    read = found([device(GPU0, 7), device(GPU1, 8, 9)], [], processes, of)
    assert [(told_[0], told_[1]) for told_ in told(read)] == [
        (GPU0, "east/worker-0"),
        (GPU1, "west/on-host-network"),
        (GPU1, "west/worker-0"),
    ]
    assert [one.uid for one in read.holders[GPU1]] == ["uid-host", "uid-west"]


def test_a_static_pod_is_its_mirror() -> None:
    of = pods(
        pod("kube-system/dcgm-a", "uid-mirror", IDS, annotations={"kubernetes.io/config.mirror": "36b6"})
    )
    read = found([device(GPU0, 7)], [], runs(7, PodContainer("36b6", MAIN, True)), of)
    assert read.holders[GPU0][0] == Holder("kube-system", "dcgm-a", "uid-mirror", "main", None, RUNS, 0)


@pytest.mark.parametrize(
    ("what", "processes", "count", "says"),
    [
        ("on the host", outside(7, NoPod.HOST), 1, ""),
        ("in a container of no pod", outside(7, NoPod.NO_POD), 1, ""),
        ("behind a namespace", outside(7, NoPod.HIDDEN), 1, "another cgroup namespace"),
        ("unreadable cgroup", outside(7, NoPod.UNREADABLE), 1, "not what Linux writes"),
        ("not to be looked at", {7: Unseen.DENIED}, 0, "host's PID namespace"),
        ("in another PID namespace", {7: Unseen.FOREIGN}, 0, "needs hostPID"),
        ("one too many", {7: Unseen.TOO_MANY}, 0, "beyond"),
    ],
)
def test_processes_of_no_pod_are_counted_and_what_is_not_known_is_told(
    what: str, processes: Mapping[int, Process | Unseen], count: int, says: str
) -> None:
    read = found([device(GPU0, 7)], [], processes, TEAM)
    assert read.holders == {}
    assert read.outside == ({GPU0: count} if count else {}), what
    assert len(read.problems) == bool(says)
    assert says in "".join(read.problems)


def test_an_allocation_of_a_pod_that_has_ended_is_told_and_not_counted() -> None:
    read = found([device(GPU0)], [given(f"team/gone-{i}", "main", GPU0) for i in range(5)], of=TEAM)
    assert read.holders == {}
    assert read.problems == (
        "kubelet lists pods with devices that the API server does not have on this node "
        "(team/gone-0, team/gone-1, team/gone-2 and 2 more)",
    )


def test_a_process_of_a_pod_that_the_api_server_does_not_have_is_told_with_its_uid() -> None:
    read = found([device(GPU0, 7)], [], runs(7, PodContainer("uid-gone", MAIN)), TEAM)
    assert read.holders == {GPU0: (Holder(uid="uid-gone", source=RUNS),)}
    assert read.problems == (
        "processes run in pods that the API server does not have on this node (uid uid-gone)",
    )


def test_while_pods_are_not_read_kubelet_s_names_count_and_processes_only_where_it_says_nothing() -> None:
    read = found(
        [device(GPU0, 7), device(GPU1, 8)], [given("team/a", "main", GPU0)], {**runs(7, A), **runs(8, B)}
    )
    assert told(read) == [(GPU0, "team/a", "main", GIVEN, 0), (GPU1, "/", "", RUNS, 0)]
    assert [one.uid for holders in read.holders.values() for one in holders] == ["", "uid-b"]


@pytest.mark.parametrize(
    ("what", "driver", "claimed", "expected", "says"),
    [
        ("its slice names it", "gpu.nvidia.com", GPU1, [(GPU1, "team/a", "main", GIVEN, 0)], ""),
        ("its slice is not known", "gpu.nvidia.com", "", [], "(gpu.nvidia.com/node-a/gpu-1)"),
        ("its slice names another device", "gpu.nvidia.com", "GPU-else", [], "(gpu.nvidia.com/node-a/gpu-1)"),
        ("a network card", "dranet", "", [], ""),
    ],
)
def test_claimed_devices(what: str, driver: str, claimed: str, expected: list[object], says: str) -> None:
    name = ClaimedDevice(driver, "node-a", "gpu-1")
    read = found(
        [device(GPU1)],
        [Allocation("team", "a", "main", (), (name,))],
        {},
        TEAM,
        {name: claimed} if claimed else {},
    )
    assert told(read) == expected, what
    assert says in "".join(read.problems)
    assert len(read.problems) == bool(says)


def hami(*parts: str) -> str:
    return ";".join(parts) + ";"


def part(*ids: str) -> str:
    return "".join(f"{id},NVIDIA,8000,30:" for id in ids)


@pytest.mark.parametrize(
    ("what", "annotations", "allocations", "expected", "says"),
    [
        (
            "HAMi: kubelet's device is not the pod's",
            {HAMI: hami(part(GPU1))},
            [given("team/a", "main", f"{GPU0}-3")],
            [(GPU1, "team/a", "main", WRITTEN, 1)],
            "",
        ),
        (
            "HAMi: two containers, one between without",
            {HAMI: hami(part(GPU1), "", part(GPU0, GPU1))},
            [given("team/a", "main", f"{GPU0}-3"), given("team/a", "side", f"{GPU0}-4", f"{GPU0}-5")],
            [
                (GPU0, "team/a", "side", WRITTEN, 1),
                (GPU1, "team/a", "main", WRITTEN, 1),
                (GPU1, "team/a", "side", WRITTEN, 1),
            ],
            "",
        ),
        (
            "HAMi: a container whose device is gone keeps its place",
            {HAMI: hami(part("GPU-lost"), part(GPU0))},
            [given("team/a", "main", f"{GPU0}-3"), given("team/a", "side", f"{GPU0}-4")],
            [(GPU0, "team/a", "side", WRITTEN, 1)],
            "",
        ),
        (
            "HAMi: containers that do not match",
            {HAMI: hami(part(GPU1), part(GPU0))},
            [given("team/a", "main", f"{GPU0}-3")],
            [(GPU0, "team/a", "", WRITTEN, 1), (GPU1, "team/a", "", WRITTEN, 1)],
            "",
        ),
        (
            "HAMi: a MIG instance counts for its device",
            {HAMI: hami(part(f"{GPU1}[0-3]"))},
            [given("team/a", "main", f"{GPU0}-3")],
            [(GPU1, "team/a", "main", WRITTEN, 1)],
            "",
        ),
        (
            "Volcano",
            {"volcano.sh/vgpu-ids-new": hami(part(GPU1))},
            [given("team/a", "main", f"{GPU0}-3", resource="volcano.sh/vgpu-number")],
            [(GPU1, "team/a", "main", WRITTEN, 1)],
            "",
        ),
        (
            "gpushare: the number of a device",
            {"ALIYUN_COM_GPU_MEM_IDX": "1", "ALIYUN_COM_GPU_MEM_POD": "4"},
            [given("team/a", "main", f"{GPU0}-_-0", f"{GPU0}-_-7", resource="aliyun.com/gpu-mem")],
            [(GPU1, "team/a", "main", WRITTEN, 1)],
            "",
        ),
        (
            "no annotation",
            {},
            [given("team/a", "main", f"{GPU0}-3")],
            [],
            f"nvidia.com/gpu {GPU0}-3 of team/a",
        ),
        (
            "an annotation of no device here",
            {HAMI: hami(part("GPU-else"))},
            [given("team/a", "main", f"{GPU0}-3")],
            [],
            f"nvidia.com/gpu {GPU0}-3 of team/a",
        ),
        (
            "a device that is here no more",
            {},
            [given("team/a", "main", "GPU-lost")],
            [],
            "nvidia.com/gpu GPU-lost of team/a",
        ),
        (
            "an annotation where kubelet names the device",
            {HAMI: hami(part(GPU1))},
            [given("team/a", "main", GPU0)],
            [(GPU0, "team/a", "main", GIVEN, 0)],
            "",
        ),
        ("an annotation of a pod that was given nothing", {HAMI: hami(part(GPU0, GPU1))}, [], [], ""),
        (
            "an annotation that cannot be read",
            {HAMI: ";;;:::,,,"},
            [given("team/a", "main", f"{GPU0}-3")],
            [],
            f"nvidia.com/gpu {GPU0}-3 of team/a",
        ),
    ],
)
def test_shares_under_ids_of_their_own(
    what: str, annotations: dict[str, str], allocations: list[Allocation], expected: list[object], says: str
) -> None:
    of = pods(pod("team/a", "uid-a", IDS, annotations=annotations))
    read = found([device(GPU0), replace(device(GPU1), index=1)], allocations, of=of)
    assert told(read) == expected, what
    assert says in "".join(read.problems)
    assert len(read.problems) == bool(says)


def test_a_process_in_a_share_of_which_the_container_is_not_known() -> None:
    of = pods(pod("team/a", "uid-a", IDS, annotations={HAMI: hami(part(GPU0), part(GPU1))}))
    read = found([device(GPU0, 7)], [given("team/a", "main", f"{GPU0}-3")], runs(7, A), of)
    assert told(read) == [(GPU0, "team/a", "", WRITTEN, 1)]


def test_no_more_holders_than_an_object_may_have() -> None:
    many = [f"p{number:03}" for number in range(MOST_HOLDERS + 2)]
    of = pods(*(pod(f"team/{name}", f"uid-{name}") for name in many))
    read = found([device(GPU0)], [given(f"team/{name}", "main", f"{GPU0}::0") for name in many], of=of)
    assert [one.pod for one in read.holders[GPU0]] == many[:MOST_HOLDERS]
    assert GPU0 in "".join(read.problems)


@pytest.mark.parametrize("pids", [(7, 8), (8, 7)])
@pytest.mark.parametrize(
    ("what", "of", "processes", "expected"),
    [
        (
            "pods that are not read yet",
            None,
            {**runs(7, A), **runs(8, B)},
            [("", "uid-a", ""), ("", "uid-b", "")],
        ),
        (
            "a container that is known and one that is not yet",
            TEAM,
            {**runs(7, A), **runs(8, PodContainer("uid-a", "3c" * 32))},
            [("a", "uid-a", "main")],
        ),
        (
            "two containers that are not known yet",
            TEAM,
            {**runs(7, PodContainer("uid-a", "3c" * 32)), **runs(8, PodContainer("uid-a", "4d" * 32))},
            [("a", "uid-a", "")],
        ),
    ],
)
def test_processes_of_one_device_are_compared_with_what_was_given_and_not_in_turn(
    what: str,
    of: LocalPods | None,
    processes: Mapping[int, Process | Unseen],
    expected: list[object],
    pids: tuple[int, int],
) -> None:
    read = found([device(GPU0, *pids)], [], processes, of)
    assert [(one.pod, one.uid, one.container) for one in read.holders[GPU0]] == expected, what


def test_the_order_of_what_is_read_does_not_matter() -> None:
    allocations = [
        given("team/b", "main", GPU0),
        given("team/a", "side", GPU0),
        given("team/a", "main", GPU0),
    ]
    devices = [device(GPU0, 7, 8), device(GPU1, 8)]
    processes = {**runs(7, B), **runs(8, A)}
    forward = found(devices, allocations, processes, TEAM)
    assert forward == found(devices[::-1], allocations[::-1], dict(reversed(processes.items())), TEAM)
    assert [one.container for one in forward.holders[GPU0]] == ["main", "side", "main"]


DEVICES = [device(GPU0), device(GPU1), device(MIG7, parent=GPU1), device(MIG9, parent=GPU1)]
IDS_GIVEN = st.sampled_from(
    [GPU0, GPU1, MIG7, MIG9, f"{GPU0}::1", f"{GPU0}-2", "nvidia0", "GPU-gone", "", "::"]
)
NAMES = st.sampled_from(["team/a", "team/b", "team/gone"])
CONTAINERS = st.builds(
    PodContainer, st.sampled_from(["uid-a", "uid-b", "uid-gone"]), st.sampled_from([MAIN, SIDE, ""])
)
PROCESSES = st.one_of(
    st.sampled_from([*Unseen]),
    st.builds(
        lambda of: Process(1, 1, "python", of),
        st.one_of(st.sampled_from([*NoPod]), st.lists(CONTAINERS, min_size=1, max_size=3).map(tuple)),
    ),
)


@given_by_hypothesis(
    allocations=st.lists(
        st.builds(given, NAMES, st.sampled_from(["main", "side"]), IDS_GIVEN, IDS_GIVEN), max_size=6
    ),
    processes=st.dictionaries(st.integers(1, 6), PROCESSES),
    pids=st.lists(st.lists(st.integers(1, 6), max_size=4), min_size=4, max_size=4),
    are_read=st.booleans(),
)
def test_laws(
    allocations: list[Allocation],
    processes: dict[int, Process | Unseen],
    pids: list[list[int]],
    are_read: bool,
) -> None:
    """Processes add holders and change none, in whatever order; every holder is of a device that was read,
    once for a container."""
    of = TEAM if are_read else None
    devices = [device(one.id, *on, parent=one.parent) for one, on in zip(DEVICES, pids, strict=True)]
    read = found(devices, allocations, processes, of)
    allocated = found(devices, allocations, {}, of)
    assert read == found(devices[::-1], allocations[::-1], dict(reversed(processes.items())), of)
    for id, holders in allocated.holders.items():
        assert [one for one in read.holders[id] if one.source != RUNS] == list(holders)
    assert {*read.holders, *read.outside} <= {one.id for one in DEVICES}
    for holders in read.holders.values():
        keys = [(one.namespace, one.pod, one.uid, one.container) for one in holders]
        assert keys == sorted(set(keys))
        assert all(one.shares == 0 for one in holders if one.source == RUNS)
