"""What annotations add to a kind, and which of them wins."""

import pytest

from fairway.workloads.gang import Gang
from tests.workloads.objects import (
    Object,
    deployment,
    job,
    lws,
    read,
    sizes,
    template,
    topologies,
    volcano_job,
    workload,
)

GANG = "fairway.dev/gang"
REQUIRED = "fairway.dev/topology-required"
PREFERRED = "fairway.dev/topology-preferred"
EXCLUSIVE = "fairway.dev/topology-exclusive"
SLICE = "fairway.dev/topology-slice-size"
KUEUE = "kueue.x-k8s.io/podset-required-topology"
KUEUE_SLICE = "kueue.x-k8s.io/podset-slice-required-topology"
KUEUE_SIZE = "kueue.x-k8s.io/podset-slice-size"
KUEUE_LAYERS = "kueue.x-k8s.io/podset-slice-required-topology-constraints"
KAI = "kai.scheduler/topology-required-placement"
MIN_MEMBER = "scheduling.volcano.sh/group-min-member"


def minimum(gang: Gang) -> int:
    """How many pods must start together; 0 where they are independent."""
    return sum(pod_set.minimum for pod_set in gang.pod_sets) if gang.is_gang else 0


def problem(gang: Gang) -> str:
    return "\n".join(gang.problems)


# --- how many start together -------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "together"),
    [("true", 8), ("True", 8), ("false", 0), ("1", 0), ("5", 5), ("8", 8)],
)
@pytest.mark.parametrize("where", ["notes", "pod_notes"])
def test_fairways_gang_says_how_many_pods_start_together(where: str, text: str, together: int) -> None:
    built = deployment(8, notes={GANG: text}) if where == "notes" else deployment(8, pod_notes={GANG: text})
    gang = read(built)
    assert minimum(gang) == together
    assert gang.problems == ()


@pytest.mark.parametrize("text", ["", "all", "0", "-3", "1.5", "٣", "9" * 30])
def test_a_gang_of_no_number_is_one_of_all_pods(text: str) -> None:
    gang = read(deployment(8, notes={GANG: text}))
    assert minimum(gang) == 8
    assert "fairway.dev/gang" in problem(gang)
    assert "read as true" in problem(gang)


@pytest.mark.parametrize("text", ["0", "-1", "9", "half"])
def test_a_minimum_for_kueue_that_makes_no_sense_is_all_pods(text: str) -> None:
    gang = read(job(8, notes={"kueue.x-k8s.io/job-min-parallelism": text}, pod_notes={KUEUE: "rack"}))
    assert minimum(gang) == 8
    assert f"[kueue.x-k8s.io/job-min-parallelism]: '{text}': expected 1 to 8 pods" in problem(gang)


def test_a_gang_larger_than_the_workload_is_all_of_it() -> None:
    gang = read(deployment(8, notes={GANG: "9"}))
    assert minimum(gang) == 8
    assert problem(gang) == "fairway.dev/gang: 9 of 8 pods; read as all of them"


