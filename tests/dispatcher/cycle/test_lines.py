"""Lines of those that wait are put in order only as far as anybody reads, and what comes of it is the same as
if all of them were.
"""

from functools import partial

from hypothesis import given
from hypothesis import strategies as st

from queue_dispatcher.api.reservation import ReservationPolicy
from queue_dispatcher.cycle.endings import Endings
from queue_dispatcher.cycle.items import Item
from queue_dispatcher.cycle.lines import Lines
from queue_dispatcher.cycle.reservation import NO_RESERVATIONS
from queue_dispatcher.cycle.reserving import Reserving
from queue_dispatcher.cycle.waiter import InOrder, RankedLine, Waiter, line_of
from queue_dispatcher.ledger.cells import CellTable
from queue_dispatcher.ledger.ledger import Ledger
from queue_dispatcher.ledger.tree import CellQuota, QuotaNode, QuotaTree
from tests.dispatcher.cycle.builders import shape

TABLE = CellTable()
CELLS = [TABLE.cell(flavor, "gpu") for flavor in ("h100", "a100")]
QUEUES = ("a", "b", "c")
NOW_MS = 1_000_000


def ledger() -> Ledger:
    """Two trees: a and b below root, and c alone."""
    quotas = {cell: CellQuota(4) for cell in CELLS}
    nodes = [QuotaNode("root"), QuotaNode("a", "root", quotas=quotas), QuotaNode("b", "root", quotas=quotas)]
    return Ledger(QuotaTree([*nodes, QuotaNode("c", quotas=quotas)], TABLE))


@st.composite
def waiting(draw: st.DrawFn) -> list[Waiter]:
    """Up to a dozen, of any queue, priority and depth of its queue."""
    depths = {queue: draw(st.integers(1, 3)) for queue in QUEUES}
    found = []
    for number in range(draw(st.integers(0, 12))):
        queue, came_ms = draw(st.sampled_from(QUEUES)), draw(st.integers(0, 5))
        wanted = [((cell, draw(st.integers(1, 6))),) for cell in draw(st.permutations(CELLS))]
        of = shape(*wanted[: draw(st.integers(1, 2))])
        priority, id = draw(st.integers(0, 1)), f"{number:02}"
        item = Item(id, f"n/{id}", (id,), queue, "n/q", of, priority, came_ms)
        policy = ReservationPolicy(depth=depths[queue])
        found.append(Waiter((-priority, 0, came_ms, id), item, of.alternatives, policy))
    return found


def reserving(claims: list[str]) -> Reserving:
    """Half of what each queue owns is used; nobody knows when that ends which a uses."""
    charged, endings = ledger(), Endings()
    for number, queue in enumerate(QUEUES):
        charge = tuple((cell, 2) for cell in CELLS)
        charged.charge(queue, charge)
        endings.put(queue, queue, charge, NOW_MS + number if number else None)
    of_claims = dict.fromkeys(claims, 2 * NOW_MS)
    return Reserving(charged, {}, endings, {}, NO_RESERVATIONS, of_claims, NOW_MS)


def made(of: Reserving) -> list[tuple[str, object]]:
    """Who has got reservations, in their order, and of what."""
    return [(one.item.id, one.alternative.charge) for one in of.reservations.made]


@given(
    waiters=waiting(),
    claims=st.lists(st.sampled_from(["00", "01", "02", "03"]), unique=True),
    stand=st.sets(st.sampled_from(QUEUES)),
)
def test_lines_get_what_all_in_order_would(waiters: list[Waiter], claims: list[str], stand: set[str]) -> None:
    by_line, in_order = reserving(claims), reserving(claims)
    lines, standing = [], Lines()
    for queue in QUEUES:
        line = line_of([one for one in waiters if one.item.queue == queue], TABLE)
        if line is None:
            continue
        if queue in stand and not any(one.item.id in claims for one in line.known):
            # Of who stands only the first are known, and what else is said of them.
            first = min(line.known, key=lambda one: one.deadline)
            line = line._replace(known=[first], pick=partial(list[Waiter], line.known))
            standing.put(queue, by_line._ledger.tree.paths[queue][-1], line)
        else:
            lines.append(line)
    for _ in by_line.reserve(lines, standing):
        pass
    for waiter in sorted(waiters, key=in_order._order):
        in_order._reserve(waiter)
    assert made(by_line) == made(in_order)


@given(waiters=waiting())
def test_who_may_displace_others_comes_by_rank(waiters: list[Waiter]) -> None:
    of = {queue: sorted(one for one in waiters if one.item.queue == queue) for queue in QUEUES}
    # What is known of a line that has not been read is no later than the first of it, who need not be there.
    lines = [RankedLine(queue, (-9, 0, 0, queue), partial(list[Waiter], of[queue])) for queue in QUEUES[1:]]
    among = InOrder(lines, of[QUEUES[0]])
    in_order = [one.item.id for one in sorted(waiters, key=lambda one: one.rank)]
    assert [one.item.id for one in among] == in_order
    some = {one.item.id for one in waiters[::2]}
    assert [one.item.id for one in among.among(some, QUEUES)] == [one for one in in_order if one in some]
