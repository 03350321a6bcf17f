"""What has waited for longer than its class says it should: told, and counted once."""

import pytest
from prometheus_client import CollectorRegistry

from queue_dispatcher.api.kinds import CLUSTER_QUEUES, SERVICE_CLASSES
from queue_dispatcher.dispatcher import Nobody, NoticeTeller
from queue_dispatcher.metrics import DispatcherMetrics
from queue_dispatcher.turn.events import Led
from queue_dispatcher.turn.outcomes import hear
from queue_dispatcher.visibility.viewer import EVERYTHING
from queue_dispatcher.visibility.views import Views
from tests.dispatcher.scenarios.objects import cluster_queue, service_class
from tests.dispatcher.turn.builders import Plane

MOST_S = 600


def plane(max_wait: str | None = f"{MOST_S}s") -> Plane:
    """Ten GPUs, of which a workload of another class has eight."""
    made = Plane({"m1": 10})
    allows(made, max_wait)
    made.feed(SERVICE_CLASSES, service_class("other", 0))
    made.submit("big", replicas=8, said={"fairway.dev/class": "other"})
    made.turn()
    made.place("big", m1=8)
    made.turn()
    return made


def allows(made: Plane, max_wait: str | None) -> None:
    made.feed(SERVICE_CLASSES, service_class("urgent", 0, **({"maxWait": max_wait} if max_wait else {})))


def submit(made: Plane, name: str = "x", pods: int = 8) -> None:
    made.submit(name, replicas=pods, said={"fairway.dev/class": "urgent"})
    made.turn()


def missed(made: Plane) -> int:
    """How many were counted since somebody last asked."""
    registry = CollectorRegistry()
    teller = NoticeTeller(DispatcherMetrics(registry, version="test"), Nobody())
    notices, made.state.notices = made.state.notices, []
    for notice in notices:
        teller.tell(notice)
    labels = {"cluster_queue": "main", "class": "urgent"}
    return int(registry.get_sample_value("fairway_max_wait_missed_total", labels) or 0)


def late_s(made: Plane) -> dict[tuple[str, str], int]:
    return {of: late_ms // 1000 for of, late_ms in made.cache.max_waits.overdue(made.now.day_ms)}


def note(made: Plane, name: str = "x") -> str:
    return Views(made.cache, made.state.view, made.now.day_ms, EVERYTHING).workload(made.entry(name)).note


def test_it_is_told_and_counted_once_and_no_more_when_it_starts() -> None:
    made = plane()
    submit(made)
    made.passes(MOST_S - 1)
    assert (missed(made), late_s(made), note(made)) == (0, {("main", "urgent"): 0}, "")
    made.passes(1)
    assert missed(made) == 1
    made.passes(300)
    assert (missed(made), late_s(made)) == (0, {("main", "urgent"): 300})
    assert note(made) == "it has waited 5m longer than its maxWait of 10m (ServiceClass urgent)"
    made.delete("big")
    made.turn()
    assert (made.released(), late_s(made), missed(made), note(made)) == (["x"], {}, 0, "")
    # It came when it came, however often it is taken back.
    made.place("x", m1=8)
    made.feed(CLUSTER_QUEUES, cluster_queue("main", {"m1": 10}, stopPolicy="HoldAndDrain"))
    made.passes(100)
    assert (made.released(), late_s(made), missed(made)) == ([], {("main", "urgent"): 400}, 0)


def test_the_first_is_the_one_that_is_late_for_longest() -> None:
    made = plane()
    submit(made)
    made.passes(100)
    submit(made, "y")
    made.passes(600)
    assert (missed(made), late_s(made)) == (2, {("main", "urgent"): 100})
    made.delete("x")
    made.turn()
    assert late_s(made) == {("main", "urgent"): 0}
    made.delete("y")
    made.turn()
    assert late_s(made) == {}


def test_who_starts_in_time_is_not_counted() -> None:
    made = plane()
    submit(made, pods=2)
    made.place("x", m1=2)
    made.passes(2 * MOST_S)
    assert (missed(made), late_s(made), "maxWait" in note(made)) == (0, {}, False)


@pytest.mark.parametrize(
    ("max_wait", "counted"), [("5m", 1), ("1m", 1), (None, 0)], ids=["sooner", "past already", "no more"]
)
def test_a_class_that_changes_meanwhile(max_wait: str | None, counted: int) -> None:
    made = plane()
    submit(made)
    made.passes(120)
    allows(made, max_wait)
    made.passes(240)
    assert missed(made) == counted


def test_another_process_and_a_follower_do_not_count_it_again() -> None:
    made = plane()
    submit(made)
    made.passes(MOST_S)
    assert missed(made) == 1
    made.restart()
    made.passes(10)
    assert (missed(made), late_s(made)) == (0, {("main", "urgent"): 10})
    submit(made, "y")
    hear(made.state, Led(False), made.now)
    made.passes(MOST_S, step_s=10)
    assert missed(made) == 0


def test_a_clock_that_jumps_misses_nothing() -> None:
    made = plane()
    submit(made)
    made.skew_ms = 86_400_000
    made.passes(60)
    made.skew_ms = 0
    made.passes(MOST_S - 61)
    assert missed(made) == 0
    made.passes(1)
    assert missed(made) == 1
