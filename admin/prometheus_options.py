"""The options by which commands are told of Prometheus; `admin.prometheus_flags` reads them."""

from collections.abc import Callable

import click

from admin.cli import Command


def prometheus_options(said: str) -> Callable[[Command], Command]:
    """``--from-prometheus``, which ``said`` explains, and its files."""

    def decorated(command: Command) -> Command:
        for decorate in (
            click.option(
                "--prometheus-ca-file",
                "ca_files",
                multiple=True,
                metavar="[CLUSTER=]FILE",
                help="The CA that signed its certificate, PEM.",
            ),
            click.option(
                "--prometheus-token-file",
                "token_files",
                multiple=True,
                metavar="[CLUSTER=]FILE",
                help="The bearer token for it.",
            ),
            click.option(
                "--from-prometheus", "prometheus", multiple=True, metavar="[CLUSTER=]URL", help=said
            ),
        ):
            command = decorate(command)
        return command

    return decorated
