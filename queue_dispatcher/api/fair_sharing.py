"""FairSharing: the LocalQueues of one ClusterQueue share it by what they have used, not by who came first."""

from dataclasses import dataclass
from typing import Final

HALF_LIFE_MS: Final = 168 * 3_600_000
"""A week, as Kueue's examples have it: long enough to remember a run of days, and forgotten in a quarter."""
PRICE_MILLI: Final = 1000
"""What a device-hour of a flavor counts that states no price, thousandths."""


@dataclass(frozen=True, slots=True)
class FairSharing:
    """``half_life_ms``: after so long, what was used counts half; above 0."""

    half_life_ms: int = HALF_LIFE_MS
