"""What is found out of claims row by row: how many pods a row surely serves, at most how many, and why."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from estimator.capacity.devices.state import UNLIMITED
from estimator.cluster.columns import BoolVector, IntVector
from fairway.dra.counting import Copies
from fairway.dra.stock import MOST_PODS

_SHOWN = 3


@dataclass(frozen=True, slots=True)
class ClaimLimit:
    """How many pods each row surely serves, and no more than how many; why it is not more.

    ``problems``: what cannot be known or had anywhere.
    """

    classes: tuple[str, ...]
    pods: IntVector
    at_most: IntVector
    details: tuple[str, ...]
    problems: tuple[str, ...]


class Tally:
    """Numbers by row, no row limited at first. ``usable``: the rows that kube-scheduler would look at."""

    def __init__(self, rows: int, usable: BoolVector) -> None:
        self.usable = usable
        self.pods: IntVector = np.full(rows, UNLIMITED, dtype=np.int64)
        self.at_most: IntVector = np.full(rows, UNLIMITED, dtype=np.int64)
        self.details: dict[str, None] = {}
        """What keeps usable rows from serving anything, the first few causes."""
        self.limits = False
        """Whether anything limits any row."""
        self.gives_up = False
        """Whether a selector fails on a usable row: kube-scheduler then gives up on the pod everywhere."""

    def note(
        self, rows: IntVector, found: Sequence[Copies], which: IntVector, looked_at: Iterable[int]
    ) -> None:
        """What each of the rows serves by one kind of claims: ``found[which]``.

        ``looked_at``: which of those found are about usable rows.
        """
        self.limits = True
        surely = np.array([one.value for one in found], dtype=np.int64)
        bounds = [one.upper_bound if one.upper_bound < MOST_PODS else UNLIMITED for one in found]
        self.pods[rows] = np.minimum(self.pods[rows], surely[which])
        self.at_most[rows] = np.minimum(self.at_most[rows], np.array(bounds, dtype=np.int64)[which])
        for index in looked_at:
            for reason in found[index].reasons if found[index].value == 0 else ():
                self._tell(reason)
            self.gives_up |= found[index].gives_up

    def refuse(self, rows: BoolVector, why: str = "") -> None:
        """Nothing is promised on these rows, though it may be that something fits."""
        self.limits = True
        self.pods[rows] = 0
        if why:
            self._tell(why)

    def confine(self, rows: BoolVector, most: int) -> None:
        """No pod fits outside these rows, and no more than so many on each of them."""
        self.limits = True
        for numbers in (self.pods, self.at_most):
            numbers[~rows] = 0
        self.cap(most)

    def cap(self, most: int) -> None:
        """No more than so many pods on each row."""
        for numbers in (self.pods, self.at_most):
            np.minimum(numbers, most, out=numbers)

    def keep(self, possible: "Tally") -> None:
        """Nothing on the rows that serve none of these other claims."""
        self.pods[possible.pods == 0] = 0
        self.at_most[possible.at_most == 0] = 0
        self.details.update(possible.details)
        self.gives_up |= possible.gives_up

    def only(self, row: int | None, why: str) -> None:
        """Promise nothing but what this row serves."""
        self.refuse(np.arange(len(self.pods)) != (-1 if row is None else row), why)

    def _tell(self, why: str) -> None:
        if len(self.details) < _SHOWN:
            self.details[why] = None
