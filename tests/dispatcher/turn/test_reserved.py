"""Reservations as they are told: once each, and counted by what becomes of them."""

from collections.abc import Mapping

import pytest
from prometheus_client import CollectorRegistry

from queue_dispatcher.api.kinds import CLUSTER_QUEUES
from queue_dispatcher.bindings.timestamp import format_ms
from queue_dispatcher.cache.entry import Entry
from queue_dispatcher.dispatcher import NoticeTeller
from queue_dispatcher.estimates.estimates import Probing
from queue_dispatcher.metrics import DispatcherMetrics
from queue_dispatcher.turn.events import Led
from queue_dispatcher.turn.outcomes import hear
from tests.dispatcher.scenarios import objects
from tests.dispatcher.turn.builders import EPOCH_MS, Plane

MIN = 60
BEGINS_S = 1_000
MAX_RUNTIME = "fairway.dev/max-runtime"
POLICY = {"after": "1m", "drainAfter": "10m", "holdTimeout": "30m"}


class People:
    """Those who read Events, and what is counted."""

    def __init__(self) -> None:
        self.told: list[tuple[str, str, str]] = []
        self._registry = CollectorRegistry()
        self._teller = NoticeTeller(DispatcherMetrics(self._registry, version="test"), self)

    def tell(self, entry: Entry, reason: str, message: str, *, is_warning: bool = False) -> None:
        if "Reserv" in reason:
            self.told.append((entry.binding.workload.name, reason, message))

    def hear(self, plane: Plane) -> list[tuple[str, str]]:
        """Of whom reservations were told by now."""
        notices, plane.state.notices = plane.state.notices, []
        for notice in notices:
            self._teller.tell(notice)
        return [(name, reason) for name, reason, _ in self.told]

    def counted(self, metric: str, **labels: str) -> float | None:
        return self._registry.get_sample_value(metric, {"cluster_queue": "main", **labels})

    @property
    def outcomes(self) -> dict[str, float]:
        """Reservations by what became of them."""
        found = {
            of: self.counted("fairway_reservations_total", outcome=of)
            for of in ("made", "fulfilled", "given_up")
        }
        return {of: count for of, count in found.items() if count}


def busy(limits: Mapping[str, str], rooms: dict[str, int] | None = None) -> Plane:
    """16 GPUs of m1, of which 4 each are used by workloads with these limits to their runs; then a gang of 12
    comes, and waits for a reservation.
    """
    plane = Plane({"m1": 16}, rooms=rooms)
    made = objects.cluster_queue("main", {"m1": 16}, strategy="BackfillFIFO", reservation=POLICY)
    plane.feed(CLUSTER_QUEUES, made)
    for name, limit in limits.items():
        plane.submit(name, gpus=4, said={MAX_RUNTIME: limit} if limit else {})
        plane.turn()
        plane.place(name, m1=1)
    plane.submit("gang", gpus=12)
    plane.turn()
    assert plane.released() == sorted(limits)
    return plane


def at(seconds: int) -> str:
    return format_ms(EPOCH_MS + (BEGINS_S + seconds) * 1000)


UNLIMITED = {"a": "", "b": "", "c": ""}


def test_a_reservation_is_told_once_and_its_end_once() -> None:
    plane, people = busy(UNLIMITED), People()
    plane.passes(MIN - 1)
    assert people.hear(plane) == []
    plane.passes(1)
    plane.passes(29 * MIN, step_s=10)
    assert people.hear(plane) == [("gang", "Reserved")]
    # From zero on, or nobody sees it increase.
    assert people.counted("fairway_reservations_total", outcome="given_up") == 0
    plane.passes(2 * MIN, step_s=10)
    assert people.hear(plane) == [("gang", "Reserved"), ("gang", "ReservationGivenUp")]
    assert people.outcomes == {"made": 1, "given_up": 1}
    # For as long as it was held there is none; then it is another.
    plane.passes(28 * MIN, step_s=10)
    assert len(people.hear(plane)) == 2
    plane.passes(2 * MIN, step_s=10)
    assert people.hear(plane)[2:] == [("gang", "Reserved")]
    assert people.told[1][2].endswith(f"it gets no other before {at(61 * MIN)}")


