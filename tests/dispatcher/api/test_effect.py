"""Which fields are told to have no effect."""

import pytest

from queue_dispatcher.api.effect import IS_ABOVE_OTHERS, KARMADA_CHOOSES, Stated, without_effect
from queue_dispatcher.api.reading.cluster_queue import read_cluster_queue
from queue_dispatcher.api.reading.local_queue import read_local_queue
from queue_dispatcher.api.reading.resource_flavor import read_resource_flavor
from queue_dispatcher.api.reading.service_class import read_service_class
from queue_dispatcher.api.status import effective
from tests.dispatcher.api.builders import Spec, cluster_queue, flavor, local_queue, service_class


def queue(**spec: object) -> Stated:
    return read_cluster_queue(cluster_queue(spec))


def class_(**spec: object) -> Stated:
    return read_service_class(service_class(spec))


_SHARES = [{"name": "gpu", "nominalQuota": "50%"}]
HALF = [{"coveredResources": ["gpu"], "flavors": [{"name": "f", "resources": _SHARES}]}]
SPOT: Spec = {"key": "spot", "effect": "NoSchedule"}


@pytest.mark.parametrize(
    ("stated", "told"),
    [
        (queue(), []),
        # What says what is done anyway needs no effect.
        (
            queue(
                preemption={"withinClusterQueue": "Never", "reclaimWithinCohort": "Never"},
                flavorFungibility={"whenCanPreempt": "TryNextFlavor", "whenCanBorrow": "TryNextFlavor"},
                stopPolicy="Hold",
            ),
            [],
        ),
        (
            queue(
                preemption={"withinClusterQueue": "LowerPriority", "reclaimWithinCohort": "Any"},
                flavorFungibility={"whenCanPreempt": "MayStopSearch"},
                stopPolicy="HoldAndDrain",
            ),
            [],
        ),
        (
            queue(flavorFungibility={"whenCanPreempt": "MayStopSearch"}),
            ["spec.flavorFungibility.whenCanPreempt"],
        ),
        (
            queue(
                flavorFungibility={
                    "whenCanBorrow": "TryNextFlavor",
                    "whenCanPreempt": "TryNextFlavor",
                    "preference": "BorrowingOverPreemption",
                }
            ),
            [],
        ),
        (
            queue(
                flavorFungibility={
                    "whenCanBorrow": "TryNextFlavor",
                    "whenCanPreempt": "TryNextFlavor",
                    "preference": "PreemptionOverBorrowing",
                }
            ),
            ["spec.flavorFungibility.preference"],
        ),
        (queue(quotaReduction={"policy": "Keep", "delay": "10m"}), []),
        (queue(quotaReduction={"policy": "Evict", "delay": "1m"}), []),
        (queue(quotaReduction={"delay": "1m"}), ["spec.quotaReduction.delay"]),
        (queue(resourceGroups=HALF, quotaReduction={"policy": "Evict"}), ["spec.quotaReduction"]),
        (queue(resourceGroups=HALF), []),
        (queue(reservation={"after": "1m"}), []),
        (queue(queueingStrategy="BackfillFIFO", reservation={"depth": 2}), []),
        (queue(queueingStrategy="StrictFIFO", reservation={"after": "5m"}), ["spec.reservation"]),
        (queue(queueingStrategy="BestEffortFIFO", reservation={"depth": 2}), ["spec.reservation"]),
        (queue(queueingStrategy="StrictFIFO", reservation={"after": "1m", "depth": 1}), []),
        # Only where no release says where it goes, see below.
        (queue(scoringStrategy={"type": "LeastAllocated"}), []),
        (read_local_queue(local_queue({"clusterQueue": "a", "stopPolicy": "HoldAndDrain"})), []),
        (class_(priority=5, startTimeout="1m", preemptible="Always"), []),
        (
            class_(maxWait="1h", maxRuntime="1h", minRuntime="1m", preemptible="Never"),
            [],
        ),
        (read_resource_flavor(flavor({"nodeTaints": [SPOT], "tolerations": [SPOT]})), []),
        (
            read_resource_flavor(
                flavor({"nodeTaints": [SPOT], "tolerations": [SPOT, {"key": "gpu", "operator": "Exists"}]})
            ),
            ["spec.tolerations[1]"],
        ),
    ],
)
def test_fields_without_effect(stated: Stated, told: list[str]) -> None:
    found = without_effect(stated)
    assert [one.field for one in found] == told
    assert all("no effect" in one.message for one in found)
    conditions = effective(found, 1, "2026-11-22T10:00:00Z", ())
    assert [(c.type, c.status, c.reason) for c in conditions] == [
        ("Effective", "False", "FieldsWithoutEffect")
    ] * bool(told)
    assert all(field in condition.message for condition in conditions for field in told)


