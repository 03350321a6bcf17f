"""Reading what kubectl wrote: every form it takes, and everything that can be wrong with it."""

import gzip
import json
import os
import re
import tracemalloc
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec
import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st

from fairway.kube import dump_text, dump_yaml
from fairway.kube.dump_document import MalformedDump
from fairway.kube.dumps import Dump, DumpError, Problem, read_dump, read_dumps
from fairway.kube.node_devices import NodeDevices
from fairway.kube.objects import Deployment, ReplicaSet, ResourceQuota
from fairway.names import DUMPED
from fairway.resources import ResourceError, parse_amounts

Object = dict[str, Any]


def node(name: str = "gpu-0", **allocatable: object) -> Object:
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": name, "labels": {"zone": "a"}},
        "spec": {"taints": [{"key": "nvidia.com/gpu", "effect": "NoSchedule"}]},
        "status": {"allocatable": allocatable or {"cpu": "8", "nvidia.com/gpu": "4"}},
    }


def pod(name: str = "web-0", namespace: str = "team-a", **metadata: object) -> Object:
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "namespace": namespace, **metadata},
        "spec": {
            "nodeName": "gpu-0",
            "containers": [{"name": "m", "resources": {"requests": {"cpu": "500m"}}}],
        },
        "status": {"phase": "Running"},
    }


def quota() -> Object:
    return {
        "apiVersion": "v1",
        "kind": "ResourceQuota",
        "metadata": {"name": "compute", "namespace": "team-a"},
        "status": {"hard": {"cpu": "10"}, "used": {"cpu": "1"}},
    }


def owner(kind: str) -> Object:
    return {
        "apiVersion": "apps/v1",
        "kind": kind,
        "metadata": {"name": "web", "namespace": "team-a"},
        "spec": {"replicas": 2, "template": {"spec": {"containers": [{"name": "m", "image": "x"}]}}},
    }


EVERYTHING = [
    node(),
    pod(),
    pod("web-1"),
    {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "c"}, "data": {"k": "v"}},
    quota(),
    owner("Deployment"),
    owner("ReplicaSet"),
]


def listed(*items: object, kind: str = "List", **metadata: object) -> Object:
    return {
        "apiVersion": "v1",
        "items": list(items),
        "kind": kind,
        "metadata": {"resourceVersion": "", **metadata},
    }


def without_kind(item: Object) -> Object:
    return {key: value for key, value in item.items() if key not in ("kind", "apiVersion")}


def as_kubectl(document: Object) -> str:
    return json.dumps(document, indent=4) + "\n"


def as_json(document: Object) -> str:
    return json.dumps(document, separators=(",", ":"))


def as_yaml(document: Object) -> str:
    text: str = yaml.safe_dump(document)
    return text


def read(tmp_path: Path, content: str | bytes, name: str = "fleet.json") -> Dump:
    file = tmp_path / name
    file.write_bytes(content if isinstance(content, bytes) else content.encode())
    return read_dump(file)


def refusal(tmp_path: Path, content: str | bytes) -> str:
    with pytest.raises(DumpError) as caught:
        read(tmp_path, content)
    message = str(caught.value)
    assert message.startswith(f"{tmp_path / 'fleet.json'}: ")
    assert "kubectl get" in message
    return message


PER_KIND = [
    listed(without_kind(node()), kind="NodeList"),
    listed(without_kind(pod()), without_kind(pod("web-1")), kind="PodList"),
    listed({"data": {}}, kind="ConfigMapList"),
    listed(without_kind(quota()), kind="ResourceQuotaList"),
    listed(without_kind(owner("Deployment")), kind="DeploymentList"),
    listed(without_kind(owner("ReplicaSet")), kind="ReplicaSetList"),
]

