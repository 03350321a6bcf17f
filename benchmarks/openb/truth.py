"""How far off are the ways of counting replicas, on a real cluster at several loads?

For the popular tasks of the openb trace and each member cluster of it: what really fits (`oracle`), beside
Fairway's answer from the dump of the cluster, the sum over the cluster, and the division on each node. Any
difference between Fairway's answer and the truth is a wrong answer and fails the run.
"""

import sys
import tempfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from math import inf
from pathlib import Path

from benchmarks.openb.fragmentation import GpuNode, GpuNodes, TaskMix, TaskShape, fragmentation, popular
from benchmarks.openb.hami import HAMI
from benchmarks.openb.kai import KAI
from benchmarks.openb.members import Member, arriving, dump, members
from benchmarks.openb.oracle import Ask, Rule, hami, hosts, kai, replicas, whole
from benchmarks.openb.placement import Placement, place
from benchmarks.openb.plain import advertised_free, naive_sum, node_division
from benchmarks.openb.questions import hami_shape, kai_shape, popular_asks, whole_shape
from benchmarks.openb.schemes import GPU, WHOLE, Sharing
from benchmarks.openb.trace import (
    WHOLE_MILLI,
    Machine,
    TraceError,
    read_machines,
    read_tasks,
    trace_folder,
)
from benchmarks.report import Case, Figure, Result, Target
from benchmarks.sides import Setting
from estimator.capacity.replicas import max_replicas
from estimator.capacity.room import Room
from estimator.cluster.mirror import ClusterMirror
from estimator.fit.eligibility import EligibilityCache
from estimator.fit.pod_shape import PodShape
from fairway.accelerators.schemes import SCHEMES
from fairway.kube.dumps import read_dump
from fairway.resources import is_extended

LOADS = (0, 30, 60, 90)
_SEED = 1
_SCATTERED_LOAD = 60
_TITLE = "openb trace: replicas that really fit, and the error of counting them in other ways"
_NOTES = (
    "fit: one pod after the other until none fits, device by device. Off by: the differences of all "
    "questions added up, as a share of what fits. Sum: free GPUs of a cluster by the pod's share. Division: "
    "what Karmada's estimator does on each node; on known names: the same without names that no node has "
    "allocatable. Fragmented: of all GPUs, what the trace's usual tasks could not use (FGD).",
)


@dataclass(frozen=True, slots=True)
class World:
    """One scheme: how objects show it, the rule of the oracle, and how a question is put."""

    sharing: Sharing
    rule: Rule
    shape: Callable[[Ask, Member], PodShape]
    reserves: bool = False


WORLDS = (
    World(HAMI, hami, hami_shape),
    World(KAI, kai, kai_shape, reserves=True),
    World(WHOLE, whole, whole_shape),
)


@dataclass(frozen=True, slots=True)
class Count:
    """One question to one cluster, counted in every way. ``stripped``: names no node has are left out."""

    member: str
    ask: Ask
    truth: int
    fairway: int
    naive: int
    stock: int
    stripped: int


def measure(setting: Setting) -> Result:
    """A case for each scheme and load. Where the trace is not there, one case that says so."""
    folder = trace_folder()
    try:
        machines, tasks = read_machines(folder), read_tasks(folder)
    except TraceError as error:
        return Result("openb", _TITLE, [Case("skipped", [], notes=[str(error)])])
    mix = popular(TaskShape(task.cpu_milli, task.gpus, task.gpu_milli, task.models) for task in tasks)
    asks = popular_asks(tasks)
    cases: list[Case] = []
    for world in WORLDS:
        for load, seed in _settings(world):
            print(f"openb: {world.sharing.name}, {load} %", file=sys.stderr, flush=True)
            placement = place(machines, arriving(tasks, world.sharing), load, seed)
            cases += cases_of(world, placement, asks, mix, "" if seed is None else " scattered")
    return Result("openb", _TITLE, cases)


def cases_of(
    world: World, placement: Placement, asks: tuple[Ask, ...], mix: TaskMix, how: str
) -> Iterator[Case]:
    """The case of fractions, where the scheme has them, and that of whole GPUs."""
    lost = _fragmented_percent(placement, mix)
    load = 100 * placement.allocated_milli / placement.total_milli
    label = f"{world.sharing.name} {load:.0f} %{how}"
    counts, faults = count(world, placement, asks)
    for kind, is_fractional in (("fractions", True), ("whole", False)):
        own = [one for one in counts if one.ask.is_fractional == is_fractional]
        if own:
            yield Case(f"{label}, {kind}", _figures(own, lost), [*faults, *_wrong(own)], _NOTES)
            faults = []


