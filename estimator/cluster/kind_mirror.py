"""What is known of one kind of objects: the sink of its reflector, each object reduced at the door.

`KindMirror.synced` says whether the kind has been read at all; whoever feeds the mirror sets that. As long as
it is false, what the cluster has of the kind is not known, which is not the same as none.
"""

from collections.abc import Collection
from typing import Generic, TypeVar

from estimator.cluster.report import Report

T = TypeVar("T")


class KindMirror(Generic[T]):
    """What is known of one kind, by object key; values that did not change cost nothing."""

    def __init__(self, report: Report) -> None:
        self.version = 0
        """Changes with every change of what is known, and with `synced`."""
        self._report = report
        self._values: dict[str, T] = {}
        self._synced = False

    @property
    def synced(self) -> bool:
        """Whether all of the kind has been read once; set by the source."""
        return self._synced

    @synced.setter
    def synced(self, synced: bool) -> None:
        if synced != self._synced:
            self._synced = synced
            self._touch()

    def keys(self) -> Collection[str]:
        """Keys of all objects known."""
        return self._values.keys()

    def get(self, key: str) -> T | None:
        """What the object of this key says, None where there is none."""
        return self._values.get(key)

    def delete(self, key: str) -> None:
        """An object is gone."""
        if key in self._values:
            self._forget(key, self._values.pop(key))
            self._touch()

    def _set(self, key: str, value: T) -> bool:
        """Whether that is anything new."""
        before = self._values.get(key)
        if before is not None:
            if before == value:
                return False
            self._forget(key, before)
        self._values[key] = value
        self._touch()
        return True

    def _forget(self, key: str, value: T) -> None:
        """The value no longer holds; for indexes."""

    def _touch(self) -> None:
        self.version += 1
