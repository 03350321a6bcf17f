"""Asks the dispatcher about each workload, as a user would: who waits must be told why."""

import asyncio
from collections.abc import Sequence
from typing import Any

import aiohttp

from tests.crash.schedule import Schedule, Workload

Json = Any

_STATES = {"finished": ("Finished",), "running": ("Placed", "Admitted"), "pending": ("Pending", "Held")}
_STATES["either"] = _STATES["running"] + _STATES["pending"]
_WITHIN_S = 15.0
_AGAIN_S = 0.1


async def unexplained(schedule: Schedule, ports: Sequence[int]) -> list[str]:
    """What the visibility API says wrongly, or not at all, once there was time to say it."""
    async with aiohttp.ClientSession() as session:
        deadline_s = asyncio.get_running_loop().time() + _WITHIN_S
        while True:
            wrong = await _asked(session, schedule, ports)
            if not wrong or asyncio.get_running_loop().time() > deadline_s:
                return wrong
            await asyncio.sleep(_AGAIN_S)


async def _asked(session: aiohttp.ClientSession, schedule: Schedule, ports: Sequence[int]) -> list[str]:
    for port in ports:
        try:
            queues = await _get(session, port, "queues")
            if queues["isLeader"]:
                answers = [
                    (workload, await _get(session, port, f"workloads/{workload.namespace}/{workload.name}"))
                    for workload in schedule.workloads
                ]
                return [fault for workload, answer in answers for fault in _wrong(workload, answer)]
        except aiohttp.ClientError:
            continue
    return ["no dispatcher answers about its queues as their leader"]


async def _get(session: aiohttp.ClientSession, port: int, path: str) -> Json:
    url = f"http://127.0.0.1:{port}/visibility/v1/{path}"
    async with session.get(url, raise_for_status=True) as response:
        return await response.json()


def _wrong(workload: Workload, answer: Json) -> list[str]:
    views = answer.get("workloads") or []
    if len(views) != 1:
        return [f"{workload.key}: the visibility API knows {len(views)} of it: {answer}"]
    (view,) = views
    if view["state"] not in _STATES[workload.ends]:
        return [f"{workload.key}: {workload.ends}, shown as {view['state']}"]
    if view["state"] in _STATES["pending"] and not (view["waiting"] and view["waiting"]["kind"]):
        return [f"{workload.key}: pending, without a reason"]
    return []
