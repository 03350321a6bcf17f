"""QuotaReduction: what becomes of work that runs beyond what its queue may use, as the quota was lowered."""

from dataclasses import dataclass
from enum import StrEnum
from typing import Final


class QuotaReductionPolicy(StrEnum):
    """What becomes of it."""

    KEEP = "Keep"
    """It runs on; nothing new is admitted until the queue is within its quota again."""
    EVICT = "Evict"
    """After a delay, as much of it is taken back as has to be, and waits."""


DELAY_MS: Final = 600_000


@dataclass(frozen=True, slots=True)
class QuotaReduction:
    """``delay_ms``: for so long the queue uses more than it may, before anything is taken back; 0 for at
    once.
    """

    policy: QuotaReductionPolicy = QuotaReductionPolicy.KEEP
    delay_ms: int = DELAY_MS


KEEPS: Final = QuotaReduction()
"""What is stated says nothing else."""
