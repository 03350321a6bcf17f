"""Mutants that change nothing that anybody could tell, each with the reason why."""

from typing import Final

EQUIVALENT: Final[dict[tuple[str, str, str], str]] = {
    (
        "turn.waking._parked",
        "return Parked(uid=entry.uid, since_ms=seen.since_ms, room_ms=max((state.room_ms.get(cluster, 0) for "
        "cluster in clusters), default=0), order=(*order, entry.uid), kicked_ms=seen.kicked_ms, "
        "kicks=seen.kicks)",
        "return Parked(uid=entry.uid, since_ms=seen.since_ms, room_ms=max((state.room_ms.get(cluster, 0) for "
        "cluster in clusters), default=1), order=(*order, entry.uid), kicked_ms=seen.kicked_ms, "
        "kicks=seen.kicks)",
    ): "room counts if it came later than it was parked, and nothing is parked in the first millisecond",
    (
        "cache.cache.Cache._charge",
        "self._changes += 1",
        "self._changes += 2",
    ): "whoever reads it only asks whether it has grown",
}
"""By place, statement and what becomes of it, as `tests.simulation.mutants` tells them."""
