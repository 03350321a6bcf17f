"""``fairway install``: print or apply what is needed, step by step."""

import asyncio
import json
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import click

from admin.cli import Failed
from admin.install.config_file import read_config

if TYPE_CHECKING:
    from admin.install.planes import PlaneFlags
    from admin.install.settings import Settings
    from fairway.scope import Scope
    from fairway.scope_flags import Namespaces

_FILE = click.Path(path_type=Path)
_PLANE = "KUBECONFIG[@CONTEXT]"
_MEMBER = "NAME=KUBECONFIG[@CONTEXT]"
OUTPUT_FORMATS = ("text", "json")


@click.command(
    short_help="Install Fairway beside Karmada, step by step.",
    epilog="""\b
Examples:
  fairway install --host host.config --karmada karmada.config --member member1=m1.config --dry-run
  fairway install --host host.config --karmada karmada.config --member member1=m1.config
  fairway install --config fairway.yaml -o yaml > manifests.yaml
  fairway install --host host.config --karmada karmada.config --restore-estimator member1

\b
Each step looks before it writes: run it again after an interruption, or to see that all is there.
docs/install.md goes through it; docs/upgrade.md says how to change versions.
""",
)
@click.option("--host", required=True, metavar=_PLANE, help="The cluster in which Karmada's pods run.")
@click.option("--karmada", required=True, metavar=_PLANE, help="Karmada's API server.")
@click.option(
    "--member",
    "members",
    multiple=True,
    metavar=_MEMBER,
    help="A member cluster, by the name that Karmada knows it by; repeat it. Others keep their estimator.",
)
@click.option(
    "--config",
    type=_FILE,
    is_eager=True,
    expose_value=False,
    callback=read_config,
    help="These flags from a YAML file.",
)
@click.option("--dry-run", is_flag=True, help="Print the plan, and field by field what it would change.")
@click.option(
    "-o",
    "--output",
    type=click.Choice((*OUTPUT_FORMATS, "yaml")),
    default="text",
    help="yaml prints all manifests and applies nothing. Default: text.",
)
@click.option("--registry", default="ghcr.io/fairway-dev", show_default=True, help="Where our images are.")
@click.option("--tag", default="", help="Their tag. Default: the version of this command.")
@click.option("--namespace", default="fairway-system", show_default=True, help="Fairway's own.")
@click.option(
    "--karmada-namespace", default="karmada-system", show_default=True, help="Where Karmada's pods run."
)
@click.option(
    "--karmada-server",
    default="",
    metavar="URL",
    help="Karmada's API server as pods of the host reach it. Default: as the kubeconfig says.",
)
@click.option(
    "--member-server",
    "member_servers",
    multiple=True,
    metavar="NAME=URL",
    help="A member's API server as pods of the host reach it. Default: as Karmada reaches it.",
)
@click.option(
    "--estimator",
    type=click.Choice(("per-member", "shared", "none")),
    default="per-member",
    show_default=True,
    help="An estimator for each member, one for all, or Karmada's own.",
)
@click.option(
    "--certificates",
    default="",
    metavar="SECRET",
    help="The Secret that estimators serve with, where there are several in Karmada's namespace.",
)
@click.option(
    "--interpreters",
    type=click.Choice(("missing", "all", "none")),
    default="missing",
    show_default=True,
    help="Teach Karmada the kinds that it does not know; all: correct those that it has, too.",
)
@click.option(
    "--hold",
    type=click.Choice(("webhook", "policies", "none")),
    default="webhook",
    show_default=True,
    help="Who holds workloads: our webhook, or policies of an API server of 1.36 or newer.",
)
@click.option(
    "--hold-kind",
    "hold_kinds",
    multiple=True,
    metavar="KIND.GROUP",
    help="Hold this kind in any case.",
)
@click.option(
    "--hold-namespaces",
    type=click.Choice(("enabled", "all")),
    default="enabled",
    show_default=True,
    help="Whose: of namespaces labelled fairway.dev/queueing=enabled, or of all that are not disabled.",
)
@click.option("--observe", is_flag=True, help="Hold nothing; tell and count what would be held, and why.")
@click.option(
    "--dispatcher-flag",
    "dispatcher_flags",
    multiple=True,
    metavar="--NAME=VALUE",
    help="A flag of fairway-dispatcher, such as --dispatcher-flag=--placement=karmada; repeat it.",
)
@click.option("--catalogue", type=_FILE, help="More device names, in YAML; they go before the built-in ones.")
@click.option("--sample-queue", is_flag=True, help="Make a queue over all clusters to begin with.")
@click.option("--force-conflicts", is_flag=True, help="Take over fields that others have set otherwise.")
@click.option("--timeout", default="5m", show_default=True, metavar="DURATION", help="Longest wait.")
@click.option(
    "--restore-estimator",
    default="",
    metavar="CLUSTER",
    help="Put Karmada's own back, no more.",
)
def install(
    host: str,
    karmada: str,
    members: tuple[str, ...],
    dry_run: bool,
    output: str,
    member_servers: tuple[str, ...],
    hold_kinds: tuple[str, ...],
    dispatcher_flags: tuple[str, ...],
    catalogue: Path | None,
    force_conflicts: bool,
    timeout: str,
    restore_estimator: str,
    **flags: str | bool,
) -> None:
    """Install Fairway in front of a Karmada, or print what that takes.

    Needs kubeconfigs of administrators: of the host cluster, of Karmada, and of each member whose estimator
    is to be replaced. What holds workloads comes last, so nothing is ever held with
    nobody to release it.
    """
    from admin.install.performing import InstallError
    from admin.install.planes import PlaneFlags, catalogue_text
    from admin.install.settings import EstimatorMode, Hold, Interpreters, Settings
    from fairway.service.version import release

    planes = PlaneFlags(host, karmada, members)
    namespaces: Namespaces = "all" if flags["hold_namespaces"] == "all" else "enabled"
    if flags["observe"] and flags["hold"] == "policies":
        raise Failed("--observe: policies cannot look on: use --hold=none until you hold, or --hold=webhook")
    scope = scope_of(catalogue, hold_kinds, namespaces)
    settings = Settings(
        registry=str(flags["registry"]),
        tag=str(flags["tag"]) or release().replace("+", "-"),
        namespace=str(flags["namespace"]),
        karmada_namespace=str(flags["karmada_namespace"]),
        karmada_server=_url("--karmada-server", str(flags["karmada_server"])),
        member_servers=_servers(member_servers),
        estimator=EstimatorMode(str(flags["estimator"])),
        certificates=str(flags["certificates"]),
        catalogue=catalogue_text(catalogue),
        interpreters=Interpreters(str(flags["interpreters"])),
        hold=Hold(str(flags["hold"])),
        hold_kinds=scope.kinds,
        hold_namespaces=namespaces,
        observe=bool(flags["observe"]),
        dispatcher_flags=_dispatcher_flags(dispatcher_flags),
        sample_queue=bool(flags["sample_queue"]),
    )
    try:
        if restore_estimator:
            asyncio.run(_restore(planes, settings, restore_estimator, seconds(timeout), dry_run=dry_run))
        else:
            run = _Run(output, seconds(timeout), dry_run, force_conflicts)
            asyncio.run(_install(planes, settings, scope, run))
    except InstallError as error:
        raise Failed(str(error)) from None


