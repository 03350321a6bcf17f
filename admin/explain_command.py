"""``fairway explain``: does a workload fit, where, how sure is that, and why does not more of it."""

import asyncio
from datetime import UTC, datetime
from pathlib import Path

import click

from admin.cli import Failed, Given, common, output_and_out, write
from admin.exits import Exit
from admin.shape_flags import ShapeFlags, shape_flags


@click.command(
    short_help="Does a workload fit, where, and why not?",
    epilog="""\b
Examples:
  fairway explain a.json b.json -f job.yaml
  fairway explain a.json --gpus 8 --nodes 16 --product H100 --within rack
  fairway explain grpc://estimator:10352 --gpus 4 --cpu 32 --memory 256Gi --copies 3
  fairway explain ~/.kube/a --fraction 0.5
  fairway explain ~/.kube/a --tpu-topology 4x4 --copies 2
  fairway explain a.json --gpus 8 && kubectl --context a apply -f job.yaml

\b
Exit codes: 0 it fits somewhere; 3 it fits nowhere; 2 it fits nowhere that could be read;
1 bad usage, or nothing could be read.
""",
)
@common
@shape_flags
@output_and_out("table", "json", "yaml")
@click.pass_context
def explain(
    context: click.Context,
    given: Given,
    flags: ShapeFlags,
    output: str,
    out: Path | None,
) -> None:
    """Say for each cluster whether a workload fits, and if not, why not and what would help.

    The workload is a file, or a shape: pods (--nodes) of devices (--gpus), CPU and memory. Pods of a shape
    start together or not at all.
    """
    from admin.document import to_json
    from admin.explaining import read_verdicts
    from admin.local import LocalEstimates
    from admin.terminal.console import errors, rendered, tell
    from admin.terminal.verdicts import verdict_tables
    from admin.verdicts import unheard_of
    from admin.yaml_text import yaml_text

    asked = flags.asked()
    rules, tls = given.rules(), given.tls()
    console = errors()
    verdicts = asyncio.run(
        read_verdicts(
            given.parsed_sources(),
            asked,
            LocalEstimates(rules),
            rules.catalogue,
            tls,
            datetime.now(UTC),
            console,
        )
    )
    tell(verdicts.failures, console, in_table=output == "table" and not out and bool(verdicts.clusters))
    if not verdicts.clusters:
        raise Failed("no cluster could be read")
    if problem := unheard_of(verdicts):
        raise Failed(problem)
    match output:
        case "json":
            write(to_json(verdicts), out)
        case "yaml":
            write(yaml_text(verdicts), out)
        case _:
            write(rendered(verdict_tables(verdicts), to_terminal=out is None), out)
    if verdicts.fits_somewhere:
        context.exit(Exit.OK)
    context.exit(Exit.NOWHERE if verdicts.all_known else Exit.PARTIAL)
