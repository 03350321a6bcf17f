"""Kueue's Topology objects in dumps: every version of them, other objects of that name, and broken ones."""

import gzip
import json
from collections.abc import Callable
from pathlib import Path

import pytest
import yaml

from fairway.kube.dumps import Dump, DumpError, read_dump
from fairway.kube.resource import KUEUE_TOPOLOGIES
from fairway.kube.topologies import KueueTopology

Object = dict[str, object]


def topology(name: str, *labels: object, version: str = "kueue.x-k8s.io/v1beta2") -> Object:
    levels = [{"nodeLabel": label} for label in labels]
    return {"apiVersion": version, "kind": "Topology", "metadata": {"name": name}, "spec": {"levels": levels}}


def listed(*items: Object) -> Object:
    return {"apiVersion": "v1", "kind": "List", "items": list(items), "metadata": {}}


NODE: Object = {"apiVersion": "v1", "kind": "Node", "metadata": {"name": "n1"}}
BLOCK, HOST = "example.com/block", "kubernetes.io/hostname"


def read(tmp_path: Path, content: bytes) -> Dump:
    file = tmp_path / "fleet"
    file.write_bytes(content)
    return read_dump(file)


def as_json(document: Object) -> bytes:
    return json.dumps(document).encode()


def as_yaml(document: Object) -> bytes:
    return yaml.safe_dump(document).encode()


def zipped(document: Object) -> bytes:
    return gzip.compress(as_json(document))


def levels(dump: Dump) -> dict[str, list[str]]:
    return {
        t.metadata.name: [level.node_label for level in t.spec.levels or ()] for t in dump.of(KueueTopology)
    }


@pytest.mark.parametrize("written", [as_json, as_yaml, zipped])
@pytest.mark.parametrize("version", ["v1beta2", "v1beta1", "v1alpha1"])
def test_all_versions_are_read_in_all_forms(
    tmp_path: Path, written: Callable[[Object], bytes], version: str
) -> None:
    one = topology("tpu", BLOCK, HOST, version=f"kueue.x-k8s.io/{version}")
    dump = read(tmp_path, written(listed(NODE, one)))
    assert levels(dump) == {"tpu": [BLOCK, HOST]}
    assert (len(dump.nodes), dump.problems) == (1, ())


def test_a_list_of_them_alone_is_a_dump(tmp_path: Path) -> None:
    items = [topology("a", BLOCK), topology("b", HOST)]
    document: Object = {"apiVersion": "kueue.x-k8s.io/v1beta2", "kind": "TopologyList", "items": items}
    assert levels(read(tmp_path, as_json(document))) == {"a": [BLOCK], "b": [HOST]}


def test_topologies_of_others_are_passed_over(tmp_path: Path) -> None:
    others = topology("kai", BLOCK, version="kai.scheduler/v1alpha1")
    dump = read(tmp_path, as_json(listed(NODE, others)))
    assert (dump.of(KueueTopology), dump.problems) == ((), ())
    with pytest.raises(DumpError, match=r"kai\.scheduler/v1alpha1 Topology \(1\)"):
        read(tmp_path, as_json(listed(others)))


def test_a_broken_one_is_a_located_problem_and_costs_nothing_beside_it(tmp_path: Path) -> None:
    dump = read(tmp_path, as_json(listed(topology("bad", 7), NODE, topology("good", BLOCK))))
    assert levels(dump) == {"good": [BLOCK]}
    (problem,) = dump.problems
    assert (problem.index, problem.object, problem.field) == (0, "Topology bad", "spec.levels[0].nodeLabel")
    assert "expected str" in problem.detail


def test_without_levels_it_is_read_as_it_is(tmp_path: Path) -> None:
    bare: Object = {"apiVersion": "kueue.x-k8s.io/v1beta2", "kind": "Topology", "metadata": {"name": "x"}}
    assert levels(read(tmp_path, as_json(listed(NODE, bare)))) == {"x": []}


def test_versions_are_looked_for_from_the_newest() -> None:
    assert [kind.path.split("/")[3] for kind in KUEUE_TOPOLOGIES] == ["v1beta2", "v1beta1", "v1alpha1"]
    assert len({kind.name for kind in KUEUE_TOPOLOGIES}) == 1
