"""A real kube-scheduler binds what the oracle says; ``python -m tests.truth`` asks about many more cases."""

import pytest

from tests.envtest import assets
from tests.truth.batches import bound_by_scheduler
from tests.truth.cases import cases

pytestmark = pytest.mark.envtest

CASES, FIRST = 120, 100_000


def test_the_oracle_says_what_the_scheduler_binds() -> None:
    programs = assets("kube-scheduler")
    if programs is None:
        pytest.skip("KUBEBUILDER_ASSETS names no folder with etcd, kube-apiserver and kube-scheduler")
    posed = list(cases(CASES, FIRST))
    truths = [case.truth() for case in posed]
    found = bound_by_scheduler(programs, posed, truths)
    wrong = [
        f"case {case.seed}: oracle {truth}, scheduler {bound}"
        for case, truth, bound in zip(posed, truths, found, strict=True)
        if any(count not in truth for count in bound)
    ]
    assert not wrong, "\n".join(wrong)
