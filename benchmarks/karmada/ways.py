"""The ways in which Fairway places, and a real Karmada with a fleet of its own for each."""

import tempfile
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from enum import StrEnum
from pathlib import Path
from typing import Final

from benchmarks import ordinary_day
from benchmarks.report import Figure
from tests.e2e import assets, plane
from tests.e2e.breaking import restarted
from tests.e2e.plane import Plane

Fleet = Mapping[str, Sequence[int]]
"""GPUs of each cluster's nodes."""

Topics = Mapping[str, Sequence[Figure]]
"""What was measured one way, by what it is about."""


class Way(StrEnum):
    """How a workload comes to its nodes."""

    GUIDED = "guided"
    """The release states the clusters, a policy before it the nodes: the default."""
    STATED = "stated"
    """The release states the clusters."""
    KARMADA = "karmada"
    """Karmada chooses the clusters: the way before there was anything else."""


FLAGS: Final[Mapping[Way, Sequence[str]]] = {
    Way.GUIDED: (),
    Way.STATED: ("--guidance=false",),
    Way.KARMADA: ("--placement=karmada", "--guidance=false"),
}
"""Of the dispatchers."""


def simulated(
    way: Way, seed: int, rules: ordinary_day.Rules, until_s: float, to_the_end_s: float
) -> ordinary_day.Day:
    """The ordinary day as the simulation plays it this way; see `ordinary_day.day`."""
    return ordinary_day.day(
        seed,
        preplaces=way is not Way.KARMADA,
        guides=way is Way.GUIDED,
        rules=rules,
        until_ms=round(until_s * 1000),
        to_the_end_ms=round(to_the_end_s * 1000),
    )


@asynccontextmanager
async def running(way: Way, fleet: Fleet) -> AsyncIterator[Plane]:
    """All of it, until the context ends. Raises MissingAssets."""
    nodes = {
        cluster: {f"{cluster}{number}": gpus for number, gpus in enumerate(sizes)}
        for cluster, sizes in fleet.items()
    }
    found = assets.find()
    with tempfile.TemporaryDirectory(prefix="fairway-") as folder:
        made = plane.create(found, Path(folder), nodes)
        try:
            await made.begin()
            for each in made.fairway.dispatchers.values():
                await restarted(each, [*each.program.command, *FLAGS[way]])
            await made.fairway.leader()
            yield made
        finally:
            await made.end()
