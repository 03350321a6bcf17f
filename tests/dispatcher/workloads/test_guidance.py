"""What the pods of a release are told."""

import pytest

from queue_dispatcher.cycle.witness import Witness
from queue_dispatcher.workloads.demand import Component, Demand, Placed
from queue_dispatcher.workloads.guidance import MAX_BYTES, MAX_NODES, Guidance, Guided, guidance
from queue_dispatcher.workloads.pod_template import PodTemplateFacts

GPU = "nvidia.com/gpu"
HEAD, WORKER = PodTemplateFacts("head", "/head"), PodTemplateFacts("worker", "/worker")
MAIN = PodTemplateFacts("main", "/main")
SET = Demand(
    (Component("head", 1, ((GPU, 8),)), Component("worker", 4, ((GPU, 1), ("cpu", 1000)))), is_set=True
)
PROOF = Witness((("head", (("n0", 1),)), ("worker", (("n1", 1), ("n2", 3)))), ranks=True)
POD = Witness((("pod", (("n0", 1), ("n1", 3), ("n2", 2))),))


def told(
    *templates: PodTemplateFacts,
    witness: Witness = PROOF,
    demand: Demand = SET,
    replicas: int = 0,
    priority_class: str = "",
) -> list[tuple[str, tuple[str, ...], int]]:
    found = guidance(templates, demand, {"a": witness}, [Placed("a", replicas)], priority_class)
    return [(one.template.pod_set, one.nodes, one.rank) for of in found for one in of.pods]


def test_each_pod_set_prefers_its_nodes_and_the_larger_goes_first() -> None:
    assert told(HEAD, WORKER) == [("head", ("n0",), 8), ("worker", ("n1", "n2"), 7)]


def test_each_cluster_has_its_own() -> None:
    witnesses = {"a": POD, "b": Witness((("pod", (("m0", 2),)),))}
    places = [Placed("a", 3), Placed("b", 2), Placed("c", 1)]
    alike = Demand((Component("", 6, ((GPU, 1),)),))
    found = guidance([MAIN], alike, witnesses, places, "")
    assert found == (
        Guidance("a", (Guided(MAIN, ("n1",)),), (("pod", "n1", 3),)),
        Guidance("b", (Guided(MAIN, ("m0",)),), (("pod", "m0", 2),)),
    )


def test_nodes_that_would_take_more_are_told_to_be_last() -> None:
    witness = Witness(PROOF.nodes, spare=frozenset({("worker", "n2"), ("head", "n1")}))
    found = guidance([HEAD, WORKER], SET, {"a": witness}, [Placed("a")], "")
    assert [sorted(one.spare) for one in found[0].pods] == [[], ["n2"]]
    divided = Witness(POD.nodes, spare=frozenset({("pod", "n1"), ("pod", "n2")}))
    found = guidance([MAIN], Demand((Component("", 6, ((GPU, 1),)),)), {"a": divided}, [Placed("a", 3)], "")
    assert [sorted(one.spare) for one in found[0].pods] == [["n1"]]


@pytest.mark.parametrize(
    ("replicas", "nodes"), [(0, ("n0", "n1", "n2")), (3, ("n1",)), (4, ("n1", "n2")), (6, ("n0", "n1", "n2"))]
)
def test_a_share_goes_to_as_few_nodes_as_take_it(replicas: int, nodes: tuple[str, ...]) -> None:
    assert told(MAIN, witness=POD, replicas=replicas) == [("main", nodes, 0)]


def test_nobody_is_ranked_where_the_cluster_has_no_classes_or_the_workload_its_own() -> None:
    unranked = [("head", ("n0",), 0), ("worker", ("n1", "n2"), 0)]
    assert told(HEAD, WORKER, witness=Witness(PROOF.nodes)) == unranked
    assert told(HEAD, WORKER, priority_class="high") == unranked
    named = PodTemplateFacts("worker", "/worker", names_priority=True)
    assert told(HEAD, named) == unranked
    alike = Demand((Component("head", 1, ((GPU, 1),)), Component("worker", 4, ((GPU, 1),))), is_set=True)
    assert told(HEAD, WORKER, demand=alike) == unranked


def test_who_looks_at_no_preferences_is_told_none() -> None:
    head, worker = (PodTemplateFacts(one, f"/{one}", scheduler="kai-scheduler") for one in ("head", "worker"))
    assert told(head, worker) == []
    assert [told for told, _, _ in told(head, WORKER)] == ["worker"]


def test_of_many_sizes_the_smallest_share_the_last_rank() -> None:
    names = [f"s{size}" for size in range(12, 0, -1)]
    demand = Demand(tuple(Component(name, 1, ((GPU, int(name[1:])),)) for name in names), is_set=True)
    witness = Witness(tuple((name, (("n0", 1),)) for name in names), ranks=True)
    templates = [PodTemplateFacts(name, f"/{name}") for name in names]
    ranks = [rank for _, _, rank in told(*templates, witness=witness, demand=demand)]
    assert ranks == [8, 7, 6, 5, 4, 3, 2, 1, 1, 1, 1, 1]


def test_two_pod_sets_of_one_template_share_what_it_says() -> None:
    leader = PodTemplateFacts("head", "/one")
    workers = PodTemplateFacts("worker", "/one")
    assert told(leader, workers) == [("head", ("n0", "n1", "n2"), 8)]


def test_nothing_is_told_of_more_nodes_than_a_policy_should_name() -> None:
    nodes = tuple((f"n{number}", 1) for number in range(MAX_NODES + 1))
    assert told(MAIN, witness=Witness((("pod", nodes),))) == []
    assert len(told(MAIN, witness=Witness((("pod", nodes[1:]),)))) == 1


def test_what_could_not_be_stored_is_not_told() -> None:
    nodes = tuple((f"n{number}", 1) for number in range(MAX_NODES))
    most = MAX_BYTES // (MAX_NODES * 160)

    def tells(sets: int) -> bool:
        templates = [PodTemplateFacts(f"s{number}", f"/{number}") for number in range(sets)]
        return bool(told(*templates, witness=Witness(tuple((one.pod_set, nodes) for one in templates))))

    assert tells(most - 1)
    assert not tells(most + 1)
