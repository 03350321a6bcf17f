"""Policies that make estimates toothless, hold up what was released, or name queues that are not there."""

from dataclasses import replace

import pytest

from admin.doctor.check import Check
from admin.doctor.finding import Verdict
from admin.doctor.karmada_kinds import (
    CLUSTER_PROPAGATION_POLICIES,
    FEDERATED_RESOURCE_QUOTAS,
    PROPAGATION_POLICIES,
)
from admin.doctor.objects.policy_placement import POLICY_GANGS, POLICY_REPLICAS
from queue_dispatcher.api.kinds import CLUSTER_QUEUES
from queue_dispatcher.bindings.cluster import CLUSTERS
from queue_dispatcher.bindings.objects import RESOURCE_BINDINGS
from tests.admin.doctor.objects.builders import (
    AGGREGATED,
    GPU,
    ONE_CLUSTER,
    PYTORCH_JOBS,
    Obj,
    World,
    apply,
    binding,
    cluster,
    cluster_queue,
    components,
    job,
    metadata,
    policy,
    unscheduled,
    well,
)

DYNAMIC = {
    "replicaSchedulingType": "Divided",
    "replicaDivisionPreference": "Weighted",
    "weightPreference": {"dynamicWeight": "AvailableReplicas"},
}
STATIC = {
    "replicaSchedulingType": "Divided",
    "replicaDivisionPreference": "Weighted",
    "weightPreference": {"staticWeightList": [{"targetCluster": {"clusterNames": ["m1"]}, "weight": 1}]},
}


def placed_by(placement: Obj, **spec: object) -> World:
    """The world of a policy with this placement."""
    world = well()
    world.one(PROPAGATION_POLICIES)["spec"] |= {"placement": placement, **spec}
    return world


def with_gang(placement: Obj) -> World:
    """The world with a PyTorchJob of two components, of a policy with this placement."""
    world = well()
    world.add(PROPAGATION_POLICIES, policy("gang", kind="PyTorchJob", placement=placement))
    world.add(PYTORCH_JOBS, job("ring"))
    made = binding("ring", by="gang", kind="PyTorchJob", api_version="kubeflow.org/v1")
    made["spec"] |= components("master", "worker")
    world.add(RESOURCE_BINDINGS, made)
    return world


@pytest.mark.parametrize(
    ("scheduling", "told"),
    [
        (None, "nothing, which Karmada reads as Duplicated"),
        ({"replicaSchedulingType": "Duplicated"}, "replicaScheduling: Duplicated"),
        (STATIC, "Divided by static weights"),
        ({"replicaSchedulingType": "Divided"}, "equal shares"),
        ({}, "equal shares"),
        ({"replicaSchedulingType": "Divided", "replicaDivisionPreference": "Weighted"}, "equal shares"),
    ],
)
def test_a_division_that_ignores_estimates_is_told_and_mended(scheduling: Obj | None, told: str) -> None:
    world = placed_by({"replicaScheduling": scheduling, "clusterAffinity": {"clusterNames": ["m1", "m2"]}})
    said = world.findings()
    assert said.keys() == {"policy-replicas"}
    (finding,) = said["policy-replicas"]
    assert (finding.verdict, finding.subject) == (Verdict.WARNING, "PropagationPolicy team/train")
    assert told in finding.message
    apply(world, said["policy-replicas"])
    assert world.findings() == {}
    placement = world.one(PROPAGATION_POLICIES)["spec"]["placement"]
    assert placement == {"replicaScheduling": AGGREGATED, "clusterAffinity": {"clusterNames": ["m1", "m2"]}}


@pytest.mark.parametrize("scheduling", [AGGREGATED, DYNAMIC])
def test_a_division_by_estimates_is_well(scheduling: Obj) -> None:
    assert placed_by({"replicaScheduling": scheduling}).findings() == {}


