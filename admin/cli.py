"""What the commands have in common on the command line: sources, TLS, rules, outputs, errors."""

import re
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import wraps
from pathlib import Path
from typing import TYPE_CHECKING

import click

from admin.exits import Exit

if TYPE_CHECKING:
    from admin.document import Report
    from admin.estimates import Rules
    from admin.remote import Tls
    from admin.sources import Source
    from fairway.accelerators.catalogue import Catalogue
    from fairway.prometheus.flags import Servers

Command = Callable[..., None]

_BY_SUFFIX = {
    ".json": "json",
    ".yaml": "yaml",
    ".yml": "yaml",
    ".html": "html",
    ".htm": "html",
    ".csv": "csv",
}
_FILE = click.Path(path_type=Path)


class Failed(click.ClickException):
    """The command cannot do what it was told; the message says why and what to do."""

    exit_code = Exit.FAILED


class Unknown(Failed):
    """What was asked about is not there, which is an answer."""

    exit_code = Exit.UNKNOWN


class SourceText(click.ParamType[str]):
    """A source as typed; completed as a file name, also behind ``NAME=``."""

    name = "source"

    def shell_complete(
        self, ctx: click.Context, param: click.Parameter, incomplete: str
    ) -> list["click.shell_completion.CompletionItem"]:
        """Files; the shell looks for them itself."""
        from click.shell_completion import CompletionItem

        return [CompletionItem(incomplete.rpartition("=")[2], type="file")]


class WholeNumber(click.ParamType[int]):
    """A whole number from ``least`` to ``most``; what is none is told in words."""

    name = "number"

    def __init__(self, least: int, most: int = 1_000_000) -> None:
        self.least = least
        self.most = most

    def convert(self, value: object, param: click.Parameter | None, ctx: click.Context | None) -> int:
        """The number. Raises BadParameter."""
        text = str(value)
        number = int(text) if re.fullmatch(r"-?[0-9]{1,18}", text) else self.least - 1
        if not self.least <= number <= self.most:
            self.fail(f"{text!r}: expected a whole number from {self.least} to {self.most:,}.", param, ctx)
        return number


@dataclass(frozen=True, slots=True)
class Given:
    """The common flags, as given."""

    sources: tuple[str, ...]
    ca_file: Path | None
    cert_file: Path | None
    key_file: Path | None
    catalogue: Path | None
    levels: str
    demo: bool
    extended_resource_toleration: str = "auto"
    from_prometheus: bool = False

    def parsed_sources(self) -> tuple["Source", ...]:
        """The clusters to read; without any, the one that kubectl would talk to. Raises Failed."""
        from admin.named_sources import named_sources
        from admin.sources import SourceError
        from fairway.kube.errors import BadConfig

        try:
            found = named_sources(self.sources, samples=self.demo)
        except (SourceError, BadConfig) as error:
            raise Failed(str(error)) from None
        self._refuse_estimators_own(found)
        return found

    def _refuse_estimators_own(self, sources: tuple["Source", ...]) -> None:
        """Flags that concern none of the sources fail; of those that concern only some, people are told."""
        from admin.sources import EstimatorSource

        remote = [source for source in sources if isinstance(source, EstimatorSource)]
        given = (
            ("levels", self.levels != ""),
            ("extended-resource-toleration", self.extended_resource_toleration != "auto"),
            ("from-prometheus", self.from_prometheus),
        )
        for flag in (f"--{name}" for name, is_given in given if is_given and remote):
            said = f"{flag}: {remote[0]} has a setting of its own: give the flag to the estimator itself"
            if len(remote) == len(sources):
                raise Failed(said)
            click.echo(f"{said}; it holds for the other clusters", err=True)

    def tls(self) -> "Tls":
        """How to talk to estimators. Raises Failed."""
        from admin.remote import Tls

        if bool(self.cert_file) != bool(self.key_file):
            raise Failed("--cert-file and --key-file belong together: give both or neither")
        return Tls(self.ca_file, self.cert_file, self.key_file)

    def known_devices(self) -> "Catalogue":
        """What resource names mean. Raises Failed."""
        from fairway.accelerators.builtin import extended_catalogue
        from fairway.accelerators.catalogue import CatalogueError

        try:
            return extended_catalogue(self.catalogue)
        except CatalogueError as error:
            raise Failed(f"--catalogue {error}") from None

    def rules(self) -> "Rules":
        """Catalogue, levels, tolerations that admission adds. Raises Failed."""
        from admin.estimates import Rules
        from estimator.capacity.topology.levels import LevelsError, levels_of
        from estimator.fit.device_tolerations import TolerationMode

        levels = tuple(key.strip() for key in self.levels.split(",")) if self.levels else ()
        catalogue = self.known_devices()
        try:
            if levels:
                levels_of(levels)
        except LevelsError as error:
            raise Failed(f"--levels {self.levels}: {error}") from None
        return Rules(catalogue, levels, TolerationMode(self.extended_resource_toleration))


def tls_options(command: Command) -> Command:
    """``--ca-file``, ``--cert-file`` and ``--key-file``, by which estimators are asked."""
    for option in (
        click.option("--key-file", type=_FILE, help="Estimators: key of --cert-file."),
        click.option("--cert-file", type=_FILE, help="Estimators: own certificate, with --key-file."),
        click.option("--ca-file", type=_FILE, help="Estimators: CA that signed their certificates."),
    ):
        command = option(command)
    return command


