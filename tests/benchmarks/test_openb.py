"""The openb trace as dumps, and the ways of counting on it, on a trace of a few lines made here."""

import gzip
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from benchmarks.openb.__main__ import SCHEMES as SHARINGS
from benchmarks.openb.__main__ import main
from benchmarks.openb.hami import HAMI
from benchmarks.openb.kai import KAI, fraction
from benchmarks.openb.members import Member, arriving, members
from benchmarks.openb.objects import BLOCK, RACK
from benchmarks.openb.oracle import Ask, Gpu, Host, Rule, hami, hosts, kai, replicas, whole
from benchmarks.openb.placement import MAX_PODS, Bound, place
from benchmarks.openb.plain import advertised_free, naive_sum, node_division
from benchmarks.openb.questions import hami_shape, kai_shape, popular_asks
from benchmarks.openb.schemes import WHOLE, Sharing, device_id
from benchmarks.openb.trace import Machine, Task, TraceError, read_machines, read_tasks
from benchmarks.openb.truth import WORLDS, World, count, measure
from benchmarks.sides import Setting
from fairway.kube.dumps import Dump, read_dump
from fairway.kube.objects import Pod
from fairway.resources import pod_request

NODES = """\
sn,cpu_milli,memory_mib,gpu,model
n-cpu,32000,65536,0,
n-t4-a,64000,131072,2,T4
n-t4-b,64000,131072,2,T4
n-g2,96000,393216,8,G2
"""
PODS = """\
name,cpu_milli,memory_mib,num_gpu,gpu_milli,gpu_spec,qos,pod_phase,creation_time,deletion_time,scheduled_time
p-late,1000,1024,1,1000,,LS,Running,900,,
p-half,4000,8192,1,460,,LS,Running,100,1000,100
p-cpu,2000,4096,0,0,,BE,Succeeded,50,1000,50
p-other,4000,8192,1,470,T4|G2,LS,Pending,200,1000,
p-pair,8000,16384,2,1000,G2,Burstable,Running,300,1000,300
"""
SETTING = Setting(seconds=0.1, sizes=(1,), clients=(1,), sync_pods=1)
HEAD = PODS.splitlines()[0]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    data = tmp_path / "trace"
    data.mkdir()
    (data / "openb_node_list_all_node.csv").write_text(NODES)
    (data / "openb_pod_list_default.csv").write_text(PODS)
    return data


def converted(folder: Path, out: Path, *options: str) -> dict[str, Dump]:
    """The dumps by the name of the cluster, read back; nothing in them may be complained about."""
    assert main(["--data", str(folder), "--out", str(out), *options]) == 0
    dumps = {file.name.partition(".")[0]: read_dump(file) for file in sorted(out.iterdir())}
    assert [problem for dump in dumps.values() for problem in dump.problems] == []
    return dumps


def pods_of(dumps: dict[str, Dump]) -> dict[str, Pod]:
    return {pod.metadata.name: pod for dump in dumps.values() for pod in dump.pods}


# --- reading ---------------------------------------------------------------------------------------------


def test_tasks_come_in_the_order_of_their_arrival(folder: Path) -> None:
    tasks = read_tasks(folder)

    assert [task.name for task in tasks] == ["p-cpu", "p-half", "p-other", "p-pair", "p-late"]
    assert tasks[2] == Task("p-other", 4000, 8192, 1, 470, ("T4", "G2"), "LS", 200)


def test_a_list_without_times_keeps_its_order(folder: Path) -> None:
    text = "name,cpu_milli,memory_mib,num_gpu,gpu_milli\nb,1,2,0,0\na,1,2,1,1000\n"
    (folder / "openb_pod_list_multigpu50.csv").write_text(text)

    assert [task.name for task in read_tasks(folder, "multigpu50")] == ["b", "a"]