FORMS: dict[str, str | bytes] = {
    "kubectl JSON": as_kubectl(listed(*EVERYTHING)),
    "compact JSON": as_json(listed(*EVERYTHING)),
    "JSON indented otherwise": json.dumps(listed(*EVERYTHING), indent=1),
    "JSON with Windows line ends": as_kubectl(listed(*EVERYTHING)).replace("\n", "\r\n"),
    "JSON with kind first": as_json({"kind": "List", "apiVersion": "v1", "items": EVERYTHING}),
    "JSON lists per kind, one after the other": "".join(map(as_kubectl, PER_KIND)),
    "JSON documents without space between": "".join(map(as_json, EVERYTHING)),
    "JSON lines": "\n".join(map(as_json, EVERYTHING)) + "\n\n",
    "UTF-8 with byte order mark": b"\xef\xbb\xbf" + as_kubectl(listed(*EVERYTHING)).encode(),
    "YAML list": as_yaml(listed(*EVERYTHING)),
    "YAML with byte order mark": b"\xef\xbb\xbf" + as_yaml(listed(*EVERYTHING)).encode(),
    "YAML lists per kind": "---\n".join(map(as_yaml, PER_KIND)),
    "YAML single objects": "---\n" + "---\n".join(map(as_yaml, EVERYTHING)) + "---\n# nothing here\n...\n",
    "gzip of JSON, named otherwise": gzip.compress(as_kubectl(listed(*EVERYTHING)).encode()),
    "gzip of YAML": gzip.compress(as_yaml(listed(*EVERYTHING)).encode()),
    "gzip in two members": gzip.compress(as_json(listed(*EVERYTHING[:3])).encode())
    + gzip.compress(as_json(listed(*EVERYTHING[3:])).encode()),
}


@pytest.mark.parametrize("content", FORMS.values(), ids=FORMS.keys())
def test_every_form_gives_the_same_objects(tmp_path: Path, content: str | bytes) -> None:
    dump = read(tmp_path, content)
    assert dump.problems == ()
    (only_node,) = dump.nodes
    assert only_node.metadata.labels == {"zone": "a"}
    assert only_node.spec.taints is not None
    assert only_node.spec.taints[0].key == "nvidia.com/gpu"
    assert parse_amounts(only_node.status.allocatable) == {"cpu": 8000, "nvidia.com/gpu": 4}
    assert [p.metadata.name for p in dump.pods] == ["web-0", "web-1"]
    assert {(p.metadata.namespace, p.spec.node_name, p.status.phase) for p in dump.pods} == {
        ("team-a", "gpu-0", "Running")
    }
    assert [q.status.hard for q in dump.of(ResourceQuota)] == [{"cpu": "10"}]
    template = {"spec": {"containers": [{"name": "m", "image": "x"}]}}
    for owners in (dump.of(Deployment), dump.of(ReplicaSet)):
        assert [msgspec.json.decode(o.spec.template) for o in owners] == [template]


FLOW = "{apiVersion: v1, kind: Node, metadata: {name: gpu-0}}\n"


@pytest.mark.parametrize("name", ["fleet.yaml", "fleet.YML", "fleet.yaml.gz"])
@pytest.mark.parametrize("content", [FLOW, f"{FLOW}---\n{FLOW}", f"{json.dumps(node())}\n---\n{FLOW}"])
def test_yaml_in_flow_style_is_read_where_the_name_says_so(tmp_path: Path, content: str, name: str) -> None:
    packed = gzip.compress(content.encode()) if name.endswith(".gz") else content
    assert [one.metadata.name for one in read(tmp_path, packed, name).nodes] == ["gpu-0"]


def test_json_under_a_name_of_yaml_is_read_and_flow_style_under_one_of_json_refused(tmp_path: Path) -> None:
    assert len(read(tmp_path, as_kubectl(listed(node())), "fleet.yaml").nodes) == 1
    assert "the JSON is malformed" in refusal(tmp_path, FLOW)
    with pytest.raises(DumpError, match="the YAML is malformed"):
        read(tmp_path, "{apiVersion: [v1", "fleet.yaml")


@pytest.mark.parametrize("form", [as_kubectl, as_json, as_yaml])
def test_a_single_object_is_a_dump(tmp_path: Path, form: Callable[[Object], str]) -> None:
    dump = read(tmp_path, form(node("alone")))
    assert [n.metadata.name for n in dump.nodes] == ["alone"]
    assert dump.problems == ()


