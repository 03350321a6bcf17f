"""Which gangs a real kube-scheduler makes whole, by how much their pods are told.

All clusters are one, each fleet's nodes with a label of their own that its pods select. A live estimator
reads it, and is asked about each gang before any pods are made.
"""

import asyncio
import tempfile
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager, nullcontext
from dataclasses import dataclass, replace
from pathlib import Path
from random import Random
from typing import Final

import yaml

from estimator.settings import LiveCluster
from fairway.kube.client import KubeClient
from queue_dispatcher.estimates.estimators import Estimators
from queue_dispatcher.settings import EstimatorSettings
from tests.envtest import ADMIN
from tests.estimator.serving import DEFAULTS, running
from tests.truth.fields import Json, labels_of, name_of, objects, text
from tests.truth.gangs import Fleet
from tests.truth.guiding import MEMBER, SET, Release, Releases, Way, job_of, nodes_of
from tests.truth.making import PATHS, make
from tests.truth.scheduler import NotSettled, Scheduler, scheduling

_CLASSES: Final = Path(__file__).parents[2] / "manifests/member/priority-classes.yaml"
_NODES_AT_ONCE, _PODS_AT_ONCE = 24, 6
_LOOK_S, _QUIET_LOOKS, _LOOKS = 0.5, 7, 480
_TIMEOUT_S: Final = 20.0
_TAKEN_S: Final = 0.1


@dataclass(frozen=True)
class Outcome:
    """What became of the gangs of one fleet that were promised: how many were whole, and how many were told
    where to go. ``waiting``: the pods that found no node, and what was said of them.
    """

    fleet: str
    way: Way
    promised: int
    whole: int
    told: int
    waiting: tuple[str, ...] = ()


@dataclass(frozen=True)
class _Stage:
    name: str
    fleet: Fleet
    way: Way
    releases: tuple[Release, ...] = ()


def outcomes(
    programs: Path, fleets: Sequence[Fleet], ways: Sequence[Way], *, most: int = 1, waits: bool = True
) -> list[Outcome]:
    """For each fleet and way, with as many copies of its gang as are promised, ``most`` at the most.

    Those of a fleet are released at once, their pods made in random order, several at a time. ``waits``: they
    are all there before the scheduler comes to them; else it takes each as it comes. Raises KubeError,
    NotSettled.
    """
    stages = [_Stage(f"{fleet.name}-{way[:2]}", fleet, way) for fleet in fleets for way in ways]
    with tempfile.TemporaryDirectory() as state, scheduling(programs, Path(state)) as scheduler:
        return asyncio.run(_played(scheduler, stages, most, waits))


async def _played(scheduler: Scheduler, stages: Sequence[_Stage], most: int, waits: bool) -> list[Outcome]:
    kubeconfig = scheduler.kubeconfig
    async with KubeClient.from_kubeconfig(str(kubeconfig), context=ADMIN, qps=-1) as client:
        classes = list(yaml.safe_load_all(_CLASSES.read_text()))
        items = [item for stage in stages for item in nodes_of(stage.fleet, stage.name)]
        for kind in ("PriorityClass", "Node", "Pod"):
            await _make(client, [one for one in (*classes, *items) if one["kind"] == kind], _NODES_AT_ONCE)
        async with _estimators(kubeconfig) as estimators:
            stages = [replace(stage, releases=await _released(estimators, stage, most)) for stage in stages]
        chance = Random(0)
        for stage in stages:
            pods = [pod for release in stage.releases for pod in release.pods()]
            chance.shuffle(pods)
            with scheduler.stopped() if waits else nullcontext():
                await _make(client, pods, _PODS_AT_ONCE)
            if waits:
                # It sees them some time after it goes on; the next are made when it has taken these.
                await asyncio.sleep(_TAKEN_S)
        pods = await _settled(client)
    return [_outcome(stage, pods) for stage in stages]


@asynccontextmanager
async def _estimators(kubeconfig: Path) -> AsyncIterator[Estimators]:
    """The dispatcher's client, and the estimator that it asks."""
    settings = replace(DEFAULTS, clusters=(LiveCluster(MEMBER, kubeconfig, ""),))
    async with running(settings) as (port, _):
        addresses = {MEMBER: f"127.0.0.1:{port}"}
        async with Estimators(EstimatorSettings(addresses, timeout_s=_TIMEOUT_S)) as estimators:
            yield estimators


async def _released(estimators: Estimators, stage: _Stage, most: int) -> tuple[Release, ...]:
    releases, found = Releases(estimators), list[Release]()
    while len(found) < most:
        one = await releases.next(job_of(stage.fleet, stage.name, len(found)), stage.way)
        if one is None:
            break
        found.append(one)
    return tuple(found)


async def _make(client: KubeClient, items: Sequence[Json], at_once: int) -> None:
    slots = asyncio.Semaphore(at_once)

    async def one(item: Json) -> None:
        async with slots:
            await make(client, item)

    await asyncio.gather(*map(one, items))


async def _settled(client: KubeClient) -> list[Json]:
    """The pods once each is bound or was refused, and nothing changes any more."""
    quiet, last = 0, dict[str, str]()
    for _ in range(_LOOKS):
        params = {"labelSelector": SET, "resourceVersion": "0"}
        pods = objects(await client.get_json(PATHS["Pod"].format("default"), dict, params), "items")
        states = {name_of(pod): text(pod, "spec", "nodeName") or _refusal(pod) for pod in pods}
        quiet = quiet + 1 if states == last and all(states.values()) else 0
        last = states
        if quiet >= _QUIET_LOOKS:
            return pods
        await asyncio.sleep(_LOOK_S)
    waiting = ", ".join(name for name, state in last.items() if not state)
    raise NotSettled(waiting or "pods are still changing")


def _outcome(stage: _Stage, pods: Sequence[Json]) -> Outcome:
    names = {name_of(release.job) for release in stage.releases}
    waiting = [pod for pod in pods if labels_of(pod)[SET] in names and not text(pod, "spec", "nodeName")]
    halves = {labels_of(pod)[SET] for pod in waiting}
    told = sum(release.is_told for release in stage.releases)
    words = tuple(f"{name_of(pod)}: {_refusal(pod)}" for pod in waiting)
    return Outcome(stage.fleet.name, stage.way, len(names), len(names - halves), told, words)


def _refusal(pod: Json) -> str:
    for condition in objects(pod, "status", "conditions"):
        if text(condition, "type") == "PodScheduled" and text(condition, "status") == "False":
            return text(condition, "message")
    return ""