@pytest.mark.parametrize(
    ("line", "says"),
    [
        ("n-x,1,1", ":3: expected 5 fields as in the header, found 3"),
        ("n-x,much,1,0,", ":3: cpu_milli: expected a whole number from 0 to 1000000000000, found 'much'"),
        ("n-x,-1,1,0,", ":3: cpu_milli: expected a whole number"),
        ("n-x,1.5,1,0,", ":3: cpu_milli: expected a whole number"),
        ("n-x,1,,0,", ":3: memory_mib: expected a whole number"),
        ("n-x,1," + "9" * 5000 + ",0,", ":3: memory_mib: expected a whole number"),
        ("n-x,1,1,65,T4", ":3: gpu: expected a whole number from 0 to 64, found '65'"),
        ("n-x,1,1,1,H100", ":3: model: expected one of A10, G1,"),
        ("n-x,1,1,1,", ":3: model: expected one of"),
        ("n-x,1,1,0,T4", ":3: model: expected nothing where gpu is 0, found 'T4'"),
        ("N X,1,1,0,", ":3: sn: expected a name of small letters, digits and dashes, found 'N X'"),
        ("n-1,1,1,0,", ":3: sn: expected each name once, found 'n-1' on line 2 too"),
        ('"n-x,1,1,0,', ": expected a CSV file: "),
        ("n-x,1,1,0,\x00", ""),
    ],
)
def test_a_mistake_in_the_node_list_is_located(tmp_path: Path, line: str, says: str) -> None:
    file = tmp_path / "openb_node_list_all_node.csv"
    file.write_text(f"sn,cpu_milli,memory_mib,gpu,model\nn-1,1000,1024,0,\n{line}\n")

    with pytest.raises(TraceError) as found:
        read_machines(tmp_path)

    assert str(found.value).startswith(f"{file}:")
    assert says in str(found.value)
    assert len(str(found.value)) < 400


@pytest.mark.parametrize(
    ("line", "says"),
    [
        ("p-x,1,1,0,500,,,,,,", ":2: gpu_milli: expected 0 where num_gpu is 0, found '500'"),
        ("p-x,1,1,1,0,,,,,,", ":2: gpu_milli: expected more than 0 where num_gpu is 1, found '0'"),
        ("p-x,1,1,2,500,,,,,,", ":2: gpu_milli: expected 1000 where num_gpu is 2, found '500'"),
        ("p-x,1,1,1,1001,,,,,,", ":2: gpu_milli: expected a whole number from 0 to 1000, found '1001'"),
        ("p-x,1,1,1,500,T4|H9,,,,,", ":2: gpu_spec: expected GPU models"),
        ("p-x,1,1,1,500,,,,soon,,", ":2: creation_time: expected a whole number"),
    ],
)
def test_a_mistake_in_a_pod_list_is_located(tmp_path: Path, line: str, says: str) -> None:
    file = tmp_path / "openb_pod_list_default.csv"
    file.write_text(f"{HEAD}\n{line}\n")

    with pytest.raises(TraceError) as found:
        read_tasks(tmp_path)

    assert f"{file}{says}" in str(found.value)


@pytest.mark.parametrize(
    ("content", "says"),
    [
        (b"", ":1: expected a header with sn, cpu_milli, memory_mib, gpu, model"),
        (b"sn,gpu\nx,1\n", ":1: expected a header with sn, cpu_milli, memory_mib, gpu, model"),
        (b"sn,cpu_milli,memory_mib,gpu,model\n", ": expected lines below the header, found none"),
        (b"sn,cpu_milli,memory_mib,gpu,model\n\xff\n", ": expected UTF-8 text, found the byte 0xff"),
    ],
)
def test_a_file_that_is_no_node_list_is_refused(tmp_path: Path, content: bytes, says: str) -> None:
    (tmp_path / "openb_node_list_all_node.csv").write_bytes(content)

    with pytest.raises(TraceError) as found:
        read_machines(tmp_path)

    assert f"openb_node_list_all_node.csv{says}" in str(found.value)


# --- placing ---------------------------------------------------------------------------------------------


def placed(
    machines: Sequence[Machine], tasks: Sequence[Task], load: int = 100, seed: int | None = None
) -> list[tuple[str, int, tuple[int, ...]]]:
    return [(one.name, one.machine, one.devices) for one in place(machines, tasks, load, seed).bound]


def gpu_task(name: str, milli: int, gpus: int = 1, cpu: int = 1000, models: tuple[str, ...] = ()) -> Task:
    return Task(name, cpu, 1024, gpus, milli, models)


T4 = Machine("t4", 64000, 131072, 2, "T4")
G2 = Machine("g2", 96000, 393216, 8, "G2")
CPU = Machine("cpu", 32000, 65536, 0, "")


