"""Plans: whom to displace for one workload, and in which cluster it starts then. Pure.

A plan is for one cluster: quota that comes back anywhere is no room where the workload could go. What has to
leave that cluster its estimator says; who has to go besides, wherever they are, so that quota allows it,
follows from shares. Of the clusters where that is possible, the one where the least work is lost; first one
where nothing goes but what elastic work has beyond its minimum.
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Final

from queue_dispatcher.ledger.cells import Cell
from queue_dispatcher.ledger.ledger import Ledger
from queue_dispatcher.preemption.candidates import Candidate, Preemptor, lacking
from queue_dispatcher.preemption.may_go import MayGo, may_go_of
from queue_dispatcher.preemption.victims import Displacing, Victim, fewest, together

MAX_VICTIMS: Final = 256
"""Of one plan."""


@dataclass(frozen=True, slots=True)
class Offer:
    """``cluster`` has room for the preemptor once those are gone that are ``needed``; in empty anywhere. Of a
    surplus so many pods as are.
    """

    cluster: str
    needed: tuple[Candidate, ...] = ()


@dataclass(frozen=True, slots=True)
class Plan:
    """Who goes, for a start in ``cluster``, empty for anywhere; nobody where what is in the way there goes by
    itself.
    """

    cluster: str
    victims: tuple[Victim, ...]


def short_of(ledger: Ledger, capacity: Mapping[Cell, int], preemptor: Preemptor) -> frozenset[Cell]:
    """The cells of which it lacks some; all of its own where the nodes are what is in the way."""
    short = lacking(ledger, capacity, preemptor.queue, preemptor.charge)
    return short or frozenset(cell for cell, _ in preemptor.charge)


def permitted(
    ledger: Ledger, capacity: Mapping[Cell, int], preemptor: Preemptor, may_go: MayGo
) -> list[Candidate]:
    """Those that may go, in the order in which they would, whether or not as many have to; of a surplus with
    as many pods as may.
    """
    short = short_of(ledger, capacity, preemptor)
    going = Displacing(ledger, capacity, preemptor, short).victims(may_go)
    return [one.candidate for one in together(_at_most(going))]


def best_plan(
    ledger: Ledger,
    capacity: Mapping[Cell, int],
    preemptor: Preemptor,
    may_go: MayGo,
    offers: Iterable[Offer],
    now_ms: int,
) -> Plan | None:
    """The plan that stops nothing whole, or else loses the least, in what it takes times how long that has
    run; None if there is none.

    ``now_ms``: epoch milliseconds.
    """
    short = short_of(ledger, capacity, preemptor)
    plans: list[tuple[bool, int, int, str, Plan]] = []
    for offer in offers:
        victims = _victims(Displacing(ledger, capacity, preemptor, short), may_go, offer)
        if victims is not None and not victims:
            return Plan(offer.cluster, ())
        if victims is not None:
            lost = sum(_lost(one.candidate, preemptor, now_ms) for one in victims)
            stops, count = any(not one.candidate.pods for one in victims), len(victims)
            plans.append((stops, lost, count, offer.cluster, Plan(offer.cluster, tuple(victims))))
    return min(plans, key=lambda one: one[:4])[-1] if plans else None


def _victims(displacing: Displacing, may_go: MayGo, offer: Offer) -> list[Victim] | None:
    needed = {one.id: one.count for one in offer.needed}
    found = list(displacing.victims(may_go_of(offer.needed)))
    firm = len(found)
    if firm < sum(needed.values()):
        return None
    if not displacing.fits():
        rest = MayGo(*(line.changed(lambda one: _beside(one, needed.get(one.id, 0))) for line in may_go))
        found += _until_it_fits(displacing, _at_most(displacing.victims(rest)))
        if not displacing.fits():
            return None
    victims = fewest(displacing, found, firm)
    gone = {member for one in victims for member in one.candidate.members}
    for one, _ in victims:
        stay = (other for other in may_go.whole.of(one.queue) if gone.isdisjoint(other.members))
        if displacing.may_return(one, (other for other in stay if _goes_before(one, other))):
            return None
    return victims


def _goes_before(one: Candidate, other: Candidate) -> bool:
    """Whether it might displace the other of its queue, whatever that allows."""
    its, others = ((-each.priority, each.enqueued_ms) for each in (one, other))
    return its < others


def _beside(one: Candidate, needed: int) -> Candidate | None:
    """What of it may go beside so many that have to."""
    return one if not needed else replace(one, pods=one.pods - needed) if one.pods > needed else None


def _at_most(going: Iterator[Victim]) -> Iterator[Victim]:
    """No more than a plan may have."""
    known = set[str]()
    for one in going:
        known.add(one.candidate.id)
        if len(known) > MAX_VICTIMS:
            return
        yield one


def _until_it_fits(displacing: Displacing, going: Iterator[Victim]) -> Iterator[Victim]:
    for one in going:
        yield one
        if displacing.fits():
            return


def _lost(one: Candidate, preemptor: Preemptor, now_ms: int) -> int:
    asked = {cell for cell, _ in preemptor.charge}
    taken = one.count * sum(amount for cell, amount in one.charge if cell in asked)
    return max(0, now_ms - one.since_ms) * taken