def test_a_policy_of_what_needs_no_accelerator_may_do_as_it_likes() -> None:
    world = well()
    world.add(PROPAGATION_POLICIES, policy("web", placement={}))
    made = binding("web", by="web", held=False, placed={"m1": 2})
    made["spec"]["replicaRequirements"] = {"resourceRequest": {"cpu": "1"}}
    world.add(RESOURCE_BINDINGS, made)
    assert world.findings() == {}


@pytest.mark.parametrize(
    ("placement", "verdict", "told"),
    [
        ({}, Verdict.ERROR, "each of several clusters gets a whole copy"),
        ({"replicaScheduling": AGGREGATED}, Verdict.ERROR, "no spreadConstraints of"),
        (
            {"replicaScheduling": AGGREGATED, "clusterAffinity": {"clusterNames": ["m1"]}},
            Verdict.NOTE,
            "not asked",
        ),
        ({"spreadConstraints": ONE_CLUSTER}, Verdict.WARNING, "replicaScheduling nothing"),
        ({"replicaScheduling": STATIC, "spreadConstraints": ONE_CLUSTER}, Verdict.ERROR, "static weights"),
        (
            {
                "replicaScheduling": AGGREGATED,
                "spreadConstraints": [
                    {"spreadByField": "region", "minGroups": 1, "maxGroups": 1},
                    {"spreadByField": "cluster", "minGroups": 1, "maxGroups": 2},
                ],
            },
            Verdict.ERROR,
            "gets a whole copy",
        ),
    ],
)
def test_a_gang_that_is_not_kept_together_is_told_and_mended(
    placement: Obj, verdict: Verdict, told: str
) -> None:
    world = with_gang(placement)
    said = world.findings()
    assert said.keys() == {"policy-gangs"}
    (finding,) = said["policy-gangs"]
    assert finding.verdict is verdict
    assert told in finding.message
    assert "PyTorchJob" in finding.message
    apply(world, said["policy-gangs"])
    assert world.findings() == {}


@pytest.mark.parametrize("scheduling", [AGGREGATED, DYNAMIC])
def test_a_gang_in_one_cluster_is_well(scheduling: Obj) -> None:
    assert with_gang({"replicaScheduling": scheduling, "spreadConstraints": ONE_CLUSTER}).findings() == {}


def test_other_constraints_of_a_gang_are_kept_as_far_as_they_can_hold() -> None:
    region = {"spreadByField": "region", "minGroups": 1, "maxGroups": 1}
    spread = [region, {"spreadByField": "zone", "minGroups": 2}, {"spreadByField": "cluster", "minGroups": 2}]
    world = with_gang({"replicaScheduling": AGGREGATED, "spreadConstraints": spread})
    (finding,) = world.findings()["policy-gangs"]
    assert "contradict it and go" in finding.remedy
    apply(world, [finding])
    (_, gang) = world.objects[PROPAGATION_POLICIES.name]
    assert gang["spec"]["placement"]["spreadConstraints"] == [region, *ONE_CLUSTER]


def test_a_policy_that_selects_a_kind_of_gangs_is_judged_before_there_is_one() -> None:
    world = well()
    world.add(CLUSTER_PROPAGATION_POLICIES, policy("all", "", kind="PyTorchJob"))
    said = world.findings()
    assert said.keys() == {"policy-gangs"}
    assert said["policy-gangs"][0].subject == "ClusterPropagationPolicy all"
    assert said["policy-gangs"][0].verdict is Verdict.NOTE
    apply(world, said["policy-gangs"])
    assert world.findings() == {}


def test_policies_with_the_same_mistake_are_one_line_with_a_patch_for_each() -> None:
    world = with_gang({})
    world.add(PROPAGATION_POLICIES, *(policy(f"p{n}", kind="PyTorchJob", placement={}) for n in range(32)))
    used, unused = world.findings()["policy-gangs"][::-1]
    assert (used.verdict, used.subject) == (Verdict.ERROR, "PropagationPolicy team/gang")
    assert (unused.verdict, unused.subject, len(unused.more)) == (Verdict.NOTE, "32 PropagationPolicies", 32)
    apply(world, [used, *(replace(unused, patch=one) for one in unused.more)])
    assert world.findings() == {}


