"""What is reckoned from the pods and bindings of a real Karmada, and what is submitted to it."""

import pytest

from benchmarks.karmada import loads
from benchmarks.karmada.job_sets import jobs_of
from benchmarks.karmada.seen import State, Submitted, Sums, broken_gpus, states
from fairway.kube.objects import ObjectMeta
from fairway.names import ADMISSION
from tests.e2e.objects import (
    GPU,
    Binding,
    BindingSpec,
    Pod,
    PodContainer,
    PodResources,
    PodSpec,
    PodStatus,
    Suspension,
)
from tests.e2e.workloads import job, mixed_job_set


def pod(of: str, gpus: int, node: str = "", phase: str = "Running") -> Pod:
    container = PodContainer("main", PodResources({GPU: str(gpus)}))
    metadata = ObjectMeta(namespace="team", labels={"app": of})
    return Pod(metadata, PodSpec(node, [container]), PodStatus(phase))


def released(gpus: int, *, held: bool = False) -> Binding:
    record = f'{{"requests": {{"{GPU}": {gpus}}}}}'
    metadata = ObjectMeta(annotations={ADMISSION: record})
    return Binding(metadata, BindingSpec(suspension=Suspension(held)))


def gang(name: str, *, created: bool = True) -> Submitted:
    made = Submitted(job(name, 2, 8), "team", "2x8", {8: 2}, 0.0, 1.0)
    made.created_s = 0.0 if created else None
    return made


PODS = [
    pod("half", 8, "n0"),
    pod("half", 8, phase="Pending"),
    pod("ended", 8, "n1", "Succeeded"),
    pod("ended", 8, "n2", "Succeeded"),
    pod("small", 2, "n3"),
]
OF = [gang("half"), gang("ended"), gang("waits"), gang("later", created=False)]
BINDINGS = {
    "team/half-job": released(16),
    "team/ended-job": released(16),
    "team/waits-job": released(16, held=True),
}


def test_the_state_of_a_workload_is_that_of_its_pods_and_its_charge() -> None:
    assert states(PODS, BINDINGS, OF) == {
        "team/half-job": State(bound=1, held=8, running=1, charged=16),
        "team/ended-job": State(bound=2, held=0, running=2, charged=16),
        "team/waits-job": State(bound=0, held=0, running=0, charged=0),
    }


def test_gpu_seconds_go_to_who_holds_them_for_nothing() -> None:
    sums = Sums()
    for now_s in (2.0, 4.0):
        sums.add(now_s, 2.0, OF, states(PODS, BINDINGS, OF), broken=6, whole=8)
    assert (sums.charged, sums.used, sums.unbound, sums.half, sums.ended) == (128, 32, 32, 32, 64)
    assert (sums.crumbs, sums.whole_s) == (24, 4)
    assert sums.half_for_s == {"team/half-job": 4.0}


def test_only_nodes_that_are_in_use_are_broken() -> None:
    assert broken_gpus(PODS, dict.fromkeys(("n0", "n1", "n2", "n3"), 8)) == 6


def test_the_day_is_that_of_the_simulation() -> None:
    load = loads.day(1, 231.0)
    assert len([one for one in load.workloads if one.at_s >= load.from_s]) == 260


@pytest.mark.parametrize("seed", range(5))
def test_tight_gangs_fill_whole_nodes(seed: int) -> None:
    for one in loads.tight(seed, 10.0).workloads:
        assert one.gpus == 16
        assert one.pods[8] == 1


def test_the_jobs_of_a_set_are_named_as_its_controller_names_them() -> None:
    assert jobs_of(mixed_job_set("g", {8: 1, 2: 4})) == ["g-of-8-0", "g-of-2-0"]
    assert jobs_of(job("j")) == ["j"]
