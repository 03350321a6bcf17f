"""Stock flags that are accepted, checked and without effect here, each with the reason.

They keep a manifest written for the stock estimator working as it is. Source: klog v2 and
k8s.io/component-base/logs as Karmada 1.19 vendors them, and its cmd/scheduler-estimator/app/options.
"""

import re
from collections.abc import Mapping
from typing import Final

from fairway.service.durations import parse_duration_s
from fairway.service.goflags import Flag, int_between, parse_int, switch, text_flag

_SEVERITIES: Final = ("INFO", "WARNING", "ERROR", "FATAL")
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


_BY_REASON: Final[Mapping[str, tuple[Flag[object], ...]]] = {
    "an answer is one pass over arrays, and takes less time than handing it to workers": (
        Flag("parallelism", parse_int, "16", "Workers of the stock estimator.", "N"),
    ),
    "it names Go source files": (
        Flag("vmodule", _parse_vmodule, "", "Verbosity by source file.", "PATTERN=N,..."),
    ),
    "it names a line of Go source": (
        Flag("log-backtrace-at", _parse_location, "", "Log a stack trace at a line.", "FILE:LINE"),
    ),
    "logs go to standard error only; the platform collects them": (
        text_flag("log-dir", "Directory of log files.", "DIRECTORY"),
        text_flag("log-file", "Log file."),
        Flag("log-file-max-size", int_between(0, 2**63 - 1, "megabytes"), "1800", "Log file size.", "MB"),
        switch("logtostderr", "Log to standard error instead of files.", "true"),
        switch("alsologtostderr", "Log to standard error as well as files."),
        Flag("alsologtostderrthreshold", _parse_severity, "0", "Lowest severity for that.", "SEVERITY"),
        Flag("stderrthreshold", _parse_severity, "2", "Lowest severity on standard error.", "SEVERITY"),
        switch("legacy-stderr-threshold-behavior", "Ignore --stderrthreshold with --logtostderr.", "true"),
        switch("one-output", "Write a record to its own severity's file only."),
        switch("skip-log-headers", "No headers in log files."),
        switch("log-text-split-stream", "Errors to stderr, the rest to stdout."),
        switch("log-json-split-stream", "The same for JSON."),
    ),
    "records have their own header, see --logging-format": (
        switch("skip-headers", "No header before a record."),
        switch("add-dir-header", "Source directory in the header."),
    ),
    "records are written at once": (
        Flag("log-flush-frequency", parse_duration_s, "5s", "Time between flushes.", "DURATION"),
        Flag("log-text-info-buffer-size", _parse_bytes, "0", "Buffer of the split stream.", "BYTES"),
        Flag("log-json-info-buffer-size", _parse_bytes, "0", "The same for JSON.", "BYTES"),
    ),
}
INERT: Final = tuple((flag, reason) for reason, flags in _BY_REASON.items() for flag in flags)
"""Each flag and why it does nothing."""
