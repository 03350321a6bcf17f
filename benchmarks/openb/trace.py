"""The openb trace as it lies in CSV files, read into machines and tasks; each mistake is located.

Format and origin: data/csv of hkust-adsl/kubernetes-scheduler-simulator (Apache-2.0; the same files as
cluster-trace-gpu-v2023 of alibaba/clusterdata). Only the list of all nodes is read: the list of GPU nodes
numbers the same machines anew, so that a name means another machine there.
"""

import csv
import os
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

from benchmarks.openb.models import MODELS

WHOLE_MILLI = 1000
MAX_GPUS = 64

_NODES = "openb_node_list_all_node.csv"
_PODS = "openb_pod_list_{}.csv"
_DATA = "OPENB_DATA"
_MOST = 10**12
_NAME = re.compile(r"[a-z0-9]([-a-z0-9]{0,198}[a-z0-9])?")
_REMEDY = (
    f"take data/csv of github.com/hkust-adsl/kubernetes-scheduler-simulator and name its folder in {_DATA}"
)

T = TypeVar("T")


class TraceError(ValueError):
    """A file of the trace is missing or says something impossible; the message says where and what to do."""


@dataclass(frozen=True, slots=True)
class Machine:
    """One node. ``model`` is a key of `MODELS`, empty where there are no GPUs."""

    name: str
    cpu_milli: int
    memory_mib: int
    gpus: int
    model: str


@dataclass(frozen=True, slots=True)
class Task:
    """One pod of the trace: what it asks for and when it came, in seconds from the start of the trace.

    ``gpu_milli`` thousandths of each of ``gpus`` GPUs; less than 1000 only of a single one. ``models``: those
    that will do, empty for any. ``qos`` is empty where the trace has none. ``runs_s``: from when it got its
    node until it was deleted; 0 where the trace does not say both.
    """

    name: str
    cpu_milli: int
    memory_mib: int
    gpus: int
    gpu_milli: int
    models: tuple[str, ...] = ()
    qos: str = ""
    created_s: int = 0
    runs_s: int = 0

    @property
    def is_fractional(self) -> bool:
        """Whether it asks for a part of a GPU."""
        return self.gpus == 1 and self.gpu_milli < WHOLE_MILLI

    @property
    def total_gpu_milli(self) -> int:
        """What it takes of all its GPUs together."""
        return self.gpus * self.gpu_milli


def trace_folder() -> Path:
    """Where the trace is: what OPENB_DATA names, or the folder beside the checkout. It need not exist."""
    beside = Path(__file__).resolve().parents[3] / "shared" / "data" / "openb"
    return Path(os.environ.get(_DATA) or beside)


def read_machines(folder: Path) -> tuple[Machine, ...]:
    """All nodes of the trace, in the order of the file. Raises TraceError."""
    columns = ("sn", "cpu_milli", "memory_mib", "gpu", "model")
    return _read(folder / _NODES, columns, _machine, lambda machine: machine.name)


def read_tasks(folder: Path, pods: str = "default") -> tuple[Task, ...]:
    """The tasks of one of the pod lists, in the order of their arrival; equal times in that of the file.

    Some lists have no times; then the order of the file is that of arrival. Raises TraceError.
    """
    file = folder / _PODS.format(pods)
    if not file.is_file() and folder.is_dir():
        known = sorted(path.stem.removeprefix("openb_pod_list_") for path in folder.glob(_PODS.format("*")))
        raise TraceError(f"{file}: no such file; the pod lists here are {', '.join(known) or 'none'}")
    columns = ("name", "cpu_milli", "memory_mib", "num_gpu", "gpu_milli")
    tasks = _read(file, columns, _task, lambda task: task.name)
    return tuple(sorted(tasks, key=lambda task: task.created_s))


