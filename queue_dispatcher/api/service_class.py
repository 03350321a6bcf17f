"""ServiceClass: what a kind of workload is promised: priority, how long to start, how to be tried again.

More than a priority class because all of it is agreed once with a group of users and then only named.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from enum import StrEnum

from queue_dispatcher.api.ageing import Ageing
from queue_dispatcher.api.problem import Problem

START_TIMEOUT_MS = 300_000
CLUSTER_LOST_TIMEOUT_MS = 900_000
BACKOFF_BASE_MS = 60_000
BACKOFF_MAX_MS = 3_600_000


class Preemptible(StrEnum):
    """Whether workloads of the class may be displaced."""

    ALWAYS = "Always"
    BORROWED_ONLY = "BorrowedOnly"
    """Only while their queue borrows."""
    NEVER = "Never"


@dataclass(frozen=True, slots=True)
class ServiceClass:
    """A class of service. Durations in milliseconds.

    ``start_timeout_ms``: an admitted workload that no cluster took for so long is taken back, and a gang that
    was placed and whose pods have not had nodes for so long; ``ready_timeout_ms``: what was placed and whose
    pods have not run for so long, None for no limit; ``cluster_lost_timeout_ms``: what is in a cluster that
    cannot be reached for so long, 0 for no limit. It is tried again after ``backoff_base_ms``, doubled
    each further time up to ``backoff_max_ms``, ``backoff_limit`` times at most (None: without end).
    ``max_runtime_ms``: what has run for so long is taken back and stays held. ``max_wait_ms``: how long its
    workloads should wait at the most, which decides who has room kept first. ``min_runtime_ms``: before it
    has run for so long it is not displaced. None where nothing is promised. ``ageing``: overrides the
    queue's; None leaves it to that.
    """

    name: str
    priority: int = 0
    start_timeout_ms: int = START_TIMEOUT_MS
    backoff_base_ms: int = BACKOFF_BASE_MS
    backoff_max_ms: int = BACKOFF_MAX_MS
    backoff_limit: int | None = None
    max_wait_ms: int | None = None
    max_runtime_ms: int | None = None
    min_runtime_ms: int | None = None
    preemptible: Preemptible = Preemptible.ALWAYS
    ageing: Ageing | None = None
    ready_timeout_ms: int | None = None
    cluster_lost_timeout_ms: int = CLUSTER_LOST_TIMEOUT_MS
    is_default: bool = False
    problems: tuple[Problem, ...] = ()

    def backoff_ms(self, times: int) -> int:
        """How long to wait before the next try, after ``times`` (1 or more) failed ones."""
        # Beyond 2^62 any base above zero has long met the cap.
        return min(self.backoff_max_ms, self.backoff_base_ms << min(max(times - 1, 0), 62))


def default_class(classes: Iterable[ServiceClass]) -> ServiceClass | None:
    """The class of workloads that name none: of those marked as default the least in priority, then name."""
    return min((c for c in classes if c.is_default), key=lambda c: (c.priority, c.name), default=None)
