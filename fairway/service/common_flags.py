"""The flags that several programs have, and what they come to: endpoints, logs, files, help.

Their names, defaults and meanings are those of Karmada's components (pkg/sharedcli and
k8s.io/component-base/logs, 1.19), where those have them.
"""

import os
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from fairway.service.addresses import BindAddress, parse_bind_address
from fairway.service.goflags import CommandLine, Flag, FlagGroup, int_between, one_of, switch, text_flag
from fairway.service.logs import LogFormat


@dataclass(frozen=True, slots=True)
class LogSettings:
    """``verbosity`` is klog's ``-v``."""

    format: LogFormat
    verbosity: int


@dataclass(frozen=True, slots=True)
class EndpointSettings:
    """Where the HTTP endpoints listen; ``None`` is off."""

    health: BindAddress | None
    metrics: BindAddress | None
    profiling: BindAddress | None


@dataclass(frozen=True, slots=True)
class Text:
    """A command line that only asks for text: `tell` it (no newline at its end) and exit 0."""

    text: str


def tell(text: str, end: str = "\n") -> int:
    """Print what was asked for; the exit code 0, also where whoever reads has read enough."""
    try:
        print(text, end=end, flush=True)  # noqa: T201 - what was asked for
    except BrokenPipeError:
        # What is held back would fail once more when the interpreter ends.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    return 0


_METRICS: Final = Flag(
    "metrics-bind-address", parse_bind_address, ":8080", 'Address of /metrics; "0" is off.', "ADDRESS"
)
_ENABLE_PPROF: Final = switch("enable-pprof", "Serve /debug/pprof/ for profiling.")
_PROFILING: Final = Flag(
    "profiling-bind-address", parse_bind_address, ":6060", "Address of /debug/pprof/.", "ADDRESS"
)
_LOGGING_FORMAT: Final[Flag[LogFormat]] = Flag(
    "logging-format", one_of("text", "json"), "text", "Form of log records.", "text|json"
)
KARMADA: Final = text_flag(
    "kubeconfig",
    "Kubeconfig of Karmada's API server. Without it and --master, the pod's own service account is used.",
)
KARMADA_CONTEXT: Final = text_flag(
    "karmada-context", "Context of that kubeconfig, instead of its current one.", "NAME"
)
KARMADA_MASTER: Final = text_flag(
    "master", "Address of the API server; overrides the one in the kubeconfig.", "URL"
)
CATALOGUE: Final = text_flag(
    "catalogue",
    "YAML file that says what further resource names mean as accelerators; see docs/accelerators.md.",
)
HELP: Final = switch("help", "Show this help.", letter="h")
OTHERS: Final = FlagGroup("Others", (HELP,))


def health_flag(default: str) -> Flag[BindAddress | None]:
    """``--health-probe-bind-address``."""
    return Flag(
        "health-probe-bind-address",
        parse_bind_address,
        default,
        'Address of /healthz and /readyz; "0" is off.',
        "ADDRESS",
    )


def verbosity_flag(at_four: str = "debugging records") -> Flag[int]:
    """``-v``; ``at_four`` says what the log has more from 4 on."""
    return Flag(
        "v",
        int_between(0, 2**31 - 1, "a verbosity"),
        "0",
        f"Verbosity of the log: 4 and above adds {at_four}.",
        "LEVEL",
        letter="v",
    )


def process_groups(health: Flag[BindAddress | None], verbosity: Flag[int]) -> tuple[FlagGroup, FlagGroup]:
    """The flags that `endpoint_settings` and `log_settings` read."""
    return (
        FlagGroup("Health, metrics, profiling", (health, _METRICS, _ENABLE_PPROF, _PROFILING)),
        FlagGroup("Logs", (_LOGGING_FORMAT, verbosity)),
    )


def existing_file(
    line: CommandLine, flag: Flag[str], expected: str, is_file: Callable[[Path], bool]
) -> Path | None:
    """The file that a flag names; None without it. Raises FlagError where there is no such file."""
    if not line.value(flag):
        return None
    file = Path(line.value(flag))
    if not is_file(file):
        raise line.error(flag, f"no such file: expected {expected}")
    return file


def catalogue_file(line: CommandLine, is_file: Callable[[Path], bool]) -> Path | None:
    """The administrator's rules for accelerators, if any. Raises FlagError."""
    return existing_file(line, CATALOGUE, "a YAML list of rules", is_file)


def karmada_kubeconfig(line: CommandLine, flag: Flag[str], is_file: Callable[[Path], bool]) -> Path | None:
    """The kubeconfig of Karmada's API server, if a flag names one. Raises FlagError."""
    return existing_file(line, flag, "the kubeconfig of Karmada's API server", is_file)


def endpoint_settings(line: CommandLine, health: Flag[BindAddress | None]) -> EndpointSettings:
    """Where to listen; profiling only if it is enabled."""
    return EndpointSettings(
        health=line.value(health),
        metrics=line.value(_METRICS),
        profiling=line.value(_PROFILING) if line.value(_ENABLE_PPROF) else None,
    )


def endpoint_notices(line: CommandLine) -> Sequence[str]:
    """What of the endpoints' flags has no effect."""
    if line.is_set(_PROFILING) and not line.value(_ENABLE_PPROF):
        return (f"--{_PROFILING.name} has no effect without --{_ENABLE_PPROF.name}",)
    return ()


def log_settings(line: CommandLine, verbosity: Flag[int]) -> LogSettings:
    """How to log."""
    return LogSettings(line.value(_LOGGING_FORMAT), line.value(verbosity))