@dataclass(frozen=True, slots=True)
class _Run:
    """How to go about it."""

    output: str
    timeout_s: float
    dry_run: bool
    force: bool


async def _install(planes: "PlaneFlags", settings: "Settings", scope: "Scope", run: _Run) -> None:
    from admin.install.installing import Done, preview
    from admin.install.installing import install as carry_out
    from admin.install.package import packaged
    from admin.install.planes import opened
    from admin.install.resolving import resolved
    from admin.install.session import prepare
    from admin.install.telling import waited
    from admin.terminal import install as terminal
    from admin.terminal.console import errors
    from admin.terminal.console import output as standard_output
    from fairway.kube.errors import KubeError

    console = standard_output()
    async with opened(planes.sources()) as clients:
        prepared = await prepare(clients, packaged(), settings, scope)
        if run.output == "yaml":
            try:
                steps = await resolved(clients, prepared.steps)
            except KubeError as error:
                raise Failed(str(error)) from None
            click.echo(terminal.manifests_text(steps), nl=False)
            return
        if run.dry_run:
            done = await preview(prepared.steps, clients, force=run.force)
            if run.output == "text":
                console.print(terminal.plan_text(done, prepared.notes))
        else:

            def told(step: Done) -> None:
                if run.output == "text":
                    console.print(terminal.step_line(step))

            with waited(run.timeout_s, errors()) as waiting:
                done = await carry_out(prepared.steps, clients, waiting, told, force=run.force)
            if run.output == "text":
                console.print(terminal.ending(done, prepared.notes))
        if run.output == "json":
            click.echo(json.dumps(terminal.plan_document(done, prepared.notes), indent=2))


