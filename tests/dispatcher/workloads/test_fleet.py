"""What clusters could hold if nothing else ran there."""

import pytest

from queue_dispatcher.workloads.demand import Requests
from queue_dispatcher.workloads.fleet import Cluster, could_hold
from tests.dispatcher.workloads.builders import GPU

A, B = (Cluster(name, allocatable={GPU: gpus, "cpu": 8_000}) for name, gpus in (("a", 4), ("b", 6)))
UNSUMMED = Cluster("unsummed")


@pytest.mark.parametrize(
    ("clusters", "asked", "in_one", "expected"),
    [
        ((A, B), ((GPU, 6),), True, True),
        ((A, B), ((GPU, 7),), True, False),
        ((A, B), ((GPU, 10),), False, True),
        ((A, B), ((GPU, 11),), False, False),
        ((A, B), (("cpu", 9_000), (GPU, 1)), True, False),
        ((A,), (("example.com/fpga", 1),), False, False),
        ((A, UNSUMMED), ((GPU, 99),), True, True),
        ((A, UNSUMMED), ((GPU, 99),), False, True),
        ((A,), (), True, True),
        ((), ((GPU, 1),), True, False),
        ((), (), False, False),
    ],
)
def test_could_hold(clusters: tuple[Cluster, ...], asked: Requests, in_one: bool, expected: bool) -> None:
    assert could_hold(clusters, asked, in_one=in_one) is expected
