"""``fairway uninstall``: the way back, every held workload first."""

import asyncio
import json
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import click

from admin.cli import Failed, WholeNumber
from admin.install.config_file import read_config
from admin.install_command import OUTPUT_FORMATS, install, scope_of, seconds

if TYPE_CHECKING:
    from admin.install.planes import PlaneFlags
    from admin.install.uninstalling import Way

_FILE = click.Path(path_type=Path)


@click.command(
    short_help="Give every held workload back, then remove Fairway.",
    epilog="""\b
Examples:
  fairway uninstall --host host.config --karmada karmada.config --member member1=m1.config --dry-run
  fairway uninstall --host host.config --karmada karmada.config --member member1=m1.config

\b
Run it again after an interruption: it goes on where it was. Queues stay, unless --delete-queues is given.
""",
)
@click.option("--host", required=True, metavar="KUBECONFIG[@CONTEXT]", help="The cluster of Karmada's pods.")
@click.option("--karmada", required=True, metavar="KUBECONFIG[@CONTEXT]", help="Karmada's API server.")
@click.option(
    "--member",
    "members",
    multiple=True,
    metavar="NAME=KUBECONFIG[@CONTEXT]",
    help="A member cluster that Fairway has an identity in; repeat it.",
)
@click.option(
    "--config",
    type=_FILE,
    is_eager=True,
    expose_value=False,
    callback=partial(read_config, others=install),
    help="These flags from a YAML file; those of install alone are passed over.",
)
@click.option("--dry-run", is_flag=True, help="Say what would be given back and deleted.")
@click.option("-o", "--output", type=click.Choice(OUTPUT_FORMATS), default="text", help="Default: text.")
@click.option("--namespace", default="fairway-system", show_default=True, help="Fairway's own.")
@click.option(
    "--karmada-namespace", default="karmada-system", show_default=True, help="Where Karmada's pods run."
)
@click.option("--keep-held", is_flag=True, help="Leave what is held as it is; nobody releases it then.")
@click.option("--keep-records", is_flag=True, help="Leave our annotations on bindings.")
@click.option("--delete-queues", is_flag=True, help="Delete all queues, and their kinds.")
@click.option(
    "--in-flight",
    type=WholeNumber(1, 20),
    default=15,
    show_default=True,
    help="How many are given back and not placed yet at any time; Karmada takes no more at once.",
)
@click.option("--release-all-at-once", is_flag=True, hidden=True)
@click.option(
    "--hold-kind", "hold_kinds", multiple=True, metavar="KIND.GROUP", help="As it was installed with."
)
@click.option("--catalogue", type=_FILE, help="As it was installed with.")
@click.option("--timeout", default="5m", show_default=True, metavar="DURATION", help="Longest wait for pods.")
def uninstall(
    host: str,
    karmada: str,
    members: tuple[str, ...],
    dry_run: bool,
    output: str,
    namespace: str,
    karmada_namespace: str,
    keep_held: bool,
    keep_records: bool,
    delete_queues: bool,
    in_flight: int,
    release_all_at_once: bool,
    hold_kinds: tuple[str, ...],
    catalogue: Path | None,
    timeout: str,
) -> None:
    """Remove Fairway from a Karmada.

    First nothing new is held. Then every held binding is given back, as fast as Karmada places them: first
    what runs and waits to grow, then by priority, then the oldest. Then dispatcher, estimators (Karmada's
    own come back as they were), identities. Holds that are not Fairway's are never touched.
    """
    from admin.install.giving_back import Wanted
    from admin.install.performing import InstallError
    from admin.install.planes import PlaneFlags
    from admin.install.uninstalling import Way

    if release_all_at_once:
        raise Failed(
            "--release-all-at-once: refused: karmada-scheduler cannot be told to stop once a binding is in "
            "its queue, and would go on for minutes whatever else happens; use --in-flight 20"
        )
    wanted = Wanted(
        scope_of(catalogue, hold_kinds), keep_held=keep_held, keep_records=keep_records, in_flight=in_flight
    )
    way = Way(namespace, karmada_namespace, wanted, delete_queues)
    planes = PlaneFlags(host, karmada, members)
    try:
        asyncio.run(_uninstall(planes, way, seconds(timeout), output, dry_run=dry_run))
    except InstallError as error:
        raise Failed(str(error)) from None


async def _uninstall(
    planes: "PlaneFlags", way: "Way", timeout_s: float, output: str, *, dry_run: bool
) -> None:
    from admin.install.performing import InstallError
    from admin.install.planes import opened
    from admin.install.preflight import reached
    from admin.install.removing import Removed, Remover
    from admin.install.telling import waited
    from admin.install.uninstalling import Uninstaller
    from admin.terminal.console import errors
    from admin.terminal.console import output as standard_output
    from admin.terminal.install import gone_document, gone_text, removed_text

    console = standard_output()
    removed: list[Removed] = []

    def told(one: Removed) -> None:
        removed.append(one)
        if output == "text":
            console.print(removed_text(one))

    async with opened(planes.sources()) as clients:
        _, problems = await reached(clients)
        if problems:
            raise InstallError("\n".join(map(str, problems)))
        with waited(timeout_s, errors()) as waiting:
            gone = await Uninstaller(clients, way, waiting, Remover(told, dry_run=dry_run)).run()
    if output == "json":
        click.echo(json.dumps(gone_document(gone, removed), indent=2))
    else:
        console.print(gone_text(gone, dry_run=dry_run))
