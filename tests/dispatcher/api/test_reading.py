"""Objects as they are read: defaults, and what a wrong field means for the rest of the object."""

from collections.abc import Sequence

import msgspec
import pytest

from fairway.taints import Taint, Toleration
from queue_dispatcher.api.ageing import NO_AGEING, Ageing
from queue_dispatcher.api.cluster_queue import (
    ClusterQueue,
    FlavorFungibility,
    FlavorPreference,
    Preemption,
    QueueingStrategy,
    ReclaimWithinCohort,
    ScoringStrategy,
    SearchPolicy,
    StopPolicy,
    WithinClusterQueue,
)
from queue_dispatcher.api.local_queue import LocalQueue
from queue_dispatcher.api.problem import Problem
from queue_dispatcher.api.quota_reduction import QuotaReduction, QuotaReductionPolicy
from queue_dispatcher.api.reading.cluster_queue import read_cluster_queue
from queue_dispatcher.api.reading.local_queue import read_local_queue
from queue_dispatcher.api.reading.resource_flavor import read_resource_flavor
from queue_dispatcher.api.reading.service_class import read_service_class
from queue_dispatcher.api.reservation import ReservationPolicy
from queue_dispatcher.api.resource_flavor import (
    Capacity,
    FromClusters,
    FromEstimator,
    ResourceFlavor,
    Static,
)
from queue_dispatcher.api.service_class import Preemptible, ServiceClass, default_class
from tests.dispatcher.api.builders import Json, Spec, cluster_queue, flavor, local_queue, service_class
from tests.dispatcher.crds.examples import ABSENT, EXAMPLES

MINUTE_MS, HOUR_MS = 60_000, 3_600_000
TIMES = ["[0].timeout", "[1].timeout"]
NAMES = ["[0].name", "[1].name", "[2].name"]
TRY_NEXT, MAY_STOP = SearchPolicy.TRY_NEXT_FLAVOR, SearchPolicy.MAY_STOP_SEARCH
GARBAGE: list[Spec] = [{"matchLabels": {"no good key": "x"}}, {"matchLabels": {"a": "no good value"}}]
GARBAGE += [
    {"matchExpressions": [{"key": "a", "operator": operator}]} for operator in ("In", "Near", "", "Gt")
]


def fields(problems: tuple[Problem, ...]) -> list[str]:
    return [one.field for one in problems]


class TestDefaults:
    """What an object is that says nothing."""

    def test_flavor(self) -> None:
        assert read_resource_flavor(flavor({})) == ResourceFlavor("h100", capacity=FromClusters())

    def test_cluster_queue(self) -> None:
        assert read_cluster_queue(cluster_queue({})) == ClusterQueue(
            "team-a",
            parent="",
            groups=(),
            weight_milli=1000,
            priority=0,
            strategy=QueueingStrategy.BACKFILL_FIFO,
            stop_policy=StopPolicy.NONE,
            namespace_selector=None,
            ageing=NO_AGEING,
            scoring=ScoringStrategy.MOST_ALLOCATED,
            preemption=Preemption(WithinClusterQueue.NEVER, ReclaimWithinCohort.NEVER),
            reservation=ReservationPolicy(
                after_ms=1 * MINUTE_MS, drain_after_ms=10 * MINUTE_MS, hold_timeout_ms=24 * HOUR_MS, depth=1
            ),
        )

    def test_local_queue(self) -> None:
        read = read_local_queue(local_queue({"clusterQueue": "team-a"}))
        assert read == LocalQueue("tenant", "main", "team-a")
        assert read.key == "tenant/main"

    def test_service_class(self) -> None:
        assert read_service_class(service_class({})) == ServiceClass(
            "batch",
            priority=0,
            start_timeout_ms=5 * MINUTE_MS,
            backoff_base_ms=MINUTE_MS,
            backoff_max_ms=HOUR_MS,
            backoff_limit=None,
            preemptible=Preemptible.ALWAYS,
        )


