"""What is known of one kind of objects: the sink of its reflector, each object reduced at the door.

`KindMirror.synced` says whether the kind has been read at all; whoever feeds the mirror sets that. As long as
it is false, what the cluster has of the kind is not known, which is not the same as none.
"""

from collections.abc import Collection, Mapping
from typing import Generic, TypeVar

from estimator.cluster.report import Report

T = TypeVar("T")
_Outer = TypeVar("_Outer")
_Inner = TypeVar("_Inner")


def discard(tables: dict[_Outer, dict[_Inner, T]], outer: _Outer, inner: _Inner) -> None:
    """Take an entry out of its table, and the table away where that was the last one."""
    del tables[outer][inner]
    if not tables[outer]:
        del tables[outer]


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

    def _set(self, key: str, value: T) -> None:
        before = self._values.get(key)
        if before is not None:
            if before == value:
                return
            self._forget(key, before)
        self._values[key] = value
        self._remember(key, value)
        self._touch()

    def _remember(self, key: str, value: T) -> None:
        """The value holds from now on; for indexes."""

    def _forget(self, key: str, value: T) -> None:
        """The value no longer holds."""

    def _touch(self) -> None:
        self.version += 1


class NamespacedMirror(KindMirror[T]):
    """What is known of a kind whose objects are asked for by namespace."""

    def __init__(self, report: Report) -> None:
        super().__init__(report)
        self._by_namespace: dict[str, dict[str, T]] = {}

    def within(self, namespace: str) -> Mapping[str, T]:
        """The values of one namespace, by object key."""
        return self._by_namespace.get(namespace, {})

    def _remember(self, key: str, value: T) -> None:
        self._by_namespace.setdefault(key.rpartition("/")[0], {})[key] = value

    def _forget(self, key: str, value: T) -> None:
        discard(self._by_namespace, key.rpartition("/")[0], key)
