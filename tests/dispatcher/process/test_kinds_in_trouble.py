"""A kind of workload that cannot be read holds up its own workloads, and nobody else's."""

import asyncio
from dataclasses import replace
from pathlib import Path

import pytest

from tests.dispatcher.process.builders import ALONE, control_plane, workload


@pytest.mark.parametrize(("code", "is_there_first"), [(403, True), (403, False), (503, False)])
def test_a_kind_that_cannot_be_listed_stops_no_other(tmp_path: Path, code: int, is_there_first: bool) -> None:
    async def scenario() -> None:
        async with control_plane(tmp_path) as plane:
            plane.api.fail(code, times=10**6, when=lambda seen: "/batch/v1/" in seen.path)
            # One that ends is a Job; the others are Deployments.
            job = replace(workload("job"), runtime_s=1.0)
            if is_there_first:
                plane.submit(job)
            await plane.start(*ALONE)
            first = workload("first")
            plane.submit(first)
            if not is_there_first:
                await plane.admitted(first)
                plane.submit(job)
            second = workload("second")
            plane.submit(second)
            await plane.admitted(second)

    asyncio.run(scenario())
