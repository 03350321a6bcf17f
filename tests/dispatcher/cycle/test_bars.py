"""What reservations leave node by node is what they leave to each queue."""

from itertools import accumulate, product
from random import Random

import pytest

from queue_dispatcher.cycle.items import Alternative, Item
from queue_dispatcher.cycle.kept_room import Kept, KeptRoom
from queue_dispatcher.cycle.reservation import Reservation
from queue_dispatcher.ledger.ledger import Ledger
from queue_dispatcher.ledger.tree import QuotaNode
from tests.dispatcher.cycle.builders import shape
from tests.dispatcher.ledger.builders import cell, charge, grow, owns, queue, root

NOW_MS = 1_000
CELLS = ("gpu", "cpu")


@pytest.mark.parametrize("seed", range(60))
def test_a_queue_is_refused_what_each_reservation_refuses_it(seed: int) -> None:
    rng = Random(seed)
    ledger = drawn(rng)
    room = KeptRoom(ledger, NOW_MS)
    names = sorted(name for name in ledger.tree.paths if name.startswith("q"))
    for number in range(rng.randint(1, 4)):
        room.add(kept(rng, ledger, rng.choice(names), f"kept{number}"))
    for _ in range(4):
        for name in names:
            least = tuple(charge(gpu=rng.randint(0, 3), cpu=rng.randint(0, 2)) for _ in range(2))
            rank = (-rng.randrange(3), 0, 5, "new")
            ways = [Alternative((), each) for each in least]
            has_own = any(one.reservation.item.queue == name for one in room)
            refused = all(room.refusing(item("new", name), rank, 1, way) is not None for way in ways)
            assert room.refuses_all(name, rank, least) is (refused and not has_own)
            for way, runtime_ms in product(ways, (None, 1, 60)):
                delays = room.refusing(item("new", name), rank, runtime_ms, way) is not None
                assert room.refuses(item("new", name), rank, runtime_ms, way) is delays
        name, taken = rng.choice(names), charge(gpu=rng.randint(0, 2), cpu=1)
        if rng.randrange(2):
            room.asked(item("asked", name), (-9, 0, 0, "asked"), taken)
        else:
            way = Alternative((), taken)
            room.taken(item("taken", name), (-9, 0, 0, "taken"), rng.choice((None, 5)), way)
        ledger.charge(name, taken)


def drawn(rng: Random) -> Ledger:
    nodes: list[QuotaNode] = []
    for tree in ("a", "b"):
        nodes += [root(tree, gpu=rng.randrange(4), cpu=rng.randrange(4)), queue(f"dept-{tree}", tree, gpu=1)]
        for number in range(3):
            own = owns(rng.randrange(4), borrows=None, lends=rng.choice((None, 0, 1)))
            above = rng.choice((tree, f"dept-{tree}"))
            nodes.append(queue(f"q-{tree}-{number}", above, gpu=own, cpu=rng.randrange(3)))
    ledger = Ledger(grow(*nodes))
    for name in (node.name for node in nodes if node.name.startswith("q")):
        ledger.charge(name, charge(gpu=rng.randrange(3), cpu=rng.randrange(3)))
    return ledger


def item(item_id: str, queue: str) -> Item:
    return Item(item_id, item_id, (item_id,), queue, queue, shape(charge(gpu=1)), 0, 0)


def kept(rng: Random, ledger: Ledger, name: str, item_id: str) -> Kept:
    starts_ms, drains_ms = rng.choice((None, NOW_MS, NOW_MS + 50)), rng.choice((NOW_MS, NOW_MS + 100))
    reservation = Reservation(
        item(item_id, name),
        (-rng.randrange(3), 0, 1, item_id),
        Alternative((), charge(gpu=1)),
        0,
        drains_ms,
        starts_ms,
        NOW_MS + 1_000,
        is_claimed=rng.random() < 0.4,
        borrows=rng.random() < 0.5,
    )
    path = ledger.tree.paths[name]
    quota = {
        cell(one): dict(zip(reversed(path), accumulate((rng.randrange(4) for _ in path), min), strict=True))
        for one in CELLS
        if rng.randrange(3)
    }
    free = {cell(one): rng.randrange(4) for one in CELLS if not rng.randrange(3)}
    return Kept(reservation, path[-1], quota, free)
