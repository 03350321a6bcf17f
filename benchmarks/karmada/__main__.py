"""``python -m benchmarks.karmada day``: what a real Karmada makes of a load, by how Fairway places it.

With the programs of docs/e2e.md in KUBEBUILDER_ASSETS and KARMADA_ASSETS; nothing else should run on the
machine. ``day``: the ordinary day of `benchmarks.ordinary_day`, at the pace at which it is simulated and by
the rules of any row of `benchmarks.day_rules`, and the same in the simulation: about five minutes a way,
twelve with ``--to-the-end``. ``tight``: gangs of several sizes that leave no GPU over. ``rates``: gangs
released all at once, and through a full queue.
"""

import argparse
import asyncio
import os
import statistics
import sys
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from rich.console import Console

from benchmarks import day_rules, ordinary_day
from benchmarks.karmada import loads, rates
from benchmarks.karmada.loads import Load
from benchmarks.karmada.play import Played, play
from benchmarks.karmada.teams import teams
from benchmarks.karmada.ways import Topics, Way, running, simulated
from benchmarks.report import Case, Figure, Result, print_result, write_json
from tests.e2e.assets import MissingAssets
from tests.e2e.workloads import job, job_set, whole

_UNTIL_S = {"day": ordinary_day.LOOKED_AT_MS / 1000, "tight": 180.0}
_LONG_S = 5.0
"""A gang that has nodes for some of its pods for longer waits for the others', not for its scheduler."""
_BY_DEFAULT = "by default"
_SMALL = {size.name for size in day_rules.SMALL}
_SIMULATED = f"everybody in the control plane takes {ordinary_day.BUSY} times longer than in quiet"
_WAYS = {"day": (Way.GUIDED, Way.KARMADA), "tight": (Way.GUIDED, Way.KARMADA), "rates": tuple(Way)}


def main(argv: Sequence[str] | None = None) -> int:
    """Measures; see the module. 2 where the programs are missing."""
    options = _options(argv)
    console = Console(width=None if sys.stdout.isatty() else 220)
    try:
        results = asyncio.run(_measured(options))
    except MissingAssets as error:
        console.print(f"Nothing was measured: {error}", style="bold red", highlight=False)
        return 2
    for result in results:
        print_result(console, result)
    if options.json is not None:
        write_json(options.json, results)
    return 0


