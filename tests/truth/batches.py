"""Many cases asked of a real scheduler, a batch in a cluster."""

import asyncio
import tempfile
from collections.abc import Iterator, Sequence
from itertools import islice
from pathlib import Path

from tests.truth.cases import Case
from tests.truth.oracle import Truth
from tests.truth.scheduler import floods, scheduling
from tests.truth.staging import Stage, preferences

_BATCH, _ORDERS, _SPARE = 120, 5, 2


def bound_by_scheduler(
    programs: Path, cases: Sequence[Case], truths: Sequence[Truth]
) -> Iterator[tuple[int, ...]]:
    """How many pods of each case are bound, in order.

    Where the number may hang on the order, once by the scheduler's own taste and then with some nodes
    preferred. The oracle's truth only says how many pods to start with: more are made while all are bound.
    """
    pairs = iter(zip(cases, truths, strict=True))
    while batch := list(islice(pairs, _BATCH)):
        yield from _bound(programs, batch)


def _bound(programs: Path, batch: Sequence[tuple[Case, Truth]]) -> list[tuple[int, ...]]:
    stages: list[Stage] = []
    first: list[int] = []
    for case, truth in batch:
        orders = preferences(case)[:_ORDERS] if truth.lowest < truth.highest else []
        for number, preferred in enumerate((None, *orders)):
            stages.append(Stage(case, f"c{case.seed}-{number}", preferred))
            first.append(truth.highest + _SPARE)
    with tempfile.TemporaryDirectory() as state, scheduling(programs, Path(state)) as scheduler:
        found = asyncio.run(floods(scheduler.kubeconfig, stages, first))
    counts: dict[int, list[int]] = {}
    for stage, flood in zip(stages, found, strict=True):
        counts.setdefault(stage.case.seed, []).append(flood.bound)
    return [tuple(counts[case.seed]) for case, _ in batch]
