"""``python -m tests.truth --cases 1000``: Fairway's answers against what kube-scheduler binds, by constraint.

With etcd, kube-apiserver and kube-scheduler in KUBEBUILDER_ASSETS the real scheduler is asked about each
case, and the oracle is held against it; without them the oracle alone is the truth. ``--record`` keeps what
the scheduler did for the tests that run without it.
"""

import argparse
import logging
import sys
import tempfile
from pathlib import Path

from tests.envtest import assets
from tests.truth import recorded
from tests.truth.answers import answers
from tests.truth.batches import bound_by_scheduler
from tests.truth.cases import cases
from tests.truth.judging import Judged, figures

_ASKED_AT_ONCE = 100


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.truth", description=__doc__)
    parser.add_argument("--cases", type=int, default=1000)
    parser.add_argument("--first", type=int, default=0, metavar="SEED")
    parser.add_argument("--faults", type=int, default=20, metavar="N", help="how many faults to print")
    parser.add_argument("--record", action="store_true")
    asked = parser.parse_args()
    logging.disable(logging.WARNING)
    posed = list(cases(asked.cases, asked.first))
    truths = [case.truth() for case in posed]
    bound: list[tuple[int, ...]] = []
    programs = assets("kube-scheduler")
    if programs is None:
        print("no kube-scheduler in KUBEBUILDER_ASSETS: the oracle alone is the truth")
        bound += [()] * len(posed)
    else:
        for counts in bound_by_scheduler(programs, posed, truths):
            bound.append(counts)
            if len(bound) % _ASKED_AT_ONCE == 0:
                print(f"{len(bound)} cases scheduled", file=sys.stderr, flush=True)
        if asked.record:
            recorded.write({case.seed: (case, counts) for case, counts in zip(posed, bound, strict=True)})
    judged = []
    for start in range(0, len(posed), _ASKED_AT_ONCE):
        part = slice(start, start + _ASKED_AT_ONCE)
        with tempfile.TemporaryDirectory() as folder:
            found = answers(posed[part], Path(folder))
        judged += [Judged(*each) for each in zip(posed[part], truths[part], found, bound[part], strict=True)]
    faults = [fault for each in judged for fault in each.faults()]
    wrong = [told for each in judged if (told := each.disagrees())]
    for line in (*wrong, *faults[: asked.faults], *figures(judged).lines()):
        print(line)
    return 1 if faults or wrong else 0


if __name__ == "__main__":
    sys.exit(main())
