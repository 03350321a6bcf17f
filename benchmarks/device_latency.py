"""How long does MaxAvailableReplicas take where each pod must find its share on single devices?

Pods that ask HAMi for shares of one device, of four, and for eight whole ones; and pods that ask KAI for half
a GPU, which stands in their template alone. HAMi shares eight devices on each second node, KAI four on some
others. Each answer is compared with a plain count.
"""

import json
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from benchmarks.cluster import PodSize, Scale, replicas_of
from benchmarks.contest import contest
from benchmarks.load import Clients, Questions
from benchmarks.processes import CLUSTER, running_api, starting_estimator
from benchmarks.report import Case, Figure, Result, Target
from benchmarks.shapes import REPLICAS, answer_of, replicas_request
from benchmarks.shared_cluster import HALF, HALVES, MEMORY, hami_replicas, kai_replicas
from benchmarks.sides import TARGET_NODES, Setting, Sides, await_right_answer

_P50_MS, _OF_PLAIN = Target(1.0), Target(1.25)


@dataclass(frozen=True, slots=True)
class Ask:
    """Pods of one size that differ in what they ask of each device: so many MiB, or None for all of it."""

    label: str
    size: PodSize
    memory_mib: Sequence[int | None] = (None,)
    workload: str | None = None

    @property
    def questions(self) -> Questions:
        """As karmada-scheduler would ask."""
        amounts = [{} if mib is None else {MEMORY: f"{mib}"} for mib in self.memory_mib]
        messages = [replicas_request(CLUSTER, self.size, more) for more in amounts]
        return Questions(REPLICAS, messages, self.workload)

    def replicas(self, scale: Scale) -> list[int]:
        """The right numbers."""
        if self.workload == HALVES:
            return [kai_replicas(scale)]
        if not self.size.gpus:
            return [replicas_of(scale, self.size)]
        return [hami_replicas(scale, self.size, mib) for mib in self.memory_mib]


_NONE, _ONE, _FOUR, _EIGHT = (PodSize(500, 1, gpus) for gpus in (0, 1, 4, 8))
# More than an estimator remembers, so that each answer is worked out anew.
_SIZES_MIB = range(8_000, 12_000, 40)
_PLAIN = Ask("no device", _NONE)
ASKS = (
    _PLAIN,
    Ask("share of one device", _ONE, [10_000]),
    Ask("shares of four devices", _FOUR, [10_000]),
    Ask("eight whole devices", _EIGHT),
    Ask("share of one device, 100 sizes", _ONE, _SIZES_MIB),
    Ask("shares of four devices, 100 sizes", _FOUR, _SIZES_MIB),
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
                answers = [answer_of(reply) for reply in client.ask_once(ask.questions)]
            compared = zip(ask.memory_mib, answers, ask.replicas(scale), strict=True)
            wrong = [
                f"pods of {mib or 'all'} MiB: {fit} fit, expected {right}"
                for mib, fit, right in compared
                if fit != right
            ]
            sides = Sides(own.address, None, own)
            # Measured again beside each: other work on the machine comes and goes.
            plain = contest(sides, _PLAIN.questions, 1, setting.seconds).latency()[0]
            found = contest(sides, ask.questions, 1, setting.seconds)
            p50, p99 = found.latency(target)
            of_plain = Figure("of plain", p50.value / plain.value, "", target and _OF_PLAIN)
            figures = [p50, of_plain, p99, found.throughput()]
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