class _Row:
    """One line of a file, by column."""

    def __init__(self, where: str, fields: Mapping[str, str]) -> None:
        self._where = where
        self._fields = fields

    def text(self, column: str) -> str:
        """What stands there, empty where the file has no such column."""
        return self._fields.get(column, "").strip()

    def name(self, column: str) -> str:
        """A name that Kubernetes takes."""
        text = self.text(column)
        if not _NAME.fullmatch(text):
            raise self.wrong(column, "a name of small letters, digits and dashes", text)
        return text

    def count(self, column: str, most: int = _MOST) -> int:
        """A whole number from 0 to ``most``."""
        text = self.text(column)
        if not (text.isascii() and text.isdigit() and len(text) <= len(str(_MOST)) and int(text) <= most):
            raise self.wrong(column, f"a whole number from 0 to {most}", text)
        return int(text)

    def models(self, column: str) -> tuple[str, ...]:
        """GPU models with bars between them, each once; none for nothing."""
        text = self.text(column)
        names = tuple(dict.fromkeys(text.split("|"))) if text else ()
        for name in names:
            if name not in MODELS:
                raise self.wrong(column, f"GPU models ({', '.join(MODELS)}) with | between them", text)
        return names

    def wrong(self, column: str, expected: str, found: str) -> TraceError:
        """The error for what stands there."""
        return TraceError(f"{self._where}: {column}: expected {expected}, found {found[:80]!r}")


def _machine(row: _Row) -> Machine:
    gpus, model = row.count("gpu", MAX_GPUS), row.text("model")
    if gpus and model not in MODELS:
        raise row.wrong("model", f"one of {', '.join(MODELS)}", model)
    if model and not gpus:
        raise row.wrong("model", "nothing where gpu is 0", model)
    return Machine(row.name("sn"), row.count("cpu_milli"), row.count("memory_mib"), gpus, model)


def _task(row: _Row) -> Task:
    gpus, milli = row.count("num_gpu", MAX_GPUS), row.count("gpu_milli", WHOLE_MILLI)
    if bool(gpus) != bool(milli):
        raise row.wrong("gpu_milli", f"{'more than 0' if gpus else '0'} where num_gpu is {gpus}", str(milli))
    if gpus > 1 and milli < WHOLE_MILLI:
        raise row.wrong("gpu_milli", f"{WHOLE_MILLI} where num_gpu is {gpus}", str(milli))
    return Task(
        row.name("name"),
        row.count("cpu_milli"),
        row.count("memory_mib"),
        gpus,
        milli,
        row.models("gpu_spec"),
        row.text("qos"),
        row.count("creation_time") if row.text("creation_time") else 0,
        _runs_s(row),
    )


def _runs_s(row: _Row) -> int:
    if not (row.text("scheduled_time") and row.text("deletion_time")):
        return 0
    return max(0, row.count("deletion_time") - row.count("scheduled_time"))


def _read(
    file: Path, columns: tuple[str, ...], parse: Callable[[_Row], T], name: Callable[[T], str]
) -> tuple[T, ...]:
    found: list[T] = []
    lines: dict[str, int] = {}
    try:
        for line, row in _rows(file, columns):
            item = parse(row)
            if name(item) in lines:
                raise TraceError(
                    f"{file}:{line}: {columns[0]}: expected each name once, found {name(item)!r} "
                    f"on line {lines[name(item)]} too"
                )
            lines[name(item)] = line
            found.append(item)
    except UnicodeDecodeError as error:
        raise TraceError(
            f"{file}: expected UTF-8 text, found the byte {error.object[error.start]:#04x}"
        ) from None
    except csv.Error as error:
        raise TraceError(f"{file}: expected a CSV file: {error}") from None
    except OSError as error:
        raise TraceError(f"{file}: {error.strerror}; {_REMEDY}") from None
    if not found:
        raise TraceError(f"{file}: expected lines below the header, found none")
    return tuple(found)


def _rows(file: Path, columns: tuple[str, ...]) -> Iterator[tuple[int, _Row]]:
    with file.open(encoding="utf-8", newline="") as text:
        lines = csv.reader(text, strict=True)
        header = next(lines, [])
        missing = [column for column in columns if column not in header]
        if missing:
            raise TraceError(
                f"{file}:1: expected a header with {', '.join(columns)}, found none of {', '.join(missing)}"
            )
        for fields in lines:
            where = f"{file}:{lines.line_num}"
            if len(fields) != len(header):
                raise TraceError(
                    f"{where}: expected {len(header)} fields as in the header, found {len(fields)}"
                )
            yield lines.line_num, _Row(where, dict(zip(header, fields, strict=True)))
