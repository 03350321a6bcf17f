"""Rows that are alike, kept so that what is true of one of them is worked out once for all.

Clusters have thousands of nodes, and few ways in which the devices of a node are used: a kind is a key that
rows have in common, numbered while any row has it.
"""

from collections.abc import Hashable

import numpy as np
from numpy.typing import NDArray

IntVector = NDArray[np.int64]
BoolVector = NDArray[np.bool_]

NO_KIND = -1


class Alike:
    """The kind of each row. Setting one costs as much as its key; what is asked of all rows is a vector."""

    def __init__(self) -> None:
        self.version = 0
        """Changes with every kind that is new; that a row changes to another kind is none."""
        self._kind_of: IntVector = np.zeros(0, dtype=np.int64)
        self._numbers: dict[Hashable, int] = {}
        self._keys: list[Hashable] = []
        self._rows_of: list[int] = []
        self._vacant: list[int] = []

    @property
    def kinds(self) -> int:
        """Kinds are numbered below this; some numbers may have no row."""
        return len(self._keys)

    def kind_of(self, rows: int) -> IntVector:
        """The kind of each of so many rows, `NO_KIND` for none. Not to be kept."""
        return reaching(self._kind_of, rows, NO_KIND)[:rows]

    def put(self, row: int, key: Hashable | None) -> None:
        """The row is of this kind from now on, or of none."""
        self._kind_of = reaching(self._kind_of, row + 1, NO_KIND)
        before = int(self._kind_of[row])
        after = NO_KIND if key is None else self._number(key)
        if after != NO_KIND:
            self._rows_of[after] += 1
        self._kind_of[row] = after
        if before != NO_KIND:
            self._rows_of[before] -= 1
            if not self._rows_of[before]:
                del self._numbers[self._keys[before]]
                self._vacant.append(before)

    def copy(self) -> "Alike":
        """The same, to be read alone."""
        twin = Alike()
        twin.version, twin._kind_of, twin._keys = self.version, self._kind_of.copy(), list(self._keys)
        return twin

    def _number(self, key: Hashable) -> int:
        number = self._numbers.get(key)
        if number is None:
            self.version += 1
            if self._vacant:
                number = self._vacant.pop()
                self._keys[number] = key
            else:
                number = len(self._keys)
                self._keys.append(key)
                self._rows_of.append(0)
            self._numbers[key] = number
        return number


def reaching(column: IntVector, size: int, fill: int) -> IntVector:
    """The column, where it is shorter lengthened with ``fill`` to at least twice what it was."""
    if size <= len(column):
        return column
    more = np.full(max(size, 2 * len(column)) - len(column), fill, dtype=np.int64)
    return np.concatenate([column, more])
