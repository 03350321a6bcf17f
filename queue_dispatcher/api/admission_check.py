"""AdmissionCheck: what somebody outside has to say before workloads of a queue are admitted.

Named as in Kueue. What a check is about (data that have to be there, a budget) and who answers are none of
the dispatcher's business: it reads one annotation of the binding for each.
"""

from dataclasses import dataclass
from typing import Final

MAX_CHECKS: Final = 8
"""How many a queue has."""


@dataclass(frozen=True, slots=True)
class AdmissionCheck:
    """``timeout_ms``: what nobody has answered for so long is told as overdue; None for never. It goes on
    waiting, and an answer counts as before.
    """

    name: str
    timeout_ms: int | None = None
