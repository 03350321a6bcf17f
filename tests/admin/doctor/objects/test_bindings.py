"""Bindings that leak, are stuck, or got past the queues."""

from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path

import pytest

from admin.doctor.evidence import Evidence
from admin.doctor.finding import Verdict
from admin.doctor.karmada_kinds import CRON_JOBS
from admin.doctor.kinds import Kind
from admin.doctor.objects.waiting import DISPATCHER_LEADS
from fairway.kube.lease import LEASES
from fairway.names import ADMISSION, REQUEUE
from queue_dispatcher.api.kinds import CLUSTER_QUEUES, LOCAL_QUEUES, RESOURCE_FLAVORS
from queue_dispatcher.bindings.cluster import CLUSTERS
from queue_dispatcher.bindings.objects import CLUSTER_RESOURCE_BINDINGS, RESOURCE_BINDINGS
from queue_dispatcher.bindings.timestamp import format_ms
from tests.admin.doctor.installation import Installation
from tests.admin.doctor.objects.builders import (
    CREATED_MS,
    DEPLOYMENTS,
    GPU,
    JOBS,
    NOW_MS,
    Obj,
    World,
    admitted,
    apply,
    binding,
    components,
    ended,
    job,
    lease,
    unscheduled,
    well,
)

Change = Callable[[World], object]
REQUEUED = f'{{"count":1,"notBefore":"{format_ms(NOW_MS)}","enqueuedAt":"{format_ms(CREATED_MS)}"}}'


def add(world: World, name: str, labels: dict[str, str] | None = None, **of: object) -> Obj:
    """A Job and its binding; answers the binding."""
    world.add(JOBS, job(name, labels=labels))
    return world.add(RESOURCE_BINDINGS, binding(name, **of))  # type: ignore[arg-type]  # the arguments of binding


def unbound(world: World) -> object:
    """A workload that Karmada's scheduler never sees."""
    add(world, "odd", held=True)["metadata"]["labels"] = {}
    return None


SEEN = {"schedulerObservedGeneration": 1}
CLEARED = [{"manager": "kubectl-edit", "fieldsV1": {"f:spec": {"f:suspension": {"f:scheduling": {}}}}}]


def cleared(world: World) -> object:
    add(world, "odd", held=False, placed={"m1": 2})["metadata"]["managedFields"] = CLEARED
    return None


def cron_job(world: World, gpus: int = 1, labels: Mapping[str, str] | None = None, **spec: object) -> object:
    container = {"name": "main", "resources": {"limits": {GPU: gpus} if gpus else {"cpu": 1}}}
    template = {"spec": {"template": {"spec": {"containers": [container]}}}}
    made = job("odd", labels=labels or {})
    world.add(CRON_JOBS, made | {"spec": {"jobTemplate": template, **spec}})
    return world.add(
        RESOURCE_BINDINGS, binding("odd", kind="CronJob", held=False, replicas=0, replicaRequirements=None)
    )