@pytest.mark.parametrize(
    ("placement", "told"),
    [
        ({"spreadConstraints": [{"spreadByField": "cluster", "minGroups": 3}]}, "minGroups 3 by cluster"),
        ({"spreadConstraints": [{"minGroups": 3}]}, "is 2 of them"),
        (
            {
                "clusterAffinity": {"clusterNames": ["m1"]},
                "spreadConstraints": [{"spreadByField": "cluster", "minGroups": 2, "maxGroups": 4}],
            },
            "is 1 of them",
        ),
        (
            {
                "spreadConstraints": [
                    {"spreadByField": "cluster"},
                    {"spreadByField": "region", "minGroups": 2},
                ]
            },
            "minGroups 2 by region",
        ),
        (
            {"spreadConstraints": [{"spreadByField": "zone", "minGroups": 1}]},
            "permits none of the 2 clusters",
        ),
        ({"spreadConstraints": [{"spreadByField": "provider"}]}, "permits none of the 2 clusters"),
        ({"spreadConstraints": [{"spreadByLabel": "rack", "minGroups": 2}]}, "minGroups 2 by rack"),
        (
            {"spreadConstraints": [{"spreadByField": "cluster", "minGroups": 2, "maxGroups": 1}]},
            "maxGroups 1 is below minGroups 2",
        ),
        ({"clusterAffinity": {"labelSelector": {"matchLabels": {"gpu": "h100"}}}}, "permits none"),
        (
            {"clusterAffinities": [{"affinityName": "a", "clusterNames": ["m1"], "exclude": ["m1"]}]},
            "permits none",
        ),
        ({"clusterAffinity": {"clusterNames": ["m9"]}}, "permits none"),
    ],
)
def test_a_placement_that_nothing_satisfies_is_told(placement: Obj, told: str) -> None:
    found = placed_by({"replicaScheduling": AGGREGATED, **placement}).findings()["policy-clusters"]
    assert found[0].verdict is Verdict.ERROR
    assert any(told in finding.message for finding in found)


@pytest.mark.parametrize(
    "placement",
    [
        {"spreadConstraints": [{"spreadByField": "cluster", "minGroups": 2, "maxGroups": 2}]},
        {"spreadConstraints": [{"spreadByField": "cluster"}, {"spreadByField": "region", "minGroups": 1}]},
        {"clusterAffinities": [{"clusterNames": ["m1"]}, {"clusterNames": ["m1", "m2"]}]},
    ],
)
def test_a_placement_that_can_be_satisfied_is_well(placement: Obj) -> None:
    assert placed_by({"replicaScheduling": AGGREGATED, **placement}).findings() == {}


def test_taints_that_nothing_tolerates_are_told() -> None:
    world = well()
    world.empty(CLUSTERS)
    taint = {"key": "gpu", "effect": "NoSchedule"}
    world.add(CLUSTERS, cluster("m1", taints=[taint]), cluster("m2", taints=[taint]))
    assert "their taints" in world.findings()["policy-clusters"][0].message


def test_a_cluster_that_is_not_joined_is_told() -> None:
    placement = {"replicaScheduling": AGGREGATED, "clusterAffinity": {"clusterNames": ["m1", "m9"]}}
    said = placed_by(placement).findings()
    assert said.keys() == {"policy-clusters"}
    assert [(f.verdict, "m9" in f.message) for f in said["policy-clusters"]] == [(Verdict.WARNING, True)]


