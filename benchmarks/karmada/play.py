"""Workloads that come, run and end on a real Karmada, looked at four times a second."""

import asyncio
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from itertools import pairwise
from typing import Final

from benchmarks.karmada.job_sets import controlled, jobs_of
from benchmarks.karmada.seen import Submitted, Sums, broken_gpus, states
from fairway.kube.errors import NotFound
from tests.e2e.plane import Plane
from tests.e2e.tenant import Tenant

LOOK_S: Final = 0.25
WHOLE: Final = 8


@dataclass(slots=True)
class Releases:
    """How many there were; of these refused by Karmada, said by it not to fit where they are, taken back."""

    released: int = 0
    refused: int = 0
    contradicted: int = 0
    taken_back: int = 0


@dataclass(frozen=True, slots=True)
class Played:
    """What was seen between the beginning and ``until_s`` of the monotonic clock.

    ``sums``: while more came.
    """

    workloads: Sequence[Submitted]
    sums: Sums
    until_s: float
    releases: Releases

    def wait_s(self, one: Submitted) -> float:
        """How long it waited; if it waits still, until the end."""
        assert one.created_s is not None
        return (self.until_s if one.started_s is None else one.started_s) - one.created_s


async def play(
    plane: Plane,
    teams: Mapping[str, Tenant],
    workloads: Sequence[Submitted],
    from_s: float,
    until_s: float,
    to_the_end_s: float,
) -> Played:
    """Counted from ``from_s`` until ``until_s`` after the beginning; what comes later is left out.

    Then it is looked at until all that is counted has started, for ``to_the_end_s`` at the most.
    """
    began_s = time.monotonic()
    sums = Sums()
    due = [one for one in workloads if one.at_s < until_s]
    counted = [one for one in due if one.at_s >= from_s]
    async with controlled(plane.members.values(), plane.changes), asyncio.TaskGroup() as tasks:
        tasks.create_task(_submit(teams, due, began_s))
        ends: set[str] = set()
        last_s = began_s
        while last_s < began_s + until_s or (
            last_s < began_s + until_s + to_the_end_s and any(one.started_s is None for one in counted)
        ):
            await asyncio.sleep(LOOK_S)
            now_s = time.monotonic()
            pods = {name: list(each.kubelet.pods.now.values()) for name, each in plane.members.items()}
            found = states((pod for each in pods.values() for pod in each), plane.karmada.bindings.now, due)
            for one in due:
                if one.started_s is None and one.key in found and found[one.key].running >= one.count:
                    one.started_s = now_s
                if one.started_s is not None and one.started_s + one.runs_s <= now_s and one.key not in ends:
                    ends.add(one.key)
                    tasks.create_task(_end(plane, teams[one.team], one))
            if now_s >= began_s + from_s and last_s < began_s + until_s:
                broken = sum(broken_gpus(pods[name], plane.nodes[name]) for name in pods)
                sums.add(now_s, now_s - last_s, due, found, broken, WHOLE)
            last_s = now_s
    return Played(counted, sums, last_s, _releases(teams, counted))


async def _submit(teams: Mapping[str, Tenant], due: Sequence[Submitted], began_s: float) -> None:
    for one in sorted(due, key=lambda one: one.at_s):
        await asyncio.sleep(began_s + one.at_s - time.monotonic())
        one.created_s = time.monotonic()
        await teams[one.team].create(one.workload)


async def _end(plane: Plane, team: Tenant, one: Submitted) -> None:
    for name in jobs_of(one.workload):
        for member in plane.members.values():
            # Whatever has run for longer than it said is gone.
            with suppress(NotFound):
                await member.kubelet.finish(one.team, name)
    if one.workload.kind != "Job":
        # Nobody in the cluster tells how its Jobs have ended.
        await team.delete(one.workload.binding)


def _releases(teams: Mapping[str, Tenant], of: Sequence[Submitted]) -> Releases:
    counted = Releases()
    for one in of:
        versions = teams[one.team].versions(one.key)
        first = next((place for place, each in enumerate(versions) if each.is_released), len(versions))
        since = versions[first:]
        counted.released += bool(since)
        counted.refused += any(each.is_refused and not each.is_placed for each in since)
        counted.contradicted += any(
            after.is_refused and not before.is_refused and before.is_placed and after.is_placed
            for before, after in pairwise(since)
        )
        counted.taken_back += any(each.is_held for each in since)
    return counted
