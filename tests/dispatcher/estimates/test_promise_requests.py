"""Promises in requests: none is more than an estimator reads, whatever there is to tell."""

import pytest

from estimator.promise_requests import PromiseReader
from fairway.capacity.v1 import capacity_pb2 as pb
from queue_dispatcher.bindings.binding import WorkloadReference
from queue_dispatcher.estimates.promise_requests import MOST_BYTES, MOST_PLACES, requests_of
from queue_dispatcher.estimates.promised import Promised


def _template(size: int) -> bytes:
    return b'{"metadata": {"annotations": {"x": "%s"}}, "spec": {"containers": [{"name": "c"}]}}' % (
        b"x" * size
    )


def promised(number: int, *, places: int = 0, size: int = 0) -> Promised:
    where = [pb.Assignment(pod_set="pod", node=f"n{place}", pods=1) for place in range(places)]
    pod = pb.PodSet(name="pod", count=1, template_json=_template(size))
    gang = pb.Gang(namespace="team", name=f"j{number}", copies=1, pod_sets=[pod], where=where)
    return Promised(f"u{number}", WorkloadReference("batch/v1", "Job", "team", f"j{number}"), gang)


def lists(clusters: int, workloads: int, *, places: int = 0, size: int = 0) -> dict[str, list[Promised]]:
    of = [promised(number, places=places, size=size) for number in range(workloads)]
    return {f"m{number}": of for number in range(clusters)}


@pytest.mark.parametrize(
    ("told", "requests", "all_of_it"),
    [
        pytest.param(lists(3, 2), 1, True, id="few"),
        pytest.param({"m0": []}, 1, True, id="withdrawn"),
        pytest.param({}, 0, True, id="nothing"),
        pytest.param(lists(12, 2_000), 2, True, id="many clusters"),
        pytest.param(lists(3, 2, places=MOST_PLACES // 2), 3, True, id="many places"),
        pytest.param(lists(1, 3, places=MOST_PLACES // 2), 1, True, id="too many places"),
        pytest.param(lists(2, 8, size=MOST_BYTES // 10), 2, True, id="large"),
        pytest.param(lists(1, 12, size=MOST_BYTES // 10), 1, False, id="too large"),
    ],
)
def test_an_estimator_reads_all_of_them(
    told: dict[str, list[Promised]], requests: int, all_of_it: bool
) -> None:
    made = requests_of("leader", 1, told)
    assert len(made) == requests
    read = {}
    for one in made:
        # As the server takes it.
        assert len(one.data) < 16 << 20
        message = pb.PromiseRequest.FromString(one.data)
        PromiseReader().read(message)
        read.update({part.cluster: len(part.promised) for part in message.clusters})
    counted = {name: count for one in made for name, count in one.counted.items()}
    assert read.keys() == told.keys()
    assert (read == {name: len(of) for name, of in told.items()}) is all_of_it
    assert (counted == read) is all_of_it
