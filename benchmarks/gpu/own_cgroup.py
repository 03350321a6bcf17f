"""A cgroup named as a pod's container, for a process of ours: whose the agent takes it for is known."""

import os
import secrets
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from benchmarks.gpu.checks import Check
from node_agent.cgroups import PodContainer, pod_containers

_ROOTS = (Path("/sys/fs/cgroup/pids"), Path("/sys/fs/cgroup/unified"), Path("/sys/fs/cgroup"))
"""A hierarchy of version 1 that limits nothing by itself, and those of version 2."""
_POD = "0f9a1c22-5f0e-4c5a-9d1e-6b1f6c0a7e31"


@contextmanager
def as_container(pid: int) -> Iterator[PodContainer | None]:
    """The process in a cgroup of its own while this lasts; None where none may be made, as without root."""
    container = secrets.token_hex(32)
    root = next((one for one in _ROOTS if (one / "cgroup.procs").exists()), _ROOTS[-1])
    pod = root / "kubepods.slice" / f"kubepods-pod{_POD.replace('-', '_')}.slice"
    scope = pod / f"cri-containerd-{container}.scope"
    try:
        scope.mkdir(parents=True)
        (scope / "cgroup.procs").write_text(str(pid))
    except OSError:
        yield None
        return
    try:
        yield PodContainer(_POD, container)
    finally:
        _leave(scope, root, pid)


def attribution_check(pid: int, expected: PodContainer | None, seen: frozenset[int]) -> Check:
    """Whose the process is by its cgroup, and that it is among ``seen``, the device's processes."""
    name = f"process {pid}"
    if expected is None:
        return Check(name, "pod by cgroup", "not tried", "root, to make a cgroup", None)
    found = pod_containers(Path(f"/proc/{pid}/cgroup").read_text("utf-8"))
    agent = f"{found}{'' if pid in seen else ', not among the processes of the device'}"
    holds = not isinstance(found, str) and expected in found and pid in seen
    return Check(name, "pod by cgroup", agent, f"{expected}", holds)


def _leave(scope: Path, root: Path, pid: int) -> None:
    if os.path.exists(f"/proc/{pid}"):
        (root / "cgroup.procs").write_text(str(pid))
    for folder in (scope, scope.parent, scope.parent.parent):
        try:
            folder.rmdir()
        except OSError:
            # Somebody else's are in it, or the process has not quite ended.
            return
