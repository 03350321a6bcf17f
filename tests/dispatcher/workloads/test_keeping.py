"""What keeps pods on the nodes of the flavors that they are charged to."""

import json
from typing import Any

import pytest

from fairway.taints import Toleration
from queue_dispatcher.cycle.keeping import FlavorNodes, Keeping
from queue_dispatcher.workloads.demand import Demand
from queue_dispatcher.workloads.keeping import Told, can_be_told, kept, told_at, with_told
from queue_dispatcher.workloads.pod_template import PodTemplateFacts
from tests.dispatcher.workloads.builders import a_set, claim, component, plain

MAIN = PodTemplateFacts("main", "/spec")
HEAD, WORKER = PodTemplateFacts("head", "/head"), PodTemplateFacts("worker", "/worker")
ZONED = PodTemplateFacts("main", "/spec", selector=(("zone", "z"),))
IN_ZONE = claim({"zone": "z"})
SPOT = Toleration("spot", "Exists")
BOTH = a_set(component("head", 1, gpu=1), component("worker", 2, gpu=1))


@pytest.mark.parametrize(
    ("demand", "templates", "pod_sets", "expected"),
    [
        (plain(2, gpu=1), [MAIN], 1, {""}),
        (a_set(component("main", 1, gpu=1)), [MAIN], 1, {"main"}),
        (BOTH, [HEAD, WORKER], 2, {"head", "worker"}),
        # What cannot be found, or not told from others.
        (plain(2, gpu=1), [], 0, set()),
        (plain(2, gpu=1), [HEAD], 2, set()),
        (plain(2, gpu=1), [HEAD, WORKER], 2, set()),
        (BOTH, [HEAD], 2, {"head"}),
        (BOTH, [HEAD, PodTemplateFacts("worker", "/head")], 2, set()),
        (BOTH, [HEAD, HEAD, WORKER], 3, {"worker"}),
        # A selector has to be known when flavors are chosen.
        (plain(2, IN_ZONE, gpu=1), [ZONED], 1, {""}),
        (plain(2, gpu=1), [ZONED], 1, set()),
        (plain(2, IN_ZONE, gpu=1), [MAIN], 1, {""}),
    ],
)
def test_whose_pods_can_be_told(
    demand: Demand, templates: list[PodTemplateFacts], pod_sets: int, expected: set[str]
) -> None:
    assert can_be_told(templates, pod_sets, demand) == expected


def nodes(flavor: str, clusters: str = "", **labels: str) -> FlavorNodes:
    return FlavorNodes(flavor, tuple(labels.items()), clusters=frozenset(clusters) or None)


NEW, OLD = nodes("new", "a", gpu="h100"), nodes("old", "b", gpu="l4")
PLAIN = nodes("plain", "c")
SPOTS = FlavorNodes("spot", (), (SPOT,))


@pytest.mark.parametrize(
    ("keeps", "by_cluster"),
    [
        (
            [Keeping("", (nodes("new", gpu="h100"),))],
            {"a": [({"gpu": "h100"}, 0)], "z": [({"gpu": "h100"}, 0)]},
        ),
        ([Keeping("", (SPOTS,))], {"a": [({}, 1)]}),
        # Of several flavors each where it is; in a cluster of two the first.
        (
            [Keeping("", (NEW, OLD, PLAIN))],
            {"a": [({"gpu": "h100"}, 0)], "b": [({"gpu": "l4"}, 0)], "c": [], "z": []},
        ),
        ([Keeping("", (NEW, nodes("any", "ab", gpu="l4")))], {"a": [({"gpu": "h100"}, 0)]}),
        # Of two resources, what both say.
        (
            [
                Keeping("", (nodes("new", gpu="h100"),)),
                Keeping("", (nodes("big", cpu="64", gpu="h100"), SPOTS)),
            ],
            {"a": [({"cpu": "64", "gpu": "h100"}, 0)]},
        ),
        ([Keeping("", (nodes("new", gpu="h100"),)), Keeping("", (SPOTS,))], {"a": [({"gpu": "h100"}, 1)]}),
        # No node is in both.
        ([Keeping("", (nodes("new", pool="gpu"),)), Keeping("", (nodes("cpu", pool="cpu"),))], {"a": []}),
    ],
)
def test_what_pods_are_told_by_cluster(
    keeps: list[Keeping], by_cluster: dict[str, list[tuple[dict[str, str], int]]]
) -> None:
    for cluster, expected in by_cluster.items():
        told = told_at(keeps, [MAIN], cluster)
        assert [(dict(one.labels), len(one.tolerations)) for one in told] == expected


def test_each_component_has_its_own() -> None:
    keeps = [Keeping("head", (nodes("cpu", pool="cpu"),)), Keeping("worker", (nodes("new", pool="gpu"),))]
    told = told_at(keeps, [HEAD, WORKER], "a")
    assert [(one.template, one.labels) for one in told] == [
        (HEAD, (("pool", "cpu"),)),
        (WORKER, (("pool", "gpu"),)),
    ]


@pytest.mark.parametrize(
    ("flavors", "clusters"),
    [
        ((nodes("new", gpu="h100"),), [()]),
        ((NEW, OLD), [("a",), ("b",)]),
        ((nodes("new", "ab", gpu="h100"),), [("a", "b")]),
        ((PLAIN,), []),
    ],
)
def test_it_is_said_wherever_they_may_come_to_be(
    flavors: tuple[FlavorNodes, ...], clusters: list[tuple[str, ...]]
) -> None:
    found = kept([Keeping("", flavors)], [MAIN], frozenset("abz"))
    assert [one.clusters for one in found] == clusters


def test_nothing_is_said_where_there_is_nothing_to_keep() -> None:
    assert kept([], [MAIN], frozenset("a")) == ()


def test_the_object_as_its_pods_are_told() -> None:
    spec: Any = {"nodeSelector": {"zone": "z"}, "tolerations": [{"key": "own"}], "containers": []}
    workload = {"kind": "X", "spec": {"tasks": [{"a/b": spec}, {"a/b": {}}]}}
    own = PodTemplateFacts(
        "a", "/spec/tasks/0/a~1b", selector=(("zone", "z"),), tolerations=(b'{"key": "own"}',)
    )
    other = PodTemplateFacts("b", "/spec/tasks/1/a~1b")
    gone = [
        PodTemplateFacts("c", pointer) for pointer in ("/spec/tasks/2/x", "/spec/tasks/x/y", "/spec/none/x")
    ]
    labels = (("gpu", "h100"),)
    told = [Told(own, labels, (SPOT,)), Told(other, labels), *(Told(one, labels) for one in gone)]
    made = json.loads(with_told(json.dumps(workload).encode(), told))
    assert made["kind"] == "X"
    first, second = (task["a/b"] for task in made["spec"]["tasks"])
    assert first == {
        "nodeSelector": {"zone": "z", "gpu": "h100"},
        "tolerations": [{"key": "own"}, {"key": "spot", "operator": "Exists"}],
        "containers": [],
    }
    assert second == {"nodeSelector": {"gpu": "h100"}}
    assert len(made["spec"]["tasks"]) == 2
