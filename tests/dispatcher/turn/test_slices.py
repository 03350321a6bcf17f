"""What happens in the midst of a turn that is taken in steps: it is about what there was when it began."""

import asyncio
import time
from collections.abc import Awaitable, Callable
from functools import partial

import pytest
from prometheus_client import CollectorRegistry

from queue_dispatcher.bindings.cluster import CLUSTERS
from queue_dispatcher.clock import SteadyClock
from queue_dispatcher.controller import Controller
from queue_dispatcher.estimates.estimates import Probing
from queue_dispatcher.metrics import DispatcherMetrics
from queue_dispatcher.turn import turn as turning_module
from queue_dispatcher.turn.events import Led
from queue_dispatcher.turn.outcomes import hear
from queue_dispatcher.turn.turn import Turned, turn, turning
from tests.dispatcher.scenarios.objects import GPU, Obj, cluster
from tests.dispatcher.turn.builders import Plane
from tests.dispatcher.turn.test_displacing import furnish, runs

_MOST_STEPS = 30


def busy() -> Plane:
    """Four GPUs, and three Jobs of two each."""
    made = Plane({"m1": 4})
    for name in ("a", "b", "c"):
        made.submit(name, gpus=2)
    return made


def turned(made: Plane, happens: Callable[[Plane], object], after: int) -> Turned | None:
    """A turn in which something happens after so many steps; None if it has fewer."""
    steps, taken = turning(made.state, (), made.now), 0
    while True:
        try:
            next(steps)
        except StopIteration as stop:
            found: Turned = stop.value
            return found if taken > after else None
        if taken == after:
            happens(made)
        taken += 1


def wants_three(obj: Obj) -> None:
    obj["spec"]["replicaRequirements"]["resourceRequest"][GPU] = "3"


def leads(made: Plane, *is_leading: bool) -> None:
    for each in is_leading:
        hear(made.state, Led(each), made.now)


@pytest.mark.parametrize(
    ("happens", "at_once", "then"),
    [
        pytest.param(lambda made: None, ["a", "b"], ["a", "b"], id="nothing"),
        pytest.param(lambda made: made.delete("a"), ["b"], ["b", "c"], id="one is deleted"),
        pytest.param(lambda made: made.delete("c"), ["a", "b"], ["a", "b"], id="another is deleted"),
        pytest.param(lambda made: made.edit("a", wants_three), ["b"], ["b", "c"], id="one asks for more"),
        pytest.param(
            lambda made: made.edit("a", lambda obj: obj["metadata"].update(annotations={"x": "y"})),
            ["a", "b"],
            ["a", "b"],
            id="one is written otherwise",
        ),
        pytest.param(lambda made: made.submit("A", gpus=2), ["a", "b"], ["a", "b"], id="another comes"),
        pytest.param(
            lambda made: made.feed(CLUSTERS, cluster("m1", 2)), ["a", "b"], ["a", "b"], id="room goes"
        ),
        pytest.param(
            lambda made: made.feed(CLUSTERS, cluster("m1", 6)), ["a", "b"], ["a", "b"], id="room comes"
        ),
        pytest.param(lambda made: leads(made, False), [], [], id="it leads no more"),
        pytest.param(lambda made: leads(made, False, True), [], ["a", "b"], id="it leads anew"),
    ],
)
def test_a_turn_is_about_what_there_was_when_it_began(
    happens: Callable[[Plane], object], at_once: list[str], then: list[str]
) -> None:
    for after in range(_MOST_STEPS):
        made = busy()
        found = turned(made, happens, after)
        if found is None:
            break
        assert [write.uid for write in found.writes] == at_once
        for write in found.writes:
            made.write(write)
        made.turn()
        assert made.released() == then
        assert made.charged() <= 4
        assert made.cache.charges.recomputed().charges() == made.cache.charges.ledger.charges()
    assert 3 < after < _MOST_STEPS


def displacing() -> Plane:
    """What has room in one queue, and two that may have others displaced in another: they are asked about."""
    made = Plane({"m1": 4, "m2": 4}, rooms={"m1": 4, "m2": 4})
    furnish(made, 4, {"withinClusterQueue": "LowerPriority"})
    made.queue("other", {"m2": 4})
    for name in ("a", "b"):
        runs(made, name, 2)
    made.submit("c", "other", gpus=2)
    made.rooms = {"m1": 0, "m2": 4}
    for probing in turn(made.state, (), made.now).probings:
        made.answer(probing)
    for name in ("d", "e"):
        made.submit(name, replicas=2, said={"fairway.dev/class": "high", "fairway.dev/queue": "main"})
    return made


