"""ClusterRoom: what one estimator has said of its cluster."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class ClusterRoom:
    """What is known of one cluster: how many copies fit there now, or why that is not known.

    ``unknown``: not empty where nobody can tell. ``why``: the most decisive reason that not more fit.
    """

    cluster: str
    fits: int
    unknown: str = ""
    why: str = ""
