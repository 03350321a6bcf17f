"""LocalQueue: the name under which a namespace's workloads reach a ClusterQueue."""

from dataclasses import dataclass

from queue_dispatcher.api.cluster_queue import StopPolicy
from queue_dispatcher.api.problem import Problem


@dataclass(frozen=True, slots=True)
class LocalQueue:
    """Where workloads of a namespace name a ClusterQueue.

    ``cluster_queue``: its name; empty, with a problem, where the object names none. ``default_class``: name
    of the ServiceClass of workloads that name none; empty for the global default.
    """

    namespace: str
    name: str
    cluster_queue: str
    default_class: str = ""
    stop_policy: StopPolicy = StopPolicy.NONE
    problems: tuple[Problem, ...] = ()

    @property
    def key(self) -> str:
        """``namespace/name``."""
        return f"{self.namespace}/{self.name}"
