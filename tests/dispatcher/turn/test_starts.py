"""How far what was released has come, as people are told: placed, bound 3 of 4, ready; how long it has."""

from collections.abc import Callable

import msgspec
import pytest
from prometheus_client import CollectorRegistry

from fairway.names import ADMISSION
from fairway.visibility import Start
from queue_dispatcher.api.kinds import LOCAL_QUEUES, SERVICE_CLASSES
from queue_dispatcher.bindings.timestamp import format_ms
from queue_dispatcher.cache.entry import Entry
from queue_dispatcher.cycle.witness import Witness
from queue_dispatcher.dispatcher import NoticeTeller
from queue_dispatcher.metrics import DispatcherMetrics
from queue_dispatcher.turn.events import Counted
from queue_dispatcher.turn.outcomes import hear
from queue_dispatcher.visibility.viewer import EVERYTHING, Viewer
from queue_dispatcher.visibility.views import MAX_STARTS, Views
from tests.dispatcher.scenarios.objects import local_queue, service_class
from tests.dispatcher.turn.builders import Plane

CLASS = {"fairway.dev/class": "gangs"}
ONLY = "it is the only one with room"


def plane(**promised: object) -> Plane:
    made = Plane({"m1": 100, "m2": 100}, rooms={"m1": 9, "m2": 9})
    gangs = service_class("gangs")
    gangs["spec"] |= {"startTimeout": "100s", **promised}
    made.feed(SERVICE_CLASSES, gangs)
    return made


def released(**promised: object) -> Plane:
    """A gang of four, released to m1; Karmada has confirmed that."""
    made = plane(**promised)
    made.submit("x", replicas=4, said=CLASS, together=4)
    made.turn()
    made.place("x", m1=4)
    made.turn()
    return made


def views(made: Plane, viewer: Viewer = EVERYTHING) -> Views:
    return Views(made.cache, made.state.view, made.now.day_ms, viewer)


def start(made: Plane, name: str = "x") -> Start | None:
    return views(made).workload(made.entry(name)).start


def counted(made: Plane, bound: int | None) -> None:
    hear(made.state, Counted("m1", {"x": bound}), made.now)
    made.turn()


def ran(made: Plane, ready: int) -> None:
    made.report("x", m1={"active": 4, "ready": ready})
    made.turn()


@pytest.mark.parametrize(
    ("happened", "phase", "bound", "running", "left_s"),
    [
        ([], "Placed", -1, -1, -1),
        ([lambda made: counted(made, None)], "Placed", -1, -1, -1),
        ([lambda made: counted(made, 0)], "Placed", 0, -1, 90),
        ([lambda made: counted(made, 3)], "Placed", 3, -1, 90),
        # Its time counts from when its cluster first tells of its pods.
        ([lambda made: counted(made, 3), lambda made: ran(made, 2)], "Placed", 3, 2, 100),
        ([lambda made: counted(made, 4)], "Bound", 4, -1, -1),
        ([lambda made: counted(made, 4), lambda made: ran(made, 2)], "Bound", 4, 2, -1),
        # One that lost its node had one.
        ([lambda made: counted(made, 4), lambda made: counted(made, 3)], "Bound", 4, -1, -1),
        ([lambda made: counted(made, 4), lambda made: ran(made, 4)], "Ready", 4, 4, -1),
        # Nobody counts: what runs has nodes, but how many had is not made up.
        ([lambda made: ran(made, 4)], "Ready", -1, 4, -1),
    ],
)
def test_it_is_told_how_far_it_has_come(
    happened: list[Callable[[Plane], None]], phase: str, bound: int, running: int, left_s: int
) -> None:
    made = released()
    made.passes(10)
    for each in happened:
        each(made)
    assert start(made) == Start(phase, 4, bound, running, left_s, ONLY)


def test_what_lacks_nodes_has_the_time_that_is_told() -> None:
    made = released()
    counted(made, 3)
    made.passes(99)
    told = start(made)
    assert told is not None
    assert told.left_s == 1
    made.passes(1)
    assert made.is_held("x")
    assert start(made) is None