EVICT = QuotaReductionPolicy.EVICT


@pytest.mark.parametrize("spec", [{}, {"namespaceSelector": {}}, {"namespaceSelector": None}])
def test_a_queue_that_selects_no_namespaces_takes_all(spec: Spec) -> None:
    assert read_cluster_queue(cluster_queue(spec)).takes({})


def test_a_queue_takes_the_namespaces_that_it_selects() -> None:
    selector = {
        "matchLabels": {"team": "a"},
        "matchExpressions": [{"key": "stage", "operator": "NotIn", "values": ["test"]}],
    }
    read = read_cluster_queue(cluster_queue({"namespaceSelector": selector}))
    assert read.problems == ()
    assert read.takes({"team": "a"})
    assert not read.takes({"team": "a", "stage": "test"})
    assert not read.takes({})


@pytest.mark.parametrize("selector", GARBAGE)
def test_a_selector_that_cannot_be_read_selects_nothing(selector: Spec) -> None:
    queue = read_cluster_queue(cluster_queue({"namespaceSelector": selector}))
    assert fields(queue.problems) == ["spec.namespaceSelector"]
    assert not queue.takes({"a": "b"})
    kind = read_resource_flavor(flavor({"clusterSelector": selector}))
    assert fields(kind.problems) == ["spec.clusterSelector"]
    assert not kind.spans("m1", {"a": "b"})


@pytest.mark.parametrize(
    ("spec", "spanned"),
    [
        ({}, ["m1", "m2"]),
        ({"clusterNames": ["m1", "gone", "m1"]}, ["m1"]),
        ({"clusterSelector": {"matchLabels": {"zone": "b"}}}, ["m2"]),
        ({"clusterNames": ["m1"], "clusterSelector": {"matchLabels": {"zone": "b"}}}, []),
    ],
)
def test_a_flavor_spans_what_it_names_and_selects(spec: Spec, spanned: list[str]) -> None:
    clusters = {"m1": {"zone": "a"}, "m2": {"zone": "b"}}
    read = read_resource_flavor(flavor(spec))
    assert [name for name, labels in clusters.items() if read.spans(name, labels)] == spanned


@pytest.mark.parametrize(
    ("policy", "capacity", "wrong"),
    [
        ({"type": "FromClusters"}, FromClusters(), []),
        ({"type": "FromEstimator"}, FromEstimator(), []),
        (
            {"type": "Static", "resources": {"cpu": "1500m", "gpu": 8, "memory": "1Ki"}},
            Static({"cpu": 1500, "gpu": 8, "memory": 1024}),
            [],
        ),
        ({"type": "Static"}, Static({}), ["resources"]),
        (
            {"type": "Static", "resources": {"gpu": "many", "tpu": -1, "cpu": None, "npu": 4}},
            Static({"gpu": 0, "tpu": 0, "cpu": 0, "npu": 4}),
            ["resources[gpu]", "resources[tpu]", "resources[cpu]"],
        ),
        ({"type": "FromClusters", "resources": {"gpu": 8}}, FromClusters(), ["resources"]),
        ({"type": "FromNowhere"}, Static({}), ["type"]),
    ],
)
def test_where_capacity_comes_from(policy: Spec, capacity: Capacity, wrong: list[str]) -> None:
    read = read_resource_flavor(flavor({"capacityPolicy": policy}))
    assert read.capacity == capacity
    assert fields(read.problems) == [f"spec.capacityPolicy.{name}" for name in wrong]


@pytest.mark.parametrize(
    ("stated", "read"), [(0, 0), (10, 10), (100, 100), (-1, 100), (101, 100), (2**70, 100)]
)
def test_headroom_beyond_all_leaves_nothing(stated: int, read: int) -> None:
    kind = read_resource_flavor(flavor({"headroomPercent": stated}))
    assert kind.headroom_percent == read
    assert fields(kind.problems) == ([] if stated == read else ["spec.headroomPercent"])