@pytest.mark.parametrize(
    "text",
    [
        '{"kind": "PodList", "apiVersion": "v1", "items": []}',
        '{"kind": "NodeList", "apiVersion": "v1", "items": null}',
    ],
)
def test_an_empty_list_is_an_empty_cluster(text: str, tmp_path: Path) -> None:
    file = tmp_path / "m"
    file.write_text(text)
    dump = read_dump(file)
    assert not dump.has_objects
    assert not dump.problems


@pytest.mark.parametrize("form", [as_kubectl, as_json, as_yaml])
def test_an_empty_list_of_anything_is_an_empty_cluster_too_and_told(
    tmp_path: Path, form: Callable[[Object], str]
) -> None:
    dump = read(tmp_path, form(listed()))
    assert not dump.has_objects
    assert [str(problem) for problem in dump.problems] == [
        f"{tmp_path / 'fleet.json'} (List): items: no object at all, as of a cluster without nodes; "
        "if that is wrong, look where it was written"
    ]


def test_pods_without_any_node_are_a_cluster(tmp_path: Path) -> None:
    assert (read(tmp_path, as_json(listed(pod()))).nodes, read(tmp_path, as_json(pod())).problems) == ((), ())


def test_yaml_without_libyaml_reads_the_same(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    fast = read(tmp_path, as_yaml(listed(*EVERYTHING)))
    monkeypatch.setattr(dump_yaml, "Loader", yaml.SafeLoader)
    assert read(tmp_path, as_yaml(listed(*EVERYTHING))) == fast


BROKEN_POD = pod("x")
BROKEN_POD["spec"]["containers"][0]["resources"] = []


@pytest.mark.parametrize("form", [as_kubectl, as_json, as_yaml])
def test_a_broken_item_in_the_middle_is_one_problem(tmp_path: Path, form: Callable[[Object], str]) -> None:
    dump = read(tmp_path, form(listed(node(), pod("a"), BROKEN_POD, pod("b"))))
    assert [p.metadata.name for p in dump.pods] == ["a", "b"]
    assert dump.problems == (
        Problem(
            str(tmp_path / "fleet.json"),
            2,
            "Pod team-a/x",
            "spec.containers[0].resources",
            "expected object, got array; the item is skipped",
        ),
    )
    assert str(dump.problems[0]) == (
        f"{tmp_path / 'fleet.json'}: item 2 (Pod team-a/x): spec.containers[0].resources: "
        "expected object, got array; the item is skipped"
    )


def test_items_are_counted_through_all_documents_of_a_file(tmp_path: Path) -> None:
    dump = read(tmp_path, as_json(listed(node(), pod("a"))) + as_json(BROKEN_POD))
    assert [p.index for p in dump.problems] == [2]


BROKEN_ITEMS: dict[str, tuple[object, str]] = {
    "an array": ([1, 2], "item 1: expected object, got array; the item is skipped"),
    "null": (None, "item 1: expected object, got null; the item is skipped"),
    "a kind that is no text": ({"kind": 7}, "item 1: kind: expected str, got int; the item is skipped"),
    "no kind": (
        {"metadata": {"name": "x"}},
        "item 1 (x): kind: expected the kind of the object, found none; the item is skipped",
    ),
    "no name": (
        {"kind": "Pod", "metadata": {"namespace": "team"}},
        "item 1 (Pod team/): metadata.name: expected a name, found none; the item is skipped",
    ),
    "unreadable metadata": (
        {"kind": "Pod", "metadata": "x"},
        "item 1 (Pod): metadata: expected object, got str; the item is skipped",
    ),
    "a quantity that is an array": (
        node("x", **{"cpu": "1", "nvidia.com/gpu": [8]}),
        "item 1 (Node x): status.allocatable[nvidia.com/gpu]: expected int | float | str, got array; "
        "the item is skipped",
    ),
    "a quantity that is a boolean": (
        {
            "kind": "Pod",
            "metadata": {"name": "x"},
            "spec": {"containers": [{"resources": {"limits": {"a": True}}}]},
        },
        "item 1 (Pod x): spec.containers[0].resources.limits[a]: expected int | float | str, got bool; "
        "the item is skipped",
    ),
    "a list within the list": (
        listed(pod()),
        "item 1 (List): items: expected objects in an array that is in no other; the item is skipped",
    ),
    "a name over several lines": (
        {"kind": "Pod", "metadata": {"name": "x\nERROR y"}, "spec": []},
        "item 1 (Pod x\\nERROR y): spec: expected object, got array; the item is skipped",
    ),
}


@pytest.mark.parametrize("form", [as_kubectl, as_json, as_yaml])
@pytest.mark.parametrize(("item", "message"), BROKEN_ITEMS.values(), ids=BROKEN_ITEMS.keys())
def test_broken_items_are_located(
    tmp_path: Path, form: Callable[[Any], str], item: object, message: str
) -> None:
    dump = read(tmp_path, form(listed(node(), item, node("last"))))
    assert [str(p) for p in dump.problems] == [f"{tmp_path / 'fleet.json'}: {message}"]
    assert [n.metadata.name for n in dump.nodes] == ["gpu-0", "last"]


def test_a_syntax_error_inside_one_item_of_kubectl_output_costs_that_item_alone(tmp_path: Path) -> None:
    text = as_kubectl(listed(node(), pod("a"), pod("b"))).replace('"name": "a"', '"name": oops')
    dump = read(tmp_path, text)
    assert [p.metadata.name for p in dump.pods] == ["b"]
    (problem,) = dump.problems
    assert (problem.index, problem.object) == (1, "Pod")
    assert "malformed" in problem.detail


def test_an_item_that_is_not_utf8_costs_that_item_alone(tmp_path: Path) -> None:
    text = as_json(listed(node(), pod("pod-a"), pod("b"))).encode().replace(b'"pod-a"', b'"\xff"')
    dump = read(tmp_path, text)
    assert [p.metadata.name for p in dump.pods] == ["b"]
    assert [(p.index, p.detail) for p in dump.problems] == [
        (1, "expected UTF-8, found the byte 0xff; the item is skipped")
    ]


def test_of_two_objects_of_one_name_the_later_counts(tmp_path: Path) -> None:
    later = node("twice", cpu="2")
    dump = read(tmp_path, as_json(listed(node("twice", cpu="1"), node("other"), later)))
    assert [(n.metadata.name, n.status.allocatable) for n in dump.nodes] == [
        ("twice", {"cpu": "2"}),
        ("other", {"cpu": "8", "nvidia.com/gpu": "4"}),
    ]
    assert [(p.index, p.object, p.detail) for p in dump.problems] == [
        (2, "Node twice", "expected each object once, found it before; the later one counts")
    ]


def agent(observed_at: str) -> Object:
    group = "fairway.dev/v1alpha1"
    return {"apiVersion": group, "kind": "NodeDevices", "metadata": {"name": "n"}, "observedAt": observed_at}


NEW, OLD, NEVER = agent("2026-11-22T10:00:00+02:00"), agent("2026-11-22T07:00:00Z"), agent("never")


@pytest.mark.parametrize(
    ("first", "second", "counting"),
    [
        (NEW, OLD, 0),
        (OLD, NEW, 1),
        (NEVER, OLD, 1),
        (OLD, NEVER, 0),
        (NEVER, NEVER, 1),
        (NEW, NEW, 1),
        (node("n", cpu="1"), node("n", cpu="2"), 1),
        (pod("n", labels={"x": "a"}), pod("n", labels={"x": "b"}), 1),
    ],
)
def test_of_what_is_there_twice_what_was_observed_last_counts_and_both_are_named(
    first: Object, second: Object, counting: int, tmp_path: Path
) -> None:
    files = [tmp_path / "one.json", tmp_path / "two.json"]
    for file, item in zip(files, (first, second), strict=True):
        file.write_text(as_json(listed(node("other"), item)) if file == files[0] else as_json(listed(item)))
    found, wanted = read_dumps(files), read_dump(files[counting])
    kind = str(first["kind"])
    assert [one for one in found.nodes if one.metadata.name == "n"] == [
        one for one in wanted.nodes if one.metadata.name == "n"
    ]
    assert (found.pods, found.of(NodeDevices)) == (wanted.pods, wanted.of(NodeDevices))
    (problem,) = found.problems
    assert problem.object == f"{kind} {'team-a/n' if kind == 'Pod' else 'n'}"
    assert f"found it in {files[0]}, too; that of {files[counting]} counts" in str(problem)
    assert str(problem).startswith(f"{files[1]} (")
    together = read(tmp_path, as_json(listed(node("other"), first, second)))
    assert (together.nodes, together.pods, together.of(NodeDevices)) == (
        found.nodes, found.pods, found.of(NodeDevices)
    )  # fmt: skip
    assert [one.object for one in together.problems] == [problem.object]


def test_the_same_name_in_another_namespace_or_kind_is_another_object(tmp_path: Path) -> None:
    dump = read(tmp_path, as_json(listed(pod("x", "a"), pod("x", "b"), node("x"))))
    assert (len(dump.pods), len(dump.nodes), dump.problems) == (2, 1, ())


def test_kinds_of_other_api_groups_are_passed_over(tmp_path: Path) -> None:
    foreign = {**node("foreign"), "apiVersion": "infra.example.com/v1"}
    assert [n.metadata.name for n in read(tmp_path, as_json(listed(node(), foreign))).nodes] == ["gpu-0"]
    assert "found infra.example.com/v1 Node (1)" in refusal(tmp_path, as_json(foreign))


def test_one_page_of_a_list_is_a_problem_of_the_file(tmp_path: Path) -> None:
    dump = read(tmp_path, as_json(listed(without_kind(pod()), kind="PodList", **{"continue": "abc"})))
    assert [str(p) for p in dump.problems] == [
        f"{tmp_path / 'fleet.json'} (PodList): metadata.continue: "
        "expected the whole list, found one page of it; objects are missing"
    ]
    assert read(tmp_path, as_yaml(listed(pod(), **{"continue": "abc"}))).problems[0].index == -1


# Quantities and labels


@pytest.mark.parametrize(
    ("written", "cpu_milli"),
    [
        ("1e3", 1_000_000),
        ("0x10", 16_000),
        ("-0x1", -1000),
        ("+8", 8000),
        ("010", 8000),
        ("0o10", 8000),
        ("0b11", 3000),
        ("019", 19_000),
        ("1_000", 1_000_000),
        ("5.", 5000),
        ("1.50", 1500),
        ("4", 4000),
        ("'4'", 4000),
        ("100m", 100),
        (".5", 500),
    ],
)
def test_yaml_quantities_are_what_kubernetes_makes_of_them(
    tmp_path: Path, written: str, cpu_milli: int
) -> None:
    text = f"kind: Node\nmetadata: {{name: node}}\nstatus:\n  allocatable:\n    cpu: {written}\n"
    (only,) = read(tmp_path, text).nodes
    assert parse_amounts(only.status.allocatable) == {"cpu": cpu_milli}


@pytest.mark.parametrize("written", ["1:30", "2024-01-01", "'0x10'", "0b2", "0o9", "_1", "._5"])
def test_yaml_texts_are_not_taken_for_quantities(tmp_path: Path, written: str) -> None:
    text = f"kind: Node\nmetadata: {{name: node}}\nstatus:\n  allocatable:\n    cpu: {written}\n"
    (only,) = read(tmp_path, text).nodes
    with pytest.raises(ResourceError):
        parse_amounts(only.status.allocatable)


def test_an_empty_yaml_quantity_is_left_out(tmp_path: Path) -> None:
    (only,) = read(
        tmp_path, "kind: Node\nmetadata: {name: node}\nstatus: {allocatable: {cpu: , pods: ~}}\n"
    ).nodes
    assert parse_amounts(only.status.allocatable) == {}


@pytest.mark.parametrize(
    ("written", "text"),
    [
        ("'yes'", "yes"),
        ("yesterday", "yesterday"),
        ("1e400", "1e400"),
        ("'1.20'", "1.20"),
        ("1:30", "1:30"),
        ("2024-01-01", "2024-01-01"),
        ('""', ""),
    ],
)
def test_yaml_label_values_are_text(tmp_path: Path, written: str, text: str) -> None:
    dump = read(tmp_path, f"kind: Node\nmetadata:\n  name: node\n  labels:\n    a: {written}\n")
    assert dump.nodes[0].metadata.labels == {"a": text}
    assert dump.problems == ()


@pytest.mark.parametrize(
    ("written", "text", "found"),
    [("1.20", "1.20", "number"), ("3", "3", "number"), ("true", "true", "bool"), ("null", "", "null")],
)
@pytest.mark.parametrize(
    "template",
    [
        "kind: Node\nmetadata:\n  name: node\n  generation: 7\n  labels:\n    a: %s\n    b: fine\n",
        '{"kind":"Node","metadata":{"name":"node","generation":7,"labels":{"a":%s,"b":"fine"}}}',
    ],
    ids=["yaml", "json"],
)
def test_label_values_that_are_no_text_are_made_text_as_written(
    tmp_path: Path, template: str, written: str, text: str, found: str
) -> None:
    dump = read(tmp_path, template % written)
    (only,) = dump.nodes
    assert only.metadata.labels == {"a": text, "b": "fine"}
    assert only.metadata.generation == 7
    assert [(p.object, p.field, p.detail) for p in dump.problems] == [
        ("Node node", "metadata.labels[a]", f"expected text, got {found}; read as {text!r}")
    ]


@pytest.mark.parametrize("written", ["yes", "On", "Y", "TRUE"])
def test_words_that_kubectl_takes_for_booleans_are_such(tmp_path: Path, written: str) -> None:
    dump = read(tmp_path, f"kind: Node\nmetadata: {{name: node, labels: {{a: {written}}}}}\n")
    assert dump.nodes[0].metadata.labels == {"a": "true"}
    assert [p.detail for p in dump.problems] == ["expected text, got bool; read as 'true'"]


def test_a_label_that_cannot_be_text_is_left_out(tmp_path: Path) -> None:
    text = '{"kind":"Node","metadata":{"name":"n","labels":{"a":[1],"b":"c"},"annotations":{"d":{}}}}'
    dump = read(tmp_path, text)
    assert dump.nodes[0].metadata.labels == {"b": "c"}
    assert [(p.field, p.detail) for p in dump.problems] == [
        ("metadata.labels[a]", "expected text, got array; it is left out"),
        ("metadata.annotations[d]", "expected text, got object; it is left out"),
    ]


# Files of which nothing can be read


KUBECTL = as_kubectl(listed(*EVERYTHING))
UNREADABLE: dict[str, tuple[str | bytes, str]] = {
    "empty": ("", "the file is empty"),
    "white space": (" \n\n", "the file is empty"),
    "truncated JSON": (KUBECTL[:700], "breaks off at the end of the file, line 29, column"),
    "truncated compact JSON": (as_json(node())[:-1], "breaks off at the end of the file, line 1"),
    "truncated second document": (as_json(node()) + as_json(pod())[:-5], "breaks off at the end of the file"),
    "malformed JSON": ('{\n "kind": List\n}', "line 2, column 10 (byte 11): the JSON is malformed"),
    "text after JSON": (as_json(node()) + "\n$ ", "line 2, column 1"),
    "an array": ("[1]", "line 1, column 1 (byte 0): expected a JSON object, found '['"),
    "truncated YAML list": (
        as_yaml(listed(node(), pod())).split("kind: List")[0],
        "breaks off: no kind follows the items",
    ),
    "truncated YAML": ("kind: List\nitems:\n- {a: 'b", "line 3, column"),
    "malformed YAML": ("kind: List\n\titems: [", "line 2, column 1"),
    "YAML documents without a line between": (
        as_yaml(listed(node())) + as_yaml(listed(pod())),
        "'apiVersion' is there twice: expected a line of --- between documents",
    ),
    "a table": ("NAME    STATUS   ROLES\ngpu-0   Ready    <none>\n", "expected a mapping with a kind"),
    "truncated gzip": (gzip.compress(KUBECTL.encode())[:-20], "the gzip data breaks off after"),
    "damaged gzip": (gzip.compress(KUBECTL.encode())[:-8] + b"\0" * 8, "the gzip data is damaged after"),
    "gzip of nothing": (gzip.compress(b""), "the file is empty"),
    "binary": (b"\x7fELF\x02\x01\x01\0\0\0", "found binary data"),
    "gzip in gzip": (gzip.compress(gzip.compress(KUBECTL.encode())), "found"),
    "UTF-16": (KUBECTL.encode("utf-16"), "expected UTF-8, found UTF-16"),
    "other kinds only": (
        as_json(listed(*[{"kind": "ConfigMap"}] * 2, {"kind": "Service"})),
        "found ConfigMap (2), Service (1)",
    ),
    "an error from the server": (
        "Error from server (Forbidden): nodes is forbidden\n",
        "kind: expected the kind of the object, found none",
    ),
    "nothing but broken items": (as_json(listed(BROKEN_POD)), "the first problem is"),
}


@pytest.mark.parametrize(("content", "expected"), UNREADABLE.values(), ids=UNREADABLE.keys())
def test_a_file_that_cannot_be_read_is_refused_with_its_name_and_the_place(
    tmp_path: Path, content: str | bytes, expected: str
) -> None:
    assert expected in refusal(tmp_path, content)


def test_a_missing_file_and_a_folder_are_refused(tmp_path: Path) -> None:
    with pytest.raises(DumpError, match=r"gone\.json: there is no such file; write it with: kubectl get"):
        read_dump(tmp_path / "gone.json")
    with pytest.raises(DumpError, match="the file cannot be read: Is a directory"):
        read_dump(tmp_path)


def test_everybody_is_told_to_dump_the_same(tmp_path: Path) -> None:
    root = Path(__file__).parents[2]
    told = [root / "README.md", root / "docs" / "report.md", root / "admin" / "main.py"]
    assert all(DUMPED in re.sub(r"\s", "", file.read_text()) for file in told)
    with pytest.raises(DumpError, match=f"kubectl get {DUMPED} -A -o json"):
        read_dump(tmp_path / "gone.json")


@pytest.mark.parametrize("pack", [bytes, gzip.compress], ids=["plain", "gzip bomb"])
def test_a_dump_larger_than_the_limit_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, pack: Callable[[bytes], bytes]
) -> None:
    monkeypatch.setattr(dump_text, "_MAX_BYTES", 1 << 20)
    assert "larger than" in refusal(tmp_path, pack(b'{"a": "' + b"x" * (2 << 20)))