@pytest.mark.parametrize(
    ("suspension", "verdict", "told"),
    [
        ({"dispatching": True}, Verdict.ERROR, "hold quota and wait for it: 2"),
        ({"dispatchingOnClusters": {"clusterNames": ["m1"]}}, Verdict.WARNING, "what is placed on m1"),
    ],
)
def test_a_suspended_policy_is_told_and_mended(suspension: Obj, verdict: Verdict, told: str) -> None:
    world = placed_by({"replicaScheduling": AGGREGATED}, suspension=suspension)
    said = world.findings()
    assert said.keys() == {"policy-suspension"}
    (finding,) = said["policy-suspension"]
    assert finding.verdict is verdict
    assert told in finding.message
    apply(world, [finding])
    assert world.findings() == {}


@pytest.mark.parametrize(
    "suspension", [{"dispatching": False}, {"dispatchingOnClusters": {"clusterNames": []}}, {}]
)
def test_a_policy_that_suspends_nothing_is_well(suspension: Obj) -> None:
    assert placed_by({"replicaScheduling": AGGREGATED}, suspension=suspension).findings() == {}


@pytest.mark.parametrize(
    ("made", "told"),
    [
        (policy(queue="gone"), "there is no LocalQueue team/gone"),
        (policy("all", "", queue="gone"), "no LocalQueue or ClusterQueue has that name"),
    ],
)
def test_a_policy_that_names_a_missing_queue_is_told(made: Obj, told: str) -> None:
    world = well()
    kind = PROPAGATION_POLICIES if made["metadata"].get("namespace") else CLUSTER_PROPAGATION_POLICIES
    world.empty(kind)
    world.add(kind, made)
    said = world.findings()
    assert said.keys() == {"policy-queue"}
    assert told in said["policy-queue"][0].message


def test_a_cluster_policy_needs_its_queue_in_every_namespace_that_it_serves() -> None:
    world = well()
    world.add(CLUSTER_PROPAGATION_POLICIES, policy("all", "", queue="main"))
    assert world.findings() == {}
    made = binding("far", "other", held=False, placed={"m1": 2})
    made["metadata"]["annotations"] = {"clusterpropagationpolicy.karmada.io/name": "all"}
    world.add(RESOURCE_BINDINGS, made)
    assert "of that name in other" in world.findings()["policy-queue"][0].message


def test_a_policy_that_names_its_queue_is_well() -> None:
    world = well()
    world.one(PROPAGATION_POLICIES)["metadata"]["annotations"] = {"fairway.dev/queue": "main"}
    assert world.findings() == {}


def test_a_policy_that_preserves_is_noted() -> None:
    world = placed_by({"replicaScheduling": AGGREGATED}, preserveResourcesOnDeletion=True)
    said = world.findings()
    assert [(name, f.verdict) for name, (f,) in said.items()] == [("policy-preserves", Verdict.NOTE)]
    apply(world, said["policy-preserves"])
    assert world.findings() == {}


@pytest.mark.parametrize(
    ("spec", "told"),
    [
        ({"placement": {"spreadConstraints": "many"}}, "spec.placement.spreadConstraints"),
        ({"placement": 7}, "spec.placement"),
        ("nothing", "spec: expected an object"),
        ({"suspension": {"dispatching": "yes"}}, "spec.suspension.dispatching"),
        ({"resourceSelectors": [[[[[]]]]]}, "spec.resourceSelectors"),
    ],
)
def test_a_malformed_policy_is_told_and_costs_nobody_else(spec: object, told: str) -> None:
    world = well()
    world.add(PROPAGATION_POLICIES, {"metadata": metadata("odd", "team"), "spec": spec})
    said = world.findings()
    assert said.keys() == {"policy-fields"}
    assert told in said["policy-fields"][0].message


def quota(**overall: str) -> Obj:
    limits = {name.replace("_", "."): value for name, value in overall.items()} or {GPU: "4"}
    return {"metadata": metadata("limits", "team"), "spec": {"overall": limits}}