def count(world: World, placement: Placement, asks: tuple[Ask, ...]) -> tuple[list[Count], list[str]]:
    """Every question to every member cluster, and what reading its dump complained about."""
    found: list[Count] = []
    complaints: list[str] = []
    for member in members(placement):
        mirror, problems = mirror_of(member, world.sharing)
        free_gpus = advertised_free(member, world.sharing)
        complaints += problems
        for ask in _asks_of(world, asks):
            state = hosts(member, world.reserves)
            shape = world.shape(ask, member)
            extended = {name: amount for name, amount in shape.requests if is_extended(name)}
            advertised = {name: amount for name, amount in extended.items() if name == GPU}
            found.append(
                Count(
                    member=member.name,
                    ask=ask,
                    fairway=max_replicas(Room(mirror.columns, EligibilityCache()), shape).value,
                    naive=naive_sum(state, ask),
                    stock=node_division(state, free_gpus, ask, extended),
                    stripped=node_division(state, free_gpus, ask, advertised),
                    truth=replicas(state, ask, world.rule),
                )
            )
    return found, complaints


def mirror_of(member: Member, sharing: Sharing) -> tuple[ClusterMirror, list[str]]:
    """The mirror of a member cluster, read from its dump, and everything that could not be read."""
    problems: list[str] = []
    mirror = ClusterMirror(
        lambda resource, key, problem: problems.append(f"{member.name}: {resource} {key}: {problem}"), SCHEMES
    )
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder, f"{member.name}.json")
        file.write_bytes(dump(member, sharing))
        read = read_dump(file)
    problems += [str(problem) for problem in read.problems]
    for node in read.nodes:
        mirror.nodes.upsert(node)
    for pod in read.pods:
        mirror.pods.upsert(pod)
    return mirror, problems


def _settings(world: World) -> list[tuple[int, int | None]]:
    settings: list[tuple[int, int | None]] = [(load, None) for load in LOADS]
    return [*settings, (_SCATTERED_LOAD, _SEED)]


def _asks_of(world: World, asks: tuple[Ask, ...]) -> list[Ask]:
    own = [ask for ask in asks if world.sharing.takes_fractions or not ask.is_fractional]
    if world.sharing is HAMI:
        own += [replace(ask, limits_cores=False) for ask in own if ask.is_fractional]
    return own


def _fragmented_percent(placement: Placement, mix: TaskMix) -> float:
    nodes = GpuNodes(_free_nodes(placement.machines, placement))
    return float(100 * fragmentation(nodes, mix).milli / placement.total_milli)


def _free_nodes(machines: tuple[Machine, ...], placement: Placement) -> list[GpuNode]:
    gpus = [[WHOLE_MILLI] * machine.gpus for machine in machines]
    cpus = [machine.cpu_milli for machine in machines]
    for bound in placement.bound:
        cpus[bound.machine] -= bound.task.cpu_milli
        for device in bound.devices:
            gpus[bound.machine][device] -= bound.task.gpu_milli
    return [
        GpuNode(free, cpu, machine.model) for free, cpu, machine in zip(gpus, cpus, machines, strict=True)
    ]


def _figures(counts: list[Count], lost_percent: float) -> list[Figure]:
    truth = sum(one.truth for one in counts)
    off = sum(abs(one.fairway - one.truth) for one in counts)
    return [
        Figure("questions", len(counts), ""),
        Figure("fit", truth, "pods"),
        Figure("Fairway off by", off, "pods", Target(0)),
        Figure("sum off by", _error_percent(counts, truth, lambda one: one.naive), "%"),
        Figure("division off by", _error_percent(counts, truth, lambda one: one.stock), "%"),
        Figure("on known names", _error_percent(counts, truth, lambda one: one.stripped), "%"),
        Figure("fragmented", lost_percent, "%"),
    ]


def _error_percent(counts: list[Count], truth: int, of: Callable[[Count], int]) -> float:
    off = sum(abs(of(one) - one.truth) for one in counts)
    return 100 * off / truth if truth else inf if off else 0.0


def _wrong(counts: list[Count]) -> list[str]:
    return [
        f"{one.member}: {one.ask}: {one.fairway} pods, but {one.truth} fit"
        for one in counts
        if one.fairway != one.truth
    ]
