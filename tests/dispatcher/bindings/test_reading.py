import sys

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fairway.names import ADMISSION, QUEUE, REQUEUE, SERVICE_CLASS, SKIP
from fairway.taints import Toleration
from queue_dispatcher.bindings.binding import PolicyReference, ScheduledCondition, WorkloadReference
from queue_dispatcher.bindings.demand_spec import MAX_COMPONENTS
from queue_dispatcher.bindings.interning import Interner
from queue_dispatcher.bindings.objects import ResourceBinding
from queue_dispatcher.bindings.reading import BindingReader
from queue_dispatcher.workloads.demand import Component, Placed
from queue_dispatcher.workloads.finished import FieldRule
from queue_dispatcher.workloads.fleet import Cluster
from queue_dispatcher.workloads.placement import by_group, copies, permitted
from tests.dispatcher.bindings.builders import (
    ADMITTED_MS,
    CREATED_MS,
    DECODER,
    UID,
    aggregated,
    binding,
    rb,
    read,
    record,
    requeue,
    scheduled,
)
from tests.dispatcher.workloads.builders import GPU, LAW, cluster

FLEET = (
    cluster("a", tier="prod"),
    cluster("b", tier="prod"),
    cluster("c"),
    Cluster("d", provider="aws", region="eu", zones=("eu-1",)),
)


def test_what_is_read() -> None:
    one = binding(
        held=True,
        placed={"a": 3, "b": 1},
        record=record(),
        requeue=requeue(),
        annotations={
            "propagationpolicy.karmada.io/namespace": "ns",
            "propagationpolicy.karmada.io/name": "policy",
            SERVICE_CLASS: "batch",
        },
        metadata={"labels": {QUEUE: "team"}},
        spec={"preserveResourcesOnDeletion": True, "schedulePriority": {"priority": 5}},
        status={
            **scheduled("False", "Unschedulable"),
            **aggregated(a="Complete"),
            "schedulerObservedGeneration": 2,
        },
    )
    assert (one.uid, one.key, one.resource_version, one.generation) == (UID, "ns/train-job", "7", 3)
    assert one.created_ms == CREATED_MS
    assert one.workload == WorkloadReference("batch/v1", "Job", "ns", "train", "t")
    assert one.workload.group == "batch"
    assert one.demand.components == (Component("", 4, ((GPU, 2),)),)
    assert one.is_workload
    assert one.placed == (Placed("a", 3), Placed("b", 1))
    assert one.finished == {"a"}
    assert (one.is_held, one.is_preserved, one.is_deleting, one.is_skipped) == (True, True, False, False)
    assert (one.queue, one.service_class) == ("team", "batch")
    assert one.policy == PolicyReference("ns", "policy")
    assert one.schedule_priority == 5
    assert (one.observed_generation, one.is_settled) == (2, False)
    assert one.scheduled == ScheduledCondition(False, "Unschedulable", "why", ADMITTED_MS)
    assert (one.record, one.requeue) == (record(), requeue())
    assert (one.problems, one.notes) == ((), ())


def test_a_cluster_policy_has_no_namespace() -> None:
    one = binding(annotations={"clusterpropagationpolicy.karmada.io/name": "policy"})
    assert one.policy == PolicyReference("", "policy")


def test_components() -> None:
    one = binding(
        spec={
            "replicas": 0,
            "replicaRequirements": None,
            "components": [
                {"name": "launcher", "replicas": 1},
                {
                    "name": "worker",
                    "replicas": 2,
                    "replicaRequirements": {
                        "resourceRequest": {GPU: 8, "cpu": "1500m", "memory": "1.5Gi"},
                        "priorityClassName": "high",
                    },
                },
            ],
        }
    )
    launcher, worker = one.demand.components
    assert one.demand.is_set
    assert launcher == Component("launcher", 1)
    assert worker.requests == (("cpu", 1500), ("memory", 3 << 29), (GPU, 8))
    assert worker.priority_class == "high"


