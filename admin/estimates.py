"""What the command asks of a cluster whose objects it holds: the seam between reading and reckoning."""

from dataclasses import dataclass
from typing import Protocol

from admin.observing import Observed
from estimator.capacity.gangs.placements import ClusterExplanation
from estimator.capacity.summary import Summary
from estimator.fit.device_tolerations import TolerationMode
from fairway.accelerators.catalogue import Catalogue
from fairway.workloads.gang import Gang


@dataclass(frozen=True, slots=True)
class Rules:
    """What an administrator says of all clusters: device names, topology levels (empty: as detected), and
    whether their admission lets pods of devices tolerate taints named after these.
    """

    catalogue: Catalogue
    levels: tuple[str, ...] = ()
    tolerations: TolerationMode = TolerationMode.AUTO


class Estimates(Protocol):
    """Answers worked out here. Pure, apart from the time that a search may take; safe to call on a thread."""

    def summary(self, cluster: Observed) -> Summary:
        """What is there, what is free, how it is chunked."""

    def explanation(self, cluster: Observed, gang: Gang, wanted: int) -> ClusterExplanation:
        """How many copies of the gang fit, up to ``wanted``, where they would go, and why not more."""
