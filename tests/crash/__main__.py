"""``python -m tests.crash --schedules 100``: see the package."""

import argparse
import asyncio
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

from tests.crash.processes import Interpreters, Launcher, forks
from tests.crash.run import Verdict, run_both
from tests.crash.schedule import Schedule, schedules


def main() -> int:
    """0 if every schedule was run and went as it has to."""
    parser = argparse.ArgumentParser(description="Kill the dispatcher at each of its writes.")
    parser.add_argument("--schedules", type=int, default=100, help="how many")
    parser.add_argument("--seed", type=int, default=0, help="that of the first; the others count on")
    parser.add_argument("--at-once", type=int, default=2, help="how many run side by side")
    parser.add_argument("--minutes", type=float, default=60.0, help="no more are begun after that")
    parser.add_argument("--interpreter", action="store_true", help="start a fresh interpreter each time")
    parser.add_argument("--keep", type=Path, help="keep all logs in this folder, which must not exist yet")
    asked = parser.parse_args()
    chosen = list(schedules(asked.schedules, asked.seed))
    deadline_s = time.monotonic() + 60 * asked.minutes
    with tempfile.TemporaryDirectory() as temporary:
        folder: Path = asked.keep or Path(temporary)
        verdicts = asyncio.run(_run_all(chosen, folder, asked.at_once, deadline_s, asked.interpreter))
    return _summarise(verdicts, len(chosen))


async def _run_all(
    chosen: Sequence[Schedule], folder: Path, at_once: int, deadline_s: float, interpreter: bool
) -> list[Verdict]:
    verdicts: list[Verdict] = []
    left = iter(chosen)

    async def work(launcher: Launcher) -> None:
        for schedule in left:
            if time.monotonic() > deadline_s:
                return
            verdict = await run_both(schedule, launcher, folder)
            verdicts.append(verdict)
            _say(f"[{len(verdicts)}/{len(chosen)}] {verdict.report()}")

    async def work_all(launcher: Launcher) -> None:
        async with asyncio.TaskGroup() as group:
            for _ in range(at_once):
                group.create_task(work(launcher))

    if interpreter:
        await work_all(Interpreters())
    else:
        async with forks() as launcher:
            await work_all(launcher)
    return verdicts


def _say(line: str) -> None:
    sys.stdout.write(f"{line}\n")
    sys.stdout.flush()


def _summarise(verdicts: Sequence[Verdict], asked: int) -> int:
    wrong = sorted(verdict.schedule.seed for verdict in verdicts if verdict.faults)
    kills = sum(verdict.deadly.kills.total() for verdict in verdicts)
    writes = sum(len(verdict.deadly.log) for verdict in verdicts)
    _say(f"{len(verdicts)} of {asked} schedules, {writes} writes, {kills} kills, {len(wrong)} wrong")
    if wrong:
        _say(f"wrong: --schedules 1 --seed {' | '.join(map(str, wrong))}")
    return 0 if len(verdicts) == asked and not wrong else 1


if __name__ == "__main__":
    sys.exit(main())
