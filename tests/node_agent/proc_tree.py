"""A /proc of files, as many processes as a test wants."""

from pathlib import Path


class ProcTree:
    """Writes under ``path`` what Linux shows of processes."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def add(
        self,
        pid: int,
        cgroup: str | bytes | None,
        *,
        name: str = "python",
        start: int = 100,
        state: str = "S",
        threads: int = 1,
    ) -> None:
        folder = self.path / str(pid)
        folder.mkdir(exist_ok=True)
        (folder / "stat").write_text(stat(pid, name, start, state, threads))
        if cgroup is not None:
            (folder / "cgroup").write_bytes(cgroup.encode() if isinstance(cgroup, str) else cgroup)


def stat(pid: int, name: str = "python", start: int = 100, state: str = "S", threads: int = 1) -> str:
    """A line of proc_pid_stat(5), its 52 fields."""
    middle = " ".join(str(number) for number in range(4, 20))
    return f"{pid} ({name}) {state} {middle} {threads} 0 {start} {' '.join(['0'] * 30)}\n"