@pytest.mark.parametrize("pack", [bytes, gzip.compress], ids=["plain", "gzip"])
def test_a_pipe_is_read_whole(pack: Callable[[bytes], bytes]) -> None:
    text = as_json(listed(*EVERYTHING[:2])).encode()
    read, write = os.pipe()
    os.write(write, pack(text))
    os.close(write)
    try:
        assert dump_text.dump_text(Path(f"/dev/fd/{read}")) == text
    finally:
        os.close(read)


def test_a_pipe_larger_than_the_limit_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(dump_text, "_MAX_BYTES", 1 << 10)
    read, write = os.pipe()
    os.write(write, b"x" * (2 << 10))
    os.close(write)
    try:
        with pytest.raises(MalformedDump, match="larger than"):
            dump_text.dump_text(Path(f"/dev/fd/{read}"))
    finally:
        os.close(read)


def test_truncated_anywhere_means_refused(tmp_path: Path) -> None:
    for size in range(1, len(KUBECTL), 97):
        refusal(tmp_path, KUBECTL[:size])


# Hostile nesting


def nested(depth: int) -> str:
    return "[" * depth + "]" * depth


@pytest.mark.parametrize("depth", [2_000, 200_000])
def test_json_nested_without_end_is_refused(tmp_path: Path, depth: int) -> None:
    assert "nested too deeply" in refusal(tmp_path, f'{{"kind":"List","items":[{nested(depth)}]}}')


