"""Mutants that change nothing that anybody could tell, each with the reason why."""

from typing import Final

EQUIVALENT: Final[dict[tuple[str, str, str], str]] = {}
"""By place, statement and what becomes of it, as `tests.simulation.mutants` tells them."""