def test_a_share_goes_where_least_is_left_that_is_enough() -> None:
    tasks = [gpu_task("a", 600), gpu_task("b", 500), gpu_task("c", 400), gpu_task("d", 600)]

    # The smaller machine first; there the fuller device if the share fits.
    assert placed([G2, T4], tasks, load=20) == [
        ("a", 1, (0,)),
        ("b", 1, (1,)),
        ("c", 1, (0,)),
        ("d", 0, (0,)),
    ]


def test_whole_gpus_are_untouched_ones() -> None:
    tasks = [gpu_task("share", 100), gpu_task("pair", 1000, 2), gpu_task("one", 1000)]

    assert placed([T4, G2], tasks, load=31) == [("share", 0, (0,)), ("pair", 1, (0, 1)), ("one", 0, (1,))]


def test_a_task_that_names_models_goes_nowhere_else() -> None:
    assert placed([T4, G2], [gpu_task("a", 500, models=("G2",))], load=1) == [("a", 1, (0,))]


def test_placing_ends_at_the_load() -> None:
    tasks = [gpu_task(f"p-{number}", 1000) for number in range(10)]

    placement = place([G2, T4], tasks, 45)

    assert placement.allocated_milli == 5000  # the first to reach 45 % of 10 GPUs
    assert place([G2, T4], tasks, 0).bound == ()


def test_tasks_arrive_again_until_the_load_is_reached_or_nothing_fits() -> None:
    found = place([T4], [gpu_task("a", 1000), gpu_task("big", 1000, 8)], 100)

    assert [one.name for one in found.bound] == ["a", "a-2"]
    assert found.left_out == 1
    assert found.allocated_milli == found.total_milli


def test_cpu_and_memory_and_pod_slots_are_kept() -> None:
    small = Machine("small", 3000, 4096, 2, "T4")

    assert len(place([small], [gpu_task("a", 100, cpu=1000)], 100).bound) == 3
    assert len(place([small], [Task("a", 0, 2048, 1, 100)], 100).bound) == 2
    assert len(place([Machine("wide", 10**6, 10**6, 8, "T4")], [Task("a", 0, 0, 1, 10)], 100).bound) == 80


def test_the_same_seed_draws_the_same_places() -> None:
    tasks = [gpu_task(f"p-{number}", 300) for number in range(20)]
    machines = [T4, G2, CPU]

    drawn = [placed(machines, tasks, 60, seed) for seed in (1, 1, 2, None)]

    assert drawn[0] == drawn[1]
    assert drawn[0] != drawn[2]
    assert drawn[0] != drawn[3]


a_task = st.one_of(
    st.builds(Task, st.just("p"), st.integers(0, 9000), st.integers(0, 9000), st.just(0), st.just(0)),
    st.builds(
        Task, st.just("p"), st.integers(0, 9000), st.integers(0, 9000), st.just(1), st.integers(1, 1000)
    ),
    st.builds(
        Task, st.just("p"), st.integers(0, 9000), st.integers(0, 9000), st.integers(2, 4), st.just(1000)
    ),
)


@settings(max_examples=40, deadline=None)
@given(st.lists(a_task, min_size=1, max_size=12), st.integers(0, 100), st.none() | st.integers(0, 3))
def test_no_placement_takes_more_than_there_is(tasks: list[Task], load: int, seed: int | None) -> None:
    machines = [CPU, T4, Machine("p", 16000, 20000, 4, "P100")]

    placement = place(machines, tasks, load, seed)

    used: Counter[tuple[int, int]] = Counter()
    sharers: Counter[tuple[int, int]] = Counter()
    for one in placement.bound:
        assert len(set(one.devices)) == one.task.gpus
        for device in one.devices:
            used[one.machine, device] += one.task.gpu_milli
            sharers[one.machine, device] += 1
    assert max(used.values(), default=0) <= 1000
    assert max(sharers.values(), default=0) <= 10
    for number, machine in enumerate(machines):
        here = [one.task for one in placement.bound if one.machine == number]
        assert sum(task.cpu_milli for task in here) <= machine.cpu_milli
        assert sum(task.memory_mib for task in here) <= machine.memory_mib
        assert all(device < machine.gpus for number_, device in used if number_ == number)


