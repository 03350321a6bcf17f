"""Workloads that start together or not at all: who of a group is there, and what follows. Pure.

All members are admitted in one decision and charged at once, but each is released by a patch of its own. When
that was cut short, the released ones say so by their records, and the others are rolled forward: charged as
they were, and released before anything else. Rolling back instead would stop what already runs.
"""

from collections.abc import Iterable
from dataclasses import dataclass

from queue_dispatcher.cycle.reasons import Reason, waiting_for_gang_members


@dataclass(frozen=True, slots=True)
class Member:
    """One workload of a group.

    ``size``: of the group, as this one states it. ``admitted_ms``: when it was released with the group; None
    if it was not. ``is_pending``: it waits, and nothing but quota and room keeps it from starting.
    ``was_taken_back``: it was released before, and did not start.
    """

    uid: str
    size: int
    created_ms: int
    enqueued_ms: int
    is_pending: bool
    admitted_ms: int | None = None
    was_taken_back: bool = False


@dataclass(frozen=True, slots=True)
class GroupState:
    """What follows for the members that wait.

    ``together``: those to be admitted as one. ``forward``: those to
    be released at once, as their group is half released. ``waiting``: why the others wait, if there are any.
    """

    together: tuple[str, ...] = ()
    forward: tuple[str, ...] = ()
    waiting: Reason | None = None


def group_state(name: str, members: Iterable[Member]) -> GroupState:
    """The state of a group; the same for the same members in whatever order."""
    ordered = sorted(members, key=lambda member: (member.enqueued_ms, member.uid))
    pending = [member for member in ordered if member.is_pending]
    released = [member for member in ordered if member.admitted_ms is not None]
    size = max((member.size for member in ordered), default=0)
    forward: tuple[str, ...] = ()
    if released and len(released) < size:
        last_ms = max(member.admitted_ms or 0 for member in released)
        # Only those that can have been part of that decision; who came later asks for quota like anybody.
        left_out = [m for m in pending if not m.was_taken_back and m.created_ms <= last_ms]
        forward = tuple(member.uid for member in left_out[: size - len(released)])
    waiting = [member.uid for member in pending if member.uid not in forward]
    if not waiting:
        return GroupState(forward=forward)
    present = len(pending) + len(released)
    if present < size:
        return GroupState(forward=forward, waiting=waiting_for_gang_members(name, present, size))
    return GroupState(tuple(waiting), forward)
