"""ClusterRoom: what one estimator has said of its cluster."""

from dataclasses import dataclass

from queue_dispatcher.cycle.earliest import Earliest
from queue_dispatcher.cycle.witness import Witness


@dataclass(frozen=True, slots=True)
class ClusterRoom:
    """What is known of one cluster: how many copies fit there now, or why that is not known.

    ``unknown``: not empty where nobody can tell. ``why``: the two most decisive reasons that not more fit.
    ``most``: how many would fit at most if nothing else ran there; None where that was not worked out.
    ``witnesses``: where the pods of one after the other have to go, as far as that was worked out.
    ``earliest``: when as many copies as were wanted fit, told where that was asked and they do not now; None
    where they would not even then, or nobody can tell.

    Both texts are for those who submit workloads: no addresses stand in them.
    """

    cluster: str
    fits: int
    unknown: str = ""
    why: str = ""
    most: int | None = None
    witnesses: tuple[Witness, ...] = ()
    earliest: Earliest | None = None