def test_a_federated_quota_of_what_a_queue_counts_is_to_be_dropped() -> None:
    world = well()
    world.add(FEDERATED_RESOURCE_QUOTAS, quota())
    said = world.findings()
    assert said.keys() == {"federated-quotas"}
    (finding,) = said["federated-quotas"]
    assert finding.verdict is Verdict.WARNING
    assert "kubectl delete federatedresourcequota/limits -n team" in finding.remedy
    assert finding.patch is None


def test_of_a_federated_quota_only_what_is_counted_twice_is_dropped() -> None:
    world = well()
    made = {"metadata": metadata("limits", "team"), "spec": {"overall": {f"requests.{GPU}": "4", "cpu": "9"}}}
    world.add(FEDERATED_RESOURCE_QUOTAS, made)
    said = world.findings()
    apply(world, said["federated-quotas"])
    assert world.findings() == {}
    assert world.one(FEDERATED_RESOURCE_QUOTAS)["spec"]["overall"] == {"cpu": "9"}


def test_a_federated_quota_that_refuses_is_an_error() -> None:
    world = well()
    world.add(FEDERATED_RESOURCE_QUOTAS, quota())
    world.one(RESOURCE_BINDINGS)["status"] = unscheduled("QuotaExceeded")
    (finding,) = world.findings()["federated-quotas"]
    assert finding.verdict is Verdict.ERROR
    assert "bindings that it refuses now: 1" in finding.message


@pytest.mark.parametrize("overall", [{"cpu": "4"}, {}])
def test_a_federated_quota_of_other_resources_is_well(overall: Obj) -> None:
    world = well()
    world.add(FEDERATED_RESOURCE_QUOTAS, {"metadata": metadata("q", "team"), "spec": {"overall": overall}})
    assert world.findings() == {}


def test_a_federated_quota_in_a_namespace_without_queues_is_well() -> None:
    world = well()
    world.add(FEDERATED_RESOURCE_QUOTAS, {"metadata": metadata("q", "web"), "spec": {"overall": {GPU: "4"}}})
    assert world.findings() == {}


def test_a_malformed_federated_quota_is_told() -> None:
    world = well()
    world.add(FEDERATED_RESOURCE_QUOTAS, {"metadata": metadata("q", "team"), "spec": {"overall": [1]}})
    assert "spec.overall" in world.findings()["federated-quotas"][0].message


def test_a_quota_of_a_queue_with_another_resource_is_not_counted_twice() -> None:
    world = well()
    world.add(CLUSTER_QUEUES, cluster_queue("cpus", 64, resource="cpu"))
    world.add(
        FEDERATED_RESOURCE_QUOTAS, {"metadata": metadata("q", "team"), "spec": {"overall": {"cpu": "4"}}}
    )
    assert "federated-quotas" not in world.findings()


def said_of_none(world: World, check: Check) -> tuple[Verdict, str]:
    (one,) = check.findings(world.evidence())
    return one.verdict, one.message


def test_where_there_is_no_such_policy_nothing_is_called_well() -> None:
    world = well()
    no_gangs = "does not apply: no policy is of gangs"
    assert said_of_none(world, POLICY_GANGS) == (Verdict.NOTE, no_gangs)
    assert said_of_none(world, POLICY_REPLICAS)[0] is Verdict.OK
    world.empty(PROPAGATION_POLICIES)
    none = "does not apply: no policy is of accelerator workloads, and none names a queue"
    assert said_of_none(world, POLICY_REPLICAS) == (Verdict.NOTE, none)
    world = with_gang({"replicaScheduling": AGGREGATED, "spreadConstraints": ONE_CLUSTER})
    assert said_of_none(world, POLICY_GANGS)[0] is Verdict.OK
    del world.objects[PROPAGATION_POLICIES.name][0]
    of_gangs = "does not apply: what policies there are of such workloads is of gangs: see policy-gangs"
    assert said_of_none(world, POLICY_REPLICAS) == (Verdict.NOTE, of_gangs)