def test_a_deeply_nested_item_of_kubectl_output_costs_that_item_alone(tmp_path: Path) -> None:
    text = as_kubectl(listed(node(), pod("deep"), pod("b"))).replace(
        '"deep"', f'"deep", "x": {nested(5_000)}'
    )
    dump = read(tmp_path, text)
    assert [p.metadata.name for p in dump.pods] == ["b"]
    assert [(p.index, p.detail) for p in dump.problems] == [(1, "nested too deeply; the item is skipped")]


def test_a_template_too_deep_for_later_readers_costs_that_item_alone(tmp_path: Path) -> None:
    deep = json.dumps(owner("Deployment")).replace('"image": "x"', f'"image": {nested(900)}')
    dump = read(tmp_path, as_json(node()) + deep)
    assert dump.of(Deployment) == ()
    assert [(p.object, p.field) for p in dump.problems] == [("Deployment team-a/web", "spec.template")]


@pytest.mark.parametrize(
    "text",
    ["kind: List\nitems: [" + "[" * 100_000, "a: " + "- " * 100_000, "{a: " * 3_000],
    ids=["flow", "block", "map"],
)
def test_yaml_nested_without_end_is_refused(tmp_path: Path, text: str) -> None:
    refusal(tmp_path, "# not JSON\n" + text)


