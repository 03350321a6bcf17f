"""Fairway's answers lie in the oracle's truth, by each way in; and the oracle's truth is the scheduler's."""

from pathlib import Path

import pytest

from tests.truth import recorded
from tests.truth.answers import answers
from tests.truth.cases import case, cases
from tests.truth.judging import Judged

CASES, AT_ONCE = 300, 50


@pytest.mark.parametrize("first", range(0, CASES, AT_ONCE))
def test_every_way_in_answers_what_the_scheduler_would_bind(tmp_path: Path, first: int) -> None:
    posed = list(cases(AT_ONCE, first))
    found = zip(posed, answers(posed, tmp_path), strict=True)
    faults = [fault for each, answered in found for fault in Judged(each, each.truth(), answered).faults()]
    assert not faults, "\n".join(faults)


def test_the_oracle_says_what_a_real_scheduler_did() -> None:
    for seed, (digest, bound) in recorded.read().items():
        posed = case(seed)
        assert recorded.digest(posed) == digest, "cases have changed: python -m tests.truth --record"
        truth = posed.truth()
        assert all(count in truth for count in bound), f"case {seed}: oracle {truth}, scheduler {bound}"
