"""Where a watch stands in a resource's history.

Within one resource, resourceVersions are integers that grow with every change (promised since Kubernetes
1.35, true for every etcd-backed server before). So an event that is not newer than the last one has been
applied already. A server whose versions are not integers gets no such check.
"""


class Position:
    """The last resourceVersion seen; empty when the history must be entered anew by a list."""

    def __init__(self) -> None:
        self.resource_version = ""
        self._number: int | None = None

    def restart(self, resource_version: str) -> None:
        """Stand at the version of a complete list, or nowhere (``""``)."""
        self.resource_version = resource_version
        self._number = _number(resource_version)

    def advance(self, resource_version: str) -> bool:
        """Move on to a later event and say True; stay and say False if it is not later."""
        number = _number(resource_version)
        if number is not None and self._number is not None and number <= self._number:
            return False
        if resource_version:
            self.resource_version = resource_version
            self._number = number
        return True

    def is_at(self, resource_version: str) -> bool:
        """Whether all is known up to there; where versions are not integers, only of that very one."""
        number = _number(resource_version)
        if number is None or self._number is None:
            return self.resource_version == resource_version
        return self._number >= number


def _number(resource_version: str) -> int | None:
    return int(resource_version) if resource_version.isdecimal() else None
