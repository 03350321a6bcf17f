"""``fairway notify``: Events to the owners of workloads that leave devices unused, once a day at most."""

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
    write,
)
from admin.exits import Exit

if TYPE_CHECKING:
    from admin.notify.document import Notification
    from admin.sources import LiveSource, Source

_LIMIT = 100


@click.command(
    short_help="Tell owners, by Events, of devices that they leave unused.",
    epilog="""\b
Examples:
  fairway notify --dry-run                           whom it would tell in the cluster that kubectl talks to
  fairway notify dumps/*.json.gz --dry-run -o wide   and in which words
  fairway notify a=~/.kube/a b=~/.kube/b --karmada ~/.kube/karmada.config
  kubectl label namespace research fairway.dev/notify=true

\b
Exit codes: 0 everybody was told; 1 bad usage, or nothing could be read; 2 some clusters could not be read, or
somebody could not be told.
""",
)
@click.argument("sources", nargs=-1, type=SourceText())
@click.option(
    "--karmada",
    metavar="KUBECONFIG[@CONTEXT]",
    type=SourceText(),
    help="Karmada's API server: workloads that it has spread are told once, on their template there.",
)
@click.option("--dry-run", is_flag=True, help="Write nothing; show what would be said.")
@click.option("-n", "--namespace", default="", metavar="NAME", help="Only workloads of this namespace.")
@click.option(
    "--limit",
    type=WholeNumber(1, 1000),
    default=_LIMIT,
    help=f"Events in one namespace and run, the most wasteful workloads first. Default: {_LIMIT}.",
)
@click.option(
    "--record-namespace",
    "records",
    default="fairway-system",
    metavar="NAME",
    show_default=True,
    help="Where ConfigMaps say who was told, beside the Events.",
)
@output_and_out("table", "wide", "json", "yaml")
@click.option(
    "--catalogue",
    type=click.Path(path_type=Path),
    help="More device names, in YAML; they go before the built-in ones.",
)
@from_prometheus
@click.option(
    "--demo", is_flag=True, help="The three sample clusters that come with Fairway; with --dry-run."
)
@click.pass_context
def notify(
    context: click.Context,
    sources: tuple[str, ...],
    karmada: str | None,
    dry_run: bool,
    namespace: str,
    limit: int,
    records: str,
    output: str,
    out: Path | None,
    catalogue: Path | None,
    prometheus: GivenServers,
    demo: bool,
) -> None:
    """Tell the owners of workloads whose devices are idle, too many, too large or broken, by Events on them.

    Only namespaces labelled fairway.dev/notify=true are told, each workload once a day at most, however often
    this is run. What is found is what 'fairway top' finds.
    """
    from admin.notify.notifying import NoNamespace, Wanted
    from admin.notify.notifying import notify as told
    from admin.terminal.console import errors, tell

    given = Given(sources, None, None, None, catalogue, "", demo, from_prometheus=bool(prometheus.urls))
    clusters, known = given.parsed_sources(), given.known_devices()
    servers = prometheus.of(clusters)
    if not dry_run:
        _check_live(clusters)
    wanted = Wanted(_karmada(karmada, clusters), namespace, limit, records, dry_run)
    try:
        found = asyncio.run(told(clusters, servers, known, wanted, datetime.now(UTC), errors()))
    except NoNamespace as error:
        tell(error.failures, errors(), in_table=False)
        raise Failed(str(error)) from None
    tell(found.failures, errors(), in_table=output in ("table", "wide") and out is None)
    if len({failure.source for failure in found.failures}) == len(clusters) and not found.lines:
        raise Failed("no cluster could be read")
    write(_printed(found, output, to_terminal=out is None), out)
    context.exit(Exit.PARTIAL if found.is_partial else Exit.OK)


def _check_live(clusters: "tuple[Source, ...]") -> None:
    """Raises Failed."""
    from admin.sources import DumpSource, SampleSource

    for source in clusters:
        if isinstance(source, DumpSource | SampleSource):
            raise Failed(
                f"{source}: expected --dry-run with it, for Events are written to live clusters alone"
            )


def _karmada(text: str | None, clusters: "tuple[Source, ...]") -> "LiveSource | None":
    """Raises Failed."""
    from admin.notify.document import KARMADA
    from admin.sources import LiveSource, SourceError, file_kind, parse_source

    if text is None:
        return None
    try:
        source = parse_source(text, file_kind)
    except SourceError as error:
        raise Failed(f"--karmada: {error.why}; expected KUBECONFIG[@CONTEXT]") from None
    if not isinstance(source, LiveSource):
        raise Failed(f"--karmada {text}: expected a kubeconfig of Karmada's API server, found {source}")
    if any(cluster.name == KARMADA for cluster in clusters):
        raise Failed(f"{KARMADA}: with --karmada expected another name of a member cluster, as in NAME=FILE")
    return source


def _printed(found: "Notification", output: str, *, to_terminal: bool) -> str:
    from admin.document import to_json
    from admin.terminal.console import rendered
    from admin.terminal.notify import notify_tables
    from admin.yaml_text import yaml_text

    match output:
        case "json":
            return to_json(found)
        case "yaml":
            return yaml_text(found)
        case _:
            wide = output == "wide"
            return rendered(notify_tables(found, _LINES, wide=wide), to_terminal=to_terminal, wide=wide)


_LINES = 1000
