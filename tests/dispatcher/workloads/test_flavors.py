from dataclasses import replace

import pytest

from fairway.taints import Taint, Toleration
from queue_dispatcher.api.cluster_queue import ClusterQueue
from queue_dispatcher.api.resource_flavor import ResourceFlavor
from queue_dispatcher.cycle.reasons import Reason
from queue_dispatcher.ledger.cells import CellTable, added
from queue_dispatcher.workloads.demand import Component, Demand, with_pods
from queue_dispatcher.workloads.flavors import Reach, Reaches, alternatives, offered, reach_of
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

SPOT = Taint("spot", "", "NoSchedule")
TOLERATES = claim(tolerations=(Toleration("spot", "Exists"),))
REACHES: Reaches = {
    "h100": reach("a", "b", gpu="H100"),
    "a100": reach("a", "b", gpu="A100"),
    "spot": reach("c"),
    "cpu": reach("a", "b", "c"),
    "tainted": reach("a", taints=(SPOT,)),
}
GPUS = queue(((GPU,), ("h100", "a100", "spot")))


Charges = list[dict[tuple[str, str], int]]


def parts(
    demand: Demand, permitted: set[str], team: ClusterQueue = GPUS, copies: int = 1
) -> list[Charges] | str:
    """The charges of each part of a workload, or why there are none."""
    table = CellTable()
    answer = alternatives(demand, copies, team, REACHES, frozenset(permitted), is_accelerator, table)
    if isinstance(answer, Reason):
        assert answer.kind == "NeverFits"
        return answer.text
    assert answer
    for alternative in (one for options in answer for one in options):
        names = [(table.name(cell).resource, table.name(cell).flavor) for cell, _ in alternative.charge]
        assert sorted(names) == sorted(alternative.flavors)
        if alternative.places:
            assert added(*(place.charge for place in alternative.places)) == alternative.charge
    return [
        [
            {(table.name(cell).flavor, table.name(cell).resource): amount for cell, amount in one.charge}
            for one in options
        ]
        for options in answer
    ]


def found(demand: Demand, permitted: set[str], team: ClusterQueue = GPUS, copies: int = 1) -> Charges | str:
    """The charges of a workload of one part."""
    answer = parts(demand, permitted, team, copies)
    if isinstance(answer, str):
        return answer
    (only,) = answer
    return only


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


@pytest.mark.parametrize(
    ("names", "told"),
    [
        (("gone",), f"{GPU}: there is no ResourceFlavor gone, and queue team has quota of no other"),
        (
            ("gone", "h100", "lost"),
            f"{GPU}: the clusters that its placement permits are in no flavor of queue team, and there is no "
            "ResourceFlavor gone, lost",
        ),
    ],
)
def test_a_flavor_that_is_not_there_is_told(names: tuple[str, ...], told: str) -> None:
    assert found(plain(1, gpu=1), {"unknown"}, queue(((GPU,), names))) == told


def test_copies_are_charged_each() -> None:
    """volcano-global charges a workload that goes to several clusters once."""
    assert found(plain(2, gpu=4), {"c"}, copies=3) == [{("spot", GPU): 24}]


def test_resources_of_a_group_share_their_flavor_and_groups_are_parts() -> None:
    team = queue((("cpu", "memory"), ("cpu",)), ((GPU,), ("h100", "a100")))
    assert parts(plain(1, gpu=8, cpu=4000, memory=64), {"a"}, team) == [
        [{("cpu", "cpu"): 4000, ("cpu", "memory"): 64}],
        [{(flavor, GPU): 8} for flavor in ("h100", "a100")],
    ]


def test_each_component_is_charged_to_flavors_of_its_own() -> None:
    demand = a_set(
        component("launcher", 1, claim({"gpu": "A100"}), gpu=1),
        component("worker", 2, claim({"gpu": "H100"}), gpu=4),
    )
    assert found(demand, {"a"}) == [{("h100", GPU): 8, ("a100", GPU): 1}]
    demand = a_set(component("launcher", 1, claim({"gpu": "A100"}), gpu=1), component("worker", 2, gpu=4))
    assert parts(demand, {"a"}) == [[{("a100", GPU): 1}], [{("h100", GPU): 8}, {("a100", GPU): 8}]]


def test_a_component_without_any_flavor_never_fits_though_the_others_do() -> None:
    demand = a_set(component("launcher", 1, claim({"gpu": "L4"}), gpu=1), component("worker", 2, gpu=4))
    answer = found(demand, {"a"})
    assert isinstance(answer, str)
    assert "nvidia.com/gpu of component launcher: its node selector" in answer


@pytest.mark.parametrize(
    ("flavors", "demand", "expected"),
    [
        (("tainted", "h100"), plain(1, gpu=8), [{("h100", GPU): 8}]),
        (("tainted", "h100"), plain(1, TOLERATES, gpu=8), [{("tainted", GPU): 8}, {("h100", GPU): 8}]),
        (("tainted", "a100"), plain(1, claim({"gpu": "A100"}), gpu=8), [{("a100", GPU): 8}]),
        (
            ("tainted", "a100"),
            plain(1, claim({"gpu": "H100"}), gpu=8),
            f"{GPU}: its pods tolerate the nodeTaints of no flavor that suits them (spot:NoSchedule of "
            "tainted) of queue team",
        ),
    ],
)
def test_what_does_not_tolerate_the_taints_of_a_flavor_is_not_given_it(
    flavors: tuple[str, ...], demand: Demand, expected: object
) -> None:
    assert found(demand, {"a"}, queue(((GPU,), flavors))) == expected


