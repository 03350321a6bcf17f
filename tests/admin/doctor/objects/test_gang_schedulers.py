"""Workloads whose pods name a gang scheduler that their clusters do not have."""

from collections.abc import Sequence

import pytest

from admin.doctor.finding import Verdict
from queue_dispatcher.bindings.cluster import CLUSTERS
from queue_dispatcher.bindings.objects import RESOURCE_BINDINGS
from tests.admin.doctor.objects.builders import JOBS, Obj, World, well

VOLCANO, KAI = "scheduling.volcano.sh/v1beta1", "scheduling.run.ai/v2alpha2"
NATIVE = "scheduling.k8s.io/v1beta1"


def serving(world: World, name: str, *versions: str, complete: bool | None = True) -> None:
    """The cluster serves PodGroups of these API groups; ``complete``: what its condition says, None for
    none.
    """
    (cluster,) = (one for one in world.objects[CLUSTERS.name] if one["metadata"]["name"] == name)
    status = cluster["status"]
    said = [] if complete is None else [{"type": "CompleteAPIEnablements", "status": str(complete)}]
    status["conditions"] = [{"type": "Ready", "status": "True"}, *said]
    status["apiEnablements"] = [
        {"groupVersion": "batch/v1", "resources": [{"name": "jobs", "kind": "Job"}]},
        *(
            {"groupVersion": one, "resources": [{"name": "podgroups", "kind": "PodGroup"}]}
            for one in versions
        ),
    ]


def naming(scheduler: str, workload: str) -> World:
    """A Job of the world whose pods name the scheduler."""
    world = well()
    pod = {"containers": [{"name": "main"}], "schedulerName": scheduler}
    spec: Obj = {"parallelism": 2, "template": {"spec": pod}}
    for job in world.objects[JOBS.name]:
        if job["metadata"]["name"] == workload:
            job["spec"] = spec
    return world


@pytest.mark.parametrize(
    ("scheduler", "workload", "m1", "m2", "told"),
    [
        ("volcano", "runs", (), (VOLCANO,), "it is in m1, without PodGroups of scheduling.volcano.sh"),
        ("volcano", "runs", (KAI, NATIVE), (VOLCANO,), "it is in m1, without PodGroups"),
        ("kai-scheduler", "runs", (VOLCANO,), (), "it is in m1, without PodGroups of scheduling.run.ai"),
        ("volcano", "waits", (VOLCANO,), (), "it may go to m2, without PodGroups"),
        ("volcano", "waits", (), (), "it may go to m1, m2, without PodGroups"),
        ("volcano", "runs", (VOLCANO,), (), ""),
        ("volcano", "ended", (), (), ""),
        ("kai-scheduler", "waits", (KAI,), (KAI,), ""),
        ("default-scheduler", "waits", (), (), ""),
    ],
)
def test_who_names_a_scheduler_that_is_not_there_is_told(
    scheduler: str, workload: str, m1: Sequence[str], m2: Sequence[str], told: str
) -> None:
    world = naming(scheduler, workload)
    serving(world, "m1", *m1)
    serving(world, "m2", *m2)
    said = world.findings()
    assert said.keys() == ({"gang-schedulers"} if told else set())
    for found in said.get("gang-schedulers", ()):
        assert found.verdict is Verdict.WARNING
        assert found.subject == f"ResourceBinding team/{workload}-job"
        assert told in found.message
        assert f"name the scheduler {scheduler}" in found.message


@pytest.mark.parametrize("complete", [None, False], ids=["no condition", "False"])
def test_what_karmada_has_not_read_is_neither_missing_nor_there(complete: bool | None) -> None:
    world = naming("volcano", "waits")
    serving(world, "m1", complete=complete)
    serving(world, "m2", VOLCANO, complete=complete)
    (found,) = world.findings()["gang-schedulers"]
    assert found.verdict is Verdict.UNKNOWN
    assert "it may go to m1, and of what is served there Karmada has not read all" in found.message
    assert found.remedy


def test_what_cannot_be_read_is_left_to_others() -> None:
    world = naming("volcano", "runs")
    serving(world, "m1")
    world.objects[JOBS.name][1]["spec"]["template"]["spec"]["containers"] = []
    assert world.findings() == {}
    world.empty(RESOURCE_BINDINGS)
    assert "gang-schedulers" not in world.findings()