# --- dumps -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("scheme", list(SHARINGS))
def test_every_cluster_is_a_dump_that_reads_back(folder: Path, tmp_path: Path, scheme: str) -> None:
    dumps = converted(folder, tmp_path / "out", "--scheme", scheme, "--load", "50")

    assert {name: len(dump.nodes) for name, dump in dumps.items()} == {"cpu": 1, "g2": 1, "t4": 2}
    node = dumps["t4"].nodes[0]
    assert node.metadata.labels is not None
    assert node.metadata.labels["nvidia.com/gpu.product"] == "Tesla-T4"
    assert node.metadata.labels["nvidia.com/gpu.count"] == "2"
    assert node.metadata.labels["nvidia.com/gpu.memory"] == "15109"
    assert node.metadata.labels[BLOCK] == "t4-block-0"
    assert node.metadata.labels[RACK] == "t4-rack-00"
    assert node.status.allocatable == node.status.capacity
    assert (node.status.allocatable or {})["nvidia.com/gpu"] == ("20" if scheme == "hami" else "2")
    assert "nvidia.com/gpu" not in (dumps["cpu"].nodes[0].status.allocatable or {})
    assert "nvidia.com/gpu.count" not in (dumps["cpu"].nodes[0].metadata.labels or {})


def test_hami_writes_devices_on_the_node_and_what_a_pod_uses_of_them(folder: Path, tmp_path: Path) -> None:
    dumps = converted(folder, tmp_path / "out", "--scheme", "hami")
    machine = Machine("n-t4-a", 64000, 131072, 2, "T4")

    registered = (dumps["t4"].nodes[0].metadata.annotations or {})["hami.io/node-nvidia-register"]
    pod = pods_of(dumps)["p-half"]

    first, second = device_id(machine, 0), device_id(machine, 1)
    assert registered == (
        f'[{{"id":"{first}","count":10,"devmem":15109,"devcore":100,"type":"NVIDIA-Tesla T4",'
        f'"mode":"hami-core","health":true}},'
        f'{{"id":"{second}","index":1,"count":10,"devmem":15109,"devcore":100,"type":"NVIDIA-Tesla T4",'
        f'"numa":1,"mode":"hami-core","health":true}}]'
    )
    annotations = pod.metadata.annotations or {}
    assert annotations["hami.io/vgpu-devices-allocated"] == f"{first},NVIDIA,6950,46:;"
    assert annotations["hami.io/vgpu-node"] == pod.spec.node_name == "n-t4-a"
    assert pod_request(pod) == {
        "cpu": 4000,
        "memory": 8192 << 20,
        "nvidia.com/gpu": 1,
        "nvidia.com/gpumem": 6950,
        "nvidia.com/gpucores": 46,
    }


def test_hami_gives_whole_gpus_with_all_their_memory_and_cores(folder: Path, tmp_path: Path) -> None:
    dumps = converted(folder, tmp_path / "out", "--scheme", "hami")

    pair = pods_of(dumps)["p-pair"]

    text = (pair.metadata.annotations or {})["hami.io/vgpu-devices-allocated"]
    assert text.endswith(",NVIDIA,81920,100:;")
    assert text.count(",NVIDIA,81920,100:") == 2
    assert pod_request(pair)["nvidia.com/gpu"] == 2
    assert "nvidia.com/gpumem" not in pod_request(pair)


def test_kai_holds_a_shared_device_with_a_pod_of_its_own(folder: Path, tmp_path: Path) -> None:
    dumps = converted(folder, tmp_path / "out", "--scheme", "kai", "--load", "20")
    pods = pods_of(dumps)

    holders = [pod for pod in pods.values() if pod.metadata.namespace == "kai-resource-reservation"]
    half, other = pods["p-half"], pods["p-other"]

    assert len(holders) == 1
    group = (holders[0].metadata.labels or {})["runai-gpu-group"]
    assert (holders[0].metadata.labels or {})["app"] == "kai-resource-reservation"
    assert pod_request(holders[0]) == {"nvidia.com/gpu": 1}
    assert holders[0].spec.node_name == half.spec.node_name == other.spec.node_name
    assert {(pod.metadata.labels or {})["runai-gpu-group"] for pod in (half, other)} == {group}
    assert [(pod.metadata.annotations or {})["gpu-fraction"] for pod in (half, other)] == ["0.46", "0.47"]
    assert "nvidia.com/gpu" not in pod_request(half)
    assert pod_request(pods["p-pair"])["nvidia.com/gpu"] == 2