def test_nodes_of_a_flavor() -> None:
    read = read_resource_flavor(
        flavor(
            {
                "nodeLabels": {"gpu": "h100", "no good key": "x"},
                "tolerations": [
                    {"key": "gpu", "operator": "Exists", "effect": "NoSchedule"},
                    {"key": "gpu", "operator": "Lt", "value": "5"},
                    {"key": "gpu", "effect": "NoThing"},
                ],
            }
        )
    )
    assert read.node_labels == {"gpu": "h100", "no good key": "x"}
    assert read.tolerations == (Toleration("gpu", "Exists", "", "NoSchedule"),)
    assert fields(read.problems) == [
        "spec.nodeLabels",
        "spec.tolerations[1].operator",
        "spec.tolerations[2].effect",
    ]


@pytest.mark.parametrize(
    ("stated", "milli"),
    [
        (1, 1000),
        ("2", 2000),
        ("0.5", 500),
        (0.5, 500),
        (2.0, 2000),
        ("0.001", 1),
        (9999, 9_999_000),
        (None, 1000),
    ],
)
def test_weights(stated: Json, milli: int) -> None:
    read = read_cluster_queue(cluster_queue({"weight": stated}))
    assert (read.weight_milli, read.problems) == (milli, ())


@pytest.mark.parametrize(
    "stated", [0, "0", "0.000", -1, "", "heavy", "1/2", "0.0001", 10_000, 1e300, 2**80, "٣"]
)
def test_a_weight_that_cannot_be_read_is_one(stated: Json) -> None:
    read = read_cluster_queue(cluster_queue({"weight": stated}))
    assert read.weight_milli == 1000
    assert fields(read.problems) == ["spec.weight"]
    # What it proposes is what the API server takes: a number that is not whole as a string.
    assert 'such as 2 or "0.5"; read as 1' in str(read.problems[0])


def test_words() -> None:
    read = read_cluster_queue(
        cluster_queue(
            {
                "queueingStrategy": "StrictFIFO",
                "stopPolicy": "HoldAndDrain",
                "preemption": {"withinClusterQueue": "LowerPriority", "reclaimWithinCohort": "Any"},
                "ageing": {"step": "10m", "cap": 5},
            }
        )
    )
    assert read.problems == ()
    assert (read.strategy, read.stop_policy) == (QueueingStrategy.STRICT_FIFO, StopPolicy.HOLD_AND_DRAIN)
    assert read.preemption == Preemption(WithinClusterQueue.LOWER_PRIORITY, ReclaimWithinCohort.ANY)
    assert read.ageing == Ageing(10 * MINUTE_MS, 5)


@pytest.mark.parametrize(
    ("stated", "expected", "wrong"),
    [
        ({}, FlavorFungibility(), []),
        ({"whenCanBorrow": "TryNextFlavor"}, FlavorFungibility(TRY_NEXT), []),
        ({"whenCanPreempt": "MayStopSearch"}, FlavorFungibility(when_can_preempt=MAY_STOP), []),
        (
            {"whenCanBorrow": "TryNextFlavor", "preference": "PreemptionOverBorrowing"},
            FlavorFungibility(TRY_NEXT, TRY_NEXT, FlavorPreference.PREEMPTION_OVER_BORROWING),
            [],
        ),
        # Kueue has it only where both policies look further.
        ({"preference": "PreemptionOverBorrowing"}, FlavorFungibility(), ["preference"]),
        (
            {"whenCanBorrow": "Borrow", "whenCanPreempt": "Preempt", "preference": "Neither"},
            FlavorFungibility(),
            ["whenCanBorrow", "whenCanPreempt", "preference", "preference"],
        ),
    ],
)
def test_when_the_next_flavor_is_tried(stated: Json, expected: FlavorFungibility, wrong: list[str]) -> None:
    read = read_cluster_queue(cluster_queue({"flavorFungibility": stated}))
    assert read.fungibility == expected
    assert fields(read.problems) == [f"spec.flavorFungibility.{name}" for name in wrong]


