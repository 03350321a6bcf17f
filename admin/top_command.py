"""``fairway top``: who holds which accelerators, what they do with them, and who wastes most."""

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
    from_prometheus,
    output_and_out,
    tls_options,
    write,
)
from admin.exits import Exit

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from admin.top import Top

_WATCH_S = 30.0
_BY = ("namespace", "queue", "owner", "pod", "node", "device", "product", "cluster")


@click.command(
    short_help="Who uses what: devices held, used, idle and wasted.",
    epilog="""\b
Examples:
  fairway top                                        the cluster that kubectl talks to
  fairway top --demo
  fairway top a=~/.kube/a b=~/.kube/b --by queue
  fairway top --by device --namespace research --idle
  fairway top --from-prometheus http://localhost:9090
  fairway top grpc://estimator:10352 --ca-file ca.crt
  fairway top dumps/*.json.gz -o json | jq '.lines[0]'

\b
Exit codes: 0 everything was read; 1 bad usage, or nothing could be read; 2 some clusters could not be read.
""",
)
@click.argument("sources", nargs=-1, type=SourceText())
@click.option(
    "--by", type=click.Choice(_BY), default="namespace", help="What to sum up by. Default: namespace."
)
@click.option("-n", "--namespace", default="", metavar="NAME", help="Only pods of this namespace.")
@click.option("--queue", default="", metavar="[NAMESPACE/]NAME", help="Only pods of this LocalQueue.")
@click.option("--product", default="", metavar="TEXT", help="Only products whose name holds TEXT.")
@click.option("--node", default="", metavar="NAME", help="Only devices of this node.")
@click.option("--idle", is_flag=True, help="Only devices that are idle.")
@click.option(
    "-w",
    "--watch",
    is_flag=True,
    help="Show it anew every 30 seconds, until Ctrl-C; node agents write every five minutes.",
)
@click.option(
    "--limit",
    type=WholeNumber(1),
    default=100,
    help="Lines of a table; JSON and YAML have all. Default: 100.",
)
@output_and_out("table", "wide", "json", "yaml")
@click.option(
    "--catalogue",
    type=click.Path(path_type=Path),
    help="More device names, in YAML; they go before the built-in ones.",
)
@from_prometheus
@tls_options
@click.option("--demo", is_flag=True, help="The three sample clusters that come with Fairway.")
@click.pass_context
def top(
    context: click.Context,
    sources: tuple[str, ...],
    by: str,
    namespace: str,
    queue: str,
    product: str,
    node: str,
    idle: bool,
    watch: bool,
    limit: int,
    output: str,
    out: Path | None,
    catalogue: Path | None,
    prometheus: GivenServers,
    ca_file: Path | None,
    cert_file: Path | None,
    key_file: Path | None,
    demo: bool,
) -> None:
    """Show who holds accelerators and what they do with them; those who waste most come first.

    Who holds devices is known of every cluster. What the devices do is known where the node agent runs; a
    device that nobody measures counts as not measured, never as idle. Where Prometheus scrapes DCGM's
    exporter, or those of TPU, AMD, Neuron and Gaudi, --from-prometheus measures without the agent; what the
    agent wrote goes before it.
    """
    from admin.printable import timestamp
    from admin.terminal.console import errors, tell
    from admin.top import Chosen, missing
    from admin.top import top as summed_up
    from admin.usage import read_usage
    from fairway.service.version import release
    from fairway.usage.groups import By

    if watch and out is not None:
        raise Failed("--watch and --out: expected one of them; a file cannot be watched")
    given = Given(
        sources, ca_file, cert_file, key_file, catalogue, "", demo, from_prometheus=bool(prometheus.urls)
    )
    clusters, known, tls = given.parsed_sources(), given.known_devices(), given.tls()
    servers = prometheus.of(clusters)
    chosen = Chosen(namespace, queue, product, node, idle)
    console = errors()
    # What is drawn in place and progress would draw over each other.
    console.quiet = watch

    async def ask(*, first: bool = False) -> "Top":
        now = datetime.now(UTC)
        found = await read_usage(clusters, known, now.timestamp(), console, servers, tls)
        problem = missing(found.found, chosen) if found.found else "no cluster could be read"
        if problem and first:
            tell(found.failures, errors(), in_table=False)
            raise Failed(problem)
        # While one watches, what is gone may come back.
        return summed_up(
            found.found, found.failures, By(by), chosen, made_at=timestamp(now), release=release()
        )

    async def watched() -> None:
        await ask(first=True)
        await _watched(ask, output, limit)

    if watch:
        asyncio.run(watched())
        return
    found = asyncio.run(ask(first=True))
    tell(found.failures, console, in_table=output in ("table", "wide") and out is None)
    write(_printed(found, output, limit, to_terminal=out is None), out)
    context.exit(Exit.PARTIAL if found.failures else Exit.OK)


async def _every_so_often(_: float) -> None:
    await asyncio.sleep(_WATCH_S)


async def _watched(
    ask: "Callable[[], Awaitable[Top]]",
    output: str,
    limit: int,
    sleep: "Callable[[float], Awaitable[None]]" = _every_so_often,
) -> None:
    """Until interrupted: drawn in place on a terminal, told anew where it has changed elsewhere."""
    from admin.terminal.console import output as standard_output
    from admin.terminal.top import top_tables
    from admin.watching import shown_live, told_again

    console = standard_output()
    if output == "table" and console.file.isatty():
        await shown_live(ask, top_tables, limit, console=console, sleep=sleep)
        return

    def printed(found: "Top") -> str:
        return _printed(found, output, limit, to_terminal=True, lines=True)

    await told_again(
        ask, printed, lambda text: write(text, None), lambda text: click.echo(text, err=True), sleep=sleep
    )


def _printed(found: "Top", output: str, limit: int, *, to_terminal: bool, lines: bool = False) -> str:
    """``lines``: one after the other, each to be told from the next."""
    import msgspec

    from admin.document import to_json
    from admin.terminal.console import rendered
    from admin.terminal.top import top_tables
    from admin.yaml_text import yaml_text

    match output:
        case "json":
            return msgspec.json.encode(found).decode() + "\n" if lines else to_json(found)
        case "yaml":
            return "---\n" * lines + yaml_text(found)
        case _:
            wide = output == "wide"
            drawn = rendered(top_tables(found, limit, wide=wide), to_terminal=to_terminal, wide=wide)
            return drawn + "\n" * lines