BROKEN: list[tuple[str, Change, str, Verdict, str]] = [
    (
        "no queue",
        lambda w: add(w, "odd", labels={}),
        "bindings-held",
        Verdict.WARNING,
        "held for ever: the workload names no queue",
    ),
    (
        "a queue that is not there",
        lambda w: add(w, "odd", labels={"fairway.dev/queue": "gone"}),
        "bindings-held",
        Verdict.WARNING,
        "LocalQueue team/gone does not exist",
    ),
    (
        "no template",
        lambda w: w.add(RESOURCE_BINDINGS, binding("odd")),
        "bindings-held",
        Verdict.WARNING,
        "Job team/odd, which the binding is about, is not there",
    ),
    (
        "a demand that cannot be read",
        lambda w: add(w, "odd", replicas=-3),
        "bindings-held",
        Verdict.WARNING,
        "spec.replicas: -3",
    ),
    (
        "a placement that is in no flavor",
        lambda w: (
            w.one(RESOURCE_FLAVORS)["spec"].update(clusterNames=["m1"]),
            add(w, "odd", placement={"clusterAffinity": {"clusterNames": ["m2"]}}),
        ),
        "bindings-held",
        Verdict.WARNING,
        "the clusters that its placement permits are in no flavor",
    ),
    (
        "more than the queue can ever give",
        lambda w: add(w, "odd", gpus=5),
        "bindings-held",
        Verdict.WARNING,
        "more than",
    ),
    (
        "held and ended",
        lambda w: add(w, "odd", placed={"m1": 2}, annotations=admitted("odd"), status=ended("m1")),
        "bindings-finished",
        Verdict.NOTE,
        "has ended in every cluster that had it",
    ),
    (
        "held, and its template has ended",
        lambda w: (
            w.add(JOBS, job("odd", status={"conditions": [{"type": "Complete", "status": "True"}]})),
            w.add(RESOURCE_BINDINGS, binding("odd")),
        ),
        "bindings-finished",
        Verdict.WARNING,
        "once released it would run again",
    ),
    (
        "admitted long ago and not placed",
        lambda w: add(w, "odd", held=False, annotations=admitted("odd", ago_s=400), status=SEEN),
        "bindings-unplaced",
        Verdict.ERROR,
        "not placed within its startTimeout of 300 s",
    ),
    (
        "admitted long ago, and Karmada says why not",
        lambda w: add(
            w,
            "odd",
            held=False,
            annotations=admitted("odd", ago_s=400),
            status=unscheduled("NoClusterFit"),
        ),
        "bindings-unplaced",
        Verdict.ERROR,
        "Karmada says NoClusterFit",
    ),
    (
        "released for a scheduler that nobody runs",
        lambda w: add(
            w, "odd", held=False, annotations=admitted("odd", ago_s=95), schedulerName="my-scheduler"
        ),
        "bindings-unseen",
        Verdict.ERROR,
        "60 s ago for scheduler my-scheduler, made by policy team/train, and that has not looked at it",
    ),
    (
        "released long ago for a scheduler that nobody runs",
        lambda w: add(
            w, "odd", held=False, annotations=admitted("odd", ago_s=4000), schedulerName="my-scheduler"
        ),
        "bindings-unseen",
        Verdict.ERROR,
        "for scheduler my-scheduler",
    ),
    (
        "released and not looked at",
        lambda w: add(w, "odd", held=False, annotations=admitted("odd", ago_s=95)),
        "bindings-unseen",
        Verdict.ERROR,
        "60 s ago, and karmada-scheduler has not looked at it, made by policy team/train: it holds its quota",
    ),
    (
        "placed long ago and not running",
        lambda w: add(
            w,
            "odd",
            held=False,
            placed={"m1": 2},
            annotations=admitted("odd", ago_s=400),
            status={"aggregatedStatus": [{"clusterName": "m1", "status": {"active": 2, "ready": 1}}]},
        ),
        "bindings-running",
        Verdict.WARNING,
        "placed more than 300 s ago, and its clusters report pods of it that do not run",
    ),
    (
        "parked by Karmada",
        lambda w: add(w, "odd", held=False, annotations=admitted("odd"), status=unscheduled("Unschedulable")),
        "bindings-unschedulable",
        Verdict.WARNING,
        "Karmada finds no place for it: Unschedulable",
    ),
    (
        "taken back and placed again",
        lambda w: add(w, "odd", placed={"m1": 2}, annotations={REQUEUE: REQUEUED}),
        "bindings-placed",
        Verdict.ERROR,
        "placed again by Karmada while it is held",
    ),
    (
        "taken back and placed again where it is preserved",
        lambda w: add(
            w,
            "odd",
            placed={"m1": 2},
            annotations={REQUEUE: REQUEUED},
            preserveResourcesOnDeletion=True,
        ),
        "bindings-placed",
        Verdict.WARNING,
        "preserves its pods",
    ),
    (
        "held for nothing",
        lambda w: add(w, "odd", placed={"m1": 2}, annotations=admitted("odd")),
        "bindings-placed",
        Verdict.WARNING,
        "held although it wants no more than it has",
    ),
    (
        "ended in a way that Fairway does not know",
        lambda w: w.add(
            RESOURCE_BINDINGS,
            binding(
                "odd",
                kind="Build",
                api_version="example.com/v1",
                held=False,
                placed={"m1": 2},
                annotations=admitted("odd"),
                status=ended("m1", condition="Succeeded"),
            ),
        ),
        "bindings-charged",
        Verdict.WARNING,
        "Fairway knows no end of kind Build.example.com",
    ),
    (
        "a record that is no JSON",
        lambda w: add(w, "odd", held=False, placed={"m1": 2}, annotations={ADMISSION: "{"}),
        "bindings-records",
        Verdict.ERROR,
        "metadata.annotations[fairway.dev/admission]",
    ),
    (
        "a record of somebody else's",
        lambda w: add(w, "odd", held=False, placed={"m1": 2}, annotations=admitted("runs")),
        "bindings-records",
        Verdict.ERROR,
        "is of another binding",
    ),
    (
        "a requeue record that is no record",
        lambda w: add(w, "odd", annotations={REQUEUE: '{"count":-1}'}),
        "bindings-records",
        Verdict.ERROR,
        "metadata.annotations[fairway.dev/requeue]",
    ),
    (
        "a record of a queue that is gone",
        lambda w: add(w, "odd", held=False, placed={"m1": 2}, annotations=admitted("odd", queue="gone")),
        "bindings-records",
        Verdict.ERROR,
        "admitted by ClusterQueue gone, which is not there",
    ),
    ("no label of its policy", unbound, "bindings-labels", Verdict.ERROR, "never looks at it"),
    (
        "placed without having been held",
        lambda w: add(w, "odd", held=False, placed={"m1": 2}),
        "bindings-slipped",
        Verdict.WARNING,
        "it is running",
    ),
    (
        "let go of by hand",
        cleared,
        "bindings-slipped",
        Verdict.WARNING,
        "no queue let go of it: its hold was cleared by kubectl-edit; it is running",
    ),
    (
        "free without having been held",
        lambda w: add(w, "odd", held=False),
        "bindings-slipped",
        Verdict.WARNING,
        "it is free to be placed",
    ),
    (
        "skipped by its template",
        lambda w: add(w, "odd", labels={"fairway.dev/skip": ""}, held=False, placed={"m1": 2}),
        "bindings-skipped",
        Verdict.NOTE,
        "asks for accelerators and is skipped",
    ),
    (
        "skipped by its binding",
        lambda w: add(w, "odd", annotations={"fairway.dev/skip": "true"}, held=False),
        "bindings-skipped",
        Verdict.NOTE,
        "asks for accelerators and is skipped",
    ),
    (
        "skipped and held",
        lambda w: add(w, "odd", labels={"fairway.dev/skip": ""}),
        "bindings-skipped",
        Verdict.WARNING,
        "is held all the same (spec.suspension.scheduling): it is not placed",
    ),
    (
        "a gang without components",
        lambda w: w.add(
            RESOURCE_BINDINGS,
            binding(
                "odd",
                kind="PyTorchJob",
                api_version="kubeflow.org/v1",
                held=False,
                replicas=0,
                replicaRequirements=None,
            ),
        ),
        "bindings-components",
        Verdict.ERROR,
        "neither replicas nor components of this PyTorchJob",
    ),
]