@pytest.mark.parametrize(("milli", "text"), [(470, "0.47"), (500, "0.5"), (5, "0.005"), (1000, "1")])
def test_a_fraction_is_written_as_a_decimal(milli: int, text: str) -> None:
    assert fraction(milli) == text


def test_without_sharing_fractions_stay_away(folder: Path, tmp_path: Path) -> None:
    pods = pods_of(converted(folder, tmp_path / "out", "--scheme", "whole", "--load", "20"))

    assert pods.keys() == {"p-cpu", "p-pair", "p-late"}


def test_a_pod_that_names_models_has_an_affinity(folder: Path, tmp_path: Path) -> None:
    dumps = converted(folder, tmp_path / "out", "--scheme", "kai", "--load", "20")
    wants = {"key": "nvidia.com/gpu.product", "operator": "In", "values": ["Tesla-T4", "G2"]}

    items = msgspec.json.decode((tmp_path / "out" / "t4.json").read_bytes())["items"]

    affinities = {item["metadata"]["name"]: item["spec"].get("affinity") for item in items}
    terms = [{"matchExpressions": [wants]}]
    required = {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": terms}}
    assert pods_of(dumps).keys() >= {"p-half", "p-other"}
    assert affinities["p-other"] == {"nodeAffinity": required}
    assert affinities["p-half"] is None


@pytest.mark.parametrize("options", [(), ("--seed", "7"), ("--scheme", "kai", "--gzip")])
def test_the_same_arguments_give_the_same_bytes(folder: Path, tmp_path: Path, options: Sequence[str]) -> None:
    converted(folder, tmp_path / "one", *options)
    converted(folder, tmp_path / "two", *options)

    for file in (tmp_path / "one").iterdir():
        assert file.read_bytes() == (tmp_path / "two" / file.name).read_bytes()


def test_compressed_dumps_are_the_same_dumps(folder: Path, tmp_path: Path) -> None:
    converted(folder, tmp_path / "plain")
    converted(folder, tmp_path / "small", "--gzip")

    for file in (tmp_path / "plain").iterdir():
        packed = (tmp_path / "small" / f"{file.name}.gz").read_bytes()
        assert gzip.decompress(packed) == file.read_bytes()


def test_racks_and_blocks_are_filled_in_turn(folder: Path, tmp_path: Path) -> None:
    lines = "".join(f"n-{number:03d},64000,131072,2,T4\n" for number in range(130))
    (folder / "openb_node_list_all_node.csv").write_text(f"sn,cpu_milli,memory_mib,gpu,model\n{lines}")

    nodes = converted(folder, tmp_path / "out", "--load", "0")["t4"].nodes

    racks = Counter((node.metadata.labels or {})[RACK] for node in nodes)
    blocks = Counter((node.metadata.labels or {})[BLOCK] for node in nodes)
    assert list(racks.values()) == [16] * 8 + [2]
    assert blocks == {"t4-block-0": 128, "t4-block-1": 2}


# --- the command -----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("options", "says"),
    [
        (["--pods", "other"], "openb_pod_list_other.csv: no such file; the pod lists here are default"),
        (["--data", "/nowhere/at/all"], "/nowhere/at/all/openb_node_list_all_node.csv: No such file"),
    ],
)
def test_what_cannot_be_read_is_named(
    folder: Path, tmp_path: Path, options: list[str], says: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["--data", str(folder), "--out", str(tmp_path / "out"), *options]) == 2

    assert says in capsys.readouterr().err
    assert not (tmp_path / "out").exists()


def test_a_folder_that_cannot_be_written_is_named(
    folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "file").write_text("in the way")

    assert main(["--data", str(folder), "--out", str(tmp_path / "file" / "out")]) == 2

    assert str(tmp_path / "file") in capsys.readouterr().err


