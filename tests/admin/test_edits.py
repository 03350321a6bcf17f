"""Nodes and pods that come or go in memory."""

import pytest

from admin.bound_pods import bound_pods
from admin.edits import Edit, EditError, add_nodes, apply, drop_node, drop_nodes, drop_pods
from estimator.capacity.gangs.placements import Assignment
from fairway.accelerators.builtin import builtin_catalogue
from fairway.kube.dumps import Dump
from fairway.kube.templates import PodTemplate, TemplateMeta
from fairway.resources import pod_request
from fairway.workloads.gang import Gang, PodSet
from tests.admin.workloads import gang_of, template
from tests.builders import NodeBuilder, PodBuilder, node, pod


def dump(nodes: list[NodeBuilder], pods: list[PodBuilder]) -> Dump:
    return Dump(tuple(n.build() for n in nodes), tuple(p.build() for p in pods))


def daemon(name: str, node_name: str) -> PodBuilder:
    return pod(name).on(node_name).requests(cpu="1").owned_by("DaemonSet", "agent")


def clusters() -> dict[str, Dump]:
    one = dump(
        [node("n1").gpus(8).label(rack="r1"), node("n2").gpus(8).label(rack="r2").cordoned()],
        [pod("x").on("n1").requests(gpu=8), pod("y").on("n2").requests(gpu=4), daemon("agent-1", "n2")],
    )
    other = dump([node("m1").gpus(4).label(rack="r1")], [pod("x").nominated("m1").requests(gpu=1)])
    return {"one": one, "other": other}


def shown(found: dict[str, Dump]) -> dict[str, tuple[list[str], list[str]]]:
    return {
        name: ([n.metadata.name for n in d.nodes], [p.metadata.name for p in d.pods])
        for name, d in found.items()
    }


@pytest.mark.parametrize(
    ("edits", "one", "other"),
    [
        ([drop_node("n1")], (["n2"], ["y", "agent-1"]), (["m1"], ["x"])),
        ([drop_node("other/m1")], (["n1", "n2"], ["x", "y", "agent-1"]), ([], [])),
        ([drop_nodes("rack=r1")], (["n2"], ["y", "agent-1"]), ([], [])),
        ([drop_pods("default/x")], (["n1", "n2"], ["y", "agent-1"]), (["m1"], [])),
        ([drop_pods("default/")], (["n1", "n2"], []), (["m1"], [])),
        ([drop_pods("*/y")], (["n1", "n2"], ["x", "agent-1"]), (["m1"], ["x"])),
        ([drop_node("n1"), drop_node("n1"), drop_nodes("rack=r1")], (["n2"], ["y", "agent-1"]), ([], [])),
        ([drop_nodes("rack=r1"), drop_node("n1")], (["n2"], ["y", "agent-1"]), ([], [])),
        ([drop_pods("default/y"), drop_node("n1")], (["n2"], ["agent-1"]), (["m1"], ["x"])),
    ],
)
def test_what_is_dropped_is_gone_and_pods_go_with_their_node(
    edits: list[Edit], one: tuple[list[str], list[str]], other: tuple[list[str], list[str]]
) -> None:
    assert shown(apply(edits, clusters())) == {"one": one, "other": other}


def test_pods_are_dropped_by_their_labels() -> None:
    labelled = pod("z").on("n1")
    labelled = PodBuilder(labelled.name, spec=labelled.spec, metadata={"labels": {"app": "old"}})
    found = apply([drop_pods("default/app=old")], {"one": dump([], [labelled, pod("w")])})
    assert shown(found)["one"] == ([], ["w"])


def test_added_nodes_are_ready_twins_with_their_daemons() -> None:
    found = apply([add_nodes(2, "n2")], clusters())["one"]
    assert [n.metadata.name for n in found.nodes] == ["n1", "n2", "n2-added-1", "n2-added-2"]
    twin = found.nodes[2]
    assert (twin.spec.unschedulable, twin.status) == (False, found.nodes[1].status)
    assert (twin.metadata.labels or {})["rack"] == "r2"
    assert [(p.metadata.name, p.spec.node_name) for p in found.pods[3:]] == [
        ("agent-1-on-n2-added-1", "n2-added-1"),
        ("agent-1-on-n2-added-2", "n2-added-2"),
    ]


def test_twins_have_hostnames_and_names_of_their_own() -> None:
    host = node("n").label({"kubernetes.io/hostname": "n"})
    found = apply([add_nodes(1, "n"), add_nodes(1, "n")], {"one": dump([host], [])})["one"]
    assert [(n.metadata.labels or {})["kubernetes.io/hostname"] for n in found.nodes] == [
        "n", "n-added-1", "n-added-2",
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("edits", "said"),
    [
        ([drop_node("n9")], "without node n9: nothing like that in one, other"),
        ([drop_node("nope/n1")], "no cluster 'nope'; expected one of one, other"),
        ([drop_nodes("rack=r9")], "nothing like that"),
        ([drop_pods("nobody/")], "nothing like that"),
        ([add_nodes(1, "n9")], "no node 'n9' in one, other"),
    ],
)
def test_an_edit_that_concerns_nothing_is_told(edits: list[Edit], said: str) -> None:
    with pytest.raises(EditError) as raised:
        apply(edits, clusters())
    assert said in str(raised.value)


def test_a_model_that_two_clusters_have_needs_the_cluster() -> None:
    twins = {"one": dump([node("n")], []), "two": dump([node("n")], [])}
    with pytest.raises(EditError, match="one, two have it: write CLUSTER/n"):
        apply([add_nodes(1, "n")], twins)
    assert shown(apply([add_nodes(1, "two/n")], twins))["two"][0] == ["n", "n-added-1"]


def test_malformed_edits_are_told() -> None:
    with pytest.raises(EditError, match=r"expected --drop-node \[CLUSTER/\]NODE"):
        drop_node("a/b/c")
    for text in ("research", "/x"):
        with pytest.raises(EditError, match="NAMESPACE/ for all its pods"):
            drop_pods(text)


def test_added_pods_stand_where_the_placement_says_and_ask_what_the_template_asks() -> None:
    gang = gang_of(template(gpu="8"), count=3)
    made = bound_pods(gang, (Assignment("pods", "n1", 1), Assignment("pods", "n2", 2)), builtin_catalogue())
    assert [p.spec.node_name for p in made] == ["n1", "n2", "n2"]
    assert len({p.metadata.name for p in made}) == 3
    assert all(pod_request(p) == {"nvidia.com/gpu": 8} for p in made)


@pytest.mark.parametrize(
    "parts",
    [
        PodTemplate(TemplateMeta(annotations={"gpu-fraction": "0.5"})),
        template({"nvidia.com/gpumem": "1000", "nvidia.com/gpu": "1"}),
        template({"aliyun.com/gpu-mem": "2"}),
    ],
)
def test_pods_that_ask_for_parts_of_devices_are_not_added(parts: PodTemplate) -> None:
    gang = Gang("Job", "", "x", (PodSet("pods", 1, 1, parts),), True)
    with pytest.raises(EditError, match="asks for parts of devices"):
        bound_pods(gang, (Assignment("pods", "n1", 1),), builtin_catalogue())
