"""Says once what is there, however often it is seen, and anew when it comes back."""

import logging
from collections.abc import Iterable


class Told:
    """Sentences that have been logged as warnings."""

    def __init__(self, logger: logging.Logger) -> None:
        self._logger = logger
        self._told: frozenset[str] = frozenset()

    def see(self, sentences: Iterable[str]) -> None:
        """What is the case now; what is new of it is told."""
        now = frozenset(sentences)
        for each in sorted(now - self._told):
            self._logger.warning("%s", each)
        self._told = now
