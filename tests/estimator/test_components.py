"""Gangs as components: how many pods of which shape, bound by which topology."""

import msgspec
import pytest

from estimator.capacity.gangs.workload_gang import gang_components, gang_size
from estimator.capacity.request import Component
from fairway.workloads.gang import Gang, TopologyRequest
from fairway.workloads.registry import read_workload
from tests.workloads.objects import example, job, lws, read, template, told, volcano_job

HOST = "kubernetes.io/hostname"
RACK = "example.com/rack"


def replicas(components: tuple[Component, ...]) -> list[tuple[str, int]]:
    return [(component.name, component.replicas) for component in components]


@pytest.mark.parametrize(
    ("name", "components", "size"),
    [
        ("deployment", [("main", 6)], 1),
        ("deployment-gang", [("main", 16)], 16),
        ("job", [("main", 16)], 12),
        ("volcano-job", [("ps", 2), ("worker", 8)], 7),
        ("pytorch-job", [("master", 1), ("worker", 8)], 5),
        (
            "ray-job",
            [("ray-head", 1), ("gpu", 6), ("submitter", 1)],
            4,
        ),
        # of one copy
        ("job-set-tpu", [("slice", 4)], 4),
        ("leader-worker-set", [("leader", 1), ("worker", 1)], 2),
    ],
)
def test_a_gang_is_components_with_all_of_its_pods(
    name: str, components: list[tuple[str, int]], size: int
) -> None:
    gang = read(example(name))
    assert replicas(gang_components(gang)[0]) == components
    assert gang_size(gang) == size


def test_pod_sets_without_pods_are_no_components() -> None:
    gang = read(volcano_job({"replicas": 0}, {"replicas": 3, "minAvailable": 0}, {"replicas": 2}))
    assert replicas(gang_components(gang)[0]) == [("task-1", 3), ("task-2", 2)]


def test_a_workload_without_pods_needs_none() -> None:
    gang = read(job(0))
    assert gang_components(gang) == ((), ())
    assert gang_size(gang) == 0


def test_a_component_of_slices_has_all_pods_of_its_set() -> None:
    notes = {
        "fairway.dev/gang": "5",
        "fairway.dev/topology-required": RACK,
        "fairway.dev/topology-slice-size": "4",
    }
    components, _ = gang_components(read(job(16, notes=notes)))
    assert replicas(components) == [("main", 16)]
    assert told(components[0].topology) == f"sliced {RACK}/4"


def test_each_component_has_the_shape_and_the_topology_of_its_set() -> None:
    components, problems = gang_components(read(example("job-set-driver")))
    assert [dict(component.shape.requests) for component in components] == [
        {"cpu": 2000, "memory": 8 << 30},
        {"nvidia.com/gpu": 8},
    ]
    assert [told(component.topology) for component in components] == ["", f"exclusive {RACK}/4"]
    assert problems == ()


def test_the_gangs_own_topology_is_not_repeated() -> None:
    components, _ = gang_components(read(lws(notes={"leaderworkerset.sigs.k8s.io/exclusive-topology": RACK})))
    assert [component.topology for component in components] == [None]


# --- affinity to pods of its own ---------------------------------------------------------------------------


def near(*keys: str) -> dict[str, object]:
    terms = [{"labelSelector": {}, "topologyKey": key} for key in keys]
    return {"podAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": terms}}