@pytest.mark.parametrize(
    ("built", "together"),
    [
        # nothing said
        (deployment(), 0),
        (deployment(kind="ReplicaSet"), 0),
        (deployment(kind="StatefulSet"), 0),
        (job(), 0),
        (job(completionMode="Indexed", completions=8), 0),
        # Volcano
        (deployment(notes={MIN_MEMBER: "3"}), 3),
        (deployment(notes={MIN_MEMBER: "1"}), 0),
        (deployment(notes={MIN_MEMBER: "0"}), 0),
        (job(notes={MIN_MEMBER: "3"}), 3),
        (job(notes={MIN_MEMBER: "many"}), 8),
        (job(pod_notes={"scheduling.k8s.io/group-name": "g"}), 8),
        (job(pod_notes={"volcano.sh/network-topology-highest-tier": "2"}), 8),
        # the coscheduling plugin, old and new
        (deployment(labels={"scheduling.x-k8s.io/pod-group": "g"}), 8),
        (deployment(labels={"pod-group.scheduling.sigs.k8s.io": "g"}), 8),
        (
            job(
                labels={
                    "pod-group.scheduling.sigs.k8s.io/name": "g",
                    "pod-group.scheduling.sigs.k8s.io/min-available": "6",
                }
            ),
            6,
        ),
        (job(labels={"scheduling.x-k8s.io/pod-group": ""}), 0),
        # KAI and Kueue
        (job(pod_notes={"pod-group-name": "g"}), 8),
        (job(pod_notes={KUEUE: "rack"}), 8),
        (job(pod_notes={"kueue.x-k8s.io/podset-unconstrained-topology": "true"}), 8),
        (job(pod_notes={"kueue.x-k8s.io/podset-unconstrained-topology": "false"}), 0),
        (job(notes={KAI: "rack"}), 8),
        (deployment(kind="StatefulSet", labels={"kueue.x-k8s.io/pod-group-name": "g"}), 8),
        # a label of Kueue's queue alone says nothing of the pods together
        (job(labels={"kueue.x-k8s.io/queue-name": "q"}), 0),
        (job(pod_notes={KUEUE: "rack"}, notes={"kueue.x-k8s.io/job-min-parallelism": "5"}), 5),
        (job(notes={"kueue.x-k8s.io/job-min-parallelism": "5"}), 0),
        # Fairway's own topology
        (deployment(notes={REQUIRED: "rack"}), 8),
        (deployment(notes={PREFERRED: "rack"}), 8),
        # Fairway's gang before all others
        (deployment(notes={GANG: "false", REQUIRED: "rack"}), 0),
        (deployment(notes={GANG: "4", MIN_MEMBER: "6"}), 4),
        (job(notes={GANG: "false"}, pod_notes={KUEUE: "rack"}), 0),
        (deployment(notes={GANG: "4"}, pod_notes={GANG: "6"}), 4),
        (volcano_job({"replicas": 8}, notes={GANG: "false"}), 0),
        (volcano_job({"replicas": 8, "minAvailable": 2}, notes={GANG: "4"}), 4),
    ],
)
def test_who_says_how_many_pods_start_together(built: Object, together: int) -> None:
    assert minimum(read(built)) == together


def test_a_gang_of_several_pod_sets_is_filled_in_their_order() -> None:
    gang = read(volcano_job({"replicas": 2}, {"replicas": 8}, {"replicas": 3}, notes={GANG: "5"}))
    assert sizes(gang) == [("task-0", 2, 2), ("task-1", 8, 3), ("task-2", 3, 0)]


def test_a_gang_is_not_stated_on_one_of_several_templates() -> None:
    noted = {"replicas": 2, "template": template({GANG: "false"})}
    gang = read(volcano_job(noted, {"replicas": 2}, notes={GANG: "3"}))
    assert minimum(gang) == 3
    assert problem(gang).startswith(
        "spec.tasks[0].template.metadata.annotations[fairway.dev/gang]: expected on"
    )


# --- where the pods are ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("notes", "pod_notes", "expected"),
    [
        ({REQUIRED: "rack"}, {}, ["required rack", ""]),
        ({}, {REQUIRED: "rack"}, ["", "required rack"]),
        ({PREFERRED: "rack"}, {}, ["preferred rack", ""]),
        ({REQUIRED: "rack", SLICE: "4"}, {}, ["", "sliced rack/4"]),
        ({}, {REQUIRED: "rack", SLICE: "4"}, ["", "sliced rack/4"]),
        ({REQUIRED: "block"}, {REQUIRED: "rack", SLICE: "4"}, ["required block", "sliced rack/4"]),
        # one slice of all pods is no slice
        ({REQUIRED: "rack", SLICE: "8"}, {}, ["", "required rack"]),
        ({REQUIRED: "rack", SLICE: "100"}, {}, ["", "required rack"]),
        ({EXCLUSIVE: "rack"}, {}, ["exclusive rack", ""]),
        # others are silenced
        ({REQUIRED: "rack"}, {KUEUE: "block"}, ["required rack", ""]),
        ({REQUIRED: "rack", KAI: "block"}, {}, ["required rack", ""]),
        ({}, {PREFERRED: "rack", KUEUE: "block"}, ["", "preferred rack"]),
    ],
)
def test_fairways_own_topology(notes: dict[str, str], pod_notes: dict[str, str], expected: list[str]) -> None:
    gang = read(job(notes=notes, pod_notes=pod_notes))
    assert topologies(gang) == expected
    assert gang.problems == ()