@pytest.mark.parametrize(
    ("spec", "problem"),
    [
        ({"replicas": -3}, "spec.replicas: -3: expected 0 to"),
        ({"replicas": 2**31}, "spec.replicas: 2147483648: expected 0 to"),
        ({"replicas": 10**30}, "spec.replicas:"),
        ({"replicas": "3"}, "spec.replicas: expected `int`, got `str`"),
        ({"replicas": 1.5}, "spec.replicas:"),
        (
            {"replicaRequirements": {"resourceRequest": {GPU: "many"}}},
            "spec.replicaRequirements.resourceRequest: nvidia.com/gpu",
        ),
        ({"replicaRequirements": {"resourceRequest": {GPU: -1}}}, "resourceRequest[nvidia.com/gpu]: -1"),
        ({"replicaRequirements": {"resourceRequest": [1]}}, "spec.replicaRequirements.resourceRequest:"),
        ({"replicaRequirements": {"nodeClaim": {"nodeSelector": {"a": 1}}}}, "nodeClaim.nodeSelector"),
        ({"components": [{"name": "w", "replicas": 1}] * 500}, "spec.components: 500 components"),
        ({"components": [{"name": "w", "replicas": -1}]}, "spec.components[0].replicas: -1"),
        ({"components": [{}, {"replicas": None, "name": 1}]}, "spec.components[1]"),
        ({"components": "x"}, "spec.components:"),
        (
            {"placement": {"clusterAffinity": {"clusterNames": "a"}}},
            "spec.placement.clusterAffinity.clusterNames",
        ),
        ({"placement": 7}, "spec.placement:"),
        ({"clusters": [{"name": 1}]}, "spec.clusters[0].name"),
        ({"resource": []}, "spec.resource:"),
    ],
)
def test_what_cannot_be_read_is_a_problem_by_field_and_the_rest_is_read(
    spec: dict[str, object], problem: str
) -> None:
    one = binding(spec=spec)
    assert any(problem in told for told in one.problems), one.problems
    assert one.is_held
    assert one.is_workload
    assert one.placement is not None
    assert len(one.demand.components) <= MAX_COMPONENTS


@pytest.mark.parametrize("spec", [7, "x", [1], None])
def test_a_spec_that_is_none_is_no_workload_of_ours(spec: object) -> None:
    one = read({**rb(), "spec": spec})
    assert one.uid == UID
    assert one.placement is None
    assert bool(one.problems) is (spec is not None)


@pytest.mark.parametrize(
    "status", [7, {"conditions": 1}, {"aggregatedStatus": [{"status": 1, "clusterName": []}]}]
)
def test_a_status_that_cannot_be_read_is_noted_and_keeps_nobody_waiting(status: object) -> None:
    one = read({**rb(), "status": status})
    assert one.problems == ()
    assert one.notes
    assert one.finished == frozenset()


def test_nulls_are_as_left_out() -> None:
    spec = dict.fromkeys(
        ("suspension", "clusters", "components", "preserveResourcesOnDeletion", "schedulePriority")
    )
    one = binding(spec={**spec, "replicas": None}, status={"conditions": None, "aggregatedStatus": None})
    assert (one.problems, one.notes) == ((), ())
    assert (one.is_held, one.placed, one.demand.replicas) == (False, (), 0)


def test_negative_numbers_of_placed_replicas_count_as_none() -> None:
    """Karmada's validation lets them through."""
    assert binding(placed={"a": -5}).placed == (Placed("a", 0),)


@pytest.mark.parametrize("where", ["labels", "annotations"])
def test_opting_out(where: str) -> None:
    assert binding(metadata={where: {SKIP: ""}}).is_skipped


def test_our_records_are_annotations_not_labels() -> None:
    one = binding(metadata={"labels": {ADMISSION: "x", REQUEUE: "x"}})
    assert (one.admission, one.requeue) == (None, None)


def test_rules_of_administrators_decide_the_end() -> None:
    reader = BindingReader({("batch", "Job"): FieldRule(("phase",), frozenset(("Over",)))})
    status = {"aggregatedStatus": [{"clusterName": "a", "status": {"phase": "Over"}}]}
    one = reader.read(DECODER.decode(msgspec.json.encode(rb(placed={"a": 4}, status=status))))
    assert one.finished == {"a"}


