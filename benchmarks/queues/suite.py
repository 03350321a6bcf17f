"""What Kueue's performance suites create: read from their description beside the project.

Mirrors ``test/performance/scheduler`` of Kueue v0.20.0-devel-377; nothing in it is random.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import msgspec

from benchmarks.proc import NotHere

SOURCE = Path("..", "shared", "data", "kueue", "generator.json")
_FILE = Path(__file__).resolve().parents[2] / SOURCE


class WorkloadSet(msgspec.Struct, frozen=True, rename="camel"):
    """Workloads that one thread of a queue creates one after the other; times in milliseconds."""

    set: int
    class_name: str
    count: int
    creation_interval_ms: int
    runtime_ms: int
    priority: int
    cpu_per_workload: int


class Suite(msgspec.Struct, frozen=True, rename="camel"):
    """One suite: so many queues in cohorts, each fed by all sets at once; cpu in cores."""

    name: str
    cohorts: int
    queues_per_cohort: int
    nominal_cpu_per_queue: int
    borrowing_limit_cpu_per_queue: int
    workload_sets: tuple[WorkloadSet, ...]

    @property
    def workloads(self) -> int:
        """How many there are in all."""
        return self.cohorts * self.queues_per_cohort * sum(each.count for each in self.workload_sets)

    @property
    def total_cpu(self) -> int:
        """The quota of all queues, in cores."""
        return self.cohorts * self.queues_per_cohort * self.nominal_cpu_per_queue

    @property
    def cpu_seconds(self) -> float:
        """What all workloads use when they run, in core seconds."""
        each = sum(s.count * s.cpu_per_workload * s.runtime_ms for s in self.workload_sets) / 1000
        return each * self.cohorts * self.queues_per_cohort

    def cohort_names(self) -> Iterator[str]:
        """Names of the cohorts."""
        return (f"cohort-{number}" for number in range(self.cohorts))

    def queues(self) -> Iterator[tuple[str, str]]:
        """Names of queues and their cohorts; the namespace and the LocalQueue are named as the queue."""
        for cohort in self.cohort_names():
            for number in range(self.queues_per_cohort):
                yield f"cq-0-{number}-{cohort}", cohort

    def thinned(self, counts: tuple[int, ...]) -> "Suite":
        """The same with other numbers of workloads in its sets."""
        sets = tuple(
            msgspec.structs.replace(each, count=count)
            for each, count in zip(self.workload_sets, counts, strict=True)
        )
        return msgspec.structs.replace(self, workload_sets=sets)


class _Description(msgspec.Struct, frozen=True):
    suites: tuple[msgspec.Raw, ...]


class _Named(msgspec.Struct, frozen=True):
    name: str


@dataclass(frozen=True, slots=True)
class Published:
    """What Kueue did with the suite on this kind of machine; seconds, and writes of its own per workload."""

    workloads_per_s: float
    writes: float
    source: str


KUEUE = {
    "baseline": Published(40.6, 4.2, "Kueue as shipped, kube-apiserver 1.36.2, 2 CPUs"),
    "large10k": Published(43.0, 4.2, "Kueue as shipped, kube-apiserver 1.36.2, 2 CPUs"),
    "large-scale": Published(42.4, 4.2, "Kueue's own CI"),
}


def read_suite(name: str, file: Path | None = None) -> Suite:
    """``baseline``, ``large-scale``, or ``large10k``, which has 10 workloads a queue. Raises NotHere.

    ``file``: the description; None for the one beside the project.
    """
    if not (file or _FILE).is_file():
        raise NotHere(f"the description of Kueue's suites is not there; expected it at {file or SOURCE}")
    described = msgspec.json.decode((file or _FILE).read_bytes(), type=_Description)
    wanted = "large-scale" if name == "large10k" else name
    for raw in described.suites:
        if msgspec.json.decode(raw, type=_Named).name == wanted:
            suite = msgspec.json.decode(raw, type=Suite)
            if name == "large10k":
                suite = msgspec.structs.replace(suite.thinned((7, 2, 1)), name=name)
            return suite
    raise NotHere(f"{file or SOURCE} describes no suite {wanted}")