@pytest.mark.parametrize(
    ("pod_notes", "expected"),
    [
        ({KUEUE: "rack"}, ["", "required rack"]),
        ({"kueue.x-k8s.io/podset-preferred-topology": "rack"}, ["", "preferred rack"]),
        ({"kueue.x-k8s.io/podset-unconstrained-topology": "true"}, ["", ""]),
        ({KUEUE_SLICE: "rack", KUEUE_SIZE: "2"}, ["", "sliced rack/2"]),
        # slices within one larger domain
        ({KUEUE: "block", KUEUE_SLICE: "rack", KUEUE_SIZE: "2"}, ["required block", "sliced rack/2"]),
        ({KUEUE_LAYERS: '[{"topology": "rack", "size": 2}]'}, ["", "sliced rack/2"]),
        ({KAI: "rack"}, ["", "required rack"]),
        ({KAI: "block", "kai.scheduler/topology-preferred-placement": "rack"}, ["", "required block"]),
        ({"kai.scheduler/topology-preferred-placement": "rack"}, ["", "preferred rack"]),
        (
            {
                "kai.scheduler/segment-topology-required-placement": "rack",
                "kai.scheduler/segment-size": "2",
                "kai.scheduler/topology": "cluster",
            },
            ["", "sliced rack/2"],
        ),
        ({"volcano.sh/network-topology-highest-tier": "2"}, ["", "required volcano.sh/tier-2"]),
        (
            {
                "volcano.sh/network-topology-highest-tier": "2",
                "volcano.sh/network-topology-mode": "Soft",
            },
            ["", "preferred volcano.sh/tier-2"],
        ),
    ],
)
def test_the_topology_of_other_schedulers(pod_notes: dict[str, str], expected: list[str]) -> None:
    gang = read(job(pod_notes=pod_notes))
    assert topologies(gang) == expected
    assert gang.problems == ()


@pytest.mark.parametrize(
    ("pod_notes", "expected", "told"),
    [
        ({REQUIRED: "rack", EXCLUSIVE: "block"}, "exclusive block", f"[{REQUIRED}]: not looked at beside"),
        ({REQUIRED: "rack", SLICE: "some"}, "required rack", f"[{SLICE}]: 'some' is no number of pods"),
        ({REQUIRED: "rack", SLICE: "0"}, "required rack", f"[{SLICE}]: '0' is no number of pods"),
        ({PREFERRED: "rack", SLICE: "2"}, "preferred rack", "a preference has no slices"),
        ({SLICE: "2"}, "", f"expected {REQUIRED} or {EXCLUSIVE} beside it"),
        ({REQUIRED: "my rack!"}, "required my rack!", "'my rack!' is no node label"),
        ({REQUIRED: ""}, "required ", "'' is no node label"),
        (
            {KUEUE: "rack", "kueue.x-k8s.io/podset-preferred-topology": "host"},
            "required rack",
            "not looked at",
        ),
        ({KUEUE_SLICE: "rack"}, "required rack", "read as one slice of all pods"),
        ({KUEUE_SLICE: "rack", KUEUE_SIZE: "two"}, "required rack", "'two' is no number of pods"),
        ({KUEUE_SIZE: "2"}, "", f"expected {KUEUE_SLICE} beside it"),
        ({KUEUE_LAYERS: "rack=2"}, "", "expected [{"),
        ({KUEUE_LAYERS: "[]"}, "", "expected [{"),
        ({KUEUE_LAYERS: '[{"topology": "rack", "size": 0}]'}, "required rack", "read as all pods"),
        (
            {KUEUE_LAYERS: '[{"topology": "block", "size": 4}, {"topology": "rack", "size": 2}]'},
            "sliced rack/2",
            "only the innermost of 2 layers",
        ),
        ({KUEUE: "rack", KAI: "block"}, "required rack", "ask for required block, not looked at"),
        ({"kai.scheduler/segment-topology-required-placement": "rack"}, "required rack", "no number of pods"),
        (
            {
                "kai.scheduler/segment-topology-required-placement": "rack",
                "kai.scheduler/segment-size": "2",
                KAI: "block",
            },
            "sliced rack/2",
            f"[{KAI}]: not looked at beside",
        ),
        ({"volcano.sh/network-topology-highest-tier": "top"}, "", "expected the number of a tier"),
    ],
)
def test_a_topology_that_makes_no_sense_is_told_and_read_strictly(
    pod_notes: dict[str, str], expected: str, told: str
) -> None:
    gang = read(job(pod_notes=pod_notes))
    assert [asked for asked in topologies(gang) if asked] == ([expected] if expected else [])
    assert told in problem(gang)


def test_exclusive_slices_of_one_pod_set_are_copies_needed_together() -> None:
    gang = read(job(12, pod_notes={EXCLUSIVE: "rack", SLICE: "4"}))
    assert (sizes(gang), gang.copies, gang.copies_together) == ([("main", 4, 4)], 3, True)
    assert topologies(gang) == ["exclusive rack", ""]