NOT_READY = {"key": "cluster.karmada.io/not-ready", "operator": "Exists", "effect": "NoExecute"}


class TestPlacement:
    @pytest.mark.parametrize(
        ("tolerations", "expected"),
        [
            ((), 0),
            (({"key": "k", "operator": "Exists"},), 0),
            # As Karmada's webhook adds them where its failover is on.
            (
                (
                    {**NOT_READY, "tolerationSeconds": 300},
                    {**NOT_READY, "key": "cluster.karmada.io/unreachable", "tolerationSeconds": 400},
                ),
                400_000,
            ),
            # The least of those that say how long counts, as with Karmada's taint manager.
            (({**NOT_READY, "tolerationSeconds": 300}, {**NOT_READY, "tolerationSeconds": 60}), 60_000),
            (({**NOT_READY, "tolerationSeconds": 300}, {"operator": "Exists"}), None),
            (({**NOT_READY, "tolerationSeconds": -1},), 0),
            (({**NOT_READY, "effect": "NoSchedule"},), 0),
            ((NOT_READY,), None),
            (({"operator": "Exists"},), None),
        ],
    )
    def test_how_long_it_stays_in_a_lost_cluster(
        self, tolerations: tuple[dict[str, object], ...], expected: int | None
    ) -> None:
        one = binding(spec={"placement": {"clusterTolerations": list(tolerations)}})
        assert one.placement is not None
        assert one.placement.stays_ms == expected

    @pytest.mark.parametrize(
        ("placement", "expected"),
        [
            ({}, {"a", "b", "c", "d"}),
            ({"clusterAffinity": {"clusterNames": ["a", "z"]}}, {"a"}),
            ({"clusterAffinity": {"exclude": ["a"]}}, {"b", "c", "d"}),
            ({"clusterAffinity": {"labelSelector": {"matchLabels": {"tier": "prod"}}}}, {"a", "b"}),
            (
                {
                    "clusterAffinity": {
                        "labelSelector": {"matchExpressions": [{"key": "tier", "operator": "DoesNotExist"}]}
                    }
                },
                {"c", "d"},
            ),
            (
                {
                    "clusterAffinity": {
                        "fieldSelector": {
                            "matchExpressions": [
                                {"key": "provider", "operator": "In", "values": ["aws"]},
                                {"key": "zone", "operator": "In", "values": ["eu-1"]},
                            ]
                        }
                    }
                },
                {"d"},
            ),
            # What Karmada cannot parse matches no cluster.
            ({"clusterAffinity": {"labelSelector": {"matchLabels": {"a b": "c"}}}}, set()),
            (
                {
                    "clusterAffinity": {
                        "fieldSelector": {"matchExpressions": [{"key": "region", "operator": "Near"}]}
                    }
                },
                set(),
            ),
            (
                {
                    "clusterAffinities": [
                        {"affinityName": "one", "clusterNames": ["a"]},
                        {
                            "affinityName": "two",
                            "clusterNames": ["b"],
                            "overflowAffinities": [{"affinityName": "more", "clusterNames": ["c"]}],
                        },
                    ]
                },
                {"a", "b", "c"},
            ),
            ({"spreadConstraints": [{"spreadByField": "provider", "maxGroups": 1}]}, {"d"}),
        ],
    )
    def test_permitted(self, placement: dict[str, object], expected: set[str]) -> None:
        one = binding(spec={"placement": placement})
        assert one.placement is not None
        assert permitted(one.placement, FLEET) == expected

    def test_tolerations(self) -> None:
        one = binding(spec={"placement": {"clusterTolerations": [{"key": "k", "operator": "Exists"}]}})
        assert one.placement is not None
        assert one.placement.tolerations == (Toleration("k", "Exists"),)

    @pytest.mark.parametrize(
        ("placement", "expected"),
        [
            ({}, 4),  # without a strategy replicas are duplicated
            ({"replicaScheduling": {"replicaSchedulingType": "Duplicated"}}, 4),
            ({"replicaScheduling": {"replicaSchedulingType": "Divided"}}, 1),
            ({"replicaScheduling": {}}, 1),
            ({"spreadConstraints": [{"spreadByField": "cluster", "minGroups": 1, "maxGroups": 2}]}, 2),
            ({"spreadConstraints": [{"maxGroups": 3}, {"maxGroups": 2}]}, 2),
            ({"spreadConstraints": [{"maxGroups": 0}]}, 4),
            ({"spreadConstraints": [{"spreadByLabel": "rack", "maxGroups": 1}]}, 4),
        ],
    )
    def test_copies(self, placement: dict[str, object], expected: int) -> None:
        one = binding(spec={"placement": placement})
        assert one.placement is not None
        assert copies(one.placement, one.demand.is_set, by_group(one.placement, FLEET)) == expected

    def test_fixed_weights_ignore_spread_constraints(self) -> None:
        scheduling = {"replicaSchedulingType": "Divided", "replicaDivisionPreference": "Weighted"}
        spread = [{"spreadByField": "cluster", "maxGroups": 2}]
        components = [{"name": "a", "replicas": 1}, {"name": "b", "replicas": 1}]
        for weights, expected in ((None, 4), ({"staticWeightList": [{}]}, 4), ({"dynamicWeight": "x"}, 2)):
            strategy: dict[str, object] = {**scheduling, "weightPreference": weights}
            placement = {"replicaScheduling": strategy, "spreadConstraints": spread}
            one = binding(spec={"replicas": 0, "components": components, "placement": placement})
            assert one.placement is not None
            assert copies(one.placement, one.demand.is_set, by_group(one.placement, FLEET)) == expected