def test_what_does_not_run_has_until_the_timeout_of_that() -> None:
    made = released(readyTimeout="300s")
    counted(made, 4)
    ran(made, 1)
    made.passes(100)
    told = start(made)
    assert told is not None
    assert told.left_s == 200
    made.passes(200)
    assert made.is_held("x")


@pytest.mark.parametrize("is_refused", [False, True])
def test_what_karmada_has_to_place_has_until_its_start_timeout(*, is_refused: bool) -> None:
    made = plane()
    made.submit("x", replicas=4, said=CLASS, duplicated=True)
    made.turn()
    assert not made.is_held("x")
    if is_refused:
        made.refuse("x")
    made.passes(30)
    assert start(made) == Start("Placing", left_s=70)


def test_what_waits_or_is_not_ours_has_not_started() -> None:
    made = plane()
    made.submit("waits", replicas=1_000)
    made.submit("runs", held=False)
    made.place("runs", m1=1)
    made.turn()
    assert start(made, "waits") is None
    assert start(made, "runs") is None


def test_who_did_not_release_it_tells_the_rest() -> None:
    made = released()
    made.restart()
    made.turn()
    counted(made, 3)
    assert start(made) == Start("Placed", 4, 3, left_s=100)


def test_of_a_release_by_another_leader_our_earlier_reason_is_not_told() -> None:
    made = released()
    again = {**(made.record("x") or {}), "admittedAt": format_ms(made.now.day_ms + 60_000)}
    text = msgspec.json.encode(again).decode()
    made.edit("x", lambda obj: obj["metadata"]["annotations"].update({ADMISSION: text}))
    made.passes(61)
    assert start(made) == Start("Placed", 4)


def guided() -> Plane:
    made = plane()
    made.witnesses = (Witness((("x", (("n1", 4),)),)),)
    made.submit("x", replicas=4, said=CLASS, together=4)
    made.turn()
    return made


def test_whose_pods_are_told_where_to_go_is_told() -> None:
    told = start(guided())
    assert told is not None
    assert told.guided == ["m1"]


@pytest.mark.parametrize(("make", "count"), [(guided, 1.0), (released, None)])
def test_events_and_metrics_tell_it_too(make: Callable[[], Plane], count: float | None) -> None:
    made, registry, events = make(), CollectorRegistry(), list[str]()

    class Teller:
        def tell(self, entry: Entry, reason: str, message: str, *, is_warning: bool = False) -> None:
            events.append(message)

    teller = NoticeTeller(DispatcherMetrics(registry, version="1"), Teller())
    for notice in made.state.notices:
        teller.tell(notice)
    labels = {"cluster_queue": "main"}
    assert registry.get_sample_value("fairway_guided_releases_total", labels) == count
    assert registry.get_sample_value("fairway_admitted_total", labels) == 1
    (told,) = (each for each in events if each.startswith("admitted"))
    assert told.endswith("; its pods are told which nodes to prefer in m1" if count else ONLY)


def test_queues_tell_the_first_of_those_that_start() -> None:
    made = released()
    counted(made, 3)
    for number in range(MAX_STARTS):
        made.passes(1)
        made.submit(f"y{number:02}")
    made.turn()
    page = views(made).queue("main", 0, 10)
    assert page is not None
    assert page.starting == MAX_STARTS + 1
    assert [each.name for each in page.starts] == ["x", *(f"y{n:02}" for n in range(MAX_STARTS - 1))]
    own = views(made).local_queue("team", "main", 0, 10)
    assert own is not None
    assert (own.starting, own.starts) == (page.starting, page.starts)
    ran(made, 4)
    after = views(made).queue("main", 0, 10)
    assert after is not None
    assert after.starting == MAX_STARTS
    assert "x" not in [each.name for each in after.starts]


def test_those_of_others_are_counted_and_not_named() -> None:
    made = released()
    local = local_queue("main", "main")
    local["metadata"]["namespace"] = "other"
    made.feed(LOCAL_QUEUES, local)
    for namespace, names in (("team", ["x"]), ("other", [])):
        page = views(made, Viewer.of({namespace})).queue("main", 0, 10)
        assert page is not None
        assert (page.starting, [each.name for each in page.starts]) == (1, names)
