"""What is told of each cluster is what runs there and ends, the first first, however it came to that."""

from hypothesis import given
from hypothesis import strategies as st

from queue_dispatcher.bindings.binding import WorkloadReference
from queue_dispatcher.cache.leaving import Departure, Leaving

CLUSTERS = st.lists(st.sampled_from(["m1", "m2", "m3"]), max_size=3)
CHANGES = st.lists(st.tuples(st.sampled_from("abcd"), CLUSTERS, st.none() | st.integers(0, 3)), max_size=12)


@given(changes=CHANGES)
def test_each_cluster_has_those_that_run_there_by_their_ends(
    changes: list[tuple[str, list[str], int | None]],
) -> None:
    leaving, known = Leaving(), dict[str, tuple[list[str], int]]()
    for uid, clusters, at_ms in changes:
        if at_ms is None:
            leaving.drop(uid)
            known.pop(uid, None)
            continue
        leaving.put(uid, tuple(clusters), Departure(WorkloadReference("v1", "Job", "n", uid), at_ms))
        known[uid] = (clusters, at_ms)
    for cluster in ("m1", "m2", "m3"):
        there = sorted((at_ms, uid) for uid, (clusters, at_ms) in known.items() if cluster in clusters)
        assert [(one.at_ms, one.workload.name) for one in leaving.of(cluster)] == there