@pytest.mark.parametrize(
    ("stated", "expected", "told"),
    [
        ({}, QuotaReduction(), []),
        ({"policy": "Evict"}, QuotaReduction(EVICT, 600_000), []),
        ({"policy": "Evict", "delay": "0s"}, QuotaReduction(EVICT, 0), []),
        ({"policy": "Evict", "delay": "90s"}, QuotaReduction(EVICT, 90_000), []),
        (
            {"policy": "evict"},
            QuotaReduction(),
            ["spec.quotaReduction.policy: 'evict': expected one of Keep, Evict; read as Keep"],
        ),
        (
            {"policy": "Evict", "delay": "-1s"},
            QuotaReduction(EVICT),
            ["spec.quotaReduction.delay: '-1s': expected a duration of zero or more; read as 10m"],
        ),
        (
            {"delay": "9999999h"},
            QuotaReduction(),
            ["spec.quotaReduction.delay: '9999999h': too long: expected at most 2562047h; read as 10m"],
        ),
    ],
)
def test_what_becomes_of_what_a_lowered_quota_leaves_no_room_for(
    stated: Spec, expected: QuotaReduction, told: list[str]
) -> None:
    read = read_cluster_queue(cluster_queue({"quotaReduction": stated}))
    assert (read.quota_reduction, [str(one) for one in read.problems]) == (expected, told)


@pytest.mark.parametrize(
    ("stated", "expected", "wrong"),
    [
        (None, [], []),
        ([], [], []),
        ([{"name": "a"}, {"name": "b", "timeout": "1h"}], [("a", None), ("b", HOUR_MS)], []),
        ([{"name": "a"}, {"name": "a", "timeout": "1h"}], [("a", None)], ["[1].name"]),
        (
            [{"name": "a", "timeout": "0s"}, {"name": "b", "timeout": "soon"}],
            [("a", None), ("b", None)],
            TIMES,
        ),
        # Nobody can answer these, so what would ask for less asks for all of them.
        ([{}, {"name": "a b"}, {"name": "x" * 64}], [("", None), ("a b", None), ("x" * 64, None)], NAMES),
        ([{"name": f"a{n}"} for n in range(9)], [(f"a{n}", None) for n in range(9)], [""]),
    ],
)
def test_checks(stated: Json, expected: list[tuple[str, int | None]], wrong: list[str]) -> None:
    read = read_cluster_queue(cluster_queue({"admissionChecks": stated}))
    assert [(one.name, one.timeout_ms) for one in read.checks] == expected
    assert fields(read.problems) == [f"spec.admissionChecks{field}" for field in wrong]


@pytest.mark.parametrize("strategy", QueueingStrategy)
def test_every_strategy_is_read(strategy: QueueingStrategy) -> None:
    read = read_cluster_queue(cluster_queue({"queueingStrategy": strategy.value}))
    assert (read.strategy, read.problems) == (strategy, ())


