"""Clusters and gangs by chance: small ones that can be searched exhaustively, and ones like real ones."""

from collections.abc import Sequence
from dataclasses import dataclass
from random import Random

from estimator.capacity.request import Component
from estimator.capacity.sets.component_sets import Sets
from estimator.cluster.mirror import ClusterMirror
from fairway.kube.objects import Node, Pod
from tests import gang_checker
from tests.builders import cluster, node, pod, read, requirements
from tests.gang_checker import Part

ZONE = "topology.kubernetes.io/zone"


@dataclass(frozen=True)
class Fleet:
    """Nodes and the pods that are on them."""

    nodes: tuple[Node, ...]
    pods: tuple[Pod, ...]

    def mirror(self) -> ClusterMirror:
        return cluster(*self.nodes, *self.pods)

    def gang(self, parts: Sequence[Part]) -> gang_checker.Gang:
        return gang_checker.gang(gang_checker.stock(self.nodes, self.pods), parts)


def components(parts: Sequence[Part]) -> tuple[Component, ...]:
    """The parts as the server reads them."""
    return tuple(read(f"part-{index}", part.replicas, part.asked) for index, part in enumerate(parts))


def by_node(mirror: ClusterMirror, found: Sets) -> dict[tuple[int, str], int]:
    """The placement that was found, by the names of nodes."""
    names = {index: row.name for index, row in enumerate(mirror.columns.rows) if row is not None}
    return {(part, names[row]): pods for (part, row), pods in (found.placement or {}).items()}


def flaws(fleet: Fleet, mirror: ClusterMirror, parts: Sequence[Part], found: Sets) -> list[str]:
    """What is wrong with what was found, by the objects alone."""
    return gang_checker.flaws(fleet.gang(parts), found.answer.value, by_node(mirror, found))


def small_fleet(rng: Random) -> Fleet:
    """Up to six nodes on which little fits, in two zones, some tainted, some with little room for pods."""
    nodes, pods = [], []
    for number in range(rng.randint(2, 6)):
        built = node(f"n{number}").has(cpu=rng.randint(2, 16), memory=rng.randint(2, 16))
        built = built.gpus(rng.choice([0, 4, 7, 8, 8])).pods(rng.choice([2, 3, 20, 20, 20]))
        built = built.label({ZONE: rng.choice("ab"), "zone": rng.choice("ab")})
        if rng.random() < 0.1:
            built = built.taint("gpu:NoSchedule")
        nodes.append(built.build())
        if rng.random() < 0.4:
            held = pod(f"p{number}").on(f"n{number}").requests(cpu=rng.randint(0, 3), gpu=rng.randint(0, 2))
            pods.append(held.build())
    return Fleet(tuple(nodes), tuple(pods))


def small_gang(rng: Random) -> tuple[Part, ...]:
    """Up to three parts that compete for devices, cores and memory."""
    return tuple(
        Part(
            rng.choice([1, 1, 1, 2, 2, 3]),
            requirements(
                cpu=rng.choice([0, 1, 1, 2, 3, 5]),
                memory=rng.choice([0, 0, 1, 3]),
                gpu=rng.choice([0, 0, 0, 1, 2, 3, 4, 5]),
                selector={"zone": "a"} if rng.random() < 0.15 else {},
                tolerations=["gpu:NoSchedule"] if rng.random() < 0.5 else [],
            ),
        )
        for _ in range(rng.choice([1, 2, 2, 3, 3, 3]))
    )


def alike_gang(rng: Random) -> tuple[Part, ...]:
    """Three or four parts that ask for one or two numbers of devices, and for this and that besides."""
    return tuple(
        Part(
            rng.choice([1, 1, 2]),
            requirements(
                cpu=rng.choice([0, 1, 2, 4]),
                memory=rng.choice([0, 1, 2, 4]),
                gpu=rng.choice([1, 1, 1, 3]),
                tolerations=["gpu:NoSchedule"] if rng.random() < 0.8 else [],
            ),
        )
        for _ in range(rng.choice([3, 4]))
    )


@dataclass(frozen=True)
class _Machine:
    kind: str
    cpu: int
    memory_gib: int
    gpus: int


_MACHINES = (
    _Machine("a100", 96, 1152, 8),
    _Machine("h100", 192, 2048, 8),
    _Machine("l4", 48, 192, 4),
    _Machine("cpu", 64, 256, 0),
)