@pytest.mark.parametrize(
    ("change", "check", "verdict", "told"), [row[1:] for row in BROKEN], ids=[row[0] for row in BROKEN]
)
def test_a_stray_turns_its_line_and_no_other(change: Change, check: str, verdict: Verdict, told: str) -> None:
    world = well()
    change(world)
    said = world.findings()
    assert said.keys() == {check}
    (finding,) = said[check]
    assert finding.verdict is verdict
    assert finding.subject.startswith("ResourceBinding team/odd-")
    assert told in finding.message
    assert finding.remedy


@pytest.mark.parametrize(
    ("change", "verdict", "told"),
    [
        (cron_job, Verdict.ERROR, "asks for nvidia.com/gpu in the Jobs that it makes in its clusters"),
        (
            lambda w: cron_job(w, gpus=0, labels={"fairway.dev/queue": "main"}),
            Verdict.WARNING,
            "names queue main, and is not gated",
        ),
    ],
)
def test_cron_jobs_pass_the_queues(change: Change, verdict: Verdict, told: str) -> None:
    world = well()
    change(world)
    (found,) = world.findings().items()
    (finding,) = found[1]
    assert (found[0], finding.verdict, finding.subject) == ("workloads-ungated", verdict, "CronJob team/odd")
    assert told in finding.message


