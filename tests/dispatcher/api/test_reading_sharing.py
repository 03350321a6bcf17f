"""How a queue is shared, its budgets and prices, and what its status says it has used."""

from collections.abc import Sequence
from dataclasses import replace

import msgspec
import pytest

from queue_dispatcher.api.budget import MAX_BUDGETS, Budget, BudgetPolicy, Period
from queue_dispatcher.api.effect import IS_ABOVE_OTHERS, unshared, without_effect
from queue_dispatcher.api.fair_sharing import FairSharing
from queue_dispatcher.api.history import History, Spent
from queue_dispatcher.api.reading.cluster_queue import read_cluster_queue
from queue_dispatcher.api.reading.history import cluster_queue_history, local_queue_history, read_history
from queue_dispatcher.api.reading.local_queue import read_local_queue
from queue_dispatcher.api.reading.resource_flavor import read_resource_flavor
from queue_dispatcher.api.status import ClusterQueueHistory, LocalQueueHistory
from queue_dispatcher.bindings.timestamp import format_ms
from tests.dispatcher.api.builders import Json, cluster_queue, flavor, local_queue

HOUR_MS = 3_600_000
NUMBER = "expected a number of at least 0 and below 1000000 with at most three decimals"


@pytest.mark.parametrize(
    ("stated", "expected", "wrong"),
    [
        (None, None, []),
        ({}, FairSharing(168 * HOUR_MS), []),
        ({"halfLife": "1s"}, FairSharing(1000), []),
        (
            {"halfLife": "0s"},
            FairSharing(168 * HOUR_MS),
            ["spec.fairSharing.halfLife: '0s': expected a duration above zero; read as 168h"],
        ),
        (
            {"halfLife": "a week"},
            FairSharing(168 * HOUR_MS),
            [
                "spec.fairSharing.halfLife: 'a week': expected a duration such as 90s, 5m or 1h30m; "
                "read as 168h"
            ],
        ),
    ],
)
def test_sharing(stated: Json, expected: FairSharing | None, wrong: Sequence[str]) -> None:
    read = read_cluster_queue(cluster_queue({"fairSharing": stated}))
    assert read.fair_sharing == expected
    assert [str(one) for one in read.problems] == wrong


