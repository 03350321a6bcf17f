"""From process ids to containers, by a /proc of files and by this machine's own."""

import contextlib
import os
import shutil
import subprocess
import sys
import uuid
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from node_agent.cgroups import NoPod, PodContainer, pod_containers
from node_agent.processes import MOST_PROCESSES, Process, ProcessTable, Unseen
from tests.node_agent.cgroup_paths import OUTER, POD, UID, A, B, v1, v2
from tests.node_agent.proc_tree import ProcTree, stat

PATH = v2(f"/kubepods/burstable/pod{UID}/{A}")
OTHER_PATH = v2(f"/kubepods/burstable/pod{OUTER}/{B}")
OTHER = PodContainer(OUTER, B)


@pytest.fixture
def proc(tmp_path: Path) -> ProcTree:
    return ProcTree(tmp_path)


def one(found: dict[int, Process | Unseen], pid: int = 7) -> Process:
    process = found[pid]
    assert isinstance(process, Process), process
    return process


@pytest.mark.parametrize(
    "name",
    ["python", "a b", ") S 1 2 3", "((", "x) R (y", "", "\N{SNOWMAN}", "tmux: server"],
)
def test_names_with_spaces_and_parentheses(proc: ProcTree, name: str) -> None:
    proc.add(7, PATH, name=name, start=4711)
    assert ProcessTable(proc.path).look([7]) == {7: Process(7, 4711, name, (POD,))}


@pytest.mark.parametrize(
    ("what", "made", "expected"),
    [
        ("not there", None, Unseen.ENDED),
        ("a zombie", {"state": "Z"}, Unseen.ZOMBIE),
        ("dead", {"state": "X"}, Unseen.ZOMBIE),
    ],
)
def test_processes_that_hold_nothing(
    proc: ProcTree, what: str, made: dict[str, str] | None, expected: Unseen
) -> None:
    if made is not None:
        proc.add(7, PATH, **made)  # type: ignore[arg-type]  # one of several types by name
    assert ProcessTable(proc.path).look([7]) == {7: expected}, what


def test_a_process_whose_first_thread_has_ended_still_runs(proc: ProcTree) -> None:
    proc.add(7, PATH, state="Z", threads=3)
    assert one(ProcessTable(proc.path).look([7])).containers == (POD,)


@pytest.mark.parametrize(
    ("what", "text"),
    [
        ("empty", ""),
        ("no parentheses", "7 python S 1"),
        ("few fields", "7 (python) S 1 2 3"),
        ("another process' line", stat(8)),
        ("no numbers", stat(7).replace(" 100 ", " never ")),
        ("not text", "\x00" * 9000),
    ],
)
def test_a_stat_that_linux_does_not_write(proc: ProcTree, what: str, text: str) -> None:
    proc.add(7, PATH)
    (proc.path / "7" / "stat").write_text(text)
    assert ProcessTable(proc.path).look([7]) == {7: Unseen.UNREADABLE}, what


def test_what_is_beside_an_unreadable_entry_is_read(proc: ProcTree) -> None:
    proc.add(7, None)
    (proc.path / "7" / "cgroup").mkdir()
    proc.add(8, PATH)
    (proc.path / "9").write_text("a file where a folder belongs")
    found = ProcessTable(proc.path).look([7, 8, 9, 0, -1])
    assert found[7] is Unseen.UNREADABLE
    assert one(found, 8).containers == (POD,)
    assert found[9] is Unseen.ENDED
    assert found[0] is found[-1] is Unseen.FOREIGN


def test_files_are_read_to_a_bound_and_no_cut_path_is_believed(proc: ProcTree) -> None:
    filling = v1("/", *(f"name=c{number}" for number in range(20_000)))
    proc.add(7, filling[: 65_536 - 60] + "\n" + PATH[:59] * 2 + filling)
    assert one(ProcessTable(proc.path).look([7])).containers is NoPod.HOST
    proc.add(8, PATH + filling)
    assert one(ProcessTable(proc.path).look([8]), 8).containers == (POD,)