@pytest.mark.parametrize(
    "change",
    [
        lambda w: cron_job(w, gpus=0),
        lambda w: cron_job(w, suspend=True),
        lambda w: w.add(CRON_JOBS, job("odd")),
    ],
)
def test_cron_jobs_without_accelerators_or_without_a_policy_are_none_of_ours(change: Change) -> None:
    world = well()
    change(world)
    assert world.findings() == {}


def test_what_nobody_looks_at_is_told_by_policy_and_scheduler() -> None:
    world = well()
    for number in range(9):
        add(
            world,
            f"odd{number}",
            held=False,
            annotations=admitted(f"odd{number}", ago_s=95),
            schedulerName="mine",
        )
    add(world, "other", held=False, annotations=admitted("other", ago_s=95))
    ours, other = world.findings()["bindings-unseen"]
    assert (ours.subject, other.subject) == ("9 ResourceBindings", "ResourceBinding team/other-job")


@pytest.mark.parametrize(
    ("name", "made"),
    [
        ("waits for its backoff", {"annotations": {REQUEUE: REQUEUED}}),
        ("admitted a moment ago", {"held": False, "annotations": admitted("odd")}),
        ("placed", {"held": False, "placed": {"m1": 2}, "annotations": admitted("odd")}),
        (
            "pulling its images",
            {
                "held": False,
                "placed": {"m1": 2},
                "annotations": admitted("odd"),
                "status": {"aggregatedStatus": [{"clusterName": "m1", "status": {"active": 2, "ready": 0}}]},
            },
        ),
        (
            "waits to grow",
            {"placed": {"m1": 2}, "annotations": admitted("odd"), "replicas": 3},
        ),
        (
            "ended in one cluster of two",
            {
                "held": False,
                "placed": {"m1": 1, "m2": 1},
                "annotations": admitted("odd"),
                "status": ended("m1"),
            },
        ),
    ],
)
def test_what_is_as_it_should_be_is_well(name: str, made: dict[str, object]) -> None:
    world = well()
    world.add(JOBS, job("odd"))
    world.add(RESOURCE_BINDINGS, binding("odd", **made))  # type: ignore[arg-type]  # the arguments of binding
    assert world.findings() == {}, name


def test_a_binding_that_somebody_else_manages_is_looked_at() -> None:
    world = well()
    add(world, "odd")["metadata"]["labels"] = {"binding.karmada.io/managed-by": "me"}
    assert world.findings() == {}


def test_a_gang_with_components_is_seen() -> None:
    world = well()
    made = binding("odd", kind="PyTorchJob", api_version="kubeflow.org/v1", held=False)
    made["spec"] |= components("master", "worker")
    world.add(RESOURCE_BINDINGS, made)
    assert "bindings-components" not in world.findings()


def test_three_thousand_of_a_kind_are_one_finding() -> None:
    world = well()
    for number in range(3000):
        add(world, f"lost{number}", labels={"fairway.dev/queue": "gone"})
    (finding,) = world.findings()["bindings-held"]
    assert finding.subject == "3,000 ResourceBindings"
    assert "(team/lost0-job, team/lost1-job" in finding.message
    assert "and 2,995 more)" in finding.message
    assert finding.patch is None


def test_workloads_that_were_not_read_leave_their_queue_unknown() -> None:
    world = well()
    del world.objects[JOBS.name]
    (finding,) = world.findings()["bindings-held"]
    assert finding.verdict is Verdict.UNKNOWN
    assert "jobs.batch were not read" in finding.message


def test_workloads_that_may_not_be_read_leave_their_queue_unknown() -> None:
    world = well()
    world.unread[JOBS.name] = "forbidden"
    (finding,) = world.findings()["bindings-held"]
    assert (finding.verdict, "forbidden" in finding.message) == (Verdict.UNKNOWN, True)


