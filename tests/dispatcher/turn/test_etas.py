"""When what waits is expected to start, as the dispatcher's state tells it to readers."""

import threading
from collections.abc import Generator, Mapping

import pytest

from queue_dispatcher.api.kinds import SERVICE_CLASSES
from queue_dispatcher.cycle.eta import Eta, etas
from queue_dispatcher.cycle.steps import to_the_end
from queue_dispatcher.turn.outlook import MAX_OF_QUEUE, outlook
from queue_dispatcher.visibility.etas import worked_out
from queue_dispatcher.visibility.viewer import EVERYTHING
from queue_dispatcher.visibility.views import Views
from tests.dispatcher.scenarios.objects import service_class
from tests.dispatcher.turn.builders import Plane

COMPLETE = {"conditions": [{"type": "Complete", "status": "True"}]}


def plane(**promised: object) -> Plane:
    """Eight GPUs, and a class."""
    made = Plane({"m1": 8})
    made.feed(SERVICE_CLASSES, service_class("batch", 0, globalDefault=True, **promised))
    return made


def runs(made: Plane, name: str, pods: int = 8) -> None:
    made.submit(name, replicas=pods)
    made.turn()
    made.place(name, m1=pods)
    made.turn()


def ends(made: Plane, name: str) -> None:
    made.report(name, m1=COMPLETE)
    made.turn()


def after_five_of_100_s() -> Plane:
    """Five have ended that ran for 100 s."""
    made = plane()
    for number in range(5):
        runs(made, f"a{number}")
        made.passes(100)
        ends(made, f"a{number}")
    return made


def told(made: Plane, name: str = "x") -> tuple[str, float | None, float | None]:
    """Its confidence, and in how many seconds it starts: about, and if all runs for as long as it may."""
    made.state.etas = to_the_end(etas(to_the_end(outlook(made.state, made.now))))
    views = Views(made.cache, made.state.view, made.now.day_ms, EVERYTHING, made.state.etas)
    eta = views.workload(made.entry(name)).eta
    assert eta is not None
    assert bool(eta.at) == (eta.confidence != "unknown")
    known = made.state.etas[name]
    in_s = [None if at is None else (at - made.now.day_ms) / 1000 for at in (known.at_ms, known.by_ms)]
    return eta.confidence, in_s[0], in_s[1]


def test_by_what_is_enforced() -> None:
    made = plane(maxRuntime="10m")
    runs(made, "a")
    made.submit("x", replicas=8)
    made.submit("y", replicas=8)
    made.passes(60)
    assert told(made) == ("bound", 540, 540)
    # What a waiting one may run is rounded up by an eighth at the most.
    assert told(made, "y") == ("bound", 1195.36, 1195.36)


def test_nobody_knows() -> None:
    made = plane()
    runs(made, "a")
    made.submit("x", replicas=8)
    made.turn()
    assert told(made) == ("unknown", None, None)
    views = Views(made.cache, made.state.view, made.now.day_ms, EVERYTHING, made.state.etas)
    eta = views.workload(made.entry("x")).eta
    assert eta is not None
    assert eta.text.startswith("not known: nobody knows when what is in its way ends")


@pytest.mark.parametrize(
    ("promised", "expected"),
    [
        ({}, ("history", 70, None)),
        # Declared ten times too long.
        ({"maxRuntime": "1000s"}, ("history", 70, 970)),
        ({"maxRuntime": "90s"}, ("bound", 60, 60)),
    ],
)
def test_by_how_long_earlier_ones_took(
    promised: dict[str, str], expected: tuple[str, float | None, float | None]
) -> None:
    made = after_five_of_100_s()
    made.feed(SERVICE_CLASSES, service_class("batch", 0, globalDefault=True, **promised))
    runs(made, "b")
    made.submit("x", replicas=8)
    made.passes(30)
    assert told(made) == expected


def test_what_has_run_for_longer_than_any_and_a_new_process_know_nothing() -> None:
    made = after_five_of_100_s()
    runs(made, "b")
    made.submit("x", replicas=8)
    made.passes(99)
    assert told(made) == ("history", 1, None)
    made.passes(2)
    assert told(made) == ("unknown", None, None)
    made = after_five_of_100_s()
    runs(made, "b")
    made.submit("x", replicas=8)
    made.restart()
    made.turn()
    assert told(made) == ("unknown", None, None)


def test_who_finds_no_nodes_is_told_so_and_not_when_amounts_are_free() -> None:
    made = Plane({"m1": 8}, estimator=lambda name: int(name != "x"))
    made.feed(SERVICE_CLASSES, service_class("batch", 0, globalDefault=True, maxRuntime="10m"))
    runs(made, "a", pods=4)
    made.submit("x", replicas=4)
    made.turn()
    reason = made.reason("x")
    assert reason is not None
    assert reason.kind == "WaitingForCapacity"
    assert told(made) == ("unknown", None, None)


def test_what_can_never_start_and_what_lacks_a_word_is_not_promised_anything() -> None:
    made = plane(maxRuntime="10m")
    made.submit("x", replicas=9)
    made.submit("y", replicas=8)
    made.turn()
    made.submit("z", replicas=8)
    made.turn()
    assert told(made, "z")[0] == "bound"
    assert made.state.etas.keys() == {"z"}


def test_so_many_of_a_line_are_looked_at() -> None:
    made = plane(maxRuntime="10m")
    runs(made, "a")
    for number in range(MAX_OF_QUEUE + 5):
        made.submit(f"x{number}", replicas=8)
        made.elapsed_ms += 1000
    made.turn()
    told(made, "x0")
    assert list(made.state.etas) == [f"x{number}" for number in range(MAX_OF_QUEUE)]


def test_it_is_not_worked_out_while_others_are_busy() -> None:
    log: list[str] = []

    class Off(threading.Event):
        def wait(self, timeout: float | None = None) -> bool:
            log.append("stood still")
            return False

    def steps() -> Generator[None, None, Mapping[str, Eta]]:
        for number in range(2):
            log.append(f"step {number}")
            yield
        return {}

    busy = iter([False, True, True, False, False])
    assert worked_out(steps(), Off(), lambda: next(busy)) == {}
    assert log == ["step 0", "stood still", "stood still", "step 1"]
