"""News is acted on at once: a turn follows within a second of what may change a decision."""

from dataclasses import dataclass, field

from sandbox.simulation.api_server import Written
from tests.simulation.accounts import quota_of
from tests.simulation.starts import Starts

_WITHIN_MS = 1_000
"""A watch tells within a tenth of this, and what comes together is looked at together; on a calm day."""


@dataclass
class Prompt(Starts):
    """The law about news, beside all others."""

    _news_ms: dict[str, int] = field(default_factory=dict)
    """By replica: since when there is something that it has not looked at."""

    def __post_init__(self) -> None:
        super().__post_init__()
        for replica in self.world.replicas.values():
            replica.turned = self._turned

    def _written(self, written: Written) -> None:
        super()._written(written)
        if _is_news(written) and self.world.faults.is_calm():
            for name in self.world.replicas:
                self._news_ms.setdefault(name, written.at_ms)

    def _turned(self, replica: str) -> None:
        """The replica begins a turn."""
        since_ms, leader = self._news_ms.pop(replica, None), self.world.leader
        if since_ms is None or leader is None or leader.name != replica or not self.world.faults.is_calm():
            return
        took_ms = self.world.timeline.now_ms - since_ms
        if took_ms > _WITHIN_MS:
            self._break("news is acted on at once", replica, f"it took {took_ms} ms to the next turn")


def _is_news(written: Written) -> bool:
    """Whether it says something of where work may go, or how much."""
    if written.resource not in ("clusters", "clusterqueues"):
        return False
    before, after = written.before, written.after
    if before is None or after is None:
        return True
    if written.resource == "clusterqueues":
        # What is stated as it is by default says nothing new.
        return quota_of(before, 0) != quota_of(after, 0)
    return before.get("spec") != after.get("spec")
