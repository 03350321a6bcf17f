"""``python -m tests.preemptions --count 100000``: see the package."""

import argparse
import contextlib
import multiprocessing
import signal
import sys
import time
from collections.abc import Iterator, Sequence
from typing import Final

from tests.preemptions.fleet import Fleet
from tests.preemptions.judging import Counted

_AT_ONCE: Final = 20
"""So many are played between two lines that tell what has come of all of them so far."""


def played(seed: int) -> Counted:
    """One fleet."""
    return Fleet(seed).play()


def main(arguments: Sequence[str] | None = None) -> int:
    """0 if nothing happened that must not, as far as it came until Ctrl-C."""
    parser = argparse.ArgumentParser(description="Count what comes of displacing.")
    parser.add_argument("--count", type=int, default=1_000, help="so many workloads are displaced at least")
    parser.add_argument("--seed", type=int, default=0, help="that of the first fleet; the others count on")
    parser.add_argument("--at-once", type=int, default=1, help="how many are played side by side")
    asked = parser.parse_args(arguments)
    began_s, found = time.monotonic(), Counted()
    with contextlib.suppress(KeyboardInterrupt):
        for one in _fleets(asked.count, asked.seed, asked.at_once):
            found.add(one)
            for fault in one.faults:
                _say(fault)
            if not found.fleets % _AT_ONCE:
                _say(_told(found, began_s))
    _say(_told(found, began_s))
    _say(f"{len(found.faults)} faults" if found.faults else "nothing that must not be")
    return 1 if found.faults else 0


def _fleets(count: int, seed: int, at_once: int) -> Iterator[Counted]:
    """What came of each, in the order of their seeds, until so many have been displaced."""
    displaced = 0
    with multiprocessing.Pool(at_once, signal.signal, (signal.SIGINT, signal.SIG_IGN)) as pool:
        while displaced < count:
            for one in pool.imap(played, range(seed, seed + _AT_ONCE)):
                displaced += one.displaced
                yield one
            seed += _AT_ONCE


def _told(found: Counted, began_s: float) -> str:
    counted = (
        f"{found.fleets} fleets",
        f"{found.displaced} displaced",
        *(f"{number} {outcome}" for outcome, number in sorted(found.outcomes.items()) if number),
        f"{found.returned} displaced in turn",
        f"{found.ping_pong} of them though nothing had changed",
        f"{found.late} displaced in quiet",
        f"{len(found.faults)} faults",
    )
    return f"{time.monotonic() - began_s:.0f} s: " + ", ".join(counted)


def _say(text: str) -> None:
    sys.stdout.write(f"{text}\n")
    sys.stdout.flush()


if __name__ == "__main__":
    sys.exit(main())
