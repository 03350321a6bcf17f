"""``fairway hours``: device-hours allocated, used and wasted by team since a date."""

import asyncio
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

import click

from admin.cli import (
    Failed,
    Given,
    GivenServers,
    SourceText,
    WholeNumber,
    from_prometheus_for,
    output_and_out,
    write,
)
from admin.exits import Exit

if TYPE_CHECKING:
    from admin.hours import Hours

_BY = ("namespace", "queue", "product", "cluster", "day")


@click.command(
    short_help="Device-hours allocated, used and wasted by team since a date.",
    epilog="""\b
Examples:
  fairway hours                                      the last seven days, today among them
  fairway hours --since 2026-11-01 --until 2026-11-30 a=~/.kube/a b=~/.kube/b
  fairway hours --since 30d --by queue -o csv --out hours.csv
  fairway hours --since 90d --from-prometheus http://localhost:9090

\b
Exit codes: 0 everything was read; 1 bad usage, or nothing could be read; 2 some clusters could not be read.
""",
)
@click.argument("sources", nargs=-1, type=SourceText())
@click.option(
    "--since",
    default="7d",
    metavar="DATE|Nd",
    help="The first day, UTC: 2026-11-01, or 7d for seven days with today. Default: 7d.",
)
@click.option("--until", default="", metavar="DATE|Nd", help="The last day. Default: today.")
@click.option(
    "--by", type=click.Choice(_BY), default="namespace", help="What to sum up by. Default: namespace."
)
@click.option("-n", "--namespace", default="", metavar="NAME", help="Only this namespace.")
@click.option("--queue", default="", metavar="[NAMESPACE/]NAME", help="Only this LocalQueue.")
@click.option("--product", default="", metavar="TEXT", help="Only products whose name holds TEXT.")
@click.option(
    "--limit",
    type=WholeNumber(1),
    default=100,
    help="Lines of a table; the other outputs have all. Default: 100.",
)
@output_and_out("table", "wide", "json", "yaml", "csv")
@click.option(
    "--catalogue",
    type=click.Path(path_type=Path),
    help="More device names, in YAML; they go before the built-in ones.",
)
@from_prometheus_for("Take the hours from this Prometheus, by node agents or DCGM's exporter. Repeatable.")
@click.option("--demo", is_flag=True, help="The three sample clusters that come with Fairway.")
@click.pass_context
def hours(
    context: click.Context,
    sources: tuple[str, ...],
    since: str,
    until: str,
    by: str,
    namespace: str,
    queue: str,
    product: str,
    limit: int,
    output: str,
    out: Path | None,
    catalogue: Path | None,
    prometheus: GivenServers,
    demo: bool,
) -> None:
    """Show for how many hours who held devices, how much of that was used, and how much wasted.

    From the sums by day that node agents keep for 31 days, or from Prometheus where it is given. Days are
    whole, in UTC. What nobody observed is in no column, and told.
    """
    from admin.hours import Chosen, PeriodError, missing, period
    from admin.hours import hours as summed_up
    from admin.printable import timestamp
    from admin.prometheus_flags import of_one_cluster_each
    from admin.reading_hours import read_hours
    from admin.sources import SourceError
    from admin.terminal.console import errors, tell
    from fairway.service.version import release
    from fairway.usage.hours import HoursBy

    now = _now()
    given = Given(sources, None, None, None, catalogue, "", demo, from_prometheus=bool(prometheus.urls))
    clusters, known = given.parsed_sources(), given.known_devices()
    try:
        asked = period(since, until, now)
        servers = of_one_cluster_each(prometheus.of(clusters))
    except (PeriodError, SourceError) as error:
        raise Failed(str(error)) from None
    chosen = Chosen(namespace, queue, product)
    console = errors()
    read = asyncio.run(read_hours(clusters, known, asked, now.timestamp(), console, servers))
    problem = missing(read.found, chosen) if read.found else "no cluster could be read"
    if problem:
        tell(read.failures, console, in_table=False)
        raise Failed(problem)
    found = summed_up(
        read.found, read.failures, HoursBy(by), chosen, asked, made_at=timestamp(now), release=release()
    )
    tell(found.failures, console, in_table=output in ("table", "wide") and out is None)
    write(_printed(found, output, limit, to_terminal=out is None), out)
    context.exit(Exit.PARTIAL if found.failures else Exit.OK)


def _now() -> datetime:
    return datetime.now(UTC)


def _printed(found: "Hours", output: str, limit: int, *, to_terminal: bool) -> str:
    from admin.document import to_json
    from admin.hours import to_csv
    from admin.terminal.console import rendered
    from admin.terminal.hours import hours_tables
    from admin.yaml_text import yaml_text

    match output:
        case "json":
            return to_json(found)
        case "yaml":
            return yaml_text(found)
        case "csv":
            return to_csv(found)
        case _:
            return rendered(hours_tables(found, limit), to_terminal=to_terminal, wide=output == "wide")
