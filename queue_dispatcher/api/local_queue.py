"""LocalQueue: the name under which a namespace's workloads reach a ClusterQueue."""

from dataclasses import dataclass, field

from queue_dispatcher.api.cluster_queue import WEIGHT_MILLI, StopPolicy
from queue_dispatcher.api.history import History
from queue_dispatcher.api.problem import Problem


@dataclass(frozen=True, slots=True)
class LocalQueue:
    """Where workloads of a namespace name a ClusterQueue.

    ``cluster_queue``: its name; empty, with a problem, where the object names none. ``default_class``: name
    of the ServiceClass of workloads that name none; empty for the global default. ``weight_milli``: its claim
    to a ClusterQueue that is shared by what was used, thousandths, above 0. ``history``: what its status says
    it has used, None for nothing that can be read.
    """

    namespace: str
    name: str
    cluster_queue: str
    default_class: str = ""
    stop_policy: StopPolicy = StopPolicy.NONE
    weight_milli: int = WEIGHT_MILLI
    problems: tuple[Problem, ...] = ()
    history: History | None = field(default=None, compare=False)

    @property
    def key(self) -> str:
        """``namespace/name``."""
        return f"{self.namespace}/{self.name}"
