"""How long until all of many clusters in one process have answered a question that is hard for each?

karmada-scheduler asks all clusters at the same moment and waits for the last. The components do not add up to
whole nodes, and hardly two nodes are alike, so that no answer is proven at once. Meanwhile one client asks
for replicas of a single pod, again and again. Where a machine has the time, no answer is below what first-fit
finds.
"""

import select
import selectors
import time
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace
from itertools import cycle
from statistics import mean

from benchmarks.caller import Address, Connection, header_block
from benchmarks.cluster import PodSize
from benchmarks.fan_out_server import HELD, cluster_name, mirror_of
from benchmarks.proc import cpu_s
from benchmarks.processes import StartFailed, running_module, tail
from benchmarks.report import Case, Figure, Result, Target
from benchmarks.shapes import REPLICAS, SETS, answer_of, replicas_request, sets_request
from benchmarks.sides import TARGET_NODES, Setting
from estimator.capacity.room import Room
from estimator.capacity.sets.first_fit import first_fit
from estimator.cluster.mirror import ClusterMirror
from estimator.fit.eligibility import EligibilityCache
from estimator.wire import decode_sets

CLUSTERS = 50
_STARTS_WITHIN_S = 120.0
_DEADLINE = ("grpc-timeout", "3S")
_ALL_S, _PLAIN_MS, _HELD_MS = Target(1.5), Target(50.0), Target(20.0)
_NONE = Target(0.0)

_PARTS = (
    ((4, 13, 47), (3, 5, 31), (2, 22, 9), (5, 7, 12), (6, 17, 58)),
    ((2, 23, 61), (6, 3, 7), (4, 11, 40), (3, 19, 13), (5, 9, 29)),
    ((3, 21, 18), (5, 8, 55), (6, 4, 11), (2, 16, 33), (4, 10, 7)),
)
"""Components of each question: replicas, and CPUs and GiB of memory of a pod."""


@dataclass(frozen=True, slots=True)
class Fan:
    """One question to all clusters: when the last had answered, the answers, and what plain ones took."""

    took_s: float
    answers: Sequence[int]
    plain_s: Sequence[float]
    cpu_s: float


def measure(setting: Setting) -> Result:
    """Figures for the cluster size that targets are about. Raises StartFailed, CallFailed."""
    nodes = setting.main_scale.nodes
    mirror = mirror_of(nodes)
    command = ["benchmarks.fan_out_server", "--clusters", str(CLUSTERS), "--nodes", str(nodes)]
    with running_module(command) as (process, log), ExitStack() as stack:
        assert process.stdout is not None
        readable, _, _ = select.select([process.stdout], [], [], _STARTS_WITHIN_S)
        port = process.stdout.readline().decode().strip() if readable else ""
        if not port:
            raise StartFailed(f"the estimator of {CLUSTERS} clusters did not start:\n{tail(log)}")
        address = Address("127.0.0.1", int(port))
        callers = [stack.enter_context(Connection(address)) for _ in range(CLUSTERS)]
        plain = stack.enter_context(Connection(address))
        fans: list[Fan] = []
        held_ms: list[float] = []
        held = header_block(HELD, str(address))
        until_s = time.perf_counter() + 2 * setting.seconds
        for question in cycle(_questions()):
            plain.call(held, b"")
            used_s = cpu_s(process.pid)
            fan = _fan(address, callers, plain, question)
            fans.append(replace(fan, cpu_s=cpu_s(process.pid) - used_s))
            held_ms.append(int(plain.call(held, b"")) / 1e3)
            if time.perf_counter() > until_s and len(fans) >= len(_PARTS):
                break
    return Result(
        "fan_out",
        f"{CLUSTERS} clusters of {nodes:,} nodes in one process",
        [_case(mirror, fans, held_ms, is_target=nodes == TARGET_NODES)],
    )


def _questions() -> list[list[bytes]]:
    """For each question the request to every cluster."""
    return [
        [
            sets_request(
                cluster_name(number),
                [(replicas, {"cpu": f"{cpu}", "memory": f"{gib}Gi"}) for replicas, cpu, gib in parts],
            )
            for number in range(CLUSTERS)
        ]
        for parts in _PARTS
    ]


def _fan(
    address: Address, callers: Sequence[Connection], plain: Connection, question: Sequence[bytes]
) -> Fan:
    """Ask all at the same moment, and plainly again and again until the last has answered."""
    sets = header_block(SETS, str(address), (_DEADLINE,))
    replicas = header_block(REPLICAS, str(address), (_DEADLINE,))
    answers: list[int] = []
    plain_s: list[float] = []
    asked = cycle(replicas_request(cluster_name(number), PodSize(3000, 5)) for number in range(CLUSTERS))
    with selectors.DefaultSelector() as selector:
        for caller in (*callers, plain):
            selector.register(caller.socket, selectors.EVENT_READ, caller)
        began_s = plain_began_s = took_s = time.perf_counter()
        for caller, request in zip(callers, question, strict=True):
            caller.start(sets, request)
        plain.start(replicas, next(asked))
        is_plain_open = True
        while len(answers) < len(callers) or is_plain_open:
            for key, _ in selector.select():
                connection: Connection = key.data
                reply = connection.receive()
                if reply is None:
                    continue
                now_s = time.perf_counter()
                if connection is not plain:
                    answers.append(answer_of(reply))
                    took_s = now_s - began_s
                    continue
                plain_s.append(now_s - plain_began_s)
                is_plain_open = len(answers) < len(callers)
                if is_plain_open:
                    plain_began_s = time.perf_counter()
                    plain.start(replicas, next(asked))
    return Fan(took_s, answers, plain_s, 0.0)


def _case(mirror: ClusterMirror, fans: Sequence[Fan], held_ms: Sequence[float], *, is_target: bool) -> Case:
    stock = [_by_first_fit(mirror, number) for number in range(len(_PARTS))]
    short = sum(
        answer < stock[number % len(_PARTS)] for number, fan in enumerate(fans) for answer in fan.answers
    )
    plain_s = sorted(took_s for fan in fans for took_s in fan.plain_s)
    all_s = sorted(fan.took_s for fan in fans)
    answers = [answer for fan in fans for answer in fan.answers]
    least_sum = sum(stock[number % len(_PARTS)] * len(fan.answers) for number, fan in enumerate(fans))
    figures = [
        Figure("all answered, p50", all_s[len(all_s) // 2], "s"),
        Figure("longest", all_s[-1], "s", _ALL_S if is_target else None),
        Figure("CPU", mean(fan.cpu_s for fan in fans), "s"),
        Figure("beyond first-fit", 100 * (sum(answers) / least_sum - 1), "%"),
        Figure("short of first-fit", short, "", _NONE),
        Figure("none found", sum(answer <= 0 for answer in answers), "", _NONE),
        Figure("plain p50", 1e3 * plain_s[len(plain_s) // 2], "ms"),
        Figure("plain p99", 1e3 * plain_s[len(plain_s) * 99 // 100], "ms", _PLAIN_MS if is_target else None),
        Figure("loop held, longest", max(held_ms), "ms", _HELD_MS if is_target else None),
    ]
    return Case("5 components, asked of all at once", figures)


def _by_first_fit(mirror: ClusterMirror, number: int) -> int:
    question = decode_sets(_questions()[number][0], None)
    room = Room(mirror.columns, EligibilityCache())
    order = mirror.columns.first_fit_order()
    return first_fit(room, list(enumerate(question.components)), order, lambda: False).sets
