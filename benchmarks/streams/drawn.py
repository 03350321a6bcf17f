"""The stream of small jobs with a gang now and then, drawn from a seed.

Small jobs come as a Poisson process and keep a share of the fleet busy, to which gangs add almost a fifth. Of
the first simulation of this table, sizes and run times of small jobs are not known any more. With these, and
`LOAD`, StrictFIFO has gangs wait for 40 to 50 minutes and small jobs for up to an hour and a half, and
BestEffortFIFO starts hardly any gang before the last job has come, much as it was there.
"""

from math import log
from random import Random
from statistics import mean
from typing import Final

from benchmarks.streams.jobs import Job, Stream, ordered

GPUS: Final = 256
ENDS_MS: Final = 160_000_000
GANG: Final = 192
GANG_RUNS_MS: Final = 3_600_000
GANG_EVERY_MS: Final = 14_000_000
SIZES: Final = (1,) * 8 + (2,) * 4 + (4,) * 2 + (8, 16)
"""Of small jobs, each as likely."""
MEAN_RUN_MS: Final = 2_400_000
SIGMA: Final = 0.7
"""Of the logarithm of run times."""
LOAD: Final = 0.7
"""Of small jobs alone, as a share of the fleet: 0.9 with the gangs."""
FULL_LOAD: Final = 0.8
"""With the gangs almost all that there is: what is lost while room is kept is never made up for."""


def drawn(
    seed: int, *, load: float = LOAD, ends_ms: int = ENDS_MS, small: str = "main", gangs: str = "main"
) -> Stream:
    """The stream of this seed; ``load``: of small jobs; ``small``, ``gangs``: in which queues they wait."""
    rng = Random(f"small jobs {seed}")
    every_ms = mean(SIZES) * MEAN_RUN_MS / (load * GPUS)
    jobs = [
        Job(gangs, GANG, at_ms, GANG_RUNS_MS, is_gang=True)
        for at_ms in range(GANG_EVERY_MS, ends_ms, GANG_EVERY_MS)
    ]
    at_ms = rng.expovariate(1 / every_ms)
    while at_ms < ends_ms:
        runs_ms = rng.lognormvariate(log(MEAN_RUN_MS) - SIGMA**2 / 2, SIGMA)
        jobs.append(Job(small, rng.choice(SIZES), int(at_ms), max(1, int(runs_ms))))
        at_ms += rng.expovariate(1 / every_ms)
    return ordered(jobs, ends_ms)