def test_what_bindings_have_in_common_is_one_object() -> None:
    reader = BindingReader()
    first, second = (
        reader.read(
            DECODER.decode(
                msgspec.json.encode(rb(placed={"a": 4}, record=record(), metadata={"name": f"job-{i}"}))
            )
        )
        for i in (1, 2)
    )
    assert first.demand is second.demand
    assert first.placement is second.placement
    assert first.placed is second.placed
    assert first.namespace is second.namespace
    assert first.record is not None
    assert second.record is not None
    assert first.record.requests is second.record.requests


def test_a_pending_binding_takes_less_than_two_kilobytes() -> None:
    one = binding()
    own = (one, one.uid, one.name, one.resource_version, one.workload, one.workload.name, one.workload.uid)
    assert sum(sys.getsizeof(part) for part in own) < 2_000


def test_the_interner_forgets_when_there_is_too_much() -> None:
    interner = Interner(max_values=2)
    kept = interner.one("".join(["a", "b"]))
    assert interner.one("".join(["a", "b"])) is kept
    for value in range(5):
        assert interner.one(value) == value
    assert len(interner) <= 2


_JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=4),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=4), inner, max_size=3),
    max_leaves=6,
)
_SPEC = st.fixed_dictionaries(
    {},
    optional=dict.fromkeys(
        ("resource", "replicas", "replicaRequirements", "components", "clusters", "placement", "suspension"),
        _JSON,
    ),
)
_STATUS = st.fixed_dictionaries(
    {}, optional=dict.fromkeys(("conditions", "aggregatedStatus", "schedulerObservedGeneration"), _JSON)
)


@LAW
@given(_SPEC, _STATUS, st.text(max_size=20), st.text(max_size=20))
def test_reading_never_raises(spec: object, status: object, admission: str, again: str) -> None:
    stated = ResourceBinding(
        metadata=DECODER.decode(msgspec.json.encode(rb(record=admission, requeue=again))).metadata,
        spec=msgspec.Raw(msgspec.json.encode(spec)),
        status=msgspec.Raw(msgspec.json.encode(status)),
    )
    one = BindingReader().read(stated)
    assert one.uid == UID
    assert all(component.replicas >= 0 for component in one.demand.components)
    assert all(share.replicas >= 0 for share in one.placed)
