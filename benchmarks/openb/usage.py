"""Idle and wrong-sized on the trace, with what is true known: ``python -m benchmarks.openb.usage``.

Each pod of the trace is given a story (it works, it is forgotten, it uses two of eight devices, ...), each of
its devices is given numbers that the story allows, up to both sides of every threshold, and node agents write
them. Then what Fairway says of each device is compared with the story: precision and recall of each finding.
"""

import argparse
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from random import Random

import msgspec

from benchmarks.openb.members import arriving, dump, members
from benchmarks.openb.placement import place
from benchmarks.openb.schemes import WHOLE
from benchmarks.openb.trace import TraceError, read_machines, read_tasks, trace_folder
from fairway.accelerators.builtin import builtin_catalogue
from fairway.kube.node_devices import DeviceWindow, Health, Holder, NodeDevice, NodeDevices, Problem
from fairway.kube.objects import KubeStruct, Node, ObjectMeta, Pod
from fairway.names import API_VERSION
from fairway.resources import pod_request
from fairway.usage.bound_pod import bound_pods
from fairway.usage.cluster import Objects, by_node, cluster_usage
from fairway.usage.definitions import Finding
from fairway.usage.held import node_facts
from fairway.usage.owner import Owners
from fairway.usage.use import ClusterUsage

GPU = "nvidia.com/gpu"
NOW_S = datetime(2026, 11, 22, 12, tzinfo=UTC).timestamp()
_MEMORY = 80 * 1024**3
_WINDOW_S = 300


_PROBLEMS = {
    Health.LOST: [Problem("Xid79", "the GPU has fallen off the bus")],
    Health.UNHEALTHY: [Problem("Xid48", "a double-bit ECC error")],
}


@dataclass(frozen=True, slots=True)
class Told:
    """What a device is made to do, and what has to be said of it."""

    window: DeviceWindow | None
    true: frozenset[Finding] = frozenset()
    health: Health = Health.HEALTHY


def _window(
    p50: int, p95: int, memory_permille: int, idle_s: int | None = None, throttled_s: int = 0
) -> DeviceWindow:
    since = None if idle_s is None else datetime.fromtimestamp(NOW_S - idle_s, UTC).isoformat()
    return DeviceWindow(
        utilization_p50=p50,
        utilization_p95=p95,
        utilization_max=p95,
        memory_peak_bytes=_MEMORY * memory_permille // 1000,
        throttled_seconds=throttled_s,
        samples=60,
        idle_since=since,
    )


def _works(
    rng: Random, throttled_s: int = 0, least_memory: int = 250, most_memory: int = 1000
) -> DeviceWindow:
    p95 = rng.randint(50, 100)
    memory = rng.randint(least_memory, most_memory)
    return _window(rng.randint(0, p95), p95, memory, None, throttled_s)


def _rests(rng: Random, idle_s: int | None) -> DeviceWindow:
    p95 = rng.randint(0, 4)
    return _window(rng.randint(0, p95), p95, rng.randint(0, 20), idle_s)


