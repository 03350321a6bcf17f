"""Waits: why each class of items waits, worked out when somebody reads it.

A full fleet refuses the same thousands of classes in every cycle, and people look at few of the reasons. So a
cycle only notes who can explain a refusal. Nothing that an explanation needs changes after the cycle, so a
reason is the same whenever it is read: as of the cycle's end.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Protocol

from queue_dispatcher.cycle.actions import ClassKey
from queue_dispatcher.cycle.items import Item, Shape
from queue_dispatcher.cycle.reasons import Reason, behind_head


class Refuser(Protocol):
    """What has refused a class and can tell why."""

    def why(self, shape: Shape) -> Reason:
        """Why workloads of the shape have to wait."""


@dataclass(frozen=True, slots=True)
class Because:
    """All wait for the same reason."""

    reason: Reason

    def why(self, shape: Shape) -> Reason:
        """That reason."""
        return self.reason


@dataclass(slots=True)
class Behind:
    """All wait behind the head of a StrictFIFO queue, which was refused."""

    head: Item
    refuser: Refuser

    def why(self, shape: Shape) -> Reason:
        """Who the head is, and why that waits."""
        return behind_head(self.head.name, self.refuser.why(self.head.shape).text, self.head.namespace)


class Waits(Mapping[ClassKey, Reason]):
    """Reasons by class."""

    def __init__(self, refusers: Mapping[ClassKey, Refuser]) -> None:
        """The mapping is not to be changed any more."""
        self._refusers = refusers
        self._reasons: dict[ClassKey, Reason] = {}

    def __getitem__(self, key: ClassKey) -> Reason:
        reason = self._reasons.get(key)
        if reason is None:
            reason = self._reasons[key] = self._refusers[key].why(key.shape)
        return reason

    def __iter__(self) -> Iterator[ClassKey]:
        return iter(self._refusers)

    def __len__(self) -> int:
        return len(self._refusers)
