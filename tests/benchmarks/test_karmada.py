"""What is reckoned from the pods and bindings of a real Karmada, and what is submitted to it."""

import argparse
from dataclasses import replace

import pytest

from benchmarks import ordinary_day
from benchmarks.day_rules import ROWS, Row, outcome_of, row_of
from benchmarks.karmada import __main__ as karmada_main
from benchmarks.karmada import loads
from benchmarks.karmada.job_sets import jobs_of
from benchmarks.karmada.play import Played, Releases
from benchmarks.karmada.seen import State, Submitted, Sums, broken_gpus, states
from benchmarks.karmada.ways import Way, simulated
from fairway.kube.objects import ObjectMeta
from fairway.names import ADMISSION, MAX_RUNTIME
from tests.e2e.objects import (
    GPU,
    Binding,
    BindingSpec,
    Obj,
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


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row.label)
def test_the_day_is_that_of_the_simulation(row: Row) -> None:
    load = loads.day(1, row.rules, 231.0, 1_800.0)
    simulated = [one for part in ordinary_day.drawn(1, row.rules) for one in part]
    assert [(one.key, one.at_s, one.runs_s, one.pods) for one in load.workloads] == [
        (one.key, one.created_ms / 1000, one.runs_ms / 1000, {one.gpus: one.pods}) for one in simulated
    ]
    assert [_said(one.workload.body) for one in load.workloads] == [_said(one.template) for one in simulated]
    assert len([one for one in load.workloads if one.at_s >= load.from_s]) == 260
    assert (load.queues, load.until_s, load.to_the_end_s) == (row.rules.spec, 251.0, 1_800.0)


@pytest.mark.parametrize(
    ("label", "limited", "quotas"),
    [
        ("by default", 0, ordinary_day.TEAMS),
        ("limits, from 0, depth 8", 290, ordinary_day.TEAMS),
        ("drain 60s, depth 6", 290, dict.fromkeys(ordinary_day.TEAMS, 88)),
    ],
)
def test_rules_are_in_what_work_says_and_in_what_teams_own(
    label: str, limited: int, quotas: dict[str, int]
) -> None:
    load = loads.day(1, row_of(label).rules, 231.0)
    assert sum(_said(one.workload.body) is not None for one in load.workloads) == limited
    assert load.quotas == quotas


def _said(body: Obj) -> str | None:
    said: str | None = body["metadata"]["labels"].get(MAX_RUNTIME)
    return said


@pytest.mark.parametrize(
    ("text", "label"),
    [
        ("strict", "strict"),
        ("default", "by default"),
        ("limits, from 0, depth 8", "limits, from 0, depth 8"),
        ("drain 60s, depth 6", "nobody borrows, limits, from 0, drain 60s, depth 6"),
    ],
)
def test_rules_are_named_by_their_label_or_by_what_is_in_it_alone(text: str, label: str) -> None:
    assert row_of(text).label == label


@pytest.mark.parametrize(
    ("text", "says", "offered"),
    [
        ("depth 9", "'depth 9' is in none", [row.label for row in ROWS]),
        ("depth 4", "'depth 4' is in several", [row.label for row in ROWS if "depth 4" in row.label]),
        ("", "'' is in several", [row.label for row in ROWS]),
    ],
)
def test_rules_that_none_or_several_have_in_their_label_are_refused_with_the_choices(
    text: str, says: str, offered: list[str]
) -> None:
    with pytest.raises(argparse.ArgumentTypeError) as refused:
        row_of(text)
    expected = f"expected a label of day_rules, or what is in one alone; {says}: {'; '.join(offered)}"
    assert str(refused.value) == expected


@pytest.mark.parametrize(
    ("line", "says"),
    [
        ("day --rules depth", "argument --rules: expected a label of day_rules, or"),
        ("day --rules fair", "'fair' is in none: best effort; strict; by default; limits, from 0, depth 8"),
        ("tight --rules strict", "--rules and --to-the-end: expected only with day, found with tight"),
        ("rates --to-the-end", "--rules and --to-the-end: expected only with day, found with rates"),
    ],
)
def test_options_that_mean_nothing_are_refused(
    line: str, says: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit, match="2"):
        karmada_main.main(line.split())
    assert says in " ".join(capsys.readouterr().err.split())


@pytest.mark.parametrize("way", Way)
def test_each_way_is_simulated_for_as_long_as_the_real_one_is_looked_at(way: Way) -> None:
    seen = simulated(way, 3, row_of("drain 60s, depth 6").rules, 10.0, 600.0)
    assert len(seen.workloads) == 9
    assert all(one.started_ms is not None for one in seen.workloads)


WAITED_S = {"1-2 GPUs": (1.0, 3.0), "3-6 GPUs": (2.0,), "one pod of 8": (None, 4.0), "2x8 or 4x4": (9.0,)}
"""Until they started; None of one that waits still, when 20 s are over."""


def test_real_and_simulated_days_that_go_alike_have_the_same_figures() -> None:
    real, simulated = [], []
    for size in ordinary_day.SIZES:
        for wait_s in WAITED_S[size.name]:
            one = ordinary_day.Submitted(size, "team", "name", 1, 1, 1_000)
            simulated.append(replace(one, started_ms=None if wait_s is None else int(1_000 * wait_s)))
            real.append(replace(gang(size.name), size=size.name, started_s=wait_s))
    sums = Sums(waiting_s=10.0, used_waiting=660.0)
    played = Played(real, sums, 20.0, Releases())
    day = ordinary_day.Day([], simulated, until_ms=20_000, used=0.75)
    assert karmada_main.outcome_of(played) == outcome_of([day])
    assert [figure.value for figure in outcome_of([day]).figures()] == [2.0, 9.0, 4.5, 75.0, 1]


@pytest.mark.parametrize("seed", range(5))
def test_tight_gangs_fill_whole_nodes(seed: int) -> None:
    for one in loads.tight(seed, 10.0).workloads:
        assert one.gpus == 16
        assert one.pods[8] == 1


def test_the_jobs_of_a_set_are_named_as_its_controller_names_them() -> None:
    assert jobs_of(mixed_job_set("g", {8: 1, 2: 4})) == ["g-of-8-0", "g-of-2-0"]
    assert jobs_of(job("j")) == ["j"]
