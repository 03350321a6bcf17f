"""How long does MaxAvailableReplicas take where each pod must find its share on single devices?

Pods that ask HAMi for shares of one device, of four, and for eight whole ones; and pods that ask KAI for half
a GPU, which stands in their template alone. HAMi shares eight devices on each second node, KAI four on some
others. Each answer is compared with a plain count.
"""

import json
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from benchmarks.cluster import PodSize, Scale
from benchmarks.contest import contest
from benchmarks.load import Clients, Questions
from benchmarks.processes import CLUSTER, running_api, starting_estimator
from benchmarks.report import Case, Result, Target
from benchmarks.shapes import REPLICAS, answer_of, replicas_request
from benchmarks.shared_cluster import HALF, HALVES, MEMORY, hami_replicas, kai_replicas
from benchmarks.sides import TARGET_NODES, Setting, Sides, await_right_answer

_P50_MS = Target(1.0)


@dataclass(frozen=True, slots=True)
class Ask:
    """Pods of one size; ``memory_mib`` of each device, None for all of it."""

    label: str
    size: PodSize
    memory_mib: int | None = None
    workload: str = "team-0/app-0"

    @property
    def questions(self) -> Questions:
        """As karmada-scheduler would ask."""
        more = {} if self.memory_mib is None else {MEMORY: f"{self.memory_mib}"}
        message = replicas_request(CLUSTER, self.size, more)
        return Questions(REPLICAS, [message], self.workload)

    def replicas(self, scale: Scale) -> int:
        """The right number."""
        if self.workload == HALVES:
            return kai_replicas(scale)
        return hami_replicas(scale, self.size, self.memory_mib)


ASKS = (
    Ask("share of one device", PodSize(500, 1, 1), 10_000),
    Ask("shares of four devices", PodSize(500, 1, 4), 10_000),
    Ask("eight whole devices", PodSize(500, 1, 8)),
    Ask("half a GPU of KAI's", HALF, workload=HALVES),
)


def measure(setting: Setting) -> Result:
    """Figures for each kind of pod, one client. Raises StartFailed, CallFailed."""
    scale = setting.main_scale
    target = _P50_MS if scale.nodes == TARGET_NODES else None
    cases = []
    with (
        running_api(scale, shared=True) as api,
        _kubeconfig(api.url) as kubeconfig,
        starting_estimator(api.url, "--karmada-kubeconfig", str(kubeconfig)) as own,
    ):
        await_right_answer(own, scale)
        for ask in ASKS:
            with Clients(own.address, 1) as client:
                answer = answer_of(client.ask_once(ask.questions)[0])
            right = ask.replicas(scale)
            wrong = [] if answer == right else [f"the answer is {answer}, expected {right}"]
            found = contest(Sides(own.address, None, own), ask.questions, 1, setting.seconds)
            figures = [*found.latency(target), found.throughput()]
            cases.append(Case(ask.label, figures, wrong + found.faults(), found.notes()))
    return Result("devices", f"MaxAvailableReplicas of shared devices, {scale}, 1 client", cases)


@contextmanager
def _kubeconfig(url: str) -> Iterator[Path]:
    named = {"name": "bench", "context": {"cluster": "bench", "user": "bench"}}
    config = {
        "apiVersion": "v1",
        "kind": "Config",
        "current-context": "bench",
        "contexts": [named],
        "clusters": [{"name": "bench", "cluster": {"server": url}}],
        "users": [{"name": "bench", "user": {}}],
    }
    with tempfile.TemporaryDirectory(prefix="bench-") as directory:
        file = Path(directory, "kubeconfig")
        file.write_text(json.dumps(config))
        yield file
