"""What do gangs wait for among small jobs, and what do small jobs pay for it?

256 GPUs; small jobs of 1 to 16 GPUs come by chance and keep 0.7 of them busy; every 14,000 s comes a gang of
192 that runs for an hour. The dispatcher's own turns decide (`benchmarks.streams.player`), once for each way
of treating what does not fit and, where that looks at run times, for each thing that people may tell of them:
a row each. StrictFIFO and BestEffortFIFO do not, and have one row.

As a question of ``python -m benchmarks`` it is asked of one short stream. ``python -m benchmarks.backfill``
asks it of whole ones, and of others: more small jobs, two queues of a cohort, the openb trace, and Kueue's
generator, where these are there; ``--help`` says how.
"""

import argparse
import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from rich.console import Console

from benchmarks.openb.trace import TraceError, trace_folder
from benchmarks.proc import NotHere
from benchmarks.queues.progress import tell
from benchmarks.queues.suite import read_suite
from benchmarks.report import Case, Result, print_result, write_json
from benchmarks.sides import Setting
from benchmarks.streams.drawn import ENDS_MS, FULL_LOAD, drawn
from benchmarks.streams.fleet import COHORT, ONE_QUEUE, Choice, Fleet, of_suite
from benchmarks.streams.jobs import KNOWN, Known, Stream, stating
from benchmarks.streams.player import play
from benchmarks.streams.traces import kueue, openb
from benchmarks.streams.waits import figures, waits
from queue_dispatcher.api.cluster_queue import QueueingStrategy

_BACKFILL: Final = "BackfillFIFO"
_NEVER: Final = "1000h"
_SHORT_MS: Final = 45_000_000
_NO_MATTER: Final = Known("any", 0, 1.0)


def _backfill(label: str, **reservation: str) -> Choice:
    spec: dict[str, object] = {"queueingStrategy": _BACKFILL}
    return Choice(f"backfill {label}", spec | ({"reservation": reservation} if reservation else {}))


CHOICES: Final = (
    Choice("strict", {"queueingStrategy": "StrictFIFO"}),
    Choice("best effort", {"queueingStrategy": "BestEffortFIFO"}),
    _backfill("from 0, no drain", after="0s", drainAfter=_NEVER),
    _backfill("from 0, drain 1h", after="0s", drainAfter="1h"),
    _backfill("from 0, drain 10m", after="0s", drainAfter="10m"),
    _backfill("from 1m, drain 10m", after="1m", drainAfter="10m"),
    _backfill("from 1m, drain 20m", after="1m", drainAfter="20m"),
    _backfill("from 30m, drain 2h", after="30m", drainAfter="2h"),
    _backfill("by default"),
)


@dataclass(frozen=True, slots=True)
class Load:
    """A fleet and the stream of each seed; ``is_drawn``: whether streams of seeds differ at all."""

    title: str
    fleet: Fleet
    stream: Callable[[int], Stream]
    is_drawn: bool = True


def measure(setting: Setting) -> Result:
    """Cases of one short stream before one queue."""
    ends_ms = _SHORT_MS if setting.seconds > 1.0 else _SHORT_MS // 3
    load = Load("One queue of 256 GPUs", ONE_QUEUE, lambda seed: drawn(seed, ends_ms=ends_ms))
    return asked(load, (0,), CHOICES)


def asked(load: Load, seeds: Sequence[int], choices: Sequence[Choice]) -> Result:
    """A case for each choice that this dispatcher knows, and for what is known of run times."""
    known = [choice for choice in choices if choice.strategy in set(QueueingStrategy)]
    rows = [(choice, of) for choice in known for of in _matters(choice)]
    return Result("backfill", load.title, [_case(load, seeds, choice, of) for choice, of in rows])


def _matters(choice: Choice) -> Sequence[Known]:
    """What may be told of run times, as far as it changes anything."""
    return KNOWN if choice.strategy == _BACKFILL else (_NO_MATTER,)


