"""Stock flags that are accepted, checked and without effect here, each with the reason.

They keep a manifest written for the stock estimator working as it is. Source: klog v2 and
k8s.io/component-base/logs as Karmada 1.19 vendors them, and its cmd/scheduler-estimator/app/options.
"""

import re
from typing import Final

from fairway.service.durations import parse_duration_s
from fairway.service.goflags import Flag, int_between, parse_bool, parse_int, parse_text

_SEVERITIES: Final = ("INFO", "WARNING", "ERROR", "FATAL")
_ONE_STREAM = "logs go to standard error only; the platform collects them"
_OWN_FORMAT = "records have their own header, see --logging-format"
_NOT_BUFFERED = "records are written at once"
_BYTES = re.compile(r"[0-9]+([.][0-9]*)?([EPTGMk]|[EPTGMK]i|[eE][0-9]+)?")


def _parse_severity(text: str) -> str:
    if text.upper() not in _SEVERITIES:
        try:
            parse_int(text)
        except ValueError as error:
            raise ValueError(f"expected an integer or one of {', '.join(_SEVERITIES)}") from error
    return text


def _parse_vmodule(text: str) -> str:
    if not all(re.fullmatch(r"[^=]+=[0-9]+", part) for part in text.split(",") if part):
        raise ValueError("expected PATTERN=N, comma-separated")
    return text


def _parse_location(text: str) -> str:
    if text not in {"", ":0"} and not re.fullmatch(r"[^:]*\.[^:]*:0*[1-9][0-9]*", text):
        raise ValueError("expected FILE:LINE, such as main.go:234")
    return text


def _parse_bytes(text: str) -> str:
    if not _BYTES.fullmatch(text):
        raise ValueError("expected a number of bytes, such as 512, 1K, 2Ki")
    return text


def _switch(name: str, default: str, help_text: str) -> Flag[bool]:
    return Flag(name, parse_bool, default, help_text, switch=True)


# Each flag and why it does nothing.
INERT: Final[tuple[tuple[Flag[object], str], ...]] = (
    (
        Flag("parallelism", parse_int, "16", "Workers of the stock estimator.", "N"),
        "an answer is one pass over arrays, and takes less time than handing it to workers",
    ),
    (
        Flag("vmodule", _parse_vmodule, "", "Verbosity by source file.", "PATTERN=N,..."),
        "it names Go source files",
    ),
    (
        Flag("log-backtrace-at", _parse_location, "", "Log a stack trace at a line.", "FILE:LINE"),
        "it names a line of Go source",
    ),
    (
        Flag("log-flush-frequency", parse_duration_s, "5s", "Time between flushes.", "DURATION"),
        _NOT_BUFFERED,
    ),
    (Flag("log-dir", parse_text, "", "Directory of log files.", "DIRECTORY"), _ONE_STREAM),
    (Flag("log-file", parse_text, "", "Log file.", "FILE"), _ONE_STREAM),
    (
        Flag("log-file-max-size", int_between(0, 2**63 - 1, "megabytes"), "1800", "Log file size.", "MB"),
        _ONE_STREAM,
    ),
    (_switch("logtostderr", "true", "Log to standard error instead of files."), _ONE_STREAM),
    (_switch("alsologtostderr", "false", "Log to standard error as well as files."), _ONE_STREAM),
    (
        Flag("alsologtostderrthreshold", _parse_severity, "0", "Lowest severity for that.", "SEVERITY"),
        _ONE_STREAM,
    ),
    (
        Flag("stderrthreshold", _parse_severity, "2", "Lowest severity on standard error.", "SEVERITY"),
        _ONE_STREAM,
    ),
    (
        _switch("legacy-stderr-threshold-behavior", "true", "Ignore --stderrthreshold with --logtostderr."),
        _ONE_STREAM,
    ),
    (_switch("one-output", "false", "Write a record to its own severity's file only."), _ONE_STREAM),
    (_switch("skip-log-headers", "false", "No headers in log files."), _ONE_STREAM),
    (_switch("skip-headers", "false", "No header before a record."), _OWN_FORMAT),
    (_switch("add-dir-header", "false", "Source directory in the header."), _OWN_FORMAT),
    (_switch("log-text-split-stream", "false", "Errors to stderr, the rest to stdout."), _ONE_STREAM),
    (
        Flag("log-text-info-buffer-size", _parse_bytes, "0", "Buffer of the split stream.", "BYTES"),
        _NOT_BUFFERED,
    ),
    (_switch("log-json-split-stream", "false", "The same for JSON."), _ONE_STREAM),
    (Flag("log-json-info-buffer-size", _parse_bytes, "0", "The same for JSON.", "BYTES"), _NOT_BUFFERED),
)
