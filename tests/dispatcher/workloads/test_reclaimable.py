"""How many pods of a Job are still to run at a time, by what clusters report."""

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from queue_dispatcher.workloads.demand import Placed
from queue_dispatcher.workloads.reclaimable import Done, completions_of, done_of, still_to_run

Status = dict[str, object]


def raw(value: object) -> msgspec.Raw:
    return msgspec.Raw(msgspec.json.encode(value))


@pytest.mark.parametrize(
    ("kind", "status", "done"),
    [
        ("Job", {"succeeded": 3, "active": 1}, Done("m1", 3, 1)),
        ("Job", {"succeeded": 3}, Done("m1", 3, 0)),
        ("Job", {"succeeded": 3, "active": 1, "terminating": 2}, Done("m1", 3, 3)),
        ("Job", {"succeeded": 3, "active": -1}, Done("m1", 3, 0)),
        ("Job", {"active": 4}, None),
        ("Job", {"succeeded": 0, "active": 4}, None),
        ("Job", {"succeeded": "3"}, None),
        ("Job", [], None),
        ("Job", None, None),
        ("Deployment", {"succeeded": 3}, None),
    ],
)
def test_what_a_cluster_reports(kind: str, status: object, done: Done | None) -> None:
    assert done_of("batch", kind, "m1", raw(status)) == done


@pytest.mark.parametrize(
    ("kind", "spec", "completions"),
    [
        ("Job", {"completions": 8}, 8),
        ("Job", {}, 0),
        ("Job", {"completions": "8"}, None),
        ("Job", None, None),
        ("Deployment", {"completions": 8}, None),
    ],
)
def test_what_a_template_says(kind: str, spec: object, completions: int | None) -> None:
    assert completions_of("batch", kind, raw(spec)) == completions


@pytest.mark.parametrize(
    ("placed", "done", "completions", "is_divided", "left"),
    [
        ({"m1": 4}, [Done("m1", 1, 4)], 16, True, {"m1": 4}),
        ({"m1": 4}, [Done("m1", 12, 4)], 16, True, {"m1": 4}),
        ({"m1": 4}, [Done("m1", 13, 3)], 16, True, {"m1": 3}),
        # One that is there counts until it has ended.
        ({"m1": 4}, [Done("m1", 15, 3)], 16, True, {"m1": 3}),
        ({"m1": 4}, [Done("m1", 16, 0)], 16, True, {"m1": 0}),
        ({"m1": 4}, [Done("m1", 99, 0)], 16, True, {"m1": 0}),
        # One that failed is made again.
        ({"m1": 4}, [Done("m1", 2, 1)], 4, True, {"m1": 2}),
        # Without completions none is made any more.
        ({"m1": 4}, [Done("m1", 1, 2)], 0, True, {"m1": 2}),
        ({"m1": 4}, [Done("m1", 13, 3)], None, True, {"m1": 4}),
        ({"m1": 4}, [], 16, True, {"m1": 4}),
        ({"m1": 4, "m2": 4}, [Done("m1", 7, 1)], 16, True, {"m1": 4, "m2": 4}),
        # Each has a copy of its own.
        ({"m1": 4, "m2": 4}, [Done("m1", 7, 1)], 8, False, {"m1": 1, "m2": 4}),
    ],
)
def test_what_is_still_to_run(
    placed: dict[str, int], done: list[Done], completions: int | None, is_divided: bool, left: dict[str, int]
) -> None:
    shares = tuple(Placed(cluster, replicas) for cluster, replicas in placed.items())
    found = still_to_run(shares, done, completions, is_divided=is_divided)
    assert {share.cluster: share.replicas for share in found} == left


COUNTS = st.integers(0, 40)


@given(COUNTS, COUNTS, COUNTS, COUNTS)
def test_never_more_than_placed_nor_fewer_than_there(
    replicas: int, succeeded: int, active: int, completions: int
) -> None:
    shares = (Placed("m1", replicas),)
    (left,) = still_to_run(shares, [Done("m1", succeeded, active)], completions, is_divided=True)
    assert min(replicas, active) <= left.replicas <= replicas