def test_yaml_nested_too_deeply_says_so(tmp_path: Path) -> None:
    message = refusal(tmp_path, f"kind: List\nitems:\n- {nested(300)}\n")
    assert "line 3: nested more than 256 levels deep" in message


def test_yaml_alias_bombs_are_refused(tmp_path: Path) -> None:
    bomb = "a: &a [x,x,x,x,x,x,x,x,x]\n" + "".join(
        f"{chr(98 + n)}: &{chr(98 + n)} [{','.join(['*' + chr(97 + n)] * 9)}]\n" for n in range(20)
    )
    assert "line 2: expected plain data, found an alias" in refusal(tmp_path, bomb)


def test_yaml_tags_make_no_objects(tmp_path: Path) -> None:
    text = "kind: !!python/name:os.system Node\nmetadata: {name: !!int 5}\n"
    assert [n.metadata.name for n in read(tmp_path, text).nodes] == ["5"]


def test_yaml_mapping_keys_must_be_text(tmp_path: Path) -> None:
    assert "line 1: expected text as the key" in refusal(tmp_path, "? [a, b]\n: c\n")


# Any bytes at all


@settings(max_examples=300, deadline=None)
@given(
    whole=st.sampled_from([KUBECTL, as_json(listed(*EVERYTHING)), as_yaml(listed(*EVERYTHING)), ""]),
    at=st.floats(0, 1),
    cut=st.integers(0, 40),
    put=st.one_of(
        st.binary(max_size=20),
        st.sampled_from([b"\n        {", b"\n        }", b"- ", b"[", b'"', b"&a", b"*a"]),
    ),
)
def test_damaged_files_are_read_or_refused_and_nothing_else(
    tmp_path_factory: pytest.TempPathFactory, whole: str, at: float, cut: int, put: bytes
) -> None:
    content = whole.encode()
    start = int(at * len(content))
    file = tmp_path_factory.getbasetemp() / "damaged"
    file.write_bytes(content[:start] + put + content[start + cut :])
    assert all(message.startswith(str(file)) for message in complaints(file))


def complaints(file: Path) -> list[str]:
    """What reading the file has to complain of."""
    try:
        return [str(problem) for problem in read_dump(file).problems]
    except DumpError as error:
        return [str(error)]


# Memory


@pytest.mark.parametrize("form", [as_kubectl, as_json])
def test_reading_needs_the_file_and_the_result_and_little_else(
    tmp_path: Path, form: Callable[[Object], str]
) -> None:
    managed = [{"manager": "kubelet", "fieldsV1": {f"f:{n}": {"f:type": {}} for n in range(100)}}]
    pods = [pod(f"pod-{n}", managedFields=managed) for n in range(1_000)]
    owners = [
        {**owner("Deployment"), "metadata": {"name": f"d{n}", "managedFields": managed}} for n in range(1_000)
    ]
    content = form(listed(node(), *pods, *owners)).encode()
    file = tmp_path / "fleet.json"
    file.write_bytes(content)
    tracemalloc.start()
    try:
        dump = read_dump(file)
        kept, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert (len(dump.pods), len(dump.of(Deployment))) == (1_000, 1_000)
    assert kept < 0.6 * len(content)
    assert peak < 1.2 * len(content) + kept