def _case(load: Load, seeds: Sequence[int], choice: Choice, known: Known) -> Case:
    found, faults = [], []
    label = choice.label if known is _NO_MATTER else f"{choice.label}, {known.label}"
    for seed in seeds if load.is_drawn else seeds[:1]:
        tell(f"backfill: {label}, seed {seed}")
        stream = stating(load.stream(seed), known, seed)
        played = play(stream, load.fleet, choice)
        faults += [f"seed {seed}: {fault}" for fault in played.faults]
        found.append(waits(stream, played, load.fleet.capacity))
    return Case(label, figures(found), faults)


def loads(names: Sequence[str], openb_folder: Path, kueue_file: Path | None) -> Iterator[Load | str]:
    """The loads of these names; of one that is not there, what is missing."""
    for name in names:
        try:
            yield _LOADS[name](openb_folder, kueue_file)
        except (TraceError, NotHere) as error:
            yield f"{name}: skipped: {error}"


def _one(openb_folder: Path, kueue_file: Path | None) -> Load:
    return Load("One queue of 256 GPUs", ONE_QUEUE, drawn)


def _full(openb_folder: Path, kueue_file: Path | None) -> Load:
    title = "One queue of 256 GPUs, almost all of them asked for"
    return Load(title, ONE_QUEUE, lambda seed: drawn(seed, load=FULL_LOAD))


def _cohort(openb_folder: Path, kueue_file: Path | None) -> Load:
    return Load(
        "Two queues of 128 GPUs in a cohort, gangs in one and small jobs in the other",
        COHORT,
        lambda seed: drawn(seed, small="small", gangs="gangs"),
    )


def _openb(openb_folder: Path, kueue_file: Path | None) -> Load:
    stream = openb(openb_folder)
    return Load("Pods of the openb trace, and gangs", ONE_QUEUE, lambda seed: stream, is_drawn=False)


def _kueue(openb_folder: Path, kueue_file: Path | None) -> Load:
    suite = read_suite("baseline", kueue_file)
    stream = kueue(suite)
    return Load(
        "Kueue's baseline suite; its large workloads are the gangs",
        of_suite(suite),
        lambda seed: stream,
        is_drawn=False,
    )


_LOADS: Final = {"one": _one, "full": _full, "cohort": _cohort, "openb": _openb, "kueue": _kueue}


def main(argv: Sequence[str] | None = None) -> int:
    """Ask it of whole streams. 0, or 1 when something was wrong."""
    options = _options(sys.argv[1:] if argv is None else argv)
    console = Console(width=None if sys.stdout.isatty() else 175)
    choices = [choice for choice in CHOICES if not options.only or options.only in choice.label]
    results: list[Result] = []
    for load in loads(options.load or list(_LOADS), options.openb, options.kueue):
        if isinstance(load, str):
            console.print(load, style="yellow", markup=False)
            continue
        results.append(asked(load, options.seeds, choices))
        print_result(console, results[-1])
    if options.json is not None:
        write_json(options.json, results)
    return int(any(case.faults for result in results for case in result.cases))


def _options(argv: Sequence[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.backfill",
        description=f"gangs among small jobs, {ENDS_MS // 1000:,} s of them",
    )
    parser.add_argument("--seeds", type=_seeds, default=(0,), help="numbers, as in 0,1,2,3")
    parser.add_argument("--load", action="append", choices=_LOADS, help="one or more; all if none is named")
    parser.add_argument("--only", default="", metavar="TEXT", help="choices with this in their label")
    parser.add_argument("--openb", type=Path, default=trace_folder(), help="folder of the openb trace")
    parser.add_argument("--kueue", type=Path, help="description of Kueue's suites")
    parser.add_argument("--json", type=Path, help="file for the figures")
    return parser.parse_args(argv)


def _seeds(text: str) -> tuple[int, ...]:
    return tuple(int(part) for part in text.split(","))


if __name__ == "__main__":
    sys.exit(main())
