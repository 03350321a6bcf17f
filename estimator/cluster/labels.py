"""Node labels as columns of small integers, so that a requirement is tested on all nodes at once.

A column is built the first time a request asks for its key, and kept up to date from then on; the keys
that nobody asks for cost nothing. The least recently asked columns go when there are too many.
"""

from collections.abc import Collection, Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from fairway.selectors import Requirement

BoolVector = NDArray[np.bool_]

ABSENT = 0
_MAX_COLUMNS = 128


@dataclass(slots=True)
class _Column:
    codes: NDArray[np.int32]
    code_of: dict[str, int]


class LabelColumns:
    """The labels of every row; written by `NodeColumns` alone."""

    def __init__(self, size: int) -> None:
        self._labels: list[Mapping[str, str] | None] = [None] * size
        self._columns: dict[str, _Column] = {}
        self._carriers: dict[str, int] = {}

    @property
    def keys(self) -> Collection[str]:
        """The keys that some node carries."""
        return self._carriers.keys()

    def set_row(self, index: int, labels: Mapping[str, str]) -> None:
        """The row now carries these labels; none where its node is gone."""
        for key in self._labels[index] or ():
            self._carriers[key] -= 1
            if not self._carriers[key]:
                del self._carriers[key]
        for key in labels:
            self._carriers[key] = self._carriers.get(key, 0) + 1
        self._labels[index] = labels
        overgrown = []
        for key, column in self._columns.items():
            column.codes[index] = _code(column.code_of, labels.get(key))
            if len(column.code_of) > 2 * len(column.codes):
                overgrown.append(key)
        for key in overgrown:
            # A label whose values change without end must not make its column grow without end.
            del self._columns[key]

    def grow(self, size: int) -> None:
        """Make room for more rows."""
        self._labels.extend([None] * (size - len(self._labels)))
        for column in self._columns.values():
            codes = np.zeros(size, dtype=np.int32)
            codes[: len(column.codes)] = column.codes
            column.codes = codes

    def matching(self, requirement: Requirement) -> BoolVector:
        """Which rows satisfy the requirement; rows without a node count as lacking every label."""
        column = self._column(requirement.key)
        if requirement.bound is not None:
            allowed = np.zeros(len(column.code_of) + 1, dtype=np.bool_)
            for value, code in column.code_of.items():
                allowed[code] = requirement.allows(value)
            matching: BoolVector = allowed[column.codes]
            return matching
        codes = [column.code_of[value] for value in requirement.values if value in column.code_of]
        if len(codes) == 1:
            listed = column.codes == codes[0]
        elif codes:
            listed = np.isin(column.codes, codes)
        else:
            listed = np.zeros(len(column.codes), dtype=np.bool_)
        matching = ~listed if requirement.complement else listed
        present: BoolVector = column.codes != ABSENT
        return matching | ~present if requirement.allows_absent else matching & present

    def codes(self, key: str) -> NDArray[np.int32]:
        """The label's value of every row as a code, `ABSENT` where the label is absent. Not to be written."""
        return self._column(key).codes

    def values(self, key: str) -> Mapping[int, str]:
        """The value that each of the label's codes stands for."""
        return {code: value for value, code in self._column(key).code_of.items()}

    def copy(self) -> "LabelColumns":
        """An independent snapshot; the label maps themselves are shared, since they are never changed."""
        twin = LabelColumns(0)
        twin._labels = list(self._labels)
        twin._carriers = dict(self._carriers)
        twin._columns = {
            key: _Column(column.codes.copy(), dict(column.code_of)) for key, column in self._columns.items()
        }
        return twin

    def _column(self, key: str) -> _Column:
        column = self._columns.pop(key, None)
        if column is None:
            code_of: dict[str, int] = {}
            codes = [_code(code_of, labels.get(key)) if labels else ABSENT for labels in self._labels]
            column = _Column(np.array(codes, dtype=np.int32), code_of)
            if len(self._columns) >= _MAX_COLUMNS:
                del self._columns[next(iter(self._columns))]
        self._columns[key] = column
        return column


def _code(code_of: dict[str, int], value: str | None) -> int:
    if value is None:
        return ABSENT
    code = code_of.get(value)
    if code is None:
        code = code_of[value] = len(code_of) + 1
    return code