async def _restore(
    planes: "PlaneFlags", settings: "Settings", cluster: str, timeout_s: float, *, dry_run: bool
) -> None:
    from admin.install.planes import opened
    from admin.install.readiness import ready
    from admin.install.removing import Remover
    from admin.install.restoring import deployment_in, give_back, read_record
    from admin.install.step import HOST, Available
    from admin.install.telling import waited
    from admin.terminal.console import errors, output
    from admin.terminal.install import removed_text

    console = output()
    async with opened(planes.sources()) as clients:
        host = clients[HOST]
        remover = Remover(lambda removed: console.print(removed_text(removed)), dry_run=dry_run)
        record = await read_record(host, settings.karmada_namespace, cluster)
        for name in await give_back(host, record, remover):
            console.print(f"{HOST:10} + {name} as it was")
        deployment = deployment_in(record)
        if deployment is not None and not dry_run:
            with waited(timeout_s, errors()) as waiting:
                await ready(clients, HOST, Available(deployment), waiting)
    console.print(f"now run fairway install without --member {cluster}: the dispatcher must not ask it")


def scope_of(
    catalogue: Path | None, hold_kinds: tuple[str, ...], namespaces: "Namespaces" = "all"
) -> "Scope":
    """What is held, by these flags. Raises Failed."""
    from fairway.accelerators.builtin import extended_catalogue
    from fairway.accelerators.catalogue import CatalogueError
    from fairway.scope import Scope, parse_workload_kind

    try:
        kinds = frozenset(parse_workload_kind(text) for text in hold_kinds)
        return Scope(extended_catalogue(catalogue), kinds, only_enabled=namespaces == "enabled")
    except CatalogueError as error:
        raise Failed(f"--catalogue {error}") from None
    except ValueError as error:
        raise Failed(f"--hold-kind {' '.join(hold_kinds)}: {error}") from None


def seconds(timeout: str) -> float:
    """The seconds of a duration such as ``5m``. Raises Failed."""
    from fairway.service.durations import parse_duration_s

    try:
        return parse_duration_s(timeout)
    except ValueError as error:
        raise Failed(f"--timeout {timeout}: {error}") from None


def _dispatcher_flags(texts: tuple[str, ...]) -> tuple[str, ...]:
    """Flags that the dispatcher takes, and that are not for the webhook as well. Raises Failed."""
    from fairway.scope_flags import GROUP
    from fairway.service.goflags import FlagError, parse_line
    from queue_dispatcher.flags import GROUPS

    known = [flag for group in GROUPS for flag in group.flags]
    for text in texts:
        try:
            line = parse_line(known, [text], gone={})
        except FlagError as error:
            raise Failed(f"--dispatcher-flag={text}: {error}") from None
        if line.arguments or not line.given:
            raise Failed(f"--dispatcher-flag={text}: expected --NAME=VALUE")
        shared = [flag.name for flag in GROUP.flags if line.is_set(flag)]
        if shared:
            raise Failed(
                f"--dispatcher-flag={text}: the webhook needs it too: use --{shared[0]} of this command"
            )
    return texts


def _servers(texts: tuple[str, ...]) -> dict[str, str]:
    servers = {}
    for text in texts:
        name, equals, url = text.partition("=")
        if not (name and equals):
            raise Failed(f"--member-server {text}: expected NAME=URL")
        servers[name] = _url(f"--member-server {name}", url)
    return servers


def _url(flag: str, url: str) -> str:
    if url and not url.startswith(("https://", "http://")):
        raise Failed(f"{flag} {url}: expected https://HOST[:PORT]")
    return url
