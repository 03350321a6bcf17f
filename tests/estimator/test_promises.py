"""What is promised: lists that replace each other, run out, and come from one leader at a time."""

import pytest

from estimator.capacity.promises import Holder, Outranked, Promise, Promises
from estimator.capacity.request import WorkloadReference
from tests.builders import component

OLD, NEW = Holder(100, "old"), Holder(200, "new")


def job(name: str, pods: int = 1) -> Promise:
    return Promise(WorkloadReference("Job", "team", name, "batch"), (component("pod", pods, cpu=1),))


def names(promises: Promises, now_s: float, cluster: str = "m") -> list[str]:
    return [one.workload.name for one in promises.of(cluster, now_s).promises]


def test_a_list_says_all_that_is_promised_in_its_clusters_and_nothing_of_others() -> None:
    promises = Promises()
    promises.put(OLD, 10, {"m": (job("b"), job("a")), "n": (job("c"),)}, 0)
    assert (names(promises, 1), names(promises, 1, "n")) == (["a", "b"], ["c"])
    promises.put(OLD, 10, {"m": (job("d"),)}, 1)
    assert (names(promises, 2), names(promises, 2, "n")) == (["d"], ["c"])
    promises.put(OLD, 10, {"m": ()}, 2)
    assert (names(promises, 3), names(promises, 3, "n")) == ([], ["c"])
    assert names(promises, 3, "elsewhere") == []


@pytest.mark.parametrize(("told_at_s", "looked_at_s", "kept"), [((0,), 9, 1), ((0,), 10, 0), ((0, 9), 18, 1)])
def test_what_is_not_told_again_runs_out(told_at_s: tuple[int, ...], looked_at_s: int, kept: int) -> None:
    promises = Promises()
    for at_s in told_at_s:
        promises.put(OLD, 10, {"m": (job("a"),)}, at_s)
    assert len(names(promises, looked_at_s)) == kept


def test_the_same_told_again_is_the_same_object_in_whatever_order() -> None:
    promises = Promises()
    promises.put(OLD, 10, {"m": (job("a"), job("b"))}, 0)
    first = promises.of("m", 1)
    promises.put(OLD, 10, {"m": (job("b"), job("a"))}, 1)
    assert promises.of("m", 2) is first
    promises.put(OLD, 10, {"m": (job("a", pods=2), job("b"))}, 2)
    changed = promises.of("m", 3)
    assert changed is not first
    # What is as it was is found again.
    assert changed.promises[1] is first.promises[1]


@pytest.mark.parametrize(
    ("later", "at_s", "heard"),
    [
        (OLD, 1, True),
        (Holder(300, "newest"), 1, True),
        # Of two at once one is heard, always the same.
        (Holder(200, "other"), 1, True),
        (Holder(200, "a"), 1, False),
        (Holder(199, "late"), 9.9, False),
        (Holder(199, "late"), 10, True),
    ],
)
def test_of_two_leaders_the_later_one_is_heard(later: Holder, at_s: float, heard: bool) -> None:
    promises = Promises()
    promises.put(OLD if later == OLD else NEW, 10, {"m": (job("a"),)}, 0)
    if heard:
        promises.put(later, 10, {"m": (job("b"),)}, at_s)
    else:
        with pytest.raises(Outranked, match="new leads since 200, later than"):
            promises.put(later, 10, {"m": (job("b"),)}, at_s)
    assert names(promises, at_s) == (["b"] if heard else ["a"])
