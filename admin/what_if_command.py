"""``fairway what-if``: change clusters in memory, and see what would be different."""

import asyncio
from datetime import UTC, datetime
from pathlib import Path

import click

from admin.cli import Failed, Given, WholeNumber, common, exit_of, output_and_out, write
from admin.shape_flags import ShapeFlags, shape_flags


@click.command(
    name="what-if",
    short_help="Drop or add nodes and pods in memory, see the difference.",
    epilog="""\b
Examples:
  fairway what-if a.json --drop-node gpu-17
  fairway what-if a=a.json b=b.json --drop-nodes rack=r12
  fairway what-if a.json --add-nodes 4 --like gpu-17 --gpus 8 --nodes 16 --within rack
  fairway what-if a.json --drop-pods notebooks/ --drop-pods 'research/app=old,tier!=prod'
  fairway what-if a.json --add-pods job.yaml

\b
Nothing is changed but what was read into memory. Edits are made in this order: --drop-pods, --drop-node,
--drop-nodes, --add-nodes, --add-pods. With a workload, its verdict is shown before and after.
""",
)
@common
@click.option(
    "--drop-node", "dropped", multiple=True, metavar="[CLUSTER/]NODE", help="Without this node; repeat it."
)
@click.option(
    "--drop-nodes", "dropped_by", multiple=True, metavar="SELECTOR", help="Without nodes of these labels."
)
@click.option(
    "--add-nodes", "added", type=WholeNumber(1, 100_000), metavar="N", help="N more nodes, with --like."
)
@click.option("--like", metavar="[CLUSTER/]NODE", help="The node that --add-nodes copies, without its pods.")
@click.option(
    "--drop-pods",
    "dropped_pods",
    multiple=True,
    metavar="NAMESPACE/[NAME|SELECTOR]",
    help="Without these pods; repeat it. The namespace * is any.",
)
@click.option(
    "--add-pods",
    "added_pods",
    multiple=True,
    metavar="[CLUSTER=]FILE",
    help="With the pods of this workload, placed where they fit; repeat it.",
)
@shape_flags
@output_and_out("table", "json", "yaml")
@click.pass_context
def what_if(
    context: click.Context,
    given: Given,
    flags: ShapeFlags,
    dropped: tuple[str, ...],
    dropped_by: tuple[str, ...],
    added: int | None,
    like: str | None,
    dropped_pods: tuple[str, ...],
    added_pods: tuple[str, ...],
    output: str,
    out: Path | None,
) -> None:
    """Drop or add nodes and pods in memory, and show the difference.

    Needs the objects of the clusters: live clusters and dumps, no estimators.
    """
    from admin.document import to_json
    from admin.edits import EditError
    from admin.local import LocalEstimates
    from admin.supposing import EditFlags, edits_of, suppose
    from admin.terminal.console import errors, rendered, tell
    from admin.terminal.supposition import supposition_tables
    from admin.verdicts import unheard_of
    from admin.yaml_text import yaml_text
    from fairway.selectors import SelectorError

    asked = flags.asked() if flags.is_given else None
    rules, console = given.rules(), errors()
    try:
        edits = edits_of(EditFlags(dropped, dropped_by, added, like or "", dropped_pods, added_pods))
        made = asyncio.run(
            suppose(
                given.parsed_sources(),
                edits,
                asked,
                LocalEstimates(rules),
                rules.catalogue,
                datetime.now(UTC),
                console,
            )
        )
    except (EditError, SelectorError) as error:
        raise Failed(str(error)) from None
    tell(made.failures, console, in_table=False)
    if made.verdicts_after is not None and (problem := unheard_of(made.verdicts_after)):
        raise Failed(problem)
    match output:
        case "json":
            write(to_json(made), out)
        case "yaml":
            write(yaml_text(made), out)
        case _:
            write(rendered(supposition_tables(made), to_terminal=out is None), out)
    context.exit(exit_of(made.before))
