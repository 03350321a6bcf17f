"""Fairway's answers lie in the oracle's truth, by each way in; and the oracle's truth is the scheduler's."""

from collections.abc import Iterable
from pathlib import Path

import pytest

from tests.truth import recorded
from tests.truth.answers import answers
from tests.truth.cases import case
from tests.truth.judging import Judged

CASES, AT_ONCE = 150, 50
RARE = (
    309,
    349,
    369,
    399,
    405,
    415,
    463,
    488,
    516,
    528,
    583,
    607,
    610,
    650,
    669,
    1019,
    1179,
    1320,
    1406,
    1538,
    1_002_688,
    2_554_558_895,
    2_840_451_767,
    3_003_262,
)
"""Seeds whose answers hang on rules that few others touch."""
SEEDS = {
    **{f"from {first}": range(first, first + AT_ONCE) for first in range(0, CASES, AT_ONCE)},
    "rare": RARE,
}


@pytest.mark.parametrize("seeds", SEEDS.values(), ids=SEEDS)
def test_every_way_in_answers_what_the_scheduler_would_bind(tmp_path: Path, seeds: Iterable[int]) -> None:
    posed = [case(seed) for seed in seeds]
    found = zip(posed, answers(posed, tmp_path), strict=True)
    faults = [fault for each, answered in found for fault in Judged(each, each.truth(), answered).faults()]
    assert not faults, "\n".join(faults)


def test_the_oracle_says_what_a_real_scheduler_did() -> None:
    for seed, (digest, bound) in recorded.read().items():
        posed = case(seed)
        assert recorded.digest(posed) == digest, "cases have changed: python -m tests.truth --record"
        truth = posed.truth()
        assert all(count in truth for count in bound), f"case {seed}: oracle {truth}, scheduler {bound}"