@pytest.mark.parametrize(
    ("selector", "expected"),
    [
        # A label rules out the flavors that state it otherwise, whichever other flavor states it.
        ({"gpu": "A100", "zone": "z1"}, ["a100", "spot"]),
        ({"gpu": "H100"}, ["h100", "spot"]),
        ({"zone": "z1"}, ["h100", "a100", "spot"]),
    ],
)
def test_labels_that_a_flavor_does_not_state_rule_nothing_out(
    selector: dict[str, str], expected: list[str]
) -> None:
    reaches = {name: replace(REACHES[name], clusters=frozenset("a")) for name in ("h100", "a100", "spot")}
    demand, table = plain(1, claim(selector), gpu=1), CellTable()
    answer = alternatives(demand, 1, GPUS, reaches, frozenset("a"), is_accelerator, table)
    assert not isinstance(answer, Reason)
    assert [one.flavors for one in answer[0]] == [((GPU, name),) for name in expected]


def test_pods_are_a_resource_where_a_queue_has_a_quota_of_them() -> None:
    team = queue((("pods",), ("cpu",)), ((GPU,), ("h100",)))
    demand = a_set(component("launcher", 1), component("worker", 2, gpu=4))
    assert found(with_pods(demand), {"a"}, team) == [{("cpu", "pods"): 3, ("h100", GPU): 8}]
    assert found(demand, {"a"}, team) == [{("h100", GPU): 8}]


def test_many_flavors_of_many_groups_are_told_apart_without_listing_what_they_make_together() -> None:
    names = tuple(f"f{i}" for i in range(32))
    team = queue(*(((f"r{i}",), names) for i in range(8)))
    reaches = dict.fromkeys(names, reach("a"))
    demand = Demand((Component("", 1, tuple((f"r{i}", 1) for i in range(8))),))
    answer = alternatives(demand, 1, team, reaches, frozenset("a"), is_accelerator, CellTable())
    assert isinstance(answer, tuple)
    assert [len(options) for options in answer] == [32] * 8


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
    tainted = replace(flavor, node_taints=(SPOT, Taint("own", "", "NoSchedule")))
    tolerated = replace(tainted, tolerations=(Toleration("own", "Exists"),))
    assert reach_of(tolerated, fleet).taints == (SPOT,)


SPOT_TOLERATED = Toleration("spot", "Exists")
KEEPING: Reaches = {**REACHES, "bought": Reach(frozenset("ab"), {}, (), (SPOT_TOLERATED,))}
KEPT_QUEUE = queue(((GPU,), ("h100", "a100", "spot", "bought")))
Kept = tuple[str, dict[str, str], int, frozenset[str] | None]
"""A flavor, the labels and how many tolerations pods are told, and where."""


def keeps(
    demand: Demand, permitted: str, told: set[str], team: ClusterQueue = KEPT_QUEUE
) -> list[list[Kept]]:
    """Of each alternative of a workload whose release states where to, what keeps its pods."""
    answer = alternatives(
        demand,
        1,
        team,
        KEEPING,
        frozenset(permitted),
        is_accelerator,
        CellTable(),
        is_preplaced=True,
        told=told,
    )
    assert not isinstance(answer, Reason)
    return [
        [
            (nodes.flavor, dict(nodes.labels), len(nodes.tolerations), nodes.clusters)
            for keeping in option.keeps
            for nodes in keeping.flavors
        ]
        for options in answer
        for option in options
    ]


H100, A100 = {"gpu": "H100"}, {"gpu": "A100"}
ANYWHERE: list[list[Kept]] = [[("h100", H100, 0, None)], [("a100", A100, 0, None)], [("bought", {}, 1, None)]]


@pytest.mark.parametrize(
    ("demand", "permitted", "told", "expected"),
    [
        (plain(2, gpu=1), "ab", {""}, ANYWHERE),
        (plain(2, gpu=1), "a", {""}, ANYWHERE),
        # Who cannot be told is charged alike.
        (plain(2, gpu=1), "ab", set(), [[], [], []]),
        # What pods say themselves need not be told.
        (plain(2, claim(H100), gpu=1), "a", {""}, [[], ANYWHERE[2]]),
        (plain(2, claim(None, (("gpu", "In", ("A100", "B200")),)), gpu=1), "a", {""}, ANYWHERE[1:]),
        (plain(2, claim(tolerations=(SPOT_TOLERATED,)), gpu=1), "a", {""}, [*ANYWHERE[:2], []]),
        # Over several flavors each has its clusters; one of all nodes of its clusters needs nothing.
        (
            plain(2, gpu=1),
            "ac",
            {""},
            [
                [("h100", H100, 0, frozenset("a"))],
                [("a100", A100, 0, frozenset("a"))],
                [],
                [("bought", {}, 1, frozenset("a"))],
                [("h100", H100, 0, frozenset("a")), ("spot", {}, 0, frozenset("c"))],
                [("a100", A100, 0, frozenset("a")), ("spot", {}, 0, frozenset("c"))],
                [("bought", {}, 1, frozenset("a")), ("spot", {}, 0, frozenset("c"))],
            ],
        ),
        # Each component by itself.
        (
            a_set(component("head", 1, claim(H100), gpu=1), component("worker", 2, gpu=1)),
            "a",
            {"worker"},
            [[], [], *ANYWHERE],
        ),
    ],
)
def test_what_keeps_pods_on_the_nodes_of_their_flavor(
    demand: Demand, permitted: str, told: set[str], expected: list[list[Kept]]
) -> None:
    assert keeps(demand, permitted, told) == expected
