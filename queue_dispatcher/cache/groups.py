"""Workloads that start together or not at all: who of a group is there, and what follows. Pure.

All members are admitted in one decision and charged at once, but each is released by a patch of its own. When
that was cut short, the released ones say so by their records, and the others are rolled forward: charged as
they were, and released before anything else. Rolling back instead would stop what already runs.

Whoever is rolled forward is asked for no quota, so it has to be proven that it was part of the decision: a
name, a size and a time of creation are everybody's to choose.
"""

from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass
from itertools import combinations, islice

from queue_dispatcher.bindings.decision import Decision, digest
from queue_dispatcher.cycle.reasons import Reason, waiting_for_gang_members
from queue_dispatcher.workloads.demand import Requests, beyond, requests

_MOST_TRIES = 64
"""So many ways to choose those left out are looked at, where some wait that were not part of the decision."""


@dataclass(frozen=True, slots=True)
class Member:
    """One workload of a group.

    ``size``: of the group, as this one states it. ``is_pending``: it waits, and nothing but quota and room
    keeps it from starting. ``is_new``: it was never released, as far as is known. ``was_taken_back``: it was
    released before, and did not start or lost its cluster. ``asked``: what it waits for, or was released
    with. ``admitted_ms``: when it was released with the group, None if it was not; ``decision``: with whom,
    None if with nobody.
    """

    uid: str
    size: int
    enqueued_ms: int
    is_pending: bool
    is_new: bool = False
    was_taken_back: bool = False
    asked: Requests = ()
    admitted_ms: int | None = None
    decision: Decision | None = None


@dataclass(frozen=True, slots=True)
class GroupState:
    """What follows for the members that wait.

    ``together``: those to be admitted as one. ``alone``: those to be admitted each for itself.
    ``waiting``: why the others wait, if there are any.
    """

    together: tuple[str, ...] = ()
    alone: tuple[str, ...] = ()
    waiting: Reason | None = None


def left_out(members: Iterable[Member]) -> dict[str, str]:
    """Those to be released at once, as their group is half released; each with one that was released.

    ``members``: all of one name, whatever queue they wait in. Of those whom a decision left out, as many as
    ask for no more than was decided on and is left of it; where its members cannot be told any more, nobody.
    """
    ordered = _ordered(members)
    decided: dict[Decision, list[Member]] = {}
    for member in ordered:
        if member.decision is not None:
            decided.setdefault(member.decision, []).append(member)
    found: dict[str, str] = {}
    for decision, released in decided.items():
        asked = list(_asked(released))
        for member in _left_out_of(decision, released, ordered):
            if not beyond(requests((*asked, *member.asked)), decision.requests):
                asked += member.asked
                found[member.uid] = released[0].uid
    return found


def _left_out_of(decision: Decision, released: list[Member], members: list[Member]) -> tuple[Member, ...]:
    missing = decision.members - len(released)
    # Those who came first first: no time of creation is compared with the clock of whoever released them.
    waiting = [one for one in members if one.is_pending and one.is_new]
    if missing <= 0:
        return ()
    known = [member.uid for member in released]
    chosen = islice(combinations(waiting, missing), _MOST_TRIES)
    fits = (some for some in chosen if digest((*known, *(one.uid for one in some))) == decision.digest)
    return next(fits, ())


def _asked(members: Iterable[Member]) -> Iterator[tuple[str, int]]:
    return (pair for member in members for pair in member.asked)


def group_state(name: str, members: Iterable[Member], forward: Collection[str] = ()) -> GroupState:
    """The state of a group in one queue; the same for the same members in whatever order.

    ``forward``: who is rolled forward, by `left_out`. Who was taken back starts again by itself, as its mates
    run or have run without it; where all of the group wait, they start together as they did before.
    """
    ordered = _ordered(members)
    pending = [member for member in ordered if member.is_pending and member.uid not in forward]
    released = [m for m in ordered if m.admitted_ms is not None or m.uid in forward]
    size = max((member.size for member in ordered), default=0)
    # Those that were released count even when they are deleted by now: what is left need not wait for others.
    decided = max((m.decision.members for m in released if m.decision is not None), default=0)
    present = len(pending) + max(len(released), decided)
    is_first = not released and present >= size
    alone = tuple(m.uid for m in pending if m.was_taken_back and not is_first)
    rest = tuple(member.uid for member in pending if member.uid not in alone)
    if rest and present < size:
        return GroupState(alone=alone, waiting=waiting_for_gang_members(name, present, size))
    return GroupState(rest, alone)


def _ordered(members: Iterable[Member]) -> list[Member]:
    return sorted(members, key=lambda member: (member.enqueued_ms, member.uid))
