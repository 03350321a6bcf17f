"""Pause: for how long what was displaced is not admitted again.

Each time it is longer, so that what is displaced again and again, as others come and go, loses its work ever
more seldom. A run that lasted for much longer than the pause before it was worth its start, and ends that.
"""

from typing import Final

FIRST_MS: Final = 60_000
MOST_MS: Final = 16 * FIRST_MS
WORTH: Final = 4
"""What has run for so many times its last pause is as if it had never been displaced."""


def pause_ms(times: int) -> int:
    """How long it waits, displaced so many times in a row, 1 or more."""
    return min(MOST_MS, FIRST_MS << min(max(0, times - 1), MOST_MS.bit_length()))


def in_a_row(before: int, ran_ms: int) -> int:
    """How many times in a row it is displaced by now, so many times ``before``, and having run since."""
    return before + 1 if before and ran_ms < WORTH * pause_ms(before) else 1