def test_a_kind_that_is_not_among_those_read_leaves_its_queue_unknown() -> None:
    world = well()
    world.add(RESOURCE_BINDINGS, binding("odd", kind="Build", api_version="example.com/v1"))
    (finding,) = world.findings()["bindings-held"]
    assert finding.verdict is Verdict.UNKNOWN
    assert "objects of kind Build of example.com" in finding.message


def test_a_queue_on_the_binding_itself_needs_no_template_to_be_told() -> None:
    world = well()
    del world.objects[JOBS.name]
    world.empty(RESOURCE_BINDINGS)
    world.add(RESOURCE_BINDINGS, binding("odd", labels={"fairway.dev/queue": "gone"}))
    assert world.findings()["bindings-held"][0].verdict is not Verdict.OK


@pytest.mark.parametrize(
    ("made", "verdict", "told"),
    [
        (None, Verdict.ERROR, "no such Lease"),
        (lease(holder=""), Verdict.ERROR, "nobody holds it"),
        (lease(renewed_ago_s=600), Verdict.ERROR, "has not renewed it for 600 s"),
        ({**lease(), "spec": {"holderIdentity": "a", "renewTime": "never"}}, Verdict.ERROR, "is no time"),
        ({**lease(), "spec": {"holderIdentity": "a"}}, Verdict.ERROR, "is no time"),
    ],
)
def test_without_a_leader_that_is_told(made: Obj | None, verdict: Verdict, told: str) -> None:
    world = well()
    world.empty(LEASES)
    if made is not None:
        world.add(LEASES, made)
    said = world.findings()
    assert said.keys() == {"dispatcher-leads"}
    (finding,) = said["dispatcher-leads"]
    assert finding.verdict is verdict
    assert told in finding.message
    assert "held workloads that wait for it: 1" in finding.message


def test_without_a_leader_and_without_work_it_is_a_warning() -> None:
    world = well()
    world.empty(LEASES, RESOURCE_BINDINGS)
    assert [f.verdict for f in world.findings()["dispatcher-leads"]] == [Verdict.WARNING]


@pytest.mark.parametrize(
    ("leases", "verdict"), [([], Verdict.WARNING), ([lease()], Verdict.OK)], ids=["nobody", "somebody"]
)
def test_a_dispatcher_that_is_installed_leads_also_before_there_is_a_queue(
    leases: list[Obj], verdict: Verdict, tmp_path: Path
) -> None:
    world = World()
    world.objects[LEASES.name] = leases
    evidence = replace(world.evidence(), host=Installation().evidence(tmp_path).host)
    assert [found.verdict for found in DISPATCHER_LEADS.findings(evidence)] == [verdict]


def test_of_several_leases_one_that_is_held_is_enough() -> None:
    world = well()
    stale = lease(renewed_ago_s=90_000)
    stale["metadata"]["namespace"] = "karmada-system"
    world.add(LEASES, stale)
    assert world.findings() == {}


def test_what_an_uninstall_left_held_is_told_and_released() -> None:
    world = well()
    world.empty(LEASES, CLUSTER_QUEUES, LOCAL_QUEUES, RESOURCE_FLAVORS, RESOURCE_BINDINGS)
    world.add(RESOURCE_BINDINGS, binding("odd"))
    world.add(CLUSTER_RESOURCE_BINDINGS, binding("wide", ""))
    said = world.findings()
    assert said.keys() == {"bindings-left", "dispatcher-leads"}
    assert [f.verdict for f in said["dispatcher-leads"]] == [Verdict.NOTE]
    (finding,) = said["bindings-left"]
    assert finding.verdict is Verdict.ERROR
    assert finding.subject == "2 ClusterResourceBindings and ResourceBindings"


def test_what_an_uninstall_left_is_released_by_the_patch() -> None:
    world = well()
    world.empty(LEASES, CLUSTER_QUEUES, LOCAL_QUEUES, RESOURCE_FLAVORS, RESOURCE_BINDINGS)
    world.add(RESOURCE_BINDINGS, binding("odd"))
    apply(world, world.findings()["bindings-left"])
    assert "bindings-left" not in world.findings()