def apart(selector: object) -> dict[str, object]:
    terms = [{"labelSelector": selector, "topologyKey": HOST}]
    return {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": terms}}


@pytest.mark.parametrize(
    ("keys", "notes", "topology"),
    [
        ((RACK,), {}, ""),
        ((RACK, HOST), {}, ""),
        ((RACK, "zone"), {}, ""),
        ((RACK,), {"fairway.dev/topology-required": RACK}, f"required {RACK}"),
        ((RACK,), {"fairway.dev/topology-required": "block"}, "required block"),
    ],
)
def test_required_affinity_to_itself_is_kept_beside_the_topology_that_is_asked_for(
    keys: tuple[str, ...], notes: dict[str, str], topology: str
) -> None:
    built = job(4, notes=notes)
    spec = built["spec"]
    assert isinstance(spec, dict)
    spec["template"] = template(affinity=near(*keys))
    gang = read(built)
    components, problems = gang_components(gang)
    assert told(gang.topology) == topology
    assert components[0].topology is None
    assert [term.key for term in components[0].shape.inter_pod.affinity] == list(keys)
    assert problems == ()


def test_affinity_to_others_is_no_topology_and_is_kept() -> None:
    affinity = {
        "podAffinity": {
            "requiredDuringSchedulingIgnoredDuringExecution": [
                {"labelSelector": {"matchLabels": {"app": "cache"}}, "topologyKey": RACK}
            ]
        }
    }
    gang = read(volcano_job({"replicas": 2, "template": template(affinity=affinity)}))
    components, problems = gang_components(gang)
    assert components[0].topology is None
    (term,) = components[0].shape.inter_pod.affinity
    assert term.selects({"app": "cache"})
    assert not term.selects({"app": "web"})
    assert problems == ()


def test_affinity_to_another_pod_set_is_told_and_asks_nothing_of_pods_that_run() -> None:
    affinity = {
        "podAffinity": {
            "requiredDuringSchedulingIgnoredDuringExecution": [
                {"labelSelector": {"matchLabels": {"role": "driver"}}, "topologyKey": RACK}
            ]
        }
    }
    gang = read(
        volcano_job(
            {"name": "driver", "replicas": 1, "template": template(labels={"role": "driver"})},
            {"name": "worker", "replicas": 2, "template": template(affinity=affinity)},
        )
    )
    components, problems = gang_components(gang)
    assert components[1].shape.inter_pod.affinity == ()
    assert problems == ("pod set worker: affinity to the pods of driver is not looked at",)


def test_pod_sets_that_keep_off_each_other_are_told() -> None:
    off = template(labels={"role": "driver"}, affinity=apart({"matchLabels": {"role": "worker"}}))
    gang = read(
        volcano_job(
            {"name": "driver", "replicas": 1, "template": off},
            {"name": "idle", "replicas": 1},
            {"name": "worker", "replicas": 2, "template": template(labels={"role": "worker"})},
        )
    )
    _, problems = gang_components(gang)
    assert "pod set driver: anti-affinity to the pods of worker is not looked at" in problems


def test_labels_that_the_controller_adds_are_matched() -> None:
    affinity = apart({"matchLabels": {"batch.kubernetes.io/job-name": "w"}})
    built = job(4)
    spec = built["spec"]
    assert isinstance(spec, dict)
    spec["template"] = template(affinity=affinity)
    components, problems = gang_components(read(built))
    assert components[0].shape.per_domain == ((HOST, 1),)
    assert problems == ()


def test_a_broken_template_leaves_the_others_as_they_are() -> None:
    broken = template()
    broken["spec"] = {"containers": [{"resources": {"requests": {"cpu": "lots"}}}]}
    gang = read(volcano_job({"replicas": 1, "template": broken}, {"replicas": 2}))
    components, problems = gang_components(gang)
    assert [component.shape.claim.affinity for component in components] == [(), None]
    assert len(problems) == 1
    assert problems[0].startswith("pod set task-0.spec.containers[0].resources: cpu: 'lots'")


def test_affinity_that_kubernetes_refuses_leaves_the_topology_that_is_asked_for() -> None:
    odd = {"matchExpressions": [{"key": "a", "operator": "Like"}]}
    notes = {"fairway.dev/topology-required": RACK}
    off = template(notes, labels={"a": "b"}, affinity=apart(odd))
    gang = read(volcano_job({"replicas": 2, "template": off}, {"replicas": 1}))
    components, problems = gang_components(gang)
    assert components[0].shape.claim.affinity == ()
    assert told(components[0].topology) == f"required {RACK}"
    assert len(problems) == 1


def test_two_hundred_pod_sets_of_one_shape_keep_off_each_other_as_one_would() -> None:
    off = template(labels={"app": "x"}, affinity=apart({"matchLabels": {"app": "x"}}))
    raw = msgspec.json.encode(volcano_job(*({"replicas": 1, "template": off} for _ in range(200))))
    gang = read_workload(raw)
    assert isinstance(gang, Gang)
    components, problems = gang_components(gang)
    assert len(components) == 200
    assert {component.shape.per_domain for component in components} == {((HOST, 1),)}
    assert problems == ()


def test_a_topology_of_a_pod_set_is_kept_as_it_is() -> None:
    components, _ = gang_components(read(example("volcano-partitions")))
    assert isinstance(components[0].topology, TopologyRequest)
    assert told(components[0].topology) == "sliced example.com/leaf/2"
