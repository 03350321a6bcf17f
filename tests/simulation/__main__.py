"""Plays the stories of many seeds: ``python -m tests.simulation --seeds 0..20000 --processes 2``."""

import argparse
import contextlib
import logging
import multiprocessing
import re
import sys
import time
from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from functools import partial

from sandbox.simulation.story import Story
from tests.simulation.draw import draw
from tests.simulation.play import Played, play
from tests.simulation.shrink import shrink


def main(argv: Sequence[str] | None = None) -> int:
    """The exit code: 1 if a law was broken, which the last line says."""
    # What goes wrong is what is asked for.
    logging.disable(logging.CRITICAL)
    parser = argparse.ArgumentParser(prog="python -m tests.simulation", description=__doc__)
    parser.add_argument("--seeds", default="0..200", help="one seed, or A..B without B")
    parser.add_argument("--processes", type=int, default=1)
    parser.add_argument("--shrink", type=int, default=0, help="shrink so many of the stories that fail")
    arguments = parser.parse_args(argv)
    seeds = _seeds(arguments.seeds)
    if not seeds:
        parser.error("--seeds: expected N or A..B with A < B")
    started_s, events, cpu_s = time.monotonic(), 0, 0.0
    faults, failed = Counter[str](), defaultdict[str, list[int]](list)
    examples: dict[str, Played] = {}
    number = 0
    # Stopped before the end, it tells what it has found.
    with contextlib.suppress(KeyboardInterrupt):
        for number, played in enumerate(_played(seeds, arguments.processes), 1):
            events, cpu_s = events + played.events, cpu_s + played.cpu_s
            faults += played.faults
            for law in sorted(played.laws):
                failed[law].append(played.story.seed)
                examples.setdefault(law, played)
            for one in played.broken[:1]:
                print(f"seed {played.story.seed} breaks: {one}", file=sys.stderr)
            if number % 200 == 0:
                print(f"{number} of {len(seeds)} seeds, {events} events", file=sys.stderr)
    took_s = time.monotonic() - started_s
    print(f"{number} seeds, {events} events, {events / max(cpu_s, 1e-9):.0f} a CPU second, {took_s:.0f} s")
    print("faults: " + ", ".join(f"{kind} {count}" for kind, count in sorted(faults.items())))
    for law, of in sorted(failed.items()):
        print(f"\nBROKEN: {law}: {len(of)} seeds: {', '.join(map(str, of[:10]))}")
        for one in [one for one in examples[law].broken if one.law == law][:2]:
            print(f"  seed {examples[law].story.seed}: {one}")
    for law, example in list(examples.items())[: arguments.shrink]:
        short = shrink(example.story, partial(_breaks, law))
        print(f"\n{law}, shrunk:\n{short.told()}")
    broken = len({seed for of in failed.values() for seed in of})
    print(f"\n{broken} of {number} stories broke a law" if broken else "no law was broken")
    return 1 if failed else 0


def _seeds(text: str) -> range:
    """Those that are meant; none where none can be."""
    match = re.fullmatch(r"(\d+)(?:\.\.(\d+))?", text)
    return range(int(match[1]), int(match[2] or int(match[1]) + 1)) if match else range(0)


def _played(seeds: range, processes: int) -> Iterator[Played]:
    if processes <= 1:
        yield from map(_play, seeds)
        return
    with multiprocessing.Pool(processes) as pool:
        yield from pool.imap_unordered(_play, seeds, chunksize=8)


def _breaks(law: str, story: Story) -> bool:
    return law in play(story).laws


def _play(seed: int) -> Played:
    logging.disable(logging.CRITICAL)
    return play(draw(seed))


if __name__ == "__main__":
    sys.exit(main())