def gpu_fleet(rng: Random, size: int) -> Fleet:
    """Machines of four kinds, most with GPUs of which some are held, each with another rest of all it has."""
    nodes, pods = [], []
    for number in range(size):
        machine = rng.choices(_MACHINES, (4, 4, 1, 3))[0]
        name = f"node-{number:05d}"
        built = node(name).has(cpu=f"{machine.cpu * 1000 - 500}m", memory=f"{machine.memory_gib - 4}Gi")
        built = built.label({ZONE: f"zone-{number % 3}", "kind": machine.kind})
        gpus = min(machine.gpus, rng.choice([0, 0, 0, 1, 2, 3, 4, 4, 5, 6, 7, 8, 8]))
        milli = 500 + gpus * rng.choice([4000, 8000, machine.cpu * 1000 // max(1, machine.gpus)])
        gib = 2 + gpus * rng.choice([32, 64, 100])
        for _ in range(rng.choice([0, 1, 2, 5])):
            milli += rng.choice([250, 500, 1000, 2000, 4000])
            gib += rng.choice([1, 2, 4, 8, 16])
        nodes.append((built.gpus(machine.gpus) if machine.gpus else built).build())
        pods.append(
            pod(f"{name}-pods").on(name).requests(cpu=f"{milli}m", memory=f"{gib}Gi", gpu=gpus).build()
        )
    return Fleet(tuple(nodes), tuple(pods))


def gpu_gang(rng: Random) -> tuple[Part, ...]:
    """Workers of one or two sizes, most often with a driver, an evaluator or helpers without GPUs."""
    match rng.choice(
        ["driver", "driver and helpers", "two sizes", "two sizes and helpers", "odd", "evaluator"]
    ):
        case "driver":
            parts = [_driver(rng), _workers(rng, (1, 2, 4, 8), (1, 2, 4, 8, 16, 32))]
        case "driver and helpers":
            parts = [_driver(rng), _workers(rng, (1, 2, 4, 8), (1, 2, 4, 8, 16, 32)), _helpers(rng)]
        case "two sizes":
            parts = [_workers(rng, (2, 4, 8), (1, 2, 4)), _workers(rng, (1, 1, 2, 4), (1, 2, 4, 8, 16))]
        case "two sizes and helpers":
            parts = [
                _workers(rng, (2, 4, 8), (1, 2, 4)),
                _workers(rng, (1, 1, 2, 4), (1, 2, 4, 8, 16)),
                _helpers(rng),
            ]
        case "odd":
            sizes = (1, 2, 3, 4, 5, 6, 8)
            parts = [_workers(rng, sizes, (1, 1, 2, 3)) for _ in range(rng.choice([2, 3, 4]))]
        case _:
            parts = [_workers(rng, (1, 2, 4, 8), (1, 2, 4, 8, 16, 32)), _workers(rng, (1,), (1, 2))]
    rng.shuffle(parts)
    return tuple(parts)


def _workers(rng: Random, gpus: Sequence[int], replicas: Sequence[int]) -> Part:
    per_pod = rng.choice(gpus)
    milli = per_pod * rng.choice([4000, 6000, 8000, 10000, 12000])
    gib = per_pod * rng.choice([16, 32, 64, 100, 128])
    return Part(rng.choice(replicas), requirements(cpu=f"{milli}m", memory=f"{gib}Gi", gpu=per_pod))


def _driver(rng: Random) -> Part:
    asked = requirements(cpu=rng.choice([2, 4, 8, 16, 32]), memory=f"{rng.choice([4, 8, 16, 64])}Gi")
    return Part(1, asked)


def _helpers(rng: Random) -> Part:
    asked = requirements(cpu=rng.choice([1, 2, 4]), memory=f"{rng.choice([2, 4, 8, 16])}Gi")
    return Part(rng.choice([2, 4, 8, 16]), asked)


def mixed_fleet(rng: Random, size: int) -> Fleet:
    """Nodes of any size that few pods fill, so that it matters much what goes where."""
    nodes = [
        node(f"node-{number:02d}")
        .has(cpu=rng.randint(4, 64), memory=rng.randint(8, 256), gpu=rng.choice([0, 0, 2, 4, 8]))
        .label({ZONE: f"zone-{number % 3}"})
        .build()
        for number in range(size)
    ]
    return Fleet(tuple(nodes), ())


def mixed_gang(rng: Random) -> tuple[Part, ...]:
    """Two to four parts that ask for anything from a core to a quarter of a node."""
    return tuple(
        Part(
            rng.choice([1, 1, 2, 3, 4]),
            requirements(
                cpu=rng.randint(1, 16),
                memory=rng.randint(1, 64),
                gpu=rng.choice([0, 0, 0, 1, 2, 4]),
            ),
        )
        for _ in range(rng.randint(2, 4))
    )