def _forgotten(rng: Random, count: int) -> list[Told]:
    true = frozenset({Finding.IDLE, Finding.HOLDS_MEMORY})
    windows = (_rests(rng, rng.choice((3600, rng.randint(3600, 10**6)))) for _ in range(count))
    return [
        Told(msgspec.structs.replace(window, memory_peak_bytes=_MEMORY * rng.randint(21, 1000) // 1000), true)
        for window in windows
    ]


def _empty(rng: Random, count: int) -> list[Told]:
    true = frozenset({Finding.IDLE})
    return [Told(_rests(rng, rng.choice((3600, rng.randint(3600, 10**6)))), true) for _ in range(count)]


def _pauses(rng: Random, count: int) -> list[Told]:
    return [Told(_rests(rng, rng.choice((None, 3599, rng.randint(0, 3599))))) for _ in range(count)]


def _too_wide(rng: Random, count: int) -> list[Told]:
    if count < 2:
        return [Told(_works(rng))] * count
    busy = rng.randint(1, count // 2)
    true = frozenset({Finding.UNDER_USED})
    return [Told(_works(rng) if n < busy else _rests(rng, None), true) for n in range(count)]


def _wide_enough(rng: Random, count: int) -> list[Told]:
    busy = rng.randint(count // 2 + 1, count)
    return [Told(_works(rng) if n < busy else _rests(rng, None)) for n in range(count)]


def _too_large(rng: Random, count: int) -> list[Told]:
    true = frozenset({Finding.OVERSIZED})
    found = []
    for _ in range(count):
        p95 = rng.choice((5, 49, rng.randint(5, 49)))
        found.append(Told(_window(rng.randint(0, p95), p95, rng.choice((249, rng.randint(0, 249)))), true))
    return found


def _lost(rng: Random, count: int) -> list[Told]:
    lost = rng.choice(((None, Health.LOST), (_works(rng), Health.UNHEALTHY)))
    broken = Told(lost[0], frozenset({Finding.FAILING}), lost[1])
    return [broken, *(Told(_works(rng)) for _ in range(count - 1))]


STORIES: Mapping[str, Callable[[Random, int], list[Told]]] = {
    "works": lambda rng, count: [Told(_works(rng)) for _ in range(count)],
    "works in little memory": lambda rng, count: [
        Told(_works(rng, least_memory=0, most_memory=249)) for _ in range(count)
    ],
    "is forgotten": _forgotten,
    "is forgotten, and holds nothing": _empty,
    "pauses": _pauses,
    "uses few of its devices": _too_wide,
    "uses most of its devices": _wide_enough,
    "is too small for its device": _too_large,
    "is throttled": lambda rng, count: [
        Told(_works(rng, rng.choice((30, rng.randint(30, 300)))), frozenset({Finding.THROTTLED}))
        for _ in range(count)
    ],
    "is throttled for a moment": lambda rng, count: [
        Told(_works(rng, rng.choice((29, rng.randint(0, 29))))) for _ in range(count)
    ],
    "has a broken device": _lost,
    "is not measured": lambda rng, count: [Told(None) for _ in range(count)],
}
"""What may become of a pod, and how each of its devices shows it."""

_OFTEN = {"works": 60, "has a broken device": 1, "is throttled": 2}
"""How often a story is told, where that is not 5 times."""


@dataclass(frozen=True, slots=True)
class Fleet:
    """A cluster with agents, and of each device by its id what is true."""

    nodes: tuple[Node, ...]
    pods: tuple[Pod, ...]
    agents: tuple[NodeDevices, ...]
    true: Mapping[str, frozenset[Finding]]


def told_fleet(nodes: Sequence[Node], pods: Sequence[Pod], rng: Random) -> Fleet:
    """The cluster with a story for each pod that holds devices."""
    names = tuple(STORIES)
    weights = [_OFTEN.get(name, 5) for name in names]
    devices: dict[str, list[NodeDevice]] = {
        node.metadata.name: [] for node in nodes if GPU in (node.status.allocatable or {})
    }
    true: dict[str, frozenset[Finding]] = {}
    for pod in pods:
        count = pod_request(pod).get(GPU, 0)
        if not count:
            continue
        story = STORIES[rng.choices(names, weights)[0]](rng, count)
        rng.shuffle(story)
        on = devices.setdefault(pod.spec.node_name, [])
        for told in story:
            id_ = f"GPU-{pod.spec.node_name}-{len(on)}"
            holder = Holder(
                pod.metadata.namespace, pod.metadata.name, pod.metadata.uid, source="PodResources"
            )
            on.append(
                NodeDevice(
                    id_,
                    len(on),
                    "",
                    _MEMORY,
                    health=told.health,
                    problems=_PROBLEMS.get(told.health),
                    holders=[holder],
                    window=told.window,
                )
            )
            true[id_] = told.true
    at = datetime.fromtimestamp(NOW_S, UTC).isoformat()
    agents = tuple(
        NodeDevices(metadata=ObjectMeta(name=node), observed_at=at, window_seconds=_WINDOW_S, devices=held)
        for node, held in devices.items()
    )
    return Fleet(tuple(nodes), tuple(pods), agents, true)


def usage_of(fleet: Fleet) -> ClusterUsage:
    """What Fairway says of it."""
    objects = Objects(
        tuple(map(node_facts, fleet.nodes)), bound_pods(fleet.pods), by_node(fleet.agents), Owners()
    )
    return cluster_usage("openb", objects, builtin_catalogue(), NOW_S)


@dataclass(frozen=True, slots=True)
class Score:
    """Of one finding: devices of which it was said and true, said and not true, true and not said."""

    right: int
    wrong: int
    missed: int

    @property
    def precision(self) -> float:
        """What part of what was said is true; 1 where nothing was said."""
        return self.right / (self.right + self.wrong) if self.right + self.wrong else 1.0

    @property
    def recall(self) -> float:
        """What part of what is true was said; 1 where nothing is true."""
        return self.right / (self.right + self.missed) if self.right + self.missed else 1.0


def scores(found: Iterable[ClusterUsage], true: Mapping[str, frozenset[Finding]]) -> dict[Finding, Score]:
    """Each finding, device by device."""
    right: Counter[Finding] = Counter()
    wrong: Counter[Finding] = Counter()
    said_of = {use.device.id: use.findings for one in found for use in one.uses if use.device}
    missed: Counter[Finding] = Counter()
    for id_, is_true in true.items():
        said = said_of.get(id_, frozenset())
        right.update(said & is_true)
        wrong.update(said - is_true)
        missed.update(is_true - said)
    return {finding: Score(right[finding], wrong[finding], missed[finding]) for finding in Finding}


class _List(KubeStruct, frozen=True):
    items: list[msgspec.Raw]


class _Kind(KubeStruct, frozen=True):
    kind: str = ""


def _objects(data: bytes) -> tuple[list[Node], list[Pod]]:
    nodes, pods = [], []
    for raw in msgspec.json.decode(data, type=_List).items:
        match msgspec.json.decode(raw, type=_Kind).kind:
            case "Node":
                nodes.append(msgspec.json.decode(raw, type=Node))
            case "Pod":
                pods.append(msgspec.json.decode(raw, type=Pod))
    return nodes, pods


def with_agents(data: bytes, agents: Iterable[NodeDevices]) -> bytes:
    """The dump with what the agents wrote."""
    items: list[object] = list(msgspec.json.decode(data, type=_List).items)
    for agent in agents:
        made = {"apiVersion": API_VERSION, "kind": "NodeDevices", **msgspec.to_builtins(agent)}
        items.append(made)
    return msgspec.json.encode({"apiVersion": "v1", "kind": "List", "items": items})


def main(argv: Sequence[str] | None = None) -> int:
    """Print a line for each finding. 0 where all are exact, 1 where one is not, 2 without the trace."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.openb.usage", description=__doc__)
    parser.add_argument("--data", type=Path, default=trace_folder(), help="folder of the trace's CSV files")
    parser.add_argument("--load", type=int, default=85, help="percent of all GPUs that pods take")
    parser.add_argument("--seed", type=int, default=1, help="of the stories")
    parser.add_argument("--out", type=Path, help="write the clusters as dumps, with what agents wrote")
    options = parser.parse_args(sys.argv[1:] if argv is None else argv)
    try:
        machines = read_machines(options.data)
        placed = place(machines, arriving(read_tasks(options.data, "default"), WHOLE), options.load, None)
    except TraceError as error:
        print(error, file=sys.stderr)
        return 2
    rng, fleets = Random(options.seed), []
    for member in members(placed):
        data = dump(member, WHOLE)
        fleet = told_fleet(*_objects(data), rng)
        fleets.append(fleet)
        if options.out is not None:
            options.out.mkdir(parents=True, exist_ok=True)
            (options.out / f"{member.name}.json").write_bytes(with_agents(data, fleet.agents))
    started_s = time.perf_counter()
    found = [usage_of(fleet) for fleet in fleets]
    took_s = time.perf_counter() - started_s
    true = {id_: finding for fleet in fleets for id_, finding in fleet.true.items()}
    nodes, pods = sum(len(fleet.nodes) for fleet in fleets), sum(len(fleet.pods) for fleet in fleets)
    print(f"{nodes:,} nodes, {pods:,} pods, {len(true):,} devices held, counted in {took_s:.2f} s")
    made = scores(found, true)
    for finding, score in made.items():
        print(
            f"{finding.value:18} true {score.right + score.missed:6,}  "
            f"precision {score.precision:.4f}  recall {score.recall:.4f}"
        )
    return 0 if all(score.precision == score.recall == 1 for score in made.values()) else 1


if __name__ == "__main__":
    sys.exit(main())
