"""From what administrators write to amounts; whoever cannot be placed stops, and nobody else."""

import pytest

from queue_dispatcher.api.cluster_queue import ClusterQueue, FlavorQuotas, ResourceGroup, StopPolicy
from queue_dispatcher.api.quota import Amount, Percent, Quota, ResourceQuota
from queue_dispatcher.ledger.cells import CellTable
from queue_dispatcher.ledger.ledger import Ledger
from queue_dispatcher.ledger.resolve import Capacities, Resolved, resolve

GPU = "nvidia.com/gpu"


def written(
    name: str,
    parent: str = "",
    gpu: Quota | int | None = None,
    borrows: Quota | None = None,
    lends: Quota | None = None,
    stop: StopPolicy = StopPolicy.NONE,
) -> ClusterQueue:
    nominal = Amount(gpu) if isinstance(gpu, int) else gpu
    quotas = {GPU: ResourceQuota(nominal, borrows, lends)} if nominal is not None else {}
    groups = (ResourceGroup((GPU,), (FlavorQuotas("h100", quotas),)),) if quotas else ()
    return ClusterQueue(name, parent, groups, stop_policy=stop)


def percent(value: float) -> Percent:
    return Percent(int(value * 1000))


def resolved(*queues: ClusterQueue, capacity: int | None = 10) -> Resolved:
    capacities: Capacities = {} if capacity is None else {"h100": {GPU: capacity}}
    return resolve(queues, capacities, CellTable())


def available(found: Resolved, name: str) -> int:
    return Ledger(found.tree).available(name, found.tree.table.cell("h100", GPU))


def test_amounts_and_percentages_of_the_capacity() -> None:
    found = resolved(
        written("org"),
        written("a", "org", gpu=percent(25), borrows=percent(10), lends=percent(15)),
        written("b", "org", gpu=7),
        capacity=100,
    )
    cell = found.tree.table.cell("h100", GPU)
    quota = found.tree.nodes[found.tree.paths["a"][0]].quotas[cell]
    assert (quota.nominal, quota.borrowing_limit, quota.lending_limit) == (25, 10, 15)
    assert (available(found, "a"), available(found, "b")) == (32, 22)
    assert found.problems == {}
    assert found.stopped == {}
    assert found.inner == {"org"}


@pytest.mark.parametrize(
    ("capacity", "gpu", "told"),
    [
        (None, percent(50), ["as a percentage of flavor h100"]),
        (0, percent(50), []),
        (0, 3, ["lendingLimit"]),
        (6, percent(50), ["lendingLimit"]),
        (8, percent(50), []),
    ],
)
def test_a_queue_lends_no_more_than_it_owns_as_far_as_that_is_known(
    capacity: int | None, gpu: Quota | int, told: list[str]
) -> None:
    found = resolved(written("org"), written("a", "org", gpu=gpu, lends=Amount(4)), capacity=capacity)
    problems = [problem.message for problem in found.problems.get("a", ())]
    assert len(problems) == len(told)
    assert all(part in problem for part, problem in zip(told, problems, strict=True))


def test_percentages_follow_the_capacity_and_round_down() -> None:
    for capacity, amount in ((8, 2), (9, 2), (11, 3), (0, 0)):
        assert available(resolved(written("a", gpu=percent(33)), capacity=capacity), "a") == amount


def test_what_rounding_loses_among_siblings_is_theirs_to_borrow() -> None:
    """volcano#1096: entitlements of 1.5 GPUs each must not make a third of three GPUs useless."""
    halves = [written("org"), written("a", "org", gpu=percent(50)), written("b", "org", gpu=percent(50))]
    found = resolved(*halves, capacity=3)
    assert available(found, "a") == 3
    hundred = [written("org"), *(written(f"q{n}", "org", gpu=percent(1)) for n in range(100))]
    assert available(resolved(*hundred, capacity=150), "q7") == 150