@pytest.mark.parametrize("check", ["bindings-placed", "bindings-records"])
def test_patches_of_bindings_mend_them(check: str) -> None:
    changes = [row[1] for row in BROKEN if row[2] == check and "preserved" not in row[0]]
    mended = 0
    for change in changes:
        world = well()
        change(world)
        found = world.findings()[check]
        if found[0].patch is not None:
            apply(world, found)
            assert check not in world.findings()
            mended += 1
    assert mended >= 2


@pytest.mark.parametrize(
    "spec",
    [
        "text",
        {"clusters": "all", "placement": {}},
        {"components": [{"replicas": 1e300}], "placement": {}},
        {"replicas": 2**63, "placement": {}, "suspension": {"scheduling": True}},
        {"placement": [[[[[[]]]]]]},
        {"resource": {"kind": "K" * 5000}},
    ],
)
def test_hostile_bindings_cost_nobody_else(spec: object) -> None:
    world = well()
    made = binding("odd")
    made["spec"] = spec
    world.add(RESOURCE_BINDINGS, made)
    for name, findings in world.findings().items():
        for finding in findings:
            assert "odd" in finding.subject, name
            assert len(finding.message) < 6000


def test_hostile_statuses_cost_nobody_else() -> None:
    world = well()
    made = add(world, "odd", held=False, placed={"m1": 2}, annotations=admitted("odd"))
    made["status"] = {"aggregatedStatus": [{"clusterName": 3}], "conditions": "none"}
    assert world.findings() == {}


def test_a_refusal_of_an_earlier_try_is_none_of_this_one() -> None:
    """As the dispatcher sees it: Karmada has had two seconds, and said nothing of them yet."""
    world = well()
    status = unscheduled("Unschedulable", ago_s=300)
    add(world, "odd", held=False, annotations=admitted("odd", ago_s=2), status=status)
    assert world.findings() == {}


def test_growth_of_what_was_deployed_is_not_taken_for_stuck() -> None:
    world = well()
    world.add(DEPLOYMENTS, job("web"))
    made = binding("web", kind="Deployment", api_version="apps/v1", replicas=4, placed={"m1": 2})
    made["metadata"]["annotations"] |= admitted("web")
    world.add(RESOURCE_BINDINGS, made)
    assert world.findings() == {}


def test_the_same_server_is_understood_once() -> None:
    from admin.doctor.objects.seen import seen

    evidence = well().evidence()
    again = Evidence(evidence.now_ms + 1, karmada=evidence.karmada)
    assert seen(evidence) is seen(again)
    assert seen(well().evidence()) is not seen(evidence)
    assert GPU


def test_a_dump_without_leases_does_not_say_who_leads() -> None:
    world = well()
    del world.objects[LEASES.name]
    said = world.findings()
    assert [(name, f.verdict) for name, (f,) in said.items()] == [("dispatcher-leads", Verdict.UNKNOWN)]


def test_a_dump_without_queues_and_leases_does_not_say_that_they_are_gone() -> None:
    world = well()
    for kind in (LEASES, CLUSTER_QUEUES, LOCAL_QUEUES, RESOURCE_FLAVORS):
        del world.objects[kind.name]
    assert [f.verdict for f in world.findings()["bindings-left"]] == [Verdict.UNKNOWN]


@pytest.mark.parametrize("kind", [CLUSTERS, RESOURCE_FLAVORS], ids=lambda kind: kind.name)
def test_whether_there_could_be_room_is_unknown_without_clusters_or_flavors(kind: Kind) -> None:
    world = well()
    world.empty(kind)
    world.unread[kind.name] = "the file has none of them"
    world.add(RESOURCE_BINDINGS, binding("lost", labels={"fairway.dev/queue": "gone"}))
    world.add(JOBS, job("lost", labels={"fairway.dev/queue": "gone"}))
    lost, unknown = world.findings()["bindings-held"]
    assert (lost.verdict, lost.subject) == (Verdict.WARNING, "ResourceBinding team/lost-job")
    assert (unknown.verdict, unknown.subject) == (Verdict.UNKNOWN, "karmada")
    assert kind.name in unknown.message
    world.objects[RESOURCE_BINDINGS.name] = [
        one for one in world.objects[RESOURCE_BINDINGS.name] if "suspension" not in one["spec"]
    ]
    assert "bindings-held" not in world.findings()