def test_exclusive_slices_that_do_not_come_out_even_stay_slices() -> None:
    gang = read(job(10, pod_notes={EXCLUSIVE: "rack", SLICE: "4"}))
    assert (sizes(gang), gang.copies) == ([("main", 10, 10)], 1)
    assert topologies(gang) == ["", "exclusive rack/4"]


def test_slices_of_several_pod_sets_at_once_are_not_cut() -> None:
    gang = read(volcano_job({"replicas": 4}, {"replicas": 4}, notes={REQUIRED: "block", SLICE: "2"}))
    assert topologies(gang) == ["required block", "", ""]
    assert "expected on the pod template" in problem(gang)


@pytest.mark.parametrize("notes", [{}, {KAI: "rack"}])
def test_what_kueue_and_kai_say_of_a_deployment_binds_no_pods_together(notes: dict[str, str]) -> None:
    gang = read(deployment(notes=notes, pod_notes={} if notes else {KUEUE: "rack"}))
    assert not gang.is_gang
    assert topologies(gang) == ["", ""]
    assert "bind nothing" in problem(gang)


def test_kueue_groups_that_do_not_cover_all_pod_sets_are_read_one_by_one() -> None:
    grouped = template({KUEUE: "rack", "kueue.x-k8s.io/podset-group-name": "g"})
    gang = read(volcano_job({"replicas": 1, "template": grouped}, {"replicas": 4}))
    assert topologies(gang) == ["", "required rack", ""]
    assert "each is read as if it stood alone" in problem(gang)


def test_a_kinds_own_exclusive_domains_win_over_other_schedulers() -> None:
    gang = read(lws(notes={"leaderworkerset.sigs.k8s.io/exclusive-topology": "rack", KAI: "block"}))
    assert topologies(gang) == ["exclusive rack", ""]
    assert "KAI's annotations ask for required block, not looked at beside exclusive rack" in problem(gang)


# --- TPU slices --------------------------------------------------------------------------------------------

TPU = "cloud.google.com/gke-tpu-slice-topology"


def tpu_job(count: int, shape: str, chips: object, accelerator: str = "") -> Object:
    pods = template({TPU: shape})
    spec = pods["spec"]
    assert isinstance(spec, dict)
    spec["containers"] = [{"resources": {"limits": {"google.com/tpu": chips}}}]
    spec["nodeSelector"] = {"cloud.google.com/gke-tpu-accelerator": accelerator} if accelerator else {}
    return workload("Job", "batch/v1", {"parallelism": count, "template": pods})


@pytest.mark.parametrize(
    ("count", "shape", "accelerator", "expected"),
    [
        (4, "2x4", "tpu-v6e-slice", "sliced cloud.google.com/gke-tpu-slice-2x4-id/2"),
        (2, "2x4", "tpu-v6e-slice", "required cloud.google.com/gke-tpu-slice-2x4-id"),
        (8, "2x2x4", "tpu7x", "sliced cloud.google.com/gke-tpu-partition-2x2x4-id/4"),
        (8, "2x2x4", "", "sliced cloud.google.com/gke-tpu-partition-2x2x4-id/4"),
        (8, "2x2x4", "tpu-v5p-slice", "sliced cloud.google.com/gke-tpu-slice-2x2x4-id/4"),
        (32, "4x4x8", "tpu7x", "sliced cloud.google.com/gke-tpu-partition-4x4x4-id/16"),
        # within one node
        (4, "2x2", "tpu-v6e-slice", ""),
    ],
)
def test_tpu_slices_are_runs_of_the_pods_that_make_them_up(
    count: int, shape: str, accelerator: str, expected: str
) -> None:
    assert topologies(read(tpu_job(count, shape, 4, accelerator))) == ["", expected]


@pytest.mark.parametrize(
    ("shape", "chips", "told"),
    [
        ("", 4, "is no TPU topology"),
        ("2", 4, "is no TPU topology"),
        ("2x-4", 4, "is no TPU topology"),
        ("2x4x4x4", 4, "is no TPU topology"),
        ("9" * 100 + "x2", 4, "is no TPU topology"),
        ("99999999x2", 4, "is no TPU topology"),
        ("2x4", 3, "pods of 3 google.com/tpu do not make up 2x4"),
        ("2x4", 0, "pods of 0 google.com/tpu do not make up 2x4"),
        ("2x4", "four", "the chips of a pod are not known"),
    ],
)
def test_tpu_slices_that_make_no_sense_are_told(shape: str, chips: object, told: str) -> None:
    gang = read(tpu_job(4, shape, chips))
    assert topologies(gang) == ["", ""]
    assert told in problem(gang)
