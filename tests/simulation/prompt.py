"""News is acted on at once: a turn follows within a second of what may change a decision."""

from dataclasses import dataclass, field

from sandbox.simulation.api_server import Written
from sandbox.simulation.objects import at
from sandbox.simulation.story import FaultLine
from tests.simulation.accounts import is_held, quota_of
from tests.simulation.starts import Starts

_WITHIN_MS = 1_000
"""A watch tells within a tenth of this, and what comes together is looked at together."""
_ELSEWHERE = ("cluster", "node", "estimator", "karmada")
"""Faults of others, which keep no dispatcher from hearing."""
_RECOVERS_S = 120


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
        if self._calls_for_a_turn(written) and self._hears():
            for name in self.world.replicas:
                self._news_ms.setdefault(name, written.at_ms)

    def _turned(self, replica: str) -> None:
        """The replica begins a turn."""
        since_ms, leader = self._news_ms.pop(replica, None), self.world.leader
        if since_ms is None or leader is None or leader.name != replica or not self._hears():
            return
        took_ms = self.world.timeline.now_ms - since_ms
        if took_ms > _WITHIN_MS:
            self._break("news is acted on at once", replica, f"it took {took_ms} ms to the next turn")

    def _hears(self) -> bool:
        """Whether nothing keeps dispatchers from hearing and turning."""
        return not any(
            fault.at_s <= self.world.now_s <= fault.at_s + fault.for_s + _RECOVERS_S
            for fault in self.world.story.of(FaultLine)
            if not fault.kind.startswith(_ELSEWHERE)
        )

    def _calls_for_a_turn(self, written: Written) -> bool:
        """Whether it says something else of a queue, or bars a cluster to somebody who waits, or opens it."""
        if written.resource == "clusterqueues":
            if written.before is None or written.after is None:
                return True
            # What is stated as it is by default says nothing new.
            return quota_of(written.before, 0) != quota_of(written.after, 0)
        if written.resource != "clusters":
            return False
        was_barred, is_barred = (bool(at(one, "spec", "taints")) for one in (written.before, written.after))
        if was_barred == is_barred:
            return False
        # What has no queue waits for that.
        held = (one for one in self._bindings() if is_held(one) and not self._local_queue_is_gone(one))
        waiting = (self._line(one) for one in held)
        return any(line is not None and written.key in (line.clusters or (written.key,)) for line in waiting)