@pytest.mark.parametrize(
    ("type_", "unplaced", "told"),
    [
        ("LeastAllocated", "", []),
        ("LeastAllocated", "Karmada chooses", ["spec.scoringStrategy: no effect: Karmada chooses"]),
        # The API server says so of all that say nothing.
        ("MostAllocated", "Karmada chooses", []),
    ],
)
def test_who_chooses_no_clusters_spreads_nothing(type_: str, unplaced: str, told: list[str]) -> None:
    found = without_effect(queue(scoringStrategy={"type": type_}), unplaced)
    assert [str(one) for one in found] == told


@pytest.mark.parametrize(
    ("strategy", "unplaced", "told"),
    [
        ("BackfillFIFO", KARMADA_CHOOSES, []),
        ("BackfillFIFO", IS_ABOVE_OTHERS, [f"spec.reservation: no effect: {IS_ABOVE_OTHERS}"]),
        ("BestEffortFIFO", IS_ABOVE_OTHERS, [f"spec.reservation: no effect: {IS_ABOVE_OTHERS}"]),
        (
            "BestEffortFIFO",
            "",
            [
                "spec.reservation: no effect: spec.queueingStrategy is BestEffortFIFO, and only BackfillFIFO "
                "makes reservations"
            ],
        ),
    ],
)
def test_who_reserves_nothing_is_told_so(strategy: str, unplaced: str, told: list[str]) -> None:
    found = without_effect(queue(queueingStrategy=strategy, reservation={"drainAfter": "1h"}), unplaced)
    assert [str(one) for one in found] == told


def test_a_queue_above_others_displaces_nobody_and_is_told_so() -> None:
    stated = queue(preemption={"reclaimWithinCohort": "Any"})
    assert without_effect(stated) == ()
    assert [str(one) for one in without_effect(stated, IS_ABOVE_OTHERS)] == [
        f"spec.preemption.reclaimWithinCohort: no effect: {IS_ABOVE_OTHERS}"
    ]


@pytest.mark.parametrize(
    ("field", "stated", "is_told"),
    [
        ("queueingStrategy", "StrictFIFO", True),
        ("queueingStrategy", "BestEffortFIFO", False),
        ("ageing", {"step": "30m", "cap": 4}, True),
        ("namespaceSelector", {"matchLabels": {"team": "a"}}, True),
        ("namespaceSelector", {}, False),
    ],
)
def test_a_queue_above_others_has_no_line_of_its_own(field: str, stated: object, *, is_told: bool) -> None:
    of = queue(**{field: stated})
    assert without_effect(of) == ()
    told = [f"spec.{field}: no effect: {IS_ABOVE_OTHERS}"] if is_told else []
    assert [str(one) for one in without_effect(of, IS_ABOVE_OTHERS)] == told


@pytest.mark.parametrize(
    ("unplaced", "told"),
    [
        ("", []),
        (KARMADA_CHOOSES, []),
        (IS_ABOVE_OTHERS, [f"spec.admissionChecks: no effect: {IS_ABOVE_OTHERS}"]),
    ],
)
def test_checks_are_asked_for_where_workloads_wait(unplaced: str, told: list[str]) -> None:
    found = without_effect(queue(admissionChecks=[{"name": "budget"}]), unplaced)
    assert [str(one) for one in found] == told
