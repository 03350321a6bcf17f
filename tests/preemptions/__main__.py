"""``python -m tests.preemptions --count 100000``: see the package."""

import argparse
import multiprocessing
import sys
import time
from collections.abc import Sequence
from typing import Final

from tests.preemptions.fleet import Counted, Fleet

_AT_ONCE: Final = 20
_MOST_FAULTS: Final = 20
"""So many are told."""


def played(seed: int) -> Counted:
    """One fleet."""
    return Fleet(seed).play()


def main(arguments: Sequence[str] | None = None) -> int:
    """0 if nothing happened that must not."""
    parser = argparse.ArgumentParser(description="Count what comes of displacing.")
    parser.add_argument("--count", type=int, default=1_000, help="so many workloads are displaced at least")
    parser.add_argument("--seed", type=int, default=0, help="that of the first fleet; the others count on")
    parser.add_argument("--at-once", type=int, default=1, help="how many are played side by side")
    asked = parser.parse_args(arguments)
    began_s = time.monotonic()
    found = _found(asked.count, asked.seed, asked.at_once)
    _say(f"{found.seeds} fleets, {found.displaced} displaced, {time.monotonic() - began_s:.0f} s")
    for outcome, number in sorted(found.outcomes.items()):
        _say(f"  {number:8} {outcome}")
    for fault in found.faults[:_MOST_FAULTS]:
        _say(f"  {fault}")
    _say(f"{len(found.faults)} faults" if found.faults else "nothing that must not be")
    return 1 if found.faults else 0


def _found(count: int, seed: int, at_once: int) -> Counted:
    found = Counted()
    with multiprocessing.Pool(at_once) as pool:
        while found.displaced < count:
            for one in pool.imap(played, range(seed, seed + _AT_ONCE)):
                found.add(one)
            seed += _AT_ONCE
            _say(f"{found.seeds} fleets, {found.displaced} displaced")
    return found


def _say(text: str) -> None:
    sys.stdout.write(f"{text}\n")
    sys.stdout.flush()


if __name__ == "__main__":
    sys.exit(main())
