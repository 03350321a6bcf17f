"""How fast does an admission cycle decide?

1,000 ClusterQueues in 10 trees of depth 3, 100,000 pending workloads of 3 to 20 shapes a queue, 3 resources
of 1 or 2 flavors. Cold: everything has room and the release window is open. Saturated: no quota is left, so a
cycle admits nothing and says why, which is what a full fleet does at every event; the longest is the first,
which finds everything out. No process is started: this is `decide` alone, and time is processor time, since a
cycle waits for nothing. Garbage is collected as rarely as in the dispatcher, and never looked for among what
waits.

Steady: cycles one after the other, which keep what still holds, of 1,000 and 5,000 ClusterQueues in one tree
with 10 shapes each: a busy fleet, in which three workloads end and three fit, and one with quota for all, in
which the release window lets ten go.
"""

import gc
import time
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from random import Random

from benchmarks.report import Case, Figure, Result, Target
from benchmarks.sides import Setting
from fairway.service.lifecycle import GC_THRESHOLDS
from queue_dispatcher.api.cluster_queue import QueueingStrategy
from queue_dispatcher.cycle.actions import Admit, Decision
from queue_dispatcher.cycle.decide import AdmissionCycles, decide
from queue_dispatcher.cycle.items import Alternative, Item, Shape
from queue_dispatcher.cycle.pending import PendingQueue
from queue_dispatcher.cycle.snapshot import QueueState, Snapshot
from queue_dispatcher.cycle.turns import NO_TURNS
from queue_dispatcher.ledger.cells import CellTable
from queue_dispatcher.ledger.ledger import Ledger
from queue_dispatcher.ledger.tree import CellQuota, QuotaNode, QuotaTree

TREES = 10
DEPARTMENTS = 10
QUEUES = 10
"""Trees, inner nodes of each below its root, queues of each of these."""

RESOURCES = ("cpu", "memory", "nvidia.com/gpu")
NOW_MS = 1_800_000_000_000
_SECOND_MS = 1000
_UNLIMITED_TOKENS = 1 << 40
_COLD_CYCLES = 3
_SATURATED_CYCLES = 20
_STEADY_CYCLES = 60
_SHAPES = 10
_SIZE = 8
_TOKENS = 10


@dataclass(frozen=True, slots=True)
class Kind:
    """One fleet: how many workloads wait, of how many flavors, and how queues treat their heads."""

    label: str
    pending: int
    flavors: int
    strategy: QueueingStrategy


def measure(setting: Setting) -> Result:
    """Figures for each kind of fleet."""
    pending = 10_000 if setting.seconds <= 1.0 else 100_000
    kinds = [
        Kind(f"{pending:,} pending, {flavors} flavor(s), {strategy}", pending, flavors, strategy)
        for strategy in QueueingStrategy
        for flavors in (1, 2)
    ]
    cases = [_case(kind) for kind in kinds]
    cases += [_steady(queues, pending) for queues in (1_000, 5_000)]
    return Result(
        "cycle", "Deciding for 1,000 ClusterQueues in 10 trees, and for one tree cycle by cycle", cases
    )