@pytest.mark.parametrize(
    ("stated", "minutes", "depth", "wrong"),
    [
        (None, (1, 10, 1440), 1, []),
        ({}, (1, 10, 1440), 1, []),
        ({"after": "0s", "drainAfter": "0s", "holdTimeout": "1h", "depth": 8}, (0, 0, 60), 8, []),
        ({"after": "20m", "drainAfter": "20m"}, (20, 20, 1440), 1, []),
        # What is not said goes along with what is.
        ({"after": "2h"}, (120, 120, 1440), 1, []),
        ({"drainAfter": "2h"}, (1, 120, 1440), 1, []),
        (
            {"drainAfter": "30s"},
            (1, 1, 1440),
            1,
            ["spec.reservation.drainAfter: below after: expected at least that; read as that"],
        ),
        (
            {"after": "soon", "drainAfter": "-1h", "holdTimeout": "0s", "depth": 0},
            (1, 10, 1440),
            1,
            [
                "spec.reservation.after: 'soon': expected a duration such as 90s, 5m or 1h30m; read as 1m",
                "spec.reservation.drainAfter: '-1h': expected a duration of zero or more; read as 10m",
                "spec.reservation.holdTimeout: '0s': expected a duration above zero; read as 24h",
                "spec.reservation.depth: 0: expected a whole number from 1 to 8; read as 1",
            ],
        ),
        (
            {"after": "2562048h", "depth": 9},
            (1, 10, 1440),
            1,
            [
                "spec.reservation.after: '2562048h': too long: expected at most 2562047h; read as 1m",
                "spec.reservation.depth: 9: expected a whole number from 1 to 8; read as 1",
            ],
        ),
    ],
)
def test_reservations(stated: Json, minutes: tuple[int, int, int], depth: int, wrong: Sequence[str]) -> None:
    read = read_cluster_queue(cluster_queue({"reservation": stated}))
    after, drain, hold = (MINUTE_MS * one for one in minutes)
    assert read.reservation == ReservationPolicy(after, drain, hold, depth)
    assert [str(one) for one in read.problems] == wrong


@pytest.mark.parametrize(
    ("stated", "expected"),
    [
        (None, ScoringStrategy.MOST_ALLOCATED),
        ({}, ScoringStrategy.MOST_ALLOCATED),
        ({"type": "MostAllocated"}, ScoringStrategy.MOST_ALLOCATED),
        ({"type": "LeastAllocated"}, ScoringStrategy.LEAST_ALLOCATED),
    ],
)
def test_which_clusters_are_filled_first(stated: Json, expected: ScoringStrategy) -> None:
    read = read_cluster_queue(cluster_queue({"scoringStrategy": stated}))
    assert (read.scoring, read.problems) == (expected, ())


def test_a_taint_that_cannot_be_read_keeps_off_all_the_same() -> None:
    stated = [
        {"key": "spot", "value": "yes", "effect": "NoExecute"},
        {"key": "spot", "effect": "Never"},
        {"key": "no key", "effect": "PreferNoSchedule"},
    ]
    read = read_resource_flavor(flavor({"nodeTaints": stated}))
    assert read.node_taints == (
        Taint("spot", "yes", "NoExecute"),
        Taint("spot", "", "NoSchedule"),
        Taint("no key", "", "PreferNoSchedule"),
    )
    assert fields(read.problems) == ["spec.nodeTaints[1].effect", "spec.nodeTaints[2].key"]


def test_words_that_are_not_known_mean_what_is_safe() -> None:
    """No workload passes another, nothing is admitted, nothing displaced, nothing taken back."""
    read = read_cluster_queue(
        cluster_queue(
            {
                "queueingStrategy": "Backfill",
                "stopPolicy": "Stop",
                "scoringStrategy": {"type": "RequestedToCapacityRatio"},
                "preemption": {"withinClusterQueue": "Any", "reclaimWithinCohort": "Always"},
                "ageing": {"step": "soon", "cap": -1},
            }
        )
    )
    assert (read.strategy, read.stop_policy) == (QueueingStrategy.STRICT_FIFO, StopPolicy.HOLD)
    assert (read.preemption, read.ageing) == (Preemption(), NO_AGEING)
    assert read.scoring is ScoringStrategy.MOST_ALLOCATED
    assert fields(read.problems) == [
        "spec.queueingStrategy",
        "spec.stopPolicy",
        "spec.ageing.step",
        "spec.ageing.cap",
        "spec.scoringStrategy.type",
        "spec.preemption.withinClusterQueue",
        "spec.preemption.reclaimWithinCohort",
    ]
    found = "'Backfill': expected one of StrictFIFO, BestEffortFIFO, BackfillFIFO; read as StrictFIFO"
    assert str(read.problems[0]) == f"spec.queueingStrategy: {found}"
    local = read_local_queue(local_queue({"clusterQueue": "", "stopPolicy": "yes"}))
    assert (local.cluster_queue, local.stop_policy) == ("", StopPolicy.HOLD)
    assert fields(local.problems) == ["spec.clusterQueue", "spec.stopPolicy"]