class Reads:
    """Counts opened files by name, and does something when one is opened."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.names: list[str] = []
        self.on_cgroup: Callable[[], object] = lambda: None
        opens = os.open

        def counted(path: str | Path, flags: int, mode: int = 0o777) -> int:
            name = Path(path).name
            descriptor = opens(path, flags, mode)
            if name in ("stat", "cgroup"):
                self.names.append(name)
            if name == "cgroup":
                self.on_cgroup()
            return descriptor

        monkeypatch.setattr(os, "open", counted)


@pytest.fixture
def reads(monkeypatch: pytest.MonkeyPatch) -> Reads:
    return Reads(monkeypatch)


def test_a_number_given_to_another_process_in_between(proc: ProcTree, reads: Reads) -> None:
    proc.add(7, PATH, start=100)
    reads.on_cgroup = lambda: proc.add(7, None, start=200)
    table = ProcessTable(proc.path)
    assert table.look([7]) == {7: Unseen.REUSED}
    reads.on_cgroup = lambda: None
    assert one(table.look([7])).start_ticks == 200, "nothing of the one before is kept"


def test_a_process_that_ends_in_between(proc: ProcTree, reads: Reads) -> None:
    proc.add(7, PATH)
    reads.on_cgroup = lambda: (proc.path / "7" / "stat").unlink()
    assert ProcessTable(proc.path).look([7]) == {7: Unseen.ENDED}


@pytest.mark.parametrize(
    ("error", "expected"),
    [
        (PermissionError(13, "denied"), Unseen.DENIED),
        (ProcessLookupError(3, "no such process"), Unseen.ENDED),
        (OSError(5, "input/output error"), Unseen.UNREADABLE),
    ],
)
def test_an_entry_that_may_not_be_read(
    proc: ProcTree, reads: Reads, error: OSError, expected: Unseen
) -> None:
    def refuse() -> None:
        raise error

    proc.add(7, PATH)
    reads.on_cgroup = refuse
    assert ProcessTable(proc.path).look([7]) == {7: expected}


def test_a_container_is_read_once_for_a_process_and_not_for_a_number(proc: ProcTree, reads: Reads) -> None:
    proc.add(7, PATH, start=100)
    table = ProcessTable(proc.path)
    first = table.look([7, 7])
    assert reads.names == ["stat", "cgroup", "stat"]
    assert table.look([7]) == first
    assert reads.names[3:] == ["stat"]
    proc.add(7, OTHER_PATH, start=101)
    assert one(table.look([7])).containers == (OTHER,)
    table.look([])
    reads.names.clear()
    table.look([7])
    assert "cgroup" in reads.names, "what the last look did not ask for is forgotten"


def test_a_process_outside_is_looked_at_again(proc: ProcTree) -> None:
    proc.add(7, v2("/init.scope"))
    table = ProcessTable(proc.path)
    assert one(table.look([7])).containers is NoPod.HOST
    proc.add(7, PATH)
    assert one(table.look([7])).containers == (POD,)


def test_no_more_processes_than_are_looked_at(proc: ProcTree) -> None:
    found = ProcessTable(proc.path).look(range(1, MOST_PROCESSES + 3))
    assert list(found.values())[-3:] == [Unseen.ENDED, Unseen.TOO_MANY, Unseen.TOO_MANY]


# --- this machine -----------------------------------------------------------------------------------------


@contextlib.contextmanager
def own_cgroup(*steps: str) -> Iterator[Path]:
    """A cgroup of our own in the first hierarchy that lets us; skips where none does."""
    made: list[Path] = []
    refusals: list[str] = []
    for hierarchy in ("", "unified", "pids", "memory", "devices", "systemd"):
        root = Path("/sys/fs/cgroup") / hierarchy
        try:
            for number in range(len(steps) if (root / "cgroup.procs").exists() else 0):
                path = root.joinpath(*steps[: number + 1])
                path.mkdir()
                made.append(path)
        except OSError as error:
            refusals.append(str(error))
        if made:
            break
    try:
        if len(made) < len(steps):
            pytest.skip(f"no cgroup can be made here: {refusals or 'no hierarchy is mounted'}")
        yield made[-1]
    finally:
        for path in reversed(made):
            path.rmdir()


def test_a_real_process_in_a_real_cgroup_is_attributed() -> None:
    uid = str(uuid.uuid4())
    slice_ = f"fairway-kubepods-pod{uid.replace('-', '_')}.slice"
    with own_cgroup(f"fairway-test-{os.getpid()}", slice_, f"cri-containerd-{A}.scope") as cgroup:
        child = subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE)
        table = ProcessTable()
        try:
            before = one(table.look([child.pid]), child.pid)
            assert before.containers != (PodContainer(uid, A),)
            try:
                (cgroup / "cgroup.procs").write_text(str(child.pid))
            except OSError as error:
                pytest.skip(f"no process can be put into a cgroup here: {error}")
            within = one(table.look([child.pid]), child.pid)
            assert within.containers == (PodContainer(uid, A),)
            assert within.start_ticks == before.start_ticks
            child.kill()
            # Not waited for yet: a zombie.
            os.waitid(os.P_PID, child.pid, os.WEXITED | os.WNOWAIT)
            assert table.look([child.pid]) == {child.pid: Unseen.ZOMBIE}
        finally:
            child.kill()
            child.communicate()
        assert table.look([child.pid]) == {child.pid: Unseen.ENDED}


def test_a_real_kernel_s_paths_from_another_cgroup_namespace() -> None:
    """As an agent that is not privileged sees them: from the root of its own container's cgroup."""
    if shutil.which("unshare") is None:
        pytest.skip("unshare(1) is not installed")
    top = f"fairway-test-{os.getpid()}"
    with (
        own_cgroup(top, f"pod{UID}", A) as container,
        own_cgroup_in(container.parents[1], f"pod{OUTER}") as other_pod,
        own_cgroup_in(other_pod, B) as agent,
        own_cgroup_in(other_pod, "c" * 64) as neighbour,
    ):
        assert seen_from(agent, container) == (POD,)
        assert seen_from(agent, neighbour) is NoPod.HIDDEN
        assert seen_from(container, container) is NoPod.HOST, "its own root, which names nothing"


@contextlib.contextmanager
def own_cgroup_in(parent: Path, name: str) -> Iterator[Path]:
    path = parent / name
    path.mkdir()
    try:
        yield path
    finally:
        path.rmdir()


def seen_from(cgroup: Path, other: Path) -> tuple[PodContainer, ...] | NoPod:
    """What a process in one cgroup, and in a namespace that begins there, reads of a process in the other."""
    child = subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE)
    try:
        enter = 'echo $$ > "$0/cgroup.procs" && exec unshare --cgroup cat "/proc/$1/cgroup"'
        try:
            (other / "cgroup.procs").write_text(str(child.pid))
        except OSError as error:
            pytest.skip(f"no process can be put into a cgroup here: {error}")
        read = subprocess.run(
            ["sh", "-c", enter, str(cgroup), str(child.pid)], capture_output=True, text=True, check=False
        )
        if read.returncode:
            pytest.skip(f"no cgroup namespace can be made here: {read.stderr.strip()}")
        return pod_containers(read.stdout)
    finally:
        child.kill()
        child.communicate()


def test_this_very_process_and_the_first_one() -> None:
    found = ProcessTable().look([os.getpid(), 1])
    own = one(found, os.getpid())
    assert own.start_ticks > 0
    assert found[1] is Unseen.DENIED or isinstance(found[1], Process)