@pytest.mark.parametrize(
    ("stated", "expected", "wrong"),
    [
        ([], [], []),
        (
            [{"name": "team", "deviceHours": 2}],
            [Budget("team", 2 * HOUR_MS, Period.MONTH, BudgetPolicy.SOFT)],
            [],
        ),
        (
            [{"name": "team", "deviceHours": "0.5", "period": "Day", "policy": "Hard"}],
            [Budget("team", HOUR_MS // 2, Period.DAY, BudgetPolicy.HARD)],
            [],
        ),
        (
            [{"name": "team", "deviceHours": 0}],
            [Budget("team", 0, Period.MONTH, BudgetPolicy.SOFT)],
            [],
        ),
        (
            [{"name": "team", "deviceHours": "much", "period": "Year", "policy": "Firm"}],
            [Budget("team", 0, Period.MONTH, BudgetPolicy.SOFT)],
            [
                f"spec.budgets[0].deviceHours: 'much': {NUMBER}; read as 0",
                "spec.budgets[0].period: 'Year': expected one of Day, Week, Month; read as Month",
                "spec.budgets[0].policy: 'Firm': expected one of Soft, Hard; read as Soft",
            ],
        ),
        (
            [{"name": "team"}, {"name": "team", "deviceHours": 1}, {"deviceHours": 1}],
            [Budget("team", 0, Period.MONTH, BudgetPolicy.SOFT)],
            [
                "spec.budgets[0].deviceHours: nothing: expected a number; read as 0",
                "spec.budgets[1].name: comes twice; left out",
                "spec.budgets[2].name: nothing: expected a name; left out",
            ],
        ),
    ],
)
def test_budgets(stated: Json, expected: Sequence[Budget], wrong: Sequence[str]) -> None:
    read = read_cluster_queue(cluster_queue({"budgets": stated}))
    assert list(read.budgets) == expected
    assert [str(one) for one in read.problems] == wrong


def test_more_budgets_than_there_may_be_are_left_out() -> None:
    stated = [{"name": f"b{number}", "deviceHours": 1} for number in range(MAX_BUDGETS + 1)]
    read = read_cluster_queue(cluster_queue({"budgets": stated}))
    assert (len(read.budgets), [one.field for one in read.problems]) == (MAX_BUDGETS, ["spec.budgets[8]"])


@pytest.mark.parametrize(
    ("stated", "milli", "weighs", "wrong"),
    [
        (None, None, 1000, []),
        ("2.49", 2490, 2490, []),
        (0, 0, 0, []),
        ("-1", None, 1000, [f"spec.price: '-1': {NUMBER}; read as if it were not there"]),
        ("1e3", None, 1000, [f"spec.price: '1e3': {NUMBER}; read as if it were not there"]),
    ],
)
def test_prices(stated: Json, milli: int | None, weighs: int, wrong: Sequence[str]) -> None:
    read = read_resource_flavor(flavor({"price": stated}))
    assert (read.price_milli, read.weighs_milli, [str(one) for one in read.problems]) == (
        milli,
        weighs,
        wrong,
    )


@pytest.mark.parametrize(("stated", "milli", "wrong"), [(None, 1000, 0), ("0.5", 500, 0), (0, 1000, 1)])
def test_a_local_queue_has_a_weight(stated: Json, milli: int, wrong: int) -> None:
    read = read_local_queue(local_queue({"clusterQueue": "a", "weight": stated}))
    assert (read.weight_milli, len(read.problems)) == (milli, wrong)


@pytest.mark.parametrize(("unplaced", "told"), [("", []), (IS_ABOVE_OTHERS, ["fairSharing", "budgets"])])
def test_above_other_queues_neither_has_an_effect(unplaced: str, told: Sequence[str]) -> None:
    stated = {"fairSharing": {}, "budgets": [{"name": "team", "deviceHours": 1}]}
    found = without_effect(read_cluster_queue(cluster_queue(stated)), unplaced)
    assert [one.field for one in found] == [f"spec.{field}" for field in told]


AT_MS = 1_795_521_600_123
DAY_MS = 1_795_478_400_000
SPENT = History(AT_MS, 0, 7, 8, {"team": Spent(9, DAY_MS)}, Spent(3, DAY_MS))
OF_QUEUE = cluster_queue_history(SPENT, format_ms(AT_MS))
OF_LOCAL = local_queue_history(History(AT_MS, 10**20, 7, 8), format_ms(AT_MS))
Kept = ClusterQueueHistory | LocalQueueHistory


@pytest.mark.parametrize(
    ("written", "expected"),
    [(OF_QUEUE, SPENT), (OF_LOCAL, History(AT_MS, 10**20, 7, 8))],
)
def test_what_is_written_is_read_again(written: Kept, expected: History) -> None:
    encoded = msgspec.json.encode(written)
    assert read_history(msgspec.json.decode(encoded, type=type(written))) == expected


@pytest.mark.parametrize(
    ("good", "wrong"),
    [
        (OF_LOCAL, {"time": ""}),
        (OF_LOCAL, {"time": "yesterday"}),
        (OF_LOCAL, {"time": "2026-13-40T00:00:00Z"}),
        (OF_LOCAL, {"time": "2026-11-24T12:00:00"}),
        (OF_LOCAL, {"decayed": ""}),
        (OF_LOCAL, {"decayed": "-5"}),
        (OF_LOCAL, {"deviceMilliseconds": "1.5"}),
        (OF_LOCAL, {"cost": "9" * 31}),
        (OF_LOCAL, {"cost": "\u0661"}),
        (OF_QUEUE, {"budgets": [{"name": "team", "deviceMilliseconds": "all"}]}),
        (OF_QUEUE, {"budgets": [{"name": "team", "deviceMilliseconds": "9", "since": "once"}]}),
        (OF_QUEUE, {"displacedSince": "once"}),
    ],
)
def test_what_somebody_else_wrote_is_nothing(good: Kept, wrong: dict[str, Json]) -> None:
    assert read_history(msgspec.convert({**msgspec.to_builtins(good), **wrong}, type(good))) is None


def test_what_says_no_since_is_of_the_period_that_its_time_is_in() -> None:
    """As dispatchers wrote it once."""
    written = {**msgspec.to_builtins(OF_QUEUE), "displacedSince": ""}
    written["budgets"] = [{"name": "team", "deviceMilliseconds": "9"}]
    found = read_history(msgspec.convert(written, ClusterQueueHistory))
    assert found == replace(SPENT, spent={"team": Spent(9, AT_MS)}, displaced=Spent(3, AT_MS))


def test_a_status_without_a_history_is_nothing() -> None:
    assert read_history(None) is None


@pytest.mark.parametrize(
    ("shared", "weight", "told"),
    [
        ({}, 2, []),
        (None, 1, []),
        (
            None,
            2,
            [
                "spec.weight: no effect: ClusterQueue team-a states no spec.fairSharing, so who came first "
                "goes first"
            ],
        ),
    ],
)
def test_a_weight_of_what_is_not_shared_has_no_effect(shared: Json, weight: int, told: Sequence[str]) -> None:
    local = read_local_queue(local_queue({"clusterQueue": "team-a", "weight": weight}))
    queue = read_cluster_queue(cluster_queue({"fairSharing": shared}))
    assert [str(one) for one in without_effect(local, unshared=unshared(queue))] == told
    assert without_effect(local, unshared=unshared(None)) == ()
