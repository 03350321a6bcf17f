"""Answer the questions: ``python -m benchmarks [--quick] [--only NAME]``; ``--help`` says the rest.

Prints a table for each question and writes all figures as JSON. Missed targets are shown and do not fail the
run, since they depend on the machine; wrong answers do.
"""

import argparse
import os
import signal
import sys
import time
from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from pathlib import Path

from rich.console import Console

from benchmarks import (
    backfill,
    component_sets,
    contention,
    cycle,
    device_latency,
    dispatcher_scale,
    event_latency,
    fan_out,
    first_answer,
    gangs,
    latency_replicas,
    many_clusters,
    memory,
    node_agent_read,
    node_devices,
    ordinary_day,
    prometheus_look,
    promises,
    summary,
    usage,
    webhook,
)
from benchmarks.caller import Address, CallFailed
from benchmarks.openb import truth
from benchmarks.proc import NotHere
from benchmarks.processes import CLUSTER, StartFailed
from benchmarks.queues import admission
from benchmarks.report import Result, print_result, write_json
from benchmarks.sides import Setting
from benchmarks.turns import question as turns

QUESTIONS: dict[str, Callable[[Setting], Result]] = {
    "latency_replicas": latency_replicas.measure,
    "component_sets": component_sets.measure,
    "memory": memory.measure,
    "first_answer": first_answer.measure,
    "event_latency": event_latency.measure,
    "openb": truth.measure,
    "gangs": gangs.measure,
    "fan_out": fan_out.measure,
    "summary": summary.measure,
    "devices": device_latency.measure,
    "node_devices": node_devices.measure,
    "prometheus_look": prometheus_look.measure,
    "promises": promises.measure,
    "usage": usage.measure,
    "cycle": cycle.measure,
    "turns": turns.measure,
    "contention": contention.measure,
    "webhook": webhook.measure,
    "many_clusters": many_clusters.measure,
    "dispatcher_scale": dispatcher_scale.measure,
    "kueue_suites": admission.measure,
    "node_agent_read": node_agent_read.measure,
    "ordinary_day": ordinary_day.measure,
    "backfill": backfill.measure,
}
_OF_OUR_OWN = (
    "first_answer",
    "event_latency",
    "openb",
    "gangs",
    "fan_out",
    "summary",
    "devices",
    "node_devices",
    "prometheus_look",
    "promises",
    "usage",
    "cycle",
    "turns",
    "contention",
    "webhook",
    "many_clusters",
    "dispatcher_scale",
    "kueue_suites",
    "node_agent_read",
    "ordinary_day",
    "backfill",
)
"""Questions that no running estimator is asked: they start one themselves, or need none."""


def main(argv: Sequence[str] | None = None) -> int:
    """Measure what was asked for. 0, or 1 when something was wrong or did not run."""
    options = _options(sys.argv[1:] if argv is None else argv)
    setting = _setting(options)
    console = Console(width=None if sys.stdout.isatty() else 175)
    began_s = time.monotonic()
    results, failed = [], False
    for name in options.only or [n for n in QUESTIONS if setting.target is None or n not in _OF_OUR_OWN]:
        try:
            results.append(QUESTIONS[name](setting))
        except (StartFailed, CallFailed, NotHere) as error:
            console.print(f"{name}: {error}", style="bold red", markup=False)
            failed = True
            continue
        print_result(console, results[-1])
    write_json(options.json, results)
    console.print(
        f"{time.monotonic() - began_s:.0f} s on {os.cpu_count()} CPUs, "
        f"load average {os.getloadavg()[0]:.1f}; written to {options.json}",
        markup=False,
    )
    return int(failed or any(case.faults for result in results for case in result.cases))


def _options(argv: Sequence[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description="measure the programs")
    parser.add_argument("--quick", action="store_true", help="smaller and shorter, under a minute")
    parser.add_argument(
        "--only", action="append", choices=QUESTIONS, metavar="NAME", help=", ".join(QUESTIONS)
    )
    parser.add_argument(
        "--sizes", type=_sizes, help="node counts, as in 100,5000; of --target's cluster: one"
    )
    parser.add_argument("--seconds", type=float, help="for one measurement of one side")
    parser.add_argument("--target", type=_address, help="HOST:PORT of a running estimator of ours, plaintext")
    parser.add_argument(
        "--against", type=_address, help="HOST:PORT of another one that serves the same cluster"
    )
    parser.add_argument("--cluster", default=CLUSTER, help="name of the cluster that --target serves")
    parser.add_argument("--json", type=Path, default=None, help="file for the figures")
    options = parser.parse_args(argv)
    if options.against and not options.target:
        parser.error("--against needs --target: both have to serve the same cluster")
    if options.target:
        if len(options.sizes or ()) != 1:
            parser.error("--target needs --sizes with one number: how many nodes its cluster has")
        if own := set(options.only or ()) & set(_OF_OUR_OWN):
            parser.error(f"{', '.join(sorted(own))}: not with --target")
    if options.json is None:
        options.json = Path("bench-results", f"{datetime.now(UTC):%Y%m%dT%H%M%S}.json")
    return options


def _setting(options: argparse.Namespace) -> Setting:
    quick = options.quick
    return Setting(
        seconds=options.seconds or (1.0 if quick else 5.0),
        sizes=options.sizes or ((100, 5000) if quick else (100, 1000, 5000, 15000)),
        clients=(1, 8) if quick else (1, 8, 32),
        sync_pods=15_000 if quick else 150_000,
        target=options.target,
        against=options.against,
        cluster=options.cluster,
    )


def _sizes(text: str) -> tuple[int, ...]:
    return tuple(int(part) for part in text.split(","))


def _address(text: str) -> Address:
    host, _, port = text.rpartition(":")
    return Address(host.strip("[]") or "127.0.0.1", int(port))


if __name__ == "__main__":
    # What was started is ended on the way out, also when somebody asks this process to end.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(128 + signal.SIGTERM))
    sys.exit(main())
