"""Answers worked out here, from a cluster's objects: what beyond nodes and pods they heed."""

from pathlib import Path

import pytest

from admin.estimates import Rules
from admin.local import LocalEstimates
from admin.observing import Observed
from fairway.accelerators.builtin import builtin_catalogue
from fairway.kube.dumps import read_dump
from tests.admin.dumps import write_dump
from tests.builders import node

TOPOLOGY = (
    "Topology",
    {
        "apiVersion": "kueue.x-k8s.io/v1beta1",
        "metadata": {"name": "dc"},
        "spec": {"levels": [{"nodeLabel": "dc/hall"}, {"nodeLabel": "dc/row"}]},
    },
)


@pytest.mark.parametrize(("said", "levels"), [((), {"dc/hall", "dc/row"}), (("dc/row",), {"dc/row"})])
def test_levels_are_those_of_kueue_s_topology_unless_the_administrator_says_others(
    tmp_path: Path, said: tuple[str, ...], levels: set[str]
) -> None:
    gpus = node("a").gpus(8).label({"dc/hall": "1", "dc/row": "7"})
    built = {
        "metadata": {"name": "a", "labels": dict(gpus.labels)},
        "status": {"allocatable": dict(gpus.allocatable)},
    }
    dump = read_dump(write_dump(tmp_path / "m.json", [("Node", built), TOPOLOGY]))
    summary = LocalEstimates(Rules(builtin_catalogue(), said)).summary(Observed("m", "m.json", dump, 0.0))
    assert {level.level for level in summary.levels} == levels
