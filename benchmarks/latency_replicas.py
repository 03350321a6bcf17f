"""How long does MaxAvailableReplicas take, and how many calls a second are answered?

36 pod templates in turn, from one client and from many at once, on clusters with ten pods a node.
"""

from benchmarks.contest import Contest, contest
from benchmarks.load import Questions
from benchmarks.report import Case, Result, Target
from benchmarks.shapes import REPLICAS, replicas_requests
from benchmarks.sides import TARGET_NODES, Setting, serving

_P50_MS, _P99_MS = Target(0.5), Target(2.0)
_CALLS_PER_S = Target(3000, at_least=True)


def measure(setting: Setting) -> Result:
    """Figures for each size and number of clients. Raises StartFailed, CallFailed."""
    questions = Questions(REPLICAS, replicas_requests(setting.cluster))
    cases = []
    for scale in setting.scales:
        with serving(setting, scale) as sides:
            for clients in setting.clients:
                found = contest(sides, questions, clients, setting.seconds)
                label = f"{scale}, {clients} client{'s' if clients > 1 else ''}"
                cases.append(_case(label, found, clients if scale.nodes == TARGET_NODES else 0))
    return Result("latency_replicas", "MaxAvailableReplicas, 36 pod templates", cases)


def _case(label: str, found: Contest, clients: int) -> Case:
    one, eight = clients == 1, clients == 8
    latency = found.latency(_P50_MS if one else None, _P99_MS if one else None)
    throughput = found.throughput(_CALLS_PER_S if eight else None)
    return Case(label, [*latency, throughput], found.faults(), found.notes())
