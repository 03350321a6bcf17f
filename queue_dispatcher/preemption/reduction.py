"""Reduction: whom to take back so that a queue uses no more than it may, once its quota was lowered. Pure.

What a queue owns stays with it: those go whose queue borrows what nobody lends any more, or goes beyond its
own limit; first those that take no more than it borrows, and of these the lowest in priority, and of equal
ones the latest to start.
"""

from collections.abc import Collection, Iterable, Sequence

from queue_dispatcher.ledger.cells import Cell
from queue_dispatcher.ledger.ledger import Ledger
from queue_dispatcher.preemption.candidates import Candidate


def too_many(
    ledger: Ledger, queue: str, cells: Collection[Cell], candidates: Iterable[Candidate]
) -> list[Candidate]:
    """The fewest of them, in their order, without whom the queue uses no more of the cells than it may, or as
    little as can be. The ledger is left without their charges.
    """
    ordered, taken = sorted(candidates, key=_order), dict[str, Candidate]()
    for leaves_owned in (True, False):
        for one in ordered:
            if not _is_over(ledger, queue, cells):
                break
            if one.id not in taken and _helps(ledger, queue, cells, one, leaves_owned=leaves_owned):
                ledger.give_back(one.queue, one.charge)
                taken[one.id] = one
    return _fewest(ledger, queue, cells, [*taken.values()])


def _order(one: Candidate) -> tuple[bool, int, int, str]:
    return not one.is_going, one.priority, -one.since_ms, one.id


def _is_over(ledger: Ledger, queue: str, cells: Collection[Cell]) -> bool:
    return any(ledger.over(queue, cell) for cell in cells)


def _helps(
    ledger: Ledger, queue: str, cells: Collection[Cell], one: Candidate, *, leaves_owned: bool
) -> bool:
    """Whether less is over without it; ``leaves_owned``: and its queue still has all that it owns."""
    return any(
        cell in cells
        and ledger.over(queue, cell) > 0
        and -ledger.balance(one.queue, cell) >= (amount if leaves_owned else 1)
        for cell, amount in one.charge
    )


def _fewest(
    ledger: Ledger, queue: str, cells: Collection[Cell], taken: Sequence[Candidate]
) -> list[Candidate]:
    """Those of them that have to go: the first that can stays, if what is over is no more with it."""
    kept = list(taken)
    least = [ledger.over(queue, cell) for cell in cells]
    for one in taken:
        ledger.charge(one.queue, one.charge)
        if [ledger.over(queue, cell) for cell in cells] == least:
            kept.remove(one)
        else:
            ledger.give_back(one.queue, one.charge)
    return kept
