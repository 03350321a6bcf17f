"""What all that waits in a queue needs at least: the short way to refuse all of it changes no decision."""

from random import Random

import pytest

from queue_dispatcher.api.ageing import Ageing
from queue_dispatcher.api.cluster_queue import QueueingStrategy
from queue_dispatcher.api.reservation import ReservationPolicy
from queue_dispatcher.cycle.items import Item, Shape
from queue_dispatcher.cycle.pending import PendingQueue
from queue_dispatcher.cycle.reasons import never_fits
from queue_dispatcher.ledger.cells import Charge
from tests.dispatcher.cycle.builders import (
    BACKFILL,
    BEST_EFFORT,
    STRICT,
    Fleet,
    admitted,
    probed,
    shape,
    shape_of_parts,
)
from tests.dispatcher.ledger.builders import charge, queue, root

EITHER = charge(gpu=3, h100_gpu=2)
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
        # Of flavors among which Karmada chooses it takes one at least.
        ((shape_of_parts([EITHER]),), tuple((pair,) for pair in EITHER)),
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


@pytest.mark.parametrize("strategies", [(BEST_EFFORT, STRICT), (BACKFILL,), (BACKFILL, BEST_EFFORT)])
@pytest.mark.parametrize("seed", [*range(40), 376, 403, 444])
def test_decisions_are_the_same_the_long_way(
    seed: int, strategies: tuple[QueueingStrategy, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    short = decided(seed, strategies)
    monkeypatch.setattr(PendingQueue, "least", lambda self, now_ms: ())
    assert short == decided(seed, strategies)


def decided(seed: int, strategies: tuple[QueueingStrategy, ...]) -> list[object]:
    """What is decided about a fleet drawn by chance, with full queues in it, and why the rest waits; and
    again after some of what runs has ended.
    """
    rng = Random(seed)
    names = [f"q{number}" for number in range(6)]
    fleet = Fleet(
        root("all"), *(queue(name, "all", gpu=rng.randrange(4), cpu=9, h100_gpu=1) for name in names)
    )
    for name in names:
        ageing = rng.choice((None, None, Ageing(3, 2)))
        policy = ReservationPolicy(rng.choice((0, 5)), 10, 1_000, rng.randint(1, 2))
        fleet.configure(name, strategy=rng.choice(strategies), ageing=ageing, reservation=policy)
    for number in range(40):
        name = rng.choice(names)
        gpu, h100_gpu = rng.randint(1, 4), rng.randint(1, 3)
        ways = [charge(gpu=gpu, cpu=rng.randrange(4)), charge(h100_gpu=h100_gpu)]
        either = shape_of_parts([charge(gpu=gpu, h100_gpu=h100_gpu)])
        fleet.submit(
            name,
            f"w{number}",
            rng.choice((shape(*ways[: rng.randint(1, 2)]), either)),
            at=number,
            priority=rng.randrange(2),
            due=rng.choice((0, 0, 7)),
            runtime=rng.choice((None, 3, 30)),
        )
    for name in names:
        fleet.ledger.charge(name, charge(gpu=rng.randrange(5)))
    found: list[object] = []
    for _ in range(4):
        decision = fleet.decide(tokens=rng.choice((0, 3, 100)), free={"gpu": rng.randrange(12)})
        waits = {str(key): f"{reason}" for key, reason in decision.waits.items()}
        made = [(one.item.id, one.alternative.charge, one.starts_ms) for one in decision.reservations.made]
        found += [admitted(decision), probed(decision), waits, made, decision.next_due_ms]
        fleet.carry_out(decision)
        for name in [name for name in fleet.running if rng.randrange(2)]:
            fleet.finish(name)
        fleet.now_ms += rng.choice((1, 5, 20))
    return found
