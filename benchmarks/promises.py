"""What do promises cost a question of Karmada's? MaxAvailableReplicas with 0 and with 200 of them.

50 events of pods a second make what is held worked out anew all the time. Rounds without and with promises
take turns on one estimator, and the ratio is the median of those of neighbouring rounds, so that whatever
else the machine does weighs on both. Promised are pods of eight kinds, and then of 200.
"""

import asyncio
from collections.abc import Sequence
from statistics import median

import grpc
import msgspec

from benchmarks.cluster import GPU, TPU, Scale
from benchmarks.load import Clients, Questions, Round
from benchmarks.processes import CLUSTER, Estimator, running_api, running_module, starting_estimator
from benchmarks.report import Case, Figure, Result, Target
from benchmarks.shapes import REPLICAS, replicas_requests
from benchmarks.sides import Setting, await_right_answer
from fairway.capacity.v1 import capacity_pb2 as pb

_SIZES = (100, 1000)
_EVENTS_PER_S, _PROMISED, _ROUNDS = 50, 200, 15
_RATIO = Target(1.1)
_METHOD = "/fairway.capacity.v1.Capacity/Promise"


def measure(setting: Setting) -> Result:
    """Figures for each size and number of kinds. Raises StartFailed, CallFailed."""
    cases = []
    for size in _SIZES:
        scale = Scale(size, 10 * size)
        with running_api(scale) as api, starting_estimator(api.url) as own:
            await_right_answer(own, scale)
            events = ["--url", api.url, "--nodes", str(size), "--rate", str(_EVENTS_PER_S)]
            with running_module(["benchmarks.pod_events", *events]):
                cases += [_case(setting, own, scale, kinds) for kinds in (8, _PROMISED)]
    return Result("promises", f"MaxAvailableReplicas, 0 and {_PROMISED} promises", cases)


def _case(setting: Setting, own: Estimator, scale: Scale, kinds: int) -> Case:
    questions = Questions(REPLICAS, replicas_requests(CLUSTER))
    free: list[Round] = []
    held: list[Round] = []
    for _ in range(_ROUNDS):
        for rounds, count in ((free, 0), (held, _PROMISED)):
            asyncio.run(_promise(str(own.address), count, kinds))
            with Clients(own.address, 1) as clients:
                clients.ask(questions, 0.2)
                rounds.append(clients.ask(questions, setting.seconds / _ROUNDS))
    before, after = _percentile(free, 50), _percentile(held, 50)
    figures = [
        Figure("p50 without", before, "ms"),
        Figure("p50 with", after, "ms"),
        Figure("ratio", _ratio(free, held), "", _RATIO),
        Figure("p99 without", _percentile(free, 99), "ms"),
        Figure("p99 with", _percentile(held, 99), "ms"),
    ]
    faults = [] if _lower(free, held) else ["no answer is lower with promises than without"]
    return Case(f"{scale}, {_PROMISED} promises of {kinds} kinds", figures, faults)


def _percentile(rounds: Sequence[Round], percent: float) -> float:
    return median(1e3 * one.percentile_s(percent) for one in rounds)


def _ratio(free: Sequence[Round], held: Sequence[Round]) -> float:
    """Of the p50 of two rounds that followed each other, the median."""
    pairs = zip(free, held, strict=True)
    return median(after.percentile_s(50) / before.percentile_s(50) for before, after in pairs)


def _lower(free: Sequence[Round], held: Sequence[Round]) -> bool:
    """Whether promises show in the answers."""
    return any(
        max(reply for one in held for reply in one.replies.get(asked, ()))
        != max(reply for one in free for reply in one.replies.get(asked, ()))
        for asked in free[0].replies
    )


async def _promise(address: str, count: int, kinds: int) -> None:
    promised = [_promised(number, number % kinds) for number in range(count)]
    request = pb.PromiseRequest(
        holder="benchmark",
        since_ms=1,
        ttl_ms=60_000,
        clusters=[pb.ClusterPromises(cluster=CLUSTER, promised=promised)],
    )
    async with grpc.aio.insecure_channel(address) as channel:
        call: grpc.aio.UnaryUnaryMultiCallable[bytes, bytes] = channel.unary_unary(_METHOD)
        await call(request.SerializeToString(), timeout=30)


def _promised(number: int, kind: int) -> pb.Promised:
    requests = {"cpu": f"{100 + kind}m", "memory": "512Mi", **({GPU: "1"} if kind % 8 == 0 else {})}
    tolerations = [{"key": key, "operator": "Exists", "effect": "NoSchedule"} for key in (GPU, TPU)]
    spec = {
        "containers": [{"name": "main", "resources": {"requests": requests}}],
        "tolerations": tolerations,
    }
    pod = pb.PodSet(name="pod", count=1, template_json=msgspec.json.encode({"spec": spec}))
    workload = pb.WorkloadName(namespace="team-2", group="batch", kind="Job", name=f"job-{number}")
    return pb.Promised(workload=workload, gang=pb.Gang(namespace="team-2", pod_sets=[pod], copies=2))
