"""The node agent's command line."""

import re
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Final

from fairway.service.common_flags import (
    HELP,
    OTHERS,
    Text,
    endpoint_notices,
    endpoint_settings,
    existing_file,
    health_flag,
    log_settings,
    process_groups,
    verbosity_flag,
)
from fairway.service.durations import parse_duration_s
from fairway.service.goflags import (
    CommandLine,
    Flag,
    FlagError,
    FlagGroup,
    parse_line,
    render_help,
    switch,
    text_flag,
)
from node_agent.settings import ApiSettings, Settings

PROGRAM: Final = "fairway-node-agent"
_SHORTEST_S: Final = 1.0
_LONGEST_S: Final = 60.0
_NODE_NAME: Final = re.compile(r"(?=.{1,253}$)[a-z0-9]([a-z0-9.-]*[a-z0-9])?")


def _parse_period_s(text: str) -> float:
    seconds = parse_duration_s(text)
    if not _SHORTEST_S <= seconds <= _LONGEST_S:
        raise ValueError("expected 1s to 1m: shorter costs the node too much, longer tells too little")
    return seconds


def _parse_node(text: str) -> str:
    if text and not _NODE_NAME.fullmatch(text):
        raise ValueError("expected the name of a Node: lower-case letters, digits, - and .")
    return text


_NODE: Final = Flag(
    "node-name",
    _parse_node,
    "",
    "Node that this runs on, by its name in Kubernetes; in a pod $(NODE_NAME) of spec.nodeName.",
    "NAME",
)
_PERIOD: Final = Flag("period", _parse_period_s, "5s", "Time between two looks at the devices.", "DURATION")
_PUBLISH: Final = switch(
    "publish", "Write NodeDevices of this node to the API server; without it only metrics are served.", "true"
)
_KUBECONFIG: Final = text_flag(
    "kubeconfig",
    "Kubeconfig of this cluster's API server. Without it and --master, the pod's own account is used.",
)
_CONTEXT: Final = text_flag("context", "Context of that kubeconfig, instead of its current one.", "NAME")
_MASTER: Final = text_flag("master", "Address of the API server; overrides the one in the kubeconfig.", "URL")
_HEALTH: Final = health_flag(":10351")
_VERBOSITY: Final = verbosity_flag()

GROUPS: Final = (
    FlagGroup("The node", (_NODE, _PERIOD)),
    FlagGroup("Its API server", (_PUBLISH, _KUBECONFIG, _CONTEXT, _MASTER)),
    *process_groups(_HEALTH, _VERBOSITY),
    OTHERS,
)


def parse(
    argv: Sequence[str],
    *,
    version: str,
    width: int = 100,
    is_file: Callable[[Path], bool] = Path.is_file,
) -> Settings | Text:
    """Read the arguments after the program's name.

    ``version`` is the text that the ``version`` sub-command shows, ``width`` the columns of the help,
    ``is_file`` tells whether a named file is there. Raises FlagError.
    """
    line = parse_line([flag for group in GROUPS for flag in group.flags], argv, gone={})
    if line.value(HELP) or line.arguments == ("help",):
        return Text(help_text(width))
    if line.arguments == ("version",):
        return Text(f"{PROGRAM} version: {version}")
    if line.arguments:
        raise FlagError(
            f"unknown command {line.arguments[0]!r} for {PROGRAM!r}: expected flags only, version or help"
        )
    return _settings(line, is_file)


def help_text(width: int) -> str:
    """The help: what the program is, how to call it, and each flag with its default."""
    return (
        "Reads this node's devices: what they are, in what health, what they do, who holds them.\n"
        "Serves that as metrics, and writes what changes seldom as NodeDevices to the API server.\n\n"
        f"Usage:\n  {PROGRAM} --node-name NAME [flags]\n  {PROGRAM} version\n\n"
        + render_help(GROUPS, width=width)
    )


def _settings(line: CommandLine, is_file: Callable[[Path], bool]) -> Settings:
    if not line.value(_NODE):
        raise FlagError(
            f"--{_NODE.name}: expected the name of the Node that this runs on; in a pod: "
            "--node-name=$(NODE_NAME), with the variable from the field spec.nodeName"
        )
    kubeconfig = existing_file(line, _KUBECONFIG, "the kubeconfig of this cluster's API server", is_file)
    return Settings(
        node=line.value(_NODE),
        period_s=line.value(_PERIOD),
        publishes=line.value(_PUBLISH),
        api=ApiSettings(kubeconfig, line.value(_CONTEXT), line.value(_MASTER)),
        endpoints=endpoint_settings(line, _HEALTH),
        logs=log_settings(line, _VERBOSITY),
        notices=tuple(endpoint_notices(line)),
    )