@pytest.mark.parametrize(
    ("stated", "missing"),
    [({"cap": 3}, ["step"]), ({"step": "30m"}, ["cap"]), ({"step": "", "cap": None}, ["step", "cap"])],
)
def test_ageing_needs_a_step_and_a_cap(stated: Spec, missing: list[str]) -> None:
    queue = read_cluster_queue(cluster_queue({"ageing": stated}))
    by_class = read_service_class(service_class({"ageing": stated}))
    assert (queue.ageing, by_class.ageing) == (NO_AGEING, None)
    for problems in (queue.problems, by_class.problems):
        assert fields(problems) == [f"spec.ageing.{field}" for field in missing]
        assert all("read as no ageing stated" in problem.message for problem in problems)


@pytest.mark.parametrize(
    ("waited_ms", "points"),
    [(-5, 0), (0, 0), (59_999, 0), (60_000, 1), (179_999, 2), (180_000, 3), (10**15, 3)],
)
def test_waiting_adds_points_up_to_the_cap(waited_ms: int, points: int) -> None:
    assert Ageing(step_ms=MINUTE_MS, cap=3).points(waited_ms) == points
    assert NO_AGEING.points(waited_ms) == 0


def test_a_class_of_service() -> None:
    read = read_service_class(
        service_class(
            {
                "priority": 100,
                "globalDefault": True,
                "startTimeout": "90s",
                "readyTimeout": "1h",
                "clusterLostTimeout": "30m",
                "requeue": {"backoffBase": "500ms", "backoffMax": "1h30m", "backoffLimit": 0},
                "maxWait": "24h",
                "maxRuntime": "48h",
                "minRuntime": "10m",
                "preemptible": "BorrowedOnly",
                "ageing": {"step": "1h", "cap": 0},
            }
        )
    )
    assert read == ServiceClass(
        "batch", 100, 90_000, 500, 5_400_000, 0, 24 * HOUR_MS, 48 * HOUR_MS, 10 * MINUTE_MS,
        Preemptible.BORROWED_ONLY, Ageing(HOUR_MS, 0), HOUR_MS, 30 * MINUTE_MS, is_default=True,
    )  # fmt: skip


def test_a_class_that_cannot_be_read_promises_the_defaults() -> None:
    read = read_service_class(
        service_class(
            {
                "priority": 2**40,
                "startTimeout": "five",
                "readyTimeout": "never",
                "clusterLostTimeout": "-15m",
                "requeue": {"backoffBase": "-1m", "backoffMax": "0s", "backoffLimit": -1},
                "maxWait": "1d",
                "maxRuntime": "9" * 30 + "h",
                "minRuntime": "0ms",
                "preemptible": "Perhaps",
                "ageing": {},
            }
        )
    )
    assert read == ServiceClass(
        "batch", backoff_limit=0, preemptible=Preemptible.NEVER, problems=read.problems
    )
    assert fields(read.problems) == [
        "spec.requeue.backoffBase",
        "spec.requeue.backoffMax",
        "spec.requeue.backoffLimit",
        "spec.priority",
        "spec.startTimeout",
        "spec.readyTimeout",
        "spec.clusterLostTimeout",
        "spec.maxWait",
        "spec.maxRuntime",
        "spec.minRuntime",
        "spec.preemptible",
        "spec.ageing.step",
        "spec.ageing.cap",
    ]


@pytest.mark.parametrize(
    ("stated", "expected"),
    [({}, 900_000), ({"clusterLostTimeout": "0s"}, 0), ({"clusterLostTimeout": ""}, 900_000)],
)
def test_a_lost_cluster_is_waited_for_a_while_or_without_end(stated: Spec, expected: int) -> None:
    read = read_service_class(service_class(stated))
    assert (read.cluster_lost_timeout_ms, read.problems) == (expected, ())


