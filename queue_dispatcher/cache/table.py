"""Table: a reflector's sink that keeps what matters of each object, and tells when that changes.

Most watch events change nothing that decides anything: a heartbeat, a status that we wrote ourselves. Such an
event ends here.
"""

from collections.abc import Callable, Collection
from typing import Generic, TypeVar

from fairway.kube.objects import object_key
from fairway.kube.resource import KubeObjectLike

O_contra = TypeVar("O_contra", bound=KubeObjectLike, contravariant=True)
V = TypeVar("V")


class Table(Generic[O_contra, V]):
    """Values by `object_key`. ``read`` makes a value of an object, None for one that is of no interest.

    ``changed`` is called after each change with the key, the value before and the value now, None for none.
    """

    def __init__(
        self,
        read: Callable[[O_contra], V | None],
        changed: Callable[[str, V | None, V | None], None],
    ) -> None:
        self.values: dict[str, V] = {}
        self._read = read
        self._changed = changed

    def keys(self) -> Collection[str]:
        """Keys of all that is held."""
        return self.values.keys()

    def upsert(self, obj: O_contra) -> None:
        """The object exists and looks like this."""
        key = object_key(obj.metadata)
        value = self._read(obj)
        if value is None:
            self.delete(key)
            return
        before = self.values.get(key)
        # What does not count in the comparison is kept all the same.
        self.values[key] = value
        if before != value:
            self._changed(key, before, value)

    def delete(self, key: str) -> None:
        """The object is gone."""
        before = self.values.pop(key, None)
        if before is not None:
            self._changed(key, before, None)