def test_a_flavor_of_unknown_capacity_gives_nothing_by_percentage_and_says_so() -> None:
    found = resolved(written("a", gpu=percent(50)), written("b", gpu=4), capacity=None)
    assert (available(found, "a"), available(found, "b")) == (0, 4)
    assert [problem.field for problem in found.problems["a"]] == ["spec.resourceGroups[0].flavors[0]"]
    assert "h100" in found.problems["a"][0].message
    assert "b" not in found.problems


@pytest.mark.parametrize(
    ("queues", "misplaced", "stopped"),
    [
        pytest.param(
            [written("a", "gone", 1), written("b", gpu=1)], {"a": "gone"}, {"a"}, id="unknown parent"
        ),
        pytest.param(
            [written("a", "gone"), written("b", "a"), written("c", "b"), written("d")],
            {"a": "gone"},
            {"a", "b", "c"},
            id="all below wait with it",
        ),
        pytest.param([written("a", "a"), written("b")], {"a": "a -> a"}, {"a"}, id="its own parent"),
        pytest.param(
            [written("x", "y"), written("y", "z"), written("z", "x"), written("w", "y"), written("v")],
            {"x": "x -> y -> z -> x", "y": "x -> y -> z -> x", "z": "x -> y -> z -> x"},
            {"x", "y", "z", "w"},
            id="a cycle, and what is below it",
        ),
    ],
)
def test_queues_without_a_place_stop_and_no_others(
    queues: list[ClusterQueue], misplaced: dict[str, str], stopped: set[str]
) -> None:
    for order in (queues, queues[::-1]):
        found = resolved(*order)
        assert set(found.stopped) == stopped
        assert {name: problems[0].field for name, problems in found.problems.items()} == dict.fromkeys(
            misplaced, "spec.parent"
        )
        for name, text in misplaced.items():
            assert text in found.problems[name][0].message
            assert text in found.stopped[name]
        assert set(found.tree.paths) == {queue.name for queue in queues}


def test_a_misplaced_queue_keeps_its_quota_to_be_seen() -> None:
    assert available(resolved(written("a", "gone", 3)), "a") == 3


def test_a_stopped_queue_stops_all_below_it() -> None:
    found = resolved(
        written("org"),
        written("dept", "org", stop=StopPolicy.HOLD),
        written("a", "dept"),
        written("b", "org"),
        written("c", "org", stop=StopPolicy.HOLD_AND_DRAIN),
    )
    assert found.stopped["a"] == found.stopped["dept"] == "spec.stopPolicy of ClusterQueue dept is Hold"
    assert "HoldAndDrain" in found.stopped["c"]
    assert found.drained == {"c": "c"}
    assert "b" not in found.stopped
    assert found.problems == {}


def test_a_drained_queue_drains_all_below_it_held_or_not() -> None:
    drain = StopPolicy.HOLD_AND_DRAIN
    found = resolved(
        written("org", stop=drain),
        written("dept", "org", stop=StopPolicy.HOLD),
        written("a", "dept"),
        written("b", "org", stop=drain),
        written("c", "gone", stop=drain),
        written("other"),
    )
    assert found.drained == {"org": "org", "dept": "org", "a": "org", "b": "b", "c": "c"}


def test_workloads_wait_in_leaves_only() -> None:
    found = resolved(written("org"), written("a", "org"))
    assert "has queues below it" in found.refusal("org")
    assert found.refusal("a") == ""
    assert found.stopped == {}


def test_a_leaf_that_lends_more_than_it_owns_is_told() -> None:
    found = resolved(written("org"), written("a", "org", gpu=2, lends=Amount(3)), written("b", "org", gpu=1))
    assert [str(problem).split(" ")[0] for problem in found.problems["a"]] == [
        "spec.resourceGroups[0].flavors[0].resources:"
    ]
    assert available(found, "b") == 3


def test_nothing_written_is_an_empty_tree() -> None:
    assert resolved().tree.nodes == ()
