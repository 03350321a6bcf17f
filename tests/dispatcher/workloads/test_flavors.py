import pytest

from queue_dispatcher.api.resource_flavor import ResourceFlavor
from queue_dispatcher.cycle.reasons import Reason
from queue_dispatcher.ledger.cells import CellTable
from queue_dispatcher.workloads.demand import Component, Demand
from queue_dispatcher.workloads.flavors import MAX_ALTERNATIVES, Reaches, alternatives, offered, reach_of
from tests.dispatcher.workloads.builders import (
    GPU,
    a_set,
    claim,
    cluster,
    component,
    is_accelerator,
    plain,
    queue,
    reach,
)

REACHES: Reaches = {
    "h100": reach("a", "b", gpu="H100"),
    "a100": reach("a", "b", gpu="A100"),
    "spot": reach("c"),
    "cpu": reach("a", "b", "c"),
}
GPUS = queue(((GPU,), ("h100", "a100", "spot")))


def found(
    demand: Demand, permitted: set[str], team: object = GPUS, copies: int = 1
) -> list[dict[tuple[str, str], int]] | str:
    table = CellTable()
    assert isinstance(team, type(GPUS))
    answer = alternatives(demand, copies, team, REACHES, frozenset(permitted), is_accelerator, table)
    if isinstance(answer, Reason):
        assert answer.kind == "NeverFits"
        return answer.text
    for alternative in answer:
        names = [(table.name(cell).resource, table.name(cell).flavor) for cell, _ in alternative.charge]
        assert sorted(names) == sorted(alternative.flavors)
    return [
        {(table.name(cell).flavor, table.name(cell).resource): amount for cell, amount in one.charge}
        for one in answer
    ]


@pytest.mark.parametrize(
    ("demand", "permitted", "expected"),
    [
        # Flavors that have every permitted cluster are alternatives, in the queue's order.
        (plain(2, gpu=4), {"a"}, [{("h100", GPU): 8}, {("a100", GPU): 8}]),
        (plain(2, gpu=4), {"a", "b"}, [{("h100", GPU): 8}, {("a100", GPU): 8}]),
        (plain(2, gpu=4), {"c"}, [{("spot", GPU): 8}]),
        # Where it may land on several, it is charged to all of them.
        (
            plain(2, gpu=4),
            {"a", "c"},
            [
                {("h100", GPU): 8, ("spot", GPU): 8},
                {("a100", GPU): 8, ("spot", GPU): 8},
            ],
        ),
        # A cluster without a flavor: charged to those that there are.
        (plain(2, gpu=4), {"c", "unknown"}, [{("spot", GPU): 8}]),
        (plain(2, claim({"gpu": "A100"}), gpu=4), {"a"}, [{("a100", GPU): 8}]),
        (plain(2, claim({"gpu": "A100"}), gpu=4), {"a", "c"}, [{("a100", GPU): 8, ("spot", GPU): 8}]),
        (plain(2), {"a"}, [{}]),
        (plain(0, gpu=4), {"a"}, [{}]),
        (plain(2, cpu=1000), {"a"}, [{}]),  # no group covers it, and it is no accelerator
    ],
)
def test_alternatives(demand: Demand, permitted: set[str], expected: list[object]) -> None:
    assert found(demand, permitted) == expected


@pytest.mark.parametrize(
    ("demand", "permitted", "told"),
    [
        (plain(1, gpu=1), set(), "permits none of the clusters"),
        (
            plain(1, gpu=1),
            {"unknown"},
            "the clusters that its placement permits are in no flavor of queue team",
        ),
        (plain(1, claim({"gpu": "L4"}), gpu=1), {"a"}, "contradicts the node labels of every flavor"),
        (
            Demand((Component("", 1, (("amd.com/gpu", 1),)),)),
            {"a"},
            "queue team has no quota for amd.com/gpu",
        ),
    ],
)
def test_never_fits_says_why(demand: Demand, permitted: set[str], told: str) -> None:
    answer = found(demand, permitted)
    assert isinstance(answer, str)
    assert told in answer


def test_copies_are_charged_each() -> None:
    """volcano-global charges a workload that goes to several clusters once."""
    assert found(plain(2, gpu=4), {"c"}, copies=3) == [{("spot", GPU): 24}]


def test_resources_of_a_group_share_their_flavor_and_groups_are_combined() -> None:
    team = queue((("cpu", "memory"), ("cpu",)), ((GPU,), ("h100", "a100")))
    assert found(plain(1, gpu=8, cpu=4000, memory=64), {"a"}, team) == [
        {("cpu", "cpu"): 4000, ("cpu", "memory"): 64, (flavor, GPU): 8} for flavor in ("h100", "a100")
    ]


def test_components_that_need_different_nodes_are_charged_to_all_flavors_that_suit_one() -> None:
    demand = a_set(
        component("launcher", 1, claim({"gpu": "A100"}), gpu=1),
        component("worker", 2, claim({"gpu": "H100"}), gpu=4),
    )
    assert found(demand, {"a"}) == [{("h100", GPU): 9, ("a100", GPU): 9}]


def test_a_component_without_any_flavor_never_fits_though_the_others_do() -> None:
    demand = a_set(component("launcher", 1, claim({"gpu": "L4"}), gpu=1), component("worker", 2, gpu=4))
    answer = found(demand, {"a"})
    assert isinstance(answer, str)
    assert "contradicts" in answer


def test_combinations_are_bounded() -> None:
    names = tuple(f"f{i}" for i in range(20))
    team = queue((("cpu",), names), (("memory",), names))
    reaches = dict.fromkeys(names, reach("a"))
    answer = alternatives(
        plain(1, cpu=1, memory=1), 1, team, reaches, frozenset("a"), is_accelerator, CellTable()
    )
    assert isinstance(answer, tuple)
    assert len(answer) == MAX_ALTERNATIVES


def test_a_flavor_that_does_not_exist_is_passed_over() -> None:
    assert found(plain(1, gpu=1), {"a"}, queue(((GPU,), ("gone", "a100")))) == [{("a100", GPU): 1}]


def test_offered() -> None:
    assert offered(queue((("cpu", "memory"), ("cpu",)), ((GPU,), ("h100", "a100")))) == {
        "cpu": ("cpu",),
        "memory": ("cpu",),
        GPU: ("h100", "a100"),
    }


def test_reach_of_a_flavor() -> None:
    flavor = ResourceFlavor("h100", cluster_names=("a", "b"), node_labels={"gpu": "H100"})
    fleet = (cluster("a"), cluster("c"))
    assert reach_of(flavor, fleet) == reach("a", gpu="H100")