def _case(kind: Kind) -> Case:
    fleet = _Fleet(kind)
    with collecting_as_the_dispatcher():
        cold, cold_took_s = _timed(fleet.snapshot(fleet.ledger(has_quota=True)), _COLD_CYCLES, decide)
        saturated, took_s = _timed(
            fleet.snapshot(fleet.ledger(has_quota=False)), _SATURATED_CYCLES, AdmissionCycles().decide
        )
    admitted = sum(isinstance(action, Admit) for action in cold.actions)
    cold_s = cold_took_s[len(cold_took_s) // 2]
    figures = [
        Figure("classes", fleet.classes, ""),
        Figure("cold cycle", cold_s, "s"),
        Figure("admissions", admitted / cold_s, "per s", Target(20_000, at_least=True)),
        Figure("saturated p50", 1e3 * took_s[len(took_s) // 2], "ms", Target(20.0)),
        Figure("saturated longest", 1e3 * took_s[-1], "ms"),
    ]
    return Case(kind.label, figures, _faults(kind, fleet, cold, saturated))


def _steady(queues: int, pending: int) -> Case:
    figures, faults = [], []
    for label, free, goes, limit_ms in (
        ("three fit", _SIZE * 3, 3, 20.0 if queues <= 1_000 else 60.0),
        ("ten of plenty", _SIZE * pending, _TOKENS, 10.0 if queues <= 1_000 else 30.0),
    ):
        fleet = SteadyFleet(queues, pending, free)
        with collecting_as_the_dispatcher():
            went = [fleet.cycle(ends=3) for _ in range(_STEADY_CYCLES)]
        if any(each != goes for each in went):
            faults.append(f"{label}: not {goes} were admitted in every cycle")
        took_s = sorted(fleet.took_s[1:])
        figures += [
            Figure(f"{label} p50", 1e3 * took_s[len(took_s) // 2], "ms"),
            Figure(f"{label} p99", 1e3 * took_s[-1 - len(took_s) // 100], "ms", Target(limit_ms)),
            Figure(f"{label} longest step", 1e3 * fleet.longest_s, "ms", Target(20.0)),
        ]
    return Case(f"steady, {queues:,} queues, {pending:,} pending", figures, faults)


class SteadyFleet:
    """Queues that own nothing in a tree that owns ``free`` GPUs; their work is of 8 GPUs and some memory."""

    def __init__(self, queues: int, pending: int, free: int) -> None:
        table = CellTable()
        gpus, memory = table.cell("flavor", "nvidia.com/gpu"), table.cell("flavor", "memory")
        nodes = [QuotaNode("org", quotas={gpus: CellQuota(free), memory: CellQuota(1 << 60)})]
        self._queues: dict[str, QueueState] = {}
        for queue in range(queues):
            name = f"queue-{queue}"
            nodes.append(QuotaNode(name, "org"))
            waiting = PendingQueue(name)
            for kind in range(_SHAPES):
                way = Alternative((), ((gpus, _SIZE), (memory, 1000 + kind)))
                shape = Shape(f"{name}-{kind}", (), (way,))
                for number in range(pending // queues // _SHAPES):
                    item = f"{name}-{kind}-{number}"
                    waiting.add(Item(item, f"team/{item}", (item,), name, name, shape, 0, number))
            self._queues[name] = QueueState(name, waiting)
        self._ledger = Ledger(QuotaTree(nodes, table))
        self._cycles = AdmissionCycles()
        self._turns = NO_TURNS
        self._running: deque[tuple[str, Alternative]] = deque()
        self.took_s: list[float] = []
        self.longest_s = 0.0

    def cycle(self, ends: int) -> int:
        """One cycle, carried out; then some of what runs ends. Answers how many were admitted."""
        snapshot = Snapshot(self._ledger, self._queues, tokens=_TOKENS, turns=self._turns)
        began_s = last_s = time.process_time()
        steps = self._cycles.steps(snapshot, NOW_MS)
        while True:
            try:
                next(steps)
            except StopIteration as stop:
                decision: Decision = stop.value
                break
            now_s = time.process_time()
            self.longest_s, last_s = max(self.longest_s, now_s - last_s), now_s
        self.took_s.append(time.process_time() - began_s)
        self._turns = decision.turns
        admitted = [action for action in decision.actions if isinstance(action, Admit)]
        for action in admitted:
            self._queues[action.item.queue].pending.remove(action.item.id)
            self._ledger.charge(action.item.queue, action.alternative.charge)
            self._running.append((action.item.queue, action.alternative))
        for _ in range(min(ends, len(self._running))):
            queue, alternative = self._running.popleft()
            self._ledger.give_back(queue, alternative.charge)
        return len(admitted)


def _timed(
    snapshot: Snapshot, cycles: int, decides: Callable[[Snapshot, int], Decision]
) -> tuple[Decision, list[float]]:
    """A decision, and how long each of so many took, in seconds of processor time, the shortest first."""
    took_s = []
    for _ in range(cycles):
        began_s = time.process_time()
        decision = decides(snapshot, NOW_MS)
        took_s.append(time.process_time() - began_s)
    return decision, sorted(took_s)


@contextmanager
def collecting_as_the_dispatcher() -> Iterator[None]:
    """What there is already is not looked through for garbage, and what comes is as rarely as there."""
    thresholds = gc.get_threshold()
    gc.set_threshold(*GC_THRESHOLDS)
    gc.freeze()
    yield
    gc.unfreeze()
    gc.set_threshold(*thresholds)


def _faults(kind: Kind, fleet: "_Fleet", cold: Decision, saturated: Decision) -> list[str]:
    faults = []
    if len(cold.actions) != kind.pending or cold.waits:
        faults.append(f"with room for all, {len(cold.actions)} of {kind.pending} were admitted")
    if saturated.actions or len(saturated.waits) != fleet.classes:
        faults.append(
            f"without room, {len(saturated.actions)} were admitted and "
            f"{len(saturated.waits)} of {fleet.classes} classes were given a reason"
        )
    return faults


class _Fleet:
    """Queues with their pending workloads, drawn by chance but always the same."""

    def __init__(self, kind: Kind) -> None:
        rng = Random(1)
        self.table = CellTable()
        flavors = [f"flavor-{number}" for number in range(kind.flavors)]
        self._cells = [[self.table.cell(flavor, name) for name in RESOURCES] for flavor in flavors]
        self.queues: dict[str, QueueState] = {}
        self._demand: dict[str, dict[int, int]] = {}
        per_queue = kind.pending // (TREES * DEPARTMENTS * QUEUES)
        for name in self._names():
            pending = PendingQueue(name)
            self.queues[name] = QueueState(name, pending, kind.strategy)
            shapes = [self._shape(name, number, rng) for number in range(rng.randint(3, 20))]
            for number in range(per_queue):
                pending.add(_item(name, number, rng.choice(shapes), rng))
            demand = self._demand[name] = {}
            for item in pending:
                for cell, amount in item.shape.alternatives[0].charge:
                    demand[cell] = demand.get(cell, 0) + amount

    @property
    def classes(self) -> int:
        """How many classes wait in all queues."""
        return sum(len(state.pending.classes(NOW_MS)) for state in self.queues.values())

    def ledger(self, has_quota: bool) -> Ledger:
        """Each queue owns half of what waits in it, trees have the rest to share; or all of it is in use."""
        nodes = []
        for tree in range(TREES):
            shared: dict[int, int] = {}
            for name in self._names(tree):
                for cell, amount in self._demand[name].items():
                    shared[cell] = shared.get(cell, 0) + amount
            nodes.append(QuotaNode(f"tree-{tree}", quotas={c: CellQuota(a) for c, a in shared.items()}))
            nodes += (QuotaNode(f"dept-{tree}-{d}", f"tree-{tree}") for d in range(DEPARTMENTS))
        for name, demand in self._demand.items():
            quotas = {cell: CellQuota(amount // 2) for cell, amount in demand.items()}
            nodes.append(
                QuotaNode(name, "dept-" + name.removeprefix("queue-").rpartition("-")[0], quotas=quotas)
            )
        ledger = Ledger(QuotaTree(nodes, self.table))
        if not has_quota:
            for node in nodes:
                ledger.charge(node.name, tuple((cell, quota.nominal) for cell, quota in node.quotas.items()))
        return ledger

    def snapshot(self, ledger: Ledger) -> Snapshot:
        """All that is pending, before a ledger."""
        return Snapshot(ledger, self.queues, tokens=_UNLIMITED_TOKENS)

    def _names(self, tree: int | None = None) -> Sequence[str]:
        trees = range(TREES) if tree is None else (tree,)
        return [f"queue-{t}-{d}-{q}" for t in trees for d in range(DEPARTMENTS) for q in range(QUEUES)]

    def _shape(self, queue: str, number: int, rng: Random) -> Shape:
        gpus = rng.choice((1, 1, 2, 4, 8))
        amounts = (gpus * rng.randint(2, 16) * 1000, gpus * rng.randint(8, 64) << 30, gpus)
        alternatives = tuple(
            Alternative((), tuple(zip(cells, amounts, strict=True))) for cells in self._cells
        )
        return Shape(f"{queue}/{number}", tuple(zip(RESOURCES, amounts, strict=True)), alternatives)


def _item(queue: str, number: int, shape: Shape, rng: Random) -> Item:
    name = f"{queue}-{number}"
    enqueued_ms = NOW_MS - rng.randrange(3_600) * _SECOND_MS
    return Item(name, name, (name,), queue, queue, shape, 0, enqueued_ms)
