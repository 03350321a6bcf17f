"""``fairway report``: what is there, what is free, how it is chunked, over all clusters given."""

import asyncio
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

import click

from admin.cli import Failed, Given, GivenServers, common, exit_of, from_prometheus, output_and_out, write

_SHOWN = 20


@click.command(
    short_help="What is free, in which chunks, where, and what is stranded.",
    epilog="""\b
Examples:
  fairway report                                     the cluster that kubectl talks to
  fairway report a=~/.kube/a b=~/.kube/b@admin       two live clusters
  fairway report dumps/*.json.gz -o html --out capacity.html
  fairway report grpc://estimator:10352 --ca-file ca.crt --cert-file tls.crt --key-file tls.key
  fairway report a=a.json -o json --out monday.json
  fairway report a=a.json --compare monday.json      what changed since
  fairway report --from-prometheus http://localhost:9090
""",
)
@common
@output_and_out("table", "json", "yaml", "html")
@click.option(
    "--compare",
    type=click.Path(path_type=Path),
    metavar="EARLIER.json",
    help="An earlier report as JSON: say what has changed since.",
)
@click.option(
    "--product", default="", metavar="TEXT", help="Only products whose name holds TEXT, such as H100."
)
@click.option("--show-nodes", is_flag=True, help="Each node as well. Not known of estimators.")
@from_prometheus
@click.pass_context
def report(
    context: click.Context,
    given: Given,
    output: str,
    out: Path | None,
    compare: Path | None,
    product: str,
    show_nodes: bool,
    prometheus: GivenServers,
) -> None:
    """Show free accelerators over all clusters: how many, in which chunks, where, and what is stranded.

    What could be read is reported; what could not is said, and the exit code is 2 then. What devices do is
    known where the node agent runs, and with --from-prometheus where Prometheus scrapes their exporters.
    """
    from admin.comparison import compare as compared
    from admin.document import DocumentError, read_report, to_json
    from admin.headline import with_headline
    from admin.local import LocalEstimates
    from admin.reporting import only, products
    from admin.reporting import read_report as read
    from admin.terminal.console import errors, rendered, tell
    from admin.terminal.report import report_tables
    from admin.yaml_text import yaml_text
    from fairway.accelerators.product_names import holds

    given = replace(given, from_prometheus=bool(prometheus.urls))
    rules, tls, sources = given.rules(), given.tls(), given.parsed_sources()
    estimates = LocalEstimates(rules)
    try:
        earlier = None if compare is None else only(read_report(compare), product)
    except DocumentError as error:
        raise Failed(f"--compare {error}") from None
    console = errors()
    made = asyncio.run(
        read(
            sources,
            estimates,
            tls,
            datetime.now(UTC),
            console,
            with_nodes=show_nodes,
            catalogue=rules.catalogue,
            product=product,
            servers=prometheus.of(sources),
        )
    )
    if product and made.clusters:
        there = products(made)
        if not any(holds(name, product) for name in there):
            tell(made.failures, console, in_table=False)
            known = ", ".join(there[:_SHOWN]) or "no accelerator at all"
            raise Failed(f"--product {product}: no product is called so; there is {known}")
    made = with_headline(only(made, product))
    if earlier is not None:
        made = replace(made, changes=compared(earlier, made))
    tell(made.failures, console, in_table=output == "table" and not out and bool(made.clusters))
    if not made.clusters:
        raise Failed("no cluster could be read")
    match output:
        case "json":
            write(to_json(made), out)
        case "yaml":
            write(yaml_text(made), out)
        case "html":
            from admin.html.page import page

            write(page(made), out)
        case _:
            write(rendered(report_tables(made), to_terminal=out is None), out)
    context.exit(exit_of(made))