@pytest.mark.parametrize(
    ("stated", "read", "told"),
    [
        ("2562048h", 900_000, "'2562048h': too long: expected at most 2562047h; read as 15m"),
        ("1h 5m", 900_000, "'1h 5m': expected a duration such as 90s, 5m or 1h30m; read as 15m"),
        ("-15m", 900_000, "'-15m': expected a duration of zero or more; read as 15m"),
        # What is above zero is not never.
        ("0.0001ms", 1, ""),
        ("1.4ms", 1, ""),
        ("35ms", 35, ""),
    ],
)
def test_a_duration_says_what_is_wrong_and_what_it_is_read_as(stated: str, read: int, told: str) -> None:
    found = read_service_class(service_class({"clusterLostTimeout": stated}))
    assert found.cluster_lost_timeout_ms == read
    assert [str(one) for one in found.problems] == ([f"spec.clusterLostTimeout: {told}"] if told else [])


@pytest.mark.parametrize(
    ("field", "stated", "told"),
    [
        ("startTimeout", "0s", "'0s': expected a duration above zero; read as 5m"),
        ("startTimeout", "9999999h", "'9999999h': too long: expected at most 2562047h; read as 5m"),
        ("readyTimeout", "9999999h", "too long: expected at most 2562047h; read as if it were not there"),
        ("maxWait", "soon", "expected a duration such as 90s, 5m or 1h30m; read as if it were not there"),
    ],
)
def test_all_durations_say_it_alike(field: str, stated: str, told: str) -> None:
    (problem,) = read_service_class(service_class({field: stated})).problems
    assert problem.field == f"spec.{field}"
    assert problem.message.endswith(told)


def test_a_longest_wait_below_the_first_is_the_first() -> None:
    read = read_service_class(service_class({"requeue": {"backoffBase": "2h"}}))
    assert (read.backoff_base_ms, read.backoff_max_ms) == (2 * HOUR_MS, 2 * HOUR_MS)
    assert fields(read.problems) == ["spec.requeue.backoffBase"]


@pytest.mark.parametrize(
    ("times", "minutes"), [(0, 1), (1, 1), (2, 2), (3, 4), (6, 32), (7, 60), (10**9, 60)]
)
def test_backoff_doubles_up_to_its_longest(times: int, minutes: int) -> None:
    assert ServiceClass("batch").backoff_ms(times) == minutes * MINUTE_MS


def test_of_several_default_classes_the_lowest_counts() -> None:
    classes = [
        ServiceClass(name, priority, is_default=True) for name, priority in (("c", 5), ("b", 1), ("a", 1))
    ]
    assert default_class([ServiceClass("x", -9), *classes]) == classes[2]
    assert default_class([ServiceClass("x")]) is None


def problems_of(kind: str, spec: Spec) -> tuple[Problem, ...]:
    match kind:
        case "ResourceFlavor":
            return read_resource_flavor(flavor(spec)).problems
        case "ClusterQueue":
            return read_cluster_queue(cluster_queue(spec)).problems
        case "LocalQueue":
            return read_local_queue(local_queue(spec)).problems
        case _:
            return read_service_class(service_class(spec)).problems


def test_what_the_schema_accepts_has_no_problems_and_what_it_refuses_is_no_obstacle() -> None:
    for example in EXAMPLES:
        problems = problems_of(example.kind, {} if example.spec is ABSENT else example.spec)
        assert example.refused or problems == (), example.about


@pytest.mark.parametrize(
    "spec", [{"parent": 5}, {"weight": True}, {"resourceGroups": {}}, {"ageing": {"cap": 1.5}}]
)
def test_a_wrong_type_is_located(spec: Spec) -> None:
    with pytest.raises(msgspec.ValidationError, match=r"\$\.spec\."):
        cluster_queue(spec)
