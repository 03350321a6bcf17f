"""Writes of a turn: one at a time for each binding, and whoever has more right is looked at again first."""

from dataclasses import dataclass

from queue_dispatcher.turn.writes import Purpose, Write
from sandbox.simulation.objects import from_rfc3339
from tests.simulation.accounts import record_of
from tests.simulation.prompt import Prompt


@dataclass
class Submitted(Prompt):
    """The laws about the writes of a turn, beside all others."""

    def __post_init__(self) -> None:
        super().__post_init__()
        for replica in self.world.replicas.values():
            replica.submitted = self._submitted

    def _submitted(self, writes: tuple[Write, ...], under_way: frozenset[str]) -> None:
        begun = set(under_way)
        for write in writes:
            if write.uid in begun:
                self._break("a binding is written once at a time", write.uid, f"and again to {write.purpose}")
            begun.add(write.uid)
        kicked = [write.uid for write in writes if write.purpose is Purpose.KICK]
        if len(kicked) < 2:
            return
        records = {one["metadata"]["uid"]: record_of(one) for one in self._bindings()}
        ranks = [
            (-record["priority"], from_rfc3339(record["enqueuedAt"]), uid)
            for uid in kicked
            if (record := records.get(uid)) is not None
        ]
        if ranks != sorted(ranks):
            self._break("who has more right is tried again first", kicked[0], f"{ranks}")