@pytest.mark.parametrize("load", ["101", "-1", "half", "1e2"])
def test_a_load_that_cannot_be_is_refused(load: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as refused:
        main(["--out", "x", f"--load={load}"])

    assert refused.value.code == 2
    assert "expected a whole number from 0 to 100" in capsys.readouterr().err


def test_a_load_that_is_not_reached_is_said(
    folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (folder / "openb_pod_list_default.csv").write_text(f"{HEAD}\np-x,30000,1024,1,1000,T4,LS,Running,0,,\n")

    converted(folder, tmp_path / "out", "--load", "80")

    assert "placed 4 pods, 33.3 % of 12 GPUs; no more fit, so 80 % is not reached" in capsys.readouterr().err


# --- counting --------------------------------------------------------------------------------------------


def host(*gpus: Gpu, cpu: int = 10**6, pods: int = MAX_PODS) -> Host:
    return Host(cpu, 10**6, pods, list(gpus))


def used(memory: int, milli: int, pods: int) -> Gpu:
    """A device of 24,000 MiB of which so many thousandths are used by so many pods."""
    return Gpu(memory, milli, memory * milli // 1000, milli // 10, pods)


@pytest.mark.parametrize(
    ("rule", "gpus", "milli", "expected"),
    [
        (kai, [used(24000, 750, 2), Gpu(24000)], 500, 2),
        (kai, [used(24000, 750, 2), Gpu(24000)], 250, 5),
        (kai, [used(24000, 1000, 1), Gpu(24000)], 250, 4),
        (hami, [used(24000, 600, 1), used(24000, 600, 1)], 700, 0),
        (hami, [used(24000, 600, 1), used(24000, 600, 1)], 400, 2),
        (hami, [used(24000, 100, 9), used(24000, 100, 9)], 100, 2),
        (hami, [Gpu(24000)], 50, 10),
        (hami, [used(24000, 10, 1), Gpu(24000)], 1000, 1),
        (kai, [used(24000, 10, 1), Gpu(24000)], 1000, 1),
        (whole, [used(24000, 1000, 1), Gpu(24000)], 1000, 1),
        (whole, [Gpu(24000)], 500, 0),
    ],
)
def test_the_oracle_counts_by_device(rule: Rule, gpus: list[Gpu], milli: int, expected: int) -> None:
    assert replicas([host(*gpus)], Ask(1000, 1024, 1, milli), rule) == expected


def test_the_oracle_counts_cpu_memory_and_pod_slots() -> None:
    ask = Ask(1000, 1024, 1, 100)

    assert replicas([host(Gpu(24000), cpu=3999)], ask, hami) == 3
    assert replicas([host(Gpu(24000), pods=4)], ask, hami) == 4
    # KAI holds the device with a pod of its own.
    assert replicas([host(Gpu(24000), pods=4)], ask, kai) == 3
    assert replicas([host(Gpu(24000), pods=1)], ask, kai) == 0
    assert replicas([host(used(24000, 100, 1), pods=1)], ask, kai) == 1


def test_several_whole_gpus_come_from_one_host() -> None:
    three = [host(Gpu(24000), Gpu(24000), Gpu(24000)) for _ in range(4)]

    assert replicas(three, Ask(1000, 1024, 2, 1000), whole) == 4
    assert replicas(three, Ask(1000, 1024, 4, 1000), whole) == 0


def test_memory_alone_is_refused_where_all_cores_are_used() -> None:
    full_cores = Gpu(24000, milli=1000, used_mib=12000, cores=100, pods=1)

    assert replicas([host(full_cores)], Ask(1000, 1024, 1, 250, limits_cores=False), hami) == 0
    full_cores.cores = 90
    assert replicas([host(full_cores)], Ask(1000, 1024, 1, 250, limits_cores=False), hami) == 2


def test_the_oracle_starts_from_what_was_placed() -> None:
    bound = (Bound(gpu_task("a", 460, cpu=2000), 0, (1,)), Bound(gpu_task("b", 1000, 2), 1, (0, 3)))
    member = Member("m", (T4, G2), bound)

    first, second = hosts(member, reserves=True)

    assert (first.cpu_milli, first.pods, second.pods) == (62000, MAX_PODS - 2, MAX_PODS - 1)
    assert [gpu.milli for gpu in first.gpus] == [0, 460]
    assert [gpu.pods for gpu in second.gpus] == [1, 0, 0, 1, 0, 0, 0, 0]
    assert first.gpus[1].used_mib == 6950


@pytest.mark.parametrize(
    ("sharing", "ask", "names", "expected"),
    [
        (HAMI, Ask(1000, 1024, 1, 500), {"nvidia.com/gpu": 1, "nvidia.com/gpumem": 7554}, 0),
        (HAMI, Ask(1000, 1024, 1, 500), {"nvidia.com/gpu": 1}, 38),
        (HAMI, Ask(1000, 1024, 2, 1000), {"nvidia.com/gpu": 2}, 19),
        (KAI, Ask(1000, 1024, 1, 500), {}, 126),
        (WHOLE, Ask(1000, 1024, 2, 1000), {"nvidia.com/gpu": 2}, 1),
    ],
)
def test_node_division_knows_only_allocatable_and_requests(
    sharing: Sharing, ask: Ask, names: dict[str, int], expected: int
) -> None:
    bound = (Bound(gpu_task("a", 1000), 0, (0,)), Bound(gpu_task("b", 1000), 0, (1,)))
    member = Member("m", (T4, T4), bound)

    assert (
        node_division(hosts(member, reserves=False), advertised_free(member, sharing), ask, names) == expected
    )


def test_the_sum_takes_pieces_for_whole_ones() -> None:
    state = [host(used(24000, 600, 1), used(24000, 600, 1)), host(used(24000, 700, 1))]

    assert naive_sum(state, Ask(1000, 1024, 1, 500)) == 2
    assert naive_sum(state, Ask(1000, 1024, 1, 1000)) == 1


def test_the_popular_tasks_are_asked_about() -> None:
    many = [gpu_task("p", 470)] * 3 + [gpu_task("p", 460)] * 2 + [gpu_task("p", 20)] + [gpu_task("p", 1000)]
    many += [gpu_task("p", 1000, 2, cpu=2000), gpu_task("p", 1000, 2, cpu=9000), Task("p", 1000, 1, 0, 0)]

    asks = popular_asks([*many, gpu_task("p", 1000, 2, cpu=9000)])

    assert [(ask.gpus, ask.gpu_milli, ask.cpu_milli) for ask in asks] == [
        (1, 470, 1000),
        (1, 460, 1000),
        (1, 20, 1000),
        (1, 1000, 1000),
        (2, 1000, 9000),
    ]


def test_a_question_is_put_in_the_words_of_the_scheme() -> None:
    member, ask = Member("t4", (T4,), ()), Ask(4000, 1024, 1, 460)

    assert hami_shape(ask, member).requests == (
        ("cpu", 4000),
        ("memory", 1 << 30),
        ("nvidia.com/gpu", 1),
        ("nvidia.com/gpucores", 46),
        ("nvidia.com/gpumem", 6950),
    )
    assert kai_shape(ask, member).requests == (("cpu", 4000), ("memory", 1 << 30))
    assert kai_shape(ask, member).annotations == (("gpu-fraction", "0.46"),)


# --- the benchmark ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("world", WORLDS, ids=[world.sharing.name for world in WORLDS])
def test_fairway_counts_what_really_fits(folder: Path, world: World) -> None:
    machines, tasks = read_machines(folder), read_tasks(folder)
    asks = (*popular_asks(tasks), Ask(2000, 64, 1, 20), Ask(9000, 64, 1, 330))

    for load, seed in ((0, None), (60, None), (60, 3), (100, 5)):
        placement = place(machines, arriving(tasks, world.sharing), load, seed)
        counts, complaints = count(world, placement, asks)

        assert complaints == []
        assert [(one.member, one.ask, one.fairway) for one in counts] == [
            (one.member, one.ask, one.truth) for one in counts
        ]
        assert {one.member for one in counts} == {member.name for member in members(placement)}


def test_the_pod_that_holds_a_kai_device_takes_a_slot_of_the_node_too() -> None:
    world = next(one for one in WORLDS if one.sharing is KAI)

    counts, _ = count(world, place([T4], (), 0), (Ask(100, 64, 1, 10),))

    # 110 slots: two pods hold the devices, one hundred fill the first, eight are left for the second.
    assert [(one.truth, one.fairway) for one in counts] == [(108, 108)]


def test_the_benchmark_says_where_the_trace_is_missing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENB_DATA", str(tmp_path / "nothing"))

    result = measure(SETTING)

    assert [case.label for case in result.cases] == ["skipped"]
    assert "OPENB_DATA" in result.cases[0].notes[0]
    assert not result.cases[0].faults


def test_the_benchmark_has_a_case_for_each_scheme_and_load(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENB_DATA", str(folder))

    result = measure(SETTING)

    assert [case.faults for case in result.cases] == [[]] * len(result.cases)
    labels = [case.label for case in result.cases]
    assert len(labels) == 25  # 5 settings of HAMi and KAI in two kinds, of whole GPUs in one
    assert labels[0] == "hami 0 %, fractions"
    assert labels[-1].endswith("% scattered, whole")
