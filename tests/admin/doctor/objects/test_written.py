"""A file is looked at before it is applied: what an API server would refuse or drop is told."""

from pathlib import Path

import msgspec
import pytest
import yaml

from admin.doctor.catalogue import KINDS
from admin.doctor.dump_reading import PlaneDump
from admin.doctor.evidence import Evidence, Role
from admin.doctor.finding import Finding, Verdict
from admin.doctor.objects.local_queues import LOCAL_QUEUE_REFERENCES
from admin.doctor.objects.queue_fields import QUEUE_FIELDS
from admin.doctor.objects.queue_objects import QUEUE_TREE
from tests.admin.doctor.objects.builders import NOW_MS, Obj, cluster, well

CLUSTER = {"apiVersion": "cluster.karmada.io/v1alpha1", "kind": "Cluster", **cluster("m1")}


def ours(kind: str, spec: Obj, *, version: str = "v1alpha1", name: str = "main") -> Obj:
    return {
        "apiVersion": f"fairway.dev/{version}",
        "kind": kind,
        "metadata": {"name": name, "labels": {"any": "label"}},
        "spec": spec,
        "status": {"ofAnotherRelease": 1},
    }


def told(tmp_path: Path, *files: list[Obj]) -> list[Finding]:
    return list(QUEUE_FIELDS.findings(written(tmp_path, *files)))


def written(tmp_path: Path, *files: list[Obj]) -> Evidence:
    paths = []
    for number, objects in enumerate(files):
        paths.append(tmp_path / f"{number}.yaml")
        paths[-1].write_text(yaml.safe_dump_all([CLUSTER, *objects]))
    plane = PlaneDump(Role.KARMADA, "karmada", KINDS[Role.KARMADA]).read(*paths).plane
    return Evidence(NOW_MS, karmada=plane)


@pytest.mark.parametrize(
    ("kind", "spec", "field", "near"),
    [
        ("ClusterQueue", {"parnt": "root"}, "spec.parnt", "parent"),
        ("ClusterQueue", {"queueingStratgy": "StrictFIFO"}, "spec.queueingStratgy", "queueingStrategy"),
        ("ClusterQueue", {"fairSharing": {"halflife": "3h"}}, "spec.fairSharing.halflife", "halfLife"),
        (
            "ClusterQueue",
            {"preemption": {"borrowWithinCohort": {"policy": "Never"}}},
            "spec.preemption.borrowWithinCohort",
            "",
        ),
        (
            "ClusterQueue",
            {"resourceGroups": [{"coveredResources": ["pods"], "flavors": [{"name": "a", "resource": []}]}]},
            "spec.resourceGroups[0].flavors[0].resource",
            "resources",
        ),
        ("ServiceClass", {"priority": 1, "maxRuntme": "4h"}, "spec.maxRuntme", "maxRuntime"),
    ],
)
def test_a_field_that_there_is_not(kind: str, spec: Obj, field: str, near: str, tmp_path: Path) -> None:
    one = next(one for one in told(tmp_path, [ours(kind, spec)]) if "no such field" in one.message)
    assert one.verdict is Verdict.WARNING
    assert one.subject == f"{kind} main"
    assert one.message.startswith(f"{field}: there is no such field")
    assert one.message.partition("did you mean ")[2] == (f"{near}?" if near else "")
    assert one.remedy == f"correct it in {tmp_path / '0.yaml'}"


def test_kinds_and_versions_that_there_are_not(tmp_path: Path) -> None:
    found = told(
        tmp_path,
        [
            ours("CluserQueue", {}),
            ours("ServiceClass", {"priority": 1}, version="v1alpha2"),
            ours("Zebra", {}),
        ],
    )
    assert [one.verdict for one in found] == [Verdict.ERROR] * 3
    kinds = "kind: expected one of ClusterQueue, LocalQueue, ResourceFlavor, ServiceClass, found"
    assert [(one.subject, one.message) for one in found] == [
        ("CluserQueue main", f"{kinds} CluserQueue; did you mean ClusterQueue?"),
        (
            "ServiceClass main",
            "apiVersion: expected fairway.dev/v1alpha1, found fairway.dev/v1alpha2: it is refused",
        ),
        ("Zebra main", f"{kinds} Zebra"),
    ]


def test_an_object_that_is_there_twice_in_one_file_or_in_two(tmp_path: Path) -> None:
    one = ours("ServiceClass", {"priority": 1})
    (here,) = told(tmp_path, [one, one])
    assert (here.subject, here.verdict) == ("ServiceClass main", Verdict.WARNING)
    assert "found it there before: the later one counts" in here.message
    (there,) = told(tmp_path, [one], [one])
    assert f"found it in {tmp_path / '0.yaml'} before" in there.message
    assert str(tmp_path / "1.yaml") in there.remedy


def test_what_is_right_and_what_an_api_server_has_is_not_told(tmp_path: Path) -> None:
    spec: Obj = {
        "nodeLabels": {"any/name": "value"},
        "clusterSelector": {"matchExpressions": [{"key": "a", "operator": "In", "values": ["b"]}]},
        "capacityPolicy": {"type": "Static", "resources": {"nvidia.com/gpu": 8}},
    }
    # NodeDevices are of our group, and of member clusters.
    found = told(tmp_path, [ours("ResourceFlavor", spec), ours("NodeDevices", {"x": 1})])
    assert [one.verdict for one in found] == [Verdict.OK]
    evidence = well().evidence()
    assert evidence.karmada is not None
    assert evidence.karmada.written == ()
    assert msgspec.json.encode(well().findings().get("queue-fields")) == b"null"


def test_what_stands_in_a_file_alone_is_mended_there(tmp_path: Path) -> None:
    spec: Obj = {"parent": "gone", "weight": -1}
    stored = ours("ClusterQueue", spec, name="stored")
    stored["metadata"]["uid"] = "of-a-server"
    local = ours("LocalQueue", {"clusterQueue": "lost"})
    local["metadata"]["namespace"] = "team"
    evidence = written(tmp_path, [ours("ClusterQueue", spec), local], [stored])
    mends = {
        (check.name, one.subject): one.remedy
        for check in (QUEUE_FIELDS, QUEUE_TREE, LOCAL_QUEUE_REFERENCES)
        for one in check.findings(evidence)
        if one.verdict in (Verdict.WARNING, Verdict.ERROR)
    }
    file = tmp_path / "0.yaml"
    assert mends["queue-fields", "ClusterQueue main"] == f"correct the field: edit {file}"
    assert mends["queue-tree", "ClusterQueue main"] == f"edit {file}"
    assert mends["local-queues", "LocalQueue team/main"] == f"edit {file}, or create the ClusterQueue"
    assert mends["queue-tree", "ClusterQueue stored"] == "kubectl edit clusterqueue stored"
