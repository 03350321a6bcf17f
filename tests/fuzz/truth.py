"""Random cases, each a small cluster and a workload: is every answer what kube-scheduler would bind?"""

import tempfile
from collections.abc import Iterator
from pathlib import Path

from tests.truth.answers import answers
from tests.truth.cases import cases
from tests.truth.judging import Judged

_AT_ONCE = 200


def judged(count: int, seed: int) -> Iterator[Judged]:
    """The cases of so many seeds from this one on, each with its truth and the answers."""
    for first in range(seed, seed + count, _AT_ONCE):
        posed = list(cases(min(_AT_ONCE, seed + count - first), first))
        with tempfile.TemporaryDirectory() as folder:
            found = answers(posed, Path(folder))
        for case, answered in zip(posed, found, strict=True):
            yield Judged(case, case.truth(), answered)
