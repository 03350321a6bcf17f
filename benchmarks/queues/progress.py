"""Progress of a long measurement, on stderr, so that the tables stay by themselves."""

import sys
import time

_BEGAN_S = time.monotonic()


def tell(what: str) -> None:
    """As `say`, to whoever watches: nobody does where it is no terminal."""
    if sys.stderr.isatty():
        say(what)


def say(what: str) -> None:
    """One line, with the seconds since the start."""
    print(f"[{time.monotonic() - _BEGAN_S:6.1f} s] {what}", file=sys.stderr, flush=True)
