"""``fairway doctor``: what is wrong with an installation, with the mend of each; it changes nothing."""

import asyncio
import time
from pathlib import Path
from typing import TYPE_CHECKING

import click

from admin.cli import Failed, SourceText, output_and_out, write

if TYPE_CHECKING:
    from admin.doctor.check import Check
    from admin.doctor.gathering import PlaneSource
    from admin.remote import Tls

_FILE = click.Path(path_type=Path)
_SOURCE = "KUBECONFIG[@CONTEXT]|DUMP"


@click.command(
    short_help="What is wrong with the installation, and the mend.",
    epilog="""\b
Examples:
  fairway doctor --host ~/.kube/config --karmada ~/.kube/karmada.config
  fairway doctor --karmada karmada.config@karmada-apiserver --offline
  fairway doctor --host host.json --karmada karmada.json --member east=east.json.gz
  fairway doctor --host a --karmada b --ca-file ca.crt --cert-file tls.crt --key-file tls.key
  fairway doctor --host a --karmada b --check resource-models --fix
  fairway doctor --list

\b
Exit codes: 0 all is well, notes at most; 1 bad usage, or nothing could be read;
2 something could not be checked; 3 warnings; 4 errors. The highest counts.
""",
)
@click.option("--host", metavar=_SOURCE, type=SourceText(), help="The cluster that runs Karmada's pods.")
@click.option("--karmada", metavar=_SOURCE, type=SourceText(), help="karmada-apiserver.")
@click.option(
    "--member",
    "members",
    multiple=True,
    metavar=f"NAME={_SOURCE}",
    type=SourceText(),
    help="A member cluster, by the name of its Cluster; may be repeated.",
)
@click.option(
    "--members-from-host",
    is_flag=True,
    help="Read member clusters too, with the kubeconfigs that their estimators have in Secrets of the host.",
)
@click.option(
    "--karmada-namespace",
    default="karmada-system",
    show_default=True,
    help="Namespace of the host cluster in which Karmada runs.",
)
@click.option("--offline", is_flag=True, help="Call no estimator and no webhook.")
@click.option("--ca-file", type=_FILE, help="Estimators: CA that signed their certificates.")
@click.option("--cert-file", type=_FILE, help="Estimators: own certificate, with --key-file.")
@click.option("--key-file", type=_FILE, help="Estimators: key of --cert-file.")
@click.option("--check", "names", multiple=True, metavar="NAME", help="Only this check; may be repeated.")
@click.option("--list", "lists", is_flag=True, help="Say which checks there are, and read nothing.")
@click.option("--fix", is_flag=True, help="Print patches as kubectl commands. Nothing is applied.")
@output_and_out("table", "json", "yaml")
@click.pass_context
def doctor(
    context: click.Context,
    host: str | None,
    karmada: str | None,
    members: tuple[str, ...],
    members_from_host: bool,
    karmada_namespace: str,
    offline: bool,
    ca_file: Path | None,
    cert_file: Path | None,
    key_file: Path | None,
    names: tuple[str, ...],
    lists: bool,
    fix: bool,
    output: str,
    out: Path | None,
) -> None:
    """Check Karmada, Fairway and what they need of each other; say what is wrong, and how to mend it.

    Reads only, and says what it could not read. What it would change is printed with --fix, for you to run.
    """
    from admin.doctor.gathering import Patient, gather_evidence
    from admin.doctor.kinds import OUR_NAMESPACE
    from admin.remote import RemoteError
    from admin.terminal.console import errors, rendered
    from admin.terminal.doctor import check_table

    checks = _chosen(names)
    if lists:
        write(rendered(check_table(checks), to_terminal=out is None), out)
        return
    if fix and output != "table":
        raise Failed(f"--fix with --output {output}: expected one of them; the JSON has the patches as well")
    if not (host or karmada):
        raise Failed(
            "nothing to look at: expected --karmada KUBECONFIG, --host KUBECONFIG or both, or dumps of them"
        )
    if members_from_host and not host:
        raise Failed("--members-from-host: expected --host as well, which has the Secrets")
    patient = Patient(
        _source("--host", host),
        _source("--karmada", karmada),
        _members(members),
        (karmada_namespace, OUR_NAMESPACE),
        members_from_host,
        not offline,
        _tls(ca_file, cert_file, key_file),
    )
    try:
        gathered = asyncio.run(gather_evidence(patient, int(time.time() * 1000), errors()))
    except RemoteError as error:
        raise Failed(str(error)) from None

    if gathered.knows_nothing:
        raise Failed("; ".join(map(str, gathered.problems)) or "nothing could be read")

    from admin.doctor.diagnosis import diagnose
    from admin.doctor.mending import patches
    from admin.document import to_json
    from admin.terminal.console import output as standard_output
    from admin.terminal.doctor import diagnosis_lines, diagnosis_table
    from admin.yaml_text import yaml_text

    diagnosis = diagnose(gathered, checks)
    if fix:
        text = patches(diagnosis, gathered.sources)
    elif output == "json":
        text = to_json(diagnosis)
    elif output == "yaml":
        text = yaml_text(diagnosis)
    elif out is None and standard_output().is_terminal:
        text = rendered(diagnosis_table(diagnosis), to_terminal=True)
    else:
        text = diagnosis_lines(diagnosis)
    write(text, out)
    context.exit(diagnosis.health)


def _chosen(names: tuple[str, ...]) -> "tuple[Check, ...]":
    """The checks of these names, in their usual order; all without any. Raises Failed."""
    from difflib import get_close_matches

    from admin.doctor.catalogue import CHECKS

    known = {check.name for check in CHECKS}
    for name in names:
        if name not in known:
            close = get_close_matches(name, known, n=1)
            hint = f" did you mean {close[0]}?" if close else ""
            raise Failed(f"--check {name}: there is no such check;{hint} --list shows them")
    return tuple(check for check in CHECKS if not names or check.name in names)


def _source(flag: str, text: str | None) -> "PlaneSource | None":
    """Raises Failed."""
    from admin.sources import EstimatorSource, SourceError, file_kind, parse_source

    if text is None:
        return None
    try:
        source = parse_source(text, file_kind)
    except SourceError as error:
        raise Failed(f"{flag}: {error.why}; expected {_SOURCE}") from None
    if isinstance(source, EstimatorSource):
        raise Failed(f"{flag} {text}: expected a kubeconfig or a dump, found the address of an estimator")
    return source


def _members(texts: tuple[str, ...]) -> "dict[str, PlaneSource]":
    """Raises Failed."""
    found: dict[str, PlaneSource] = {}
    for text in texts:
        name, equals, _ = text.partition("=")
        source = _source("--member", text)
        if not equals or source is None or source.name != name:
            raise Failed(f"--member {text}: expected NAME={_SOURCE}, with the name of a Cluster")
        if name in found:
            raise Failed(f"--member {text}: {name} is given twice")
        found[name] = source
    return found


def _tls(ca_file: Path | None, cert_file: Path | None, key_file: Path | None) -> "Tls":
    """Raises Failed."""
    from admin.remote import Tls

    if bool(cert_file) != bool(key_file):
        raise Failed("--cert-file and --key-file belong together: give both or neither")
    return Tls(ca_file, cert_file, key_file)
