"""What all that waits in a queue needs at least: the short way to refuse all of it changes no decision."""

from random import Random

import pytest

from queue_dispatcher.api.ageing import Ageing
from queue_dispatcher.cycle.actions import Decision
from queue_dispatcher.cycle.items import Item, Shape
from queue_dispatcher.cycle.pending import PendingQueue
from queue_dispatcher.cycle.reasons import never_fits
from queue_dispatcher.ledger.cells import Charge
from tests.dispatcher.cycle.builders import BEST_EFFORT, STRICT, Fleet, admitted, probed, shape
from tests.dispatcher.ledger.builders import charge, queue, root

NEVER = shape(never=never_fits("too large"))


def line(*shapes: Shape, due: int = 0) -> PendingQueue:
    made = PendingQueue("q")
    for number, one in enumerate(shapes):
        made.add(Item(f"{number}", f"{number}", (f"{number}",), "q", "q", one, 0, number, due))
    return made


@pytest.mark.parametrize(
    ("shapes", "least"),
    [
        ((), ()),
        ((shape(charge(gpu=2, cpu=9)),), (charge(gpu=2, cpu=9),)),
        ((shape(charge(gpu=2, cpu=9)), shape(charge(gpu=4, cpu=1))), (charge(gpu=2, cpu=1),)),
        # One class does without a resource: that alone refuses nobody.
        ((shape(charge(gpu=2, cpu=9)), shape(charge(gpu=4))), (charge(gpu=2),)),
        ((shape(charge(gpu=2)), shape(charge(h100_gpu=2))), ((),)),
        # All may go two ways, or some.
        ((shape(charge(gpu=2), charge(h100_gpu=3)),), (charge(gpu=2), charge(h100_gpu=3))),
        ((shape(charge(gpu=2)), shape(charge(gpu=1), charge(cpu=3))), (charge(gpu=1), charge(cpu=3))),
        # What asks for nothing has room in a full queue.
        ((shape(charge(gpu=2)), shape(())), ((),)),
        # What never fits is refused in any case.
        ((shape(charge(gpu=2)), NEVER), (charge(gpu=2),)),
        ((NEVER,), ()),
    ],
)
def test_the_least_of_all_classes(shapes: tuple[Shape, ...], least: tuple[Charge, ...]) -> None:
    assert list(map(dict, line(*shapes).least(0))) == list(map(dict, least))


def test_it_follows_those_who_come_and_go() -> None:
    waiting = line(shape(charge(gpu=2)), shape(charge(gpu=4)))
    assert waiting.least(0) == (charge(gpu=2),)
    waiting.remove("0")
    assert waiting.least(0) == (charge(gpu=4),)
    waiting.add(Item("new", "new", ("new",), "q", "q", shape(charge(gpu=1)), 0, 0))
    assert waiting.least(0) == (charge(gpu=1),)


def test_nothing_is_known_of_a_line_in_which_others_are_due_by_now() -> None:
    waiting = line(shape(charge(gpu=2)), due=10)
    assert waiting.least(5) == ()
    assert waiting.least(10) == ()
    waiting.advance(10)
    assert waiting.least(10) == (charge(gpu=2),)


@pytest.mark.parametrize("seed", range(80))
def test_decisions_are_the_same_the_long_way(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    short, waits = decided(seed)
    monkeypatch.setattr(PendingQueue, "least", lambda self, now_ms: ())
    long, long_waits = decided(seed)
    assert (admitted(short), probed(short), waits) == (admitted(long), probed(long), long_waits)


def decided(seed: int) -> tuple[Decision, dict[str, str]]:
    """What is decided about a fleet drawn by chance, with full queues in it, and why the rest waits."""
    rng = Random(seed)
    names = [f"q{number}" for number in range(6)]
    fleet = Fleet(
        root("all"), *(queue(name, "all", gpu=rng.randrange(4), cpu=9, h100_gpu=1) for name in names)
    )
    for name in names:
        ageing = rng.choice((None, None, Ageing(3, 2)))
        fleet.configure(name, strategy=rng.choice((BEST_EFFORT, STRICT)), ageing=ageing)
    for number in range(40):
        name = rng.choice(names)
        ways = [charge(gpu=rng.randint(1, 4), cpu=rng.randrange(4)), charge(h100_gpu=rng.randint(1, 3))]
        fleet.submit(
            name,
            f"w{number}",
            shape(*ways[: rng.randint(1, 2)]),
            at=number,
            priority=rng.randrange(2),
            due=rng.choice((0, 0, 7)),
        )
    for name in names:
        fleet.ledger.charge(name, charge(gpu=rng.randrange(5)))
    decision = fleet.decide(tokens=rng.choice((0, 3, 100)), free={"gpu": rng.randrange(12)})
    return decision, {str(key): f"{reason}" for key, reason in decision.waits.items()}