def _options(argv: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.karmada", description=__doc__)
    parser.add_argument("question", choices=sorted(_WAYS))
    parser.add_argument("--ways", nargs="+", type=Way, choices=list(Way), help="which, and in which order")
    parser.add_argument("--seed", type=int, default=1, help="of what is submitted (default 1)")
    parser.add_argument("--seconds", type=float, help="for how long the day or the tight gangs are looked at")
    parser.add_argument(
        "--rules",
        type=day_rules.row_of,
        metavar="LABEL",
        help=f"row of benchmarks.day_rules, by its label or what is in no other's (default {_BY_DEFAULT})",
    )
    more = f"look at the day until all has started, for {day_rules.ENDS_WITHIN_MS // 60_000} minutes at most"
    parser.add_argument("--to-the-end", action="store_true", help=more)
    parser.add_argument("--gangs", type=int, default=150, help="how many, of rates (default 150)")
    parser.add_argument("--json", type=Path, metavar="FILE", help="all of it too")
    options = parser.parse_args(argv)
    if options.question != "day" and (options.rules is not None or options.to_the_end):
        parser.error(f"--rules and --to-the-end: expected only with day, found with {options.question}")
    return options


async def _measured(options: argparse.Namespace) -> list[Result]:
    question: str = options.question
    ways: Sequence[Way] = options.ways or _WAYS[question]
    note = f"load average of the machine before: {os.getloadavg()[0]:.1f}"
    if question == "rates":
        found = {way: await rates.measured(way, options.gangs) for way in ways}
        return _tables(f"{options.gangs} gangs", found, note)
    seed: int = options.seed
    until_s: float = options.seconds or _UNTIL_S[question]
    if question == "tight":
        load = loads.tight(seed, until_s)
        return _looked_at(f"tight, {until_s:.0f} s, seed {seed}", load, await _all_ways(ways, load), note)
    row: day_rules.Row = options.rules or day_rules.row_of(_BY_DEFAULT)
    to_the_end_s = day_rules.ENDS_WITHIN_MS / 1000 if options.to_the_end else 0.0
    load = loads.day(seed, row.rules, until_s, to_the_end_s)
    title = f"day, {row.label}, {until_s:.0f} s{' and to the end' * options.to_the_end}, seed {seed}"
    played = await _all_ways(ways, load)
    # Only now that no Karmada runs any more, which it would keep from a core.
    cases = []
    for way, one in played.items():
        beside = simulated(way, seed, row.rules, until_s, to_the_end_s)
        cases.append(Case(f"{way}, real", outcome_of(one).figures(), notes=[note]))
        cases.append(Case(f"{way}, simulated", day_rules.outcome_of([beside]).figures(), notes=[_SIMULATED]))
    return [*_looked_at(title, load, played, note), Result("outcome", f"{title}: real and simulated", cases)]


async def _all_ways(ways: Sequence[Way], load: Load) -> dict[Way, Played]:
    return {way: await _played(way, load) for way in ways}


def _looked_at(title: str, load: Load, played: Mapping[Way, Played], note: str) -> list[Result]:
    """What was seen of a load."""
    capacity = sum(map(sum, load.fleet.values()))
    sizes = dict.fromkeys(one.size for one in load.workloads)
    waits = [_waits(f"{size}, {way}", one, size) for size in sizes for way, one in played.items()]
    held = {way: _held(one, capacity) for way, one in played.items()}
    title = f"{title}, {capacity} GPUs"
    return [*_tables(title, held, note), Result("waits", f"{title}: waits by size", waits)]


def _tables(title: str, found: Mapping[Way, Topics], note: str) -> list[Result]:
    """One for each topic, a row for each way."""
    topics = next(iter(found.values()))
    return [
        Result(topic, f"{title}: {topic}", [Case(way, of[topic], notes=[note]) for way, of in found.items()])
        for topic in topics
    ]


async def _played(way: Way, load: Load) -> Played:
    of = [replace(one) for one in load.workloads]
    async with running(way, load.fleet) as plane:
        kinds = (job("any"), job_set("any", 1))
        made = await teams(plane, load.quotas, kinds, whole(*load.fleet), load.queues)
        return await play(plane, made, of, load.from_s, load.until_s, load.to_the_end_s)


def outcome_of(played: Played) -> day_rules.Outcome:
    """Of a real day, as `day_rules.outcome_of` has it of a simulated one."""
    waited = [
        day_rules.Waited(one.size in _SMALL, played.wait_s(one), one.started_s is not None)
        for one in played.workloads
    ]
    return day_rules.Outcome(waited, _used_waiting(played) / ordinary_day.GPUS)


def _used_waiting(played: Played) -> float:
    """GPUs in use while work waited, on average."""
    return played.sums.used_waiting / max(1.0, played.sums.waiting_s)


def _held(played: Played, capacity: int) -> Topics:
    """What was used, what became of releases, and what was held for nothing."""
    sums, of = played.sums, played.releases
    half = sum(seconds > _LONG_S for seconds in sums.half_for_s.values())
    return {
        "what is used": [
            Figure("crumbs", sums.crumbs / max(1.0, sums.whole_s), "mean GPUs"),
            Figure("in use", 100 * sums.used / sums.seconds / capacity, "%"),
            Figure("in use while work waits", 100 * _used_waiting(played) / capacity, "%"),
        ],
        "releases": [
            Figure("released", of.released, ""),
            Figure("refused", 100 * of.refused / max(1, of.released), "%"),
            Figure("placed and said not to fit", 100 * of.contradicted / max(1, of.released), "%"),
            Figure("taken back", of.taken_back, ""),
            Figure(f"not whole over {_LONG_S:.0f} s", half, "gangs"),
        ],
        "what is held": [
            Figure("charged", sums.charged, "GPU-s"),
            Figure("of it not bound yet", sums.unbound, "GPU-s"),
            Figure("of it ended", sums.ended, "GPU-s"),
            Figure("nodes of gangs not whole", sums.half, "GPU-s"),
        ],
    }


def _waits(label: str, played: Played, size: str) -> Case:
    """How long those of a size waited."""
    of = [one for one in played.workloads if one.size == size]
    waits_s = sorted(map(played.wait_s, of))
    never = sum(one.started_s is None for one in of)
    return Case(
        label,
        [
            Figure("submitted", len(of), ""),
            Figure("median", statistics.median(waits_s), "s"),
            Figure("p90", _quantile(waits_s, 0.9), "s"),
            Figure("not started", never, ""),
        ],
    )


def _quantile(ordered: Sequence[float], share: float) -> float:
    return ordered[int(share * (len(ordered) - 1))]


if __name__ == "__main__":
    sys.exit(main())
