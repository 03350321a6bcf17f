"""WorkloadName: which workload, as estimators and dispatcher name it to each other."""

from typing import NamedTuple


class WorkloadName(NamedTuple):
    """``group``: its API group, empty for the core group."""

    namespace: str
    name: str
    kind: str
    group: str
