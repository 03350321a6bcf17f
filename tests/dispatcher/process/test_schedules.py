import asyncio
from pathlib import Path

from tests.crash.processes import forks
from tests.crash.run import Verdict, run_both
from tests.crash.schedule import displacing, schedule

SCHEDULES = (schedule(10), schedule(24, replicas=2), displacing(2))
"""Chosen for being short, with groups, growth, and workloads that are taken back, or displaced.

`tests.crash` runs more.
"""


def test_killed_at_each_write_everything_ends_as_without_kills(tmp_path: Path) -> None:
    async def run() -> list[Verdict]:
        async with forks() as launcher:
            return await asyncio.gather(*(run_both(one, launcher, tmp_path) for one in SCHEDULES))

    for verdict in asyncio.run(run()):
        assert not verdict.faults, verdict.report()
        assert verdict.deadly.kills["before"] > 0
        assert verdict.deadly.kills["after"] > 0
