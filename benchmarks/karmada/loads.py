"""What is submitted: the ordinary day as it is simulated, and gangs of several sizes."""

import random
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

from benchmarks import ordinary_day
from benchmarks.karmada.play import WHOLE
from benchmarks.karmada.seen import Submitted
from benchmarks.karmada.ways import Fleet
from tests.e2e.workloads import job, labelled, mixed_job_set

_GANGS: Final = 60
_EVERY_S: Final = 3.0
_RUN_S: Final = 10.0
_SMALL: Final = (1, 2, 4)


@dataclass(frozen=True, slots=True)
class Load:
    """A fleet, the quotas of its teams in GPUs, more fields of their queues, and what comes.

    See `play.play` for the rest, in seconds.
    """

    fleet: Fleet
    quotas: Mapping[str, int]
    workloads: Sequence[Submitted]
    from_s: float
    until_s: float
    to_the_end_s: float = 0.0
    queues: Mapping[str, object] = field(default_factory=dict)


def day(seed: int, rules: ordinary_day.Rules, until_s: float, to_the_end_s: float = 0.0) -> Load:
    """What `benchmarks.ordinary_day` draws of this seed: the same fleet, rules and moments."""
    before, of_day = ordinary_day.drawn(seed, rules)
    before_s = ordinary_day.BEFORE_MS / 1000
    return Load(
        ordinary_day.FLEET,
        rules.quotas,
        [_of_day(one) for one in (*before, *of_day)],
        before_s,
        before_s + until_s,
        to_the_end_s,
        rules.spec,
    )


def _of_day(one: ordinary_day.Submitted) -> Submitted:
    workload = labelled(job(one.name, one.pods, one.gpus, gang=one.pods > 1), one.labels)
    pods = {one.gpus: one.pods}
    return Submitted(workload, one.team, one.size.name, pods, one.created_ms / 1000, one.runs_ms / 1000)


def tight(seed: int, until_s: float) -> Load:
    """JobSets that fill two nodes each: one by one pod, one by smaller ones, which come in any order.

    There is quota for all of them, and room for two in each cluster.
    """
    rng = random.Random(seed)
    made = []
    for number in range(_GANGS):
        sizes = [(WHOLE, 1), *_filling(rng).items()]
        rng.shuffle(sizes)
        pods = dict(sizes)
        gang = mixed_job_set(f"g{number:02}", pods)
        made.append(Submitted(gang, "tight", "of several sizes", pods, number * _EVERY_S, _RUN_S))
    return Load({"a": (WHOLE,) * 4, "b": (WHOLE,) * 4}, {"tight": 1_000}, made, 0.0, until_s)


def _filling(rng: random.Random) -> Counter[int]:
    """Pods by size, less than whole, that fill a node."""
    sizes: Counter[int] = Counter()
    left = WHOLE
    while left:
        size = rng.choice([size for size in _SMALL if size <= left])
        sizes[size] += 1
        left -= size
    return sizes