def common(command: Command) -> Command:
    """The arguments and options that `Given` holds; the command gets them as ``given``."""

    @wraps(command)
    def call(
        sources: tuple[str, ...],
        ca_file: Path | None,
        cert_file: Path | None,
        key_file: Path | None,
        catalogue: Path | None,
        levels: str,
        demo: bool,
        extended_resource_toleration: str,
        **rest: object,
    ) -> None:
        given = Given(
            sources, ca_file, cert_file, key_file, catalogue, levels, demo, extended_resource_toleration
        )
        command(given=given, **rest)

    decorated: Command = call
    for decorate in reversed(
        (
            click.argument("sources", nargs=-1, type=SourceText()),
            tls_options,
            click.option(
                "--catalogue",
                type=_FILE,
                help="More device names, in YAML; they go before the built-in ones.",
            ),
            click.option(
                "--levels",
                default="",
                metavar="KEY,KEY",
                help="Topology levels: node label keys, the coarsest first. Default: those known.",
            ),
            click.option("--demo", is_flag=True, help="The three sample clusters that come with Fairway."),
            click.option(
                "--extended-resource-toleration",
                type=click.Choice(("auto", "on", "off")),
                default="auto",
                help="Whether admission lets pods of devices tolerate taints named after these. Default: "
                "auto, as the clusters' pods show.",
            ),
        )
    ):
        decorated = decorate(decorated)
    return decorated


@dataclass(frozen=True, slots=True)
class GivenServers:
    """``--from-prometheus`` and what belongs to it, as given."""

    urls: tuple[str, ...]
    token_files: tuple[str, ...]
    ca_files: tuple[str, ...]

    def of(self, sources: Sequence["Source"]) -> "Servers":
        """Each Prometheus by the name of the cluster that it measures. Raises Failed."""
        from admin.prometheus_flags import servers_of
        from admin.sources import SourceError

        try:
            return servers_of(self.urls, self.token_files, self.ca_files, sources)
        except SourceError as error:
            raise Failed(str(error)) from None


def from_prometheus(command: Command) -> Command:
    """``--from-prometheus`` and what belongs to it; the command gets them as ``prometheus``."""
    return from_prometheus_for(
        "Also what this Prometheus measures, by DCGM's exporter, those of TPU, AMD, Neuron and Gaudi, or "
        "node agents that it scrapes. Repeatable."
    )(command)


def from_prometheus_for(said: str) -> Callable[[Command], Command]:
    """The same for another purpose, which ``said`` explains."""
    return lambda command: _from_prometheus(command, said)


def _from_prometheus(command: Command, said: str) -> Command:
    @wraps(command)
    def call(
        prometheus: tuple[str, ...], token_files: tuple[str, ...], ca_files: tuple[str, ...], **rest: object
    ) -> None:
        command(prometheus=GivenServers(prometheus, token_files, ca_files), **rest)

    options = (
        ("--from-prometheus", "prometheus", "URL", said),
        ("--prometheus-token-file", "token_files", "FILE", "The bearer token for it."),
        ("--prometheus-ca-file", "ca_files", "FILE", "The CA that signed its certificate, PEM."),
    )
    decorated: Command = call
    for flag, name, value, text in reversed(options):
        option = click.option(flag, name, multiple=True, metavar=f"[CLUSTER=]{value}", help=text)
        decorated = option(decorated)
    return decorated


def output_and_out(*formats: str) -> Callable[[Command], Command]:
    """``--output`` and ``--out``; the command gets the format as ``output`` and the file as ``out``."""

    def decorated(command: Command) -> Command:
        @wraps(command)
        def call(output: str | None, out: Path | None, **rest: object) -> None:
            command(output=_format(output, out, formats), out=out, **rest)

        said = f"What to print. Default: what --out FILE ends in, else {formats[0]}."
        with_output = click.option("-o", "--output", type=click.Choice(formats), help=said)
        text = "Write to this file instead of standard output."
        return with_output(click.option("--out", type=_FILE, help=text)(call))

    return decorated


def _format(output: str | None, out: Path | None, formats: tuple[str, ...]) -> str:
    """As told, else as the file's name ends, else the first. Raises Failed where the name says another."""
    meant = None if out is None else _BY_SUFFIX.get(out.suffix.lower())
    if (meant is not None and (output or meant) != meant) or meant not in (None, *formats):
        expected = ", ".join(formats)
        raise Failed(
            f"--out {out}: its name says {meant}"
            + (f", --output says {output}" if output else "")
            + f"; expected one of {expected}, and the file named so"
        )
    return output or meant or formats[0]


def write(text: str, out: Path | None) -> None:
    """To the file, or to standard output. Raises Failed."""
    if out is None:
        if sys.stdout is None:
            raise Failed("standard output is closed; expected a file, pipe or terminal")
        # Whether there are colours has been decided where it was drawn.
        click.echo(text, nl=False, color=True)
        return
    try:
        out.write_text(text, encoding="utf-8")
    except OSError as error:
        raise Failed(f"--out {out}: {error.strerror or error}; expected a file that can be written") from None


def exit_of(report: "Report") -> Exit:
    """How a command ends that shows what it could read."""
    if not report.clusters:
        return Exit.FAILED
    in_doubt = any(summary.doubt for summary in report.summaries)
    return Exit.PARTIAL if report.failures or in_doubt else Exit.OK
