"""Mutants that change nothing that anybody could tell, each with the reason why."""

from typing import Final

EQUIVALENT: Final[dict[tuple[str, str, str], str]] = {
    (
        "cache.cache.Cache._charge",
        "self._changes += 1",
        "self._changes += 2",
    ): "whoever reads it only asks whether it has grown",
}
"""By place, statement and what becomes of it, as `tests.simulation.mutants` tells them."""