@pytest.mark.parametrize("is_lost", [True, False])
def test_what_happens_while_it_is_asked_whom_to_displace(is_lost: bool) -> None:
    def happens(made: Plane) -> None:
        if is_lost:
            leads(made, False, True)
        else:
            made.submit("f", "other", gpus=2)

    counts = list[int]()
    for after in range(_MOST_STEPS):
        made = displacing()
        found = turned(made, happens, after)
        if found is None:
            break
        counts.append(len(found.probings))
        if is_lost:
            assert found == Turned()
            assert not made.entry("c").is_writing
            assert made.entry("c").record is None
        else:
            assert [write.uid for write in found.writes] == ["c"]
        # What came meanwhile was not decided on.
        assert turn(made.state, (), made.now).has_decided
    assert set(counts) == {0 if is_lost else 2}
    assert 3 < len(counts) < _MOST_STEPS


def beginning(*answered: str) -> tuple[Plane, list[Probing]]:
    """As `displacing`, once it is known for these whom to displace; and what is still to be answered."""
    made = displacing()
    made.needed = {"d": {"m1": ("b",)}, "e": {"m1": ("a",)}}
    asked = turn(made.state, (), made.now)
    for write in asked.writes:
        made.write(write)
    for probing in asked.probings:
        if probing.subjects[0].binding.uid in answered:
            made.answer(probing)
    return made, [one for one in asked.probings if one.subjects[0].binding.uid not in answered]


def test_plans_that_have_begun_in_a_turn_come_to_nothing_if_it_leads_no_more() -> None:
    begun = list[int]()

    def happens(made: Plane) -> None:
        begun.append(len(made.state.displacements))
        leads(made, False, True)

    for after in range(_MOST_STEPS):
        made, _ = beginning("d", "e")
        if turned(made, happens, after) is None:
            break
        assert not made.state.displacements
        assert not made.cache.ends.displaced_by
    assert set(begun) == {0, 1}


def test_what_is_answered_between_plans_that_begin_is_decided_on_next() -> None:
    for after in range(_MOST_STEPS):
        made, (left,) = beginning("e")
        found = turned(made, partial(Plane.answer, probing=left), after)
        if found is None:
            break
        again = turn(made.state, (), made.now)
        # One is asked about anew where it was answered before room was taken for the other.
        asked = {one.subjects[0].binding.uid for one in (*found.probings, *again.probings)}
        assert {*made.state.displacements, *asked} == {"d", "e"}
    assert 1 < after < _MOST_STEPS


def test_the_queue_of_whom_others_are_to_go_for_may_be_deleted_meanwhile() -> None:
    def deleted(made: Plane) -> None:
        made.cache.queues.cluster_queues.delete("main")

    for after in range(_MOST_STEPS):
        made = displacing()
        found = turned(made, deleted, after)
        if found is None:
            break
        assert [write.uid for write in found.writes] == ["c"]
    assert 3 < after < _MOST_STEPS


def test_a_turn_that_fails_leaves_nothing_begun(monkeypatch: pytest.MonkeyPatch) -> None:
    """But for what earlier turns have begun, of which the answers are still to come."""
    made = busy()
    (write, *_) = turn(made.state, (), made.now).writes
    made.submit("d", gpus=0)
    with monkeypatch.context() as patched:
        patched.setattr(turning_module, "displace", fails)
        with pytest.raises(RuntimeError, match="a defect"):
            turn(made.state, (), made.now)
    assert made.entry("a").is_writing
    assert not made.entry("d").is_writing
    made.write(write)
    made.turn()
    assert made.released() == ["a", "d"]


def fails(*_: object) -> None:
    raise RuntimeError("a defect")


class _EachStep:
    """A pace that lets others run at each step."""

    def __init__(self, clock: object) -> None:
        self.pauses = 0

    def is_due(self) -> bool:
        return True

    async def pause(self) -> None:
        await asyncio.sleep(0)


def test_others_run_meanwhile_but_for_those_who_would_change_what_is_decided(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("fairway.kube.pace.Pace", _EachStep)
    made = busy()
    made.cache.settle()
    clock = SteadyClock(time.time, time.monotonic)
    metrics = DispatcherMetrics(CollectorRegistry(), version="test")
    controller = Controller(made.state, metrics, clock, lambda: True, lambda notice: None)
    ended: list[str] = []

    async def tell(name: str, work: Awaitable[None]) -> None:
        await work
        ended.append(name)

    async def story() -> None:
        async with asyncio.TaskGroup() as group:
            group.create_task(tell("turn", controller.step()))
            await asyncio.sleep(0)
            made.delete("a")
            group.create_task(tell("cache settled", controller.settled()))
            group.create_task(tell("write prepared", controller.at_rest()))
            group.create_task(tell("other", asyncio.sleep(0)))

    asyncio.run(story())
    assert ended == ["other", "turn", "cache settled", "write prepared"]
    assert made.entry("b").is_writing
    assert "a" not in made.cache.entries
