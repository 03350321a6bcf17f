"""When the object is written: at once when something lasting changed, otherwise in five-minute slots.

The one idea: each node has a moment of its own within every five minutes, drawn from its name. So a fleet
spreads its writes by itself, whenever its agents started and whatever changed on all of its nodes at once.
An agent that starts finds what the one before it wrote: only another health is written then, for all may
start together, and what changes on a node that is restarted is the same on all. Pure: the time, by any
monotonic clock, is an argument.
"""

import hashlib
from dataclasses import dataclass
from enum import StrEnum
from typing import Final

from fairway.kube.node_devices import Health, Missing, NodeDevices


class Why(StrEnum):
    """Why it is written now."""

    CHANGED = "changed"
    DUE = "due"


@dataclass(frozen=True, slots=True)
class Pace:
    """How often, in seconds.

    ``slot_s``: without a change, once in each slot; a write that is younger than ``fresh_s`` stands for it.
    ``burst`` changes are written at once, further ones when their turn comes, one in ``each_change_s``; what
    changes meanwhile goes with them. ``first_s``: where there is no object yet, it is made within so
    long, and one that says of a bad device and is old is renewed. After failures the wait grows from
    ``first_retry_s`` to ``slot_s``; a server that asks for more gets no more, for whoever reads gives an
    agent up after two slots.
    """

    slot_s: int = 300
    fresh_s: int = 200
    burst: int = 5
    each_change_s: int = 60
    first_s: int = 30
    first_retry_s: int = 2


PACE: Final = Pace()


class Publication:
    """What one node has written, and when it writes again. ``node``: its name."""

    def __init__(self, node: str, pace: Pace = PACE) -> None:
        self._node, self._pace = node, pace
        self._slot_at_s = _drawn(node) * pace.slot_s
        self._first_wait_s = _drawn(node) * pace.first_s
        self._written: NodeDevices | None = None
        self._is_anothers = False
        self._began_s: float | None = None
        self._due_s = 0.0
        self._allowed = float(pace.burst)
        self._allowed_at_s = 0.0
        self._failures = 0
        self._not_before_s = 0.0

    def found(self, stored: NodeDevices, age_s: float, now_s: float) -> None:
        """An agent before us wrote this so long ago: unless health has changed, its slot will do.

        What is old counts no more for whoever reads, and that a device is bad should count.
        """
        self._written, self._is_anothers = stored, True
        is_old = not 0 <= age_s < self._pace.slot_s
        self._due_s = self._next_slot(now_s)
        if is_old and _is_bad(stored):
            self._due_s = min(self._due_s, now_s + self._first_wait_s)

    def decide(self, now: NodeDevices, now_s: float) -> Why | None:
        """Whether to write now; ``now`` is what lasts of the object, see `document.lasting`."""
        if self._began_s is None:
            self._began_s = now_s
        if now_s < self._not_before_s:
            return None
        if self._written is None:
            return Why.CHANGED if now_s >= self._began_s + self._first_wait_s else None
        if self._is_anothers:
            self._is_anothers = False
            if _condition(now) == _condition(self._written):
                self._written = now
        if now != self._written and self._may_change(now_s):
            return Why.CHANGED
        return Why.DUE if now_s >= self._due_s else None

    @property
    def is_stored(self) -> bool:
        """Whether there should be an object."""
        return self._written is not None

    def lost(self) -> None:
        """It is not there any more: it is made anew at the next decision."""
        self._written = None

    def wrote(self, now: NodeDevices, now_s: float) -> None:
        """It is stored."""
        if self._written is not None and now != self._written:
            self._allowed = max(0.0, self._allowance(now_s) - 1)
            self._allowed_at_s = now_s
        self._written = now
        self._due_s = self._next_slot(now_s + self._pace.fresh_s)
        self._failures = 0
        self._not_before_s = 0.0

    def failed(self, now_s: float, retry_after_s: float | None = None) -> float:
        """It is not: the wait until it is tried again. ``retry_after_s``: what the server asked for."""
        self._failures += 1
        drawn = _drawn(f"{self._node} {self._failures} {now_s}")
        most_s = min(self._pace.slot_s, self._pace.first_retry_s * 2.0 ** min(self._failures, 16))
        asked_s = min(retry_after_s or 0.0, self._pace.slot_s)
        wait_s = max(most_s * (1 + drawn) / 2, asked_s)
        self._not_before_s = now_s + wait_s
        return wait_s

    def _next_slot(self, after_s: float) -> float:
        slots = (after_s - self._slot_at_s) // self._pace.slot_s + 1
        return self._slot_at_s + slots * self._pace.slot_s

    def _may_change(self, now_s: float) -> bool:
        return self._allowance(now_s) >= 1

    def _allowance(self, now_s: float) -> float:
        gained = (now_s - self._allowed_at_s) / self._pace.each_change_s
        return min(float(self._pace.burst), self._allowed + max(0.0, gained))


def _is_bad(made: NodeDevices) -> bool:
    return any(each.health != Health.HEALTHY for each in made.devices)


def _condition(made: NodeDevices) -> tuple[object, ...]:
    """Which devices there are, and their health; where one is bad, under which boot."""
    devices = {
        each.id: (each.health, frozenset(one.code for one in each.problems or ())) for each in made.devices
    }
    lacks = Missing.DEVICES in (made.agent.missing or ())
    return devices, lacks, made.driver.boot_id if _is_bad(made) else ""


def _drawn(text: str) -> float:
    """The same number of [0, 1) for the same text, and any for another."""
    return int.from_bytes(hashlib.sha256(text.encode()).digest()[:6], "big") / 2**48