@pytest.mark.parametrize(
    ("limits", "after_s", "says"),
    [
        (
            {"a": "20m", "b": "30m", "c": ""},
            MIN,
            "12 nvidia.com/gpu of flavor m1 reserved for it, of which 8 nvidia.com/gpu of flavor m1 is not "
            f"free; it can start at {at(30 * MIN)} at the latest; what is over by then may start in it until "
            f"{at(10 * MIN)}; given up at {at(31 * MIN)}",
        ),
        (
            UNLIMITED,
            MIN,
            "nobody knows when it can start, as not all that uses what it lacks has a maxRuntime; nothing "
            "else starts in what it lacks;",
        ),
    ],
)
def test_what_is_told(limits: dict[str, str], after_s: int, says: str) -> None:
    plane, people = busy(limits), People()
    plane.passes(after_s)
    people.hear(plane)
    ((name, reason, message),) = people.told
    assert (name, reason) == ("gang", "Reserved")
    assert says in message


def test_it_is_not_told_anew_when_it_moves() -> None:
    plane, people = busy({"a": "20m", "b": "30m", "c": "40m"}), People()
    plane.passes(MIN)
    before = plane.state.reservations.made[0].starts_ms
    plane.delete("b")
    plane.passes(MIN)
    assert plane.state.reservations.made[0].starts_ms != before
    assert people.hear(plane) == [("gang", "Reserved")]


def test_who_starts_in_what_was_reserved_and_who_passed_are_counted() -> None:
    plane, people = busy({"a": "20m", "b": "30m", "c": ""}), People()
    plane.passes(2 * MIN)
    plane.submit("short", gpus=4, said={MAX_RUNTIME: "10m"})
    plane.submit("long", gpus=4, said={MAX_RUNTIME: "2h"})
    plane.passes(1)
    people.hear(plane)
    assert plane.released() == ["a", "b", "c", "short"]
    assert people.counted("fairway_backfilled_total") == 1
    for name in ("a", "b", "short"):
        plane.delete(name)
    plane.passes(1)
    people.hear(plane)
    assert "gang" in plane.released()
    assert people.outcomes == {"made": 1, "fulfilled": 1}
    assert people.counted("fairway_backfilled_total") == 1
    assert plane.state.reserved == {}


@pytest.mark.parametrize("seconds", [90, 15 * MIN])
def test_a_reservation_outlasts_the_questions_whether_there_is_room(seconds: int) -> None:
    """Estimators are asked again and again; while they are, it is held, and its time runs on."""
    plane, people = busy({}, {"m1": 0}), People()
    plane.passes(MIN)
    (made,) = plane.state.reservations.made
    asked = len(plane.asked)
    plane.passes(seconds, step_s=5)
    assert len(plane.asked) > asked + seconds // 60
    assert [one.since_ms for one in plane.state.reservations.made] == [made.since_ms]
    assert people.hear(plane) == [("gang", "Reserved")]
    plane.passes(31 * MIN - seconds, step_s=5)
    assert people.hear(plane)[1:] == [("gang", "ReservationGivenUp")]


def test_when_there_is_room_is_asked_as_if_those_behind_held_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    """If each gave way to the other, the nodes of both would be free for everybody meanwhile."""
    plane = Plane({"m1": 16}, rooms={"m1": 0})
    deep = {"after": "0s", "drainAfter": "10m", "depth": 3}
    plane.feed(
        CLUSTER_QUEUES, objects.cluster_queue("main", {"m1": 16}, strategy="BackfillFIFO", reservation=deep)
    )
    through: dict[str, set[str]] = {}
    answer = plane.answer

    def heard(probing: Probing) -> None:
        if probing.endings is not None:
            through[probing.subjects[0].binding.workload.name] = set(probing.through)
        answer(probing)

    monkeypatch.setattr(plane, "answer", heard)
    names = ("first", "second", "third")
    for name in names:
        plane.submit(name, gpus=4)
        plane.passes(1)
    plane.passes(10)
    uids = [plane.entry(name).binding.uid for name in names]
    assert through == {name: set(uids[place:]) for place, name in enumerate(names)}


def test_what_is_gone_is_forgotten_and_another_leader_tells_once_more() -> None:
    plane, people = busy(UNLIMITED), People()
    plane.passes(MIN)
    hear(plane.state, Led(False), plane.now)
    hear(plane.state, Led(True), plane.now)
    plane.passes(1)
    assert people.hear(plane) == [("gang", "Reserved")] * 2
    plane.delete("gang")
    plane.passes(1)
    assert plane.state.reserved == {}
    assert people.outcomes == {"made": 2}


def test_who_follows_knows_of_none() -> None:
    plane, people = busy(UNLIMITED), People()
    plane.passes(MIN)
    assert plane.state.view.reservations.made
    people.hear(plane)
    hear(plane.state, Led(False), plane.now)
    plane.passes(5 * MIN, step_s=10)
    assert plane.state.view.reservations.made == ()
    assert len(people.hear(plane)) == 1
