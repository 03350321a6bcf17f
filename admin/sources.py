"""What the command line names as clusters: kubeconfigs, estimators, dump files.

The one idea: a source is what its text and the beginning of its file say it is, so that people need no
option for each kind. ``grpc://`` is an estimator; a file with the fields of a kubeconfig is a live cluster;
every other file is a dump, and whether it can be read is for the reader of dumps to say.
"""

import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from enum import Enum
from pathlib import Path

_NAMED = re.compile(r"([A-Za-z0-9][A-Za-z0-9._-]*)=(.*)", re.DOTALL)
_ADDRESS = re.compile(r"(\[[0-9A-Fa-f:.]+\]|[^\s:/@\[\]]+):([0-9]{1,5})/?")
_KUBECONFIG = re.compile(
    # In YAML at the left edge, in JSON as a key: not where a dump holds a kubeconfig as text.
    rb"""^(?:clusters|contexts|users|current-context)\s*:|"current-context"\s*:""",
    re.MULTILINE,
)
_DUMP_SUFFIXES = frozenset({".json", ".yaml", ".yml", ".gz"})
_SCHEME = "grpc://"
_SNIFFED_BYTES = 65_536
_MOST_PORT = 65_535
_EXPECTED = (
    "expected [NAME=]KUBECONFIG[@CONTEXT], [NAME=]grpc://HOST:PORT or [NAME=]DUMP.json|yaml|gz[,DUMP...]"
)


class SourceError(ValueError):
    """A source on the command line is not usable; the message repeats it and says what was expected."""

    @property
    def why(self) -> str:
        """The message without what was expected, where a command takes less."""
        return str(self).partition("; ")[0]


class FileKind(Enum):
    """What a path is, by its beginning."""

    KUBECONFIG = "kubeconfig"
    DUMP = "dump"
    FOLDER = "folder"
    MISSING = "missing"


@dataclass(frozen=True, slots=True)
class LiveSource:
    """A cluster's API server. ``kubeconfig`` None: the files that kubectl would read.

    ``context`` empty: the current one. ``name`` empty: the context's name.
    """

    name: str
    kubeconfig: Path | None
    context: str

    def __str__(self) -> str:
        file = "kubeconfig" if self.kubeconfig is None else f"kubeconfig {self.kubeconfig}"
        return f"{file}, context {self.context}" if self.context else file


@dataclass(frozen=True, slots=True)
class EstimatorSource:
    """A Fairway estimator. ``name`` empty: all clusters that it serves; else the one of this name."""

    name: str
    address: str

    def __str__(self) -> str:
        return f"estimator {self.address}"


@dataclass(frozen=True, slots=True)
class DumpSource:
    """A file that kubectl wrote, and ``more`` of the same cluster."""

    name: str
    file: Path
    more: tuple[Path, ...] = ()

    @property
    def files(self) -> tuple[Path, ...]:
        """All of them."""
        return self.file, *self.more

    def __str__(self) -> str:
        return f"dump {','.join(map(str, self.files))}"


@dataclass(frozen=True, slots=True)
class SampleSource:
    """A bundled sample cluster, one of `SAMPLES`."""

    name: str

    def __str__(self) -> str:
        return "the bundled sample fleet"


NamedSource = LiveSource | EstimatorSource | DumpSource
"""What a text can mean."""


@dataclass(frozen=True, slots=True)
class UnreadableSource:
    """A text that names nothing that can be read, and why."""

    name: str
    problem: str

    def __str__(self) -> str:
        return self.name


SAMPLES = ("alpha", "bravo", "charlie")
Source = NamedSource | SampleSource | UnreadableSource


def parse_source(text: str, kind_of: Callable[[Path], FileKind]) -> NamedSource:
    """One source. ``kind_of`` looks at files. Raises SourceError."""
    match = _NAMED.fullmatch(text)
    name, rest = (match[1], match[2]) if match else ("", text)
    if not rest:
        raise SourceError(f"source {text!r}: names nothing; {_EXPECTED}")
    if rest.startswith(_SCHEME):
        return EstimatorSource(name, _address(text, rest.removeprefix(_SCHEME)))
    if "://" in rest:
        raise SourceError(f"source {text!r}: the only scheme is grpc://; {_EXPECTED}")
    files = tuple(Path(file) for file in rest.split(","))
    if len(files) > 1 and all(kind_of(file) is FileKind.DUMP for file in files):
        if not name:
            raise SourceError(
                f"source {text!r}: several files of one cluster: expected a name, as NAME={text}"
            )
        return DumpSource(name, files[0], files[1:])
    path, context = _path_and_context(rest, kind_of)
    match kind_of(path):
        case FileKind.MISSING:
            hint = f"; for an estimator write grpc://{rest}" if _ADDRESS.fullmatch(rest) else ""
            hint = "; for standard input write /dev/stdin" if rest == "-" else hint
            raise SourceError(f"source {text!r}: no file {path}{hint}; {_EXPECTED}")
        case FileKind.FOLDER:
            raise SourceError(f"source {text!r}: {path} is a folder: name its files, such as {path}/*.json")
        case FileKind.KUBECONFIG:
            return LiveSource(name or context, path, context)
        case FileKind.DUMP if context:
            raise SourceError(f"source {text!r}: {path} is no kubeconfig, so @{context} means nothing")
        case FileKind.DUMP:
            return DumpSource(name or _stem(path), path)


def check_names(sources: Iterable[Source]) -> None:
    """Raises SourceError where two sources have the same name; those without a name are left for later."""
    seen: dict[str, Source] = {}
    for source in sources:
        if source.name and source.name in seen:
            raise SourceError(
                f"cluster {source.name!r} is given twice, as {seen[source.name]} and as {source}: "
                "give each a name of its own, as in NAME=FILE, or the files of one cluster as NAME=FILE,FILE"
            )
        seen[source.name] = source


def file_kind(path: Path) -> FileKind:
    """What the path is. Reads the beginning of a file; one that cannot be read counts as a dump."""
    if path.is_dir():
        return FileKind.FOLDER
    if not path.exists():
        return FileKind.MISSING
    if not path.is_file():
        # What cannot be read twice is not looked into.
        return FileKind.DUMP
    try:
        with path.open("rb") as file:
            beginning = file.read(_SNIFFED_BYTES)
    except OSError:
        return FileKind.DUMP
    return FileKind.KUBECONFIG if _KUBECONFIG.search(beginning) else FileKind.DUMP


def _path_and_context(rest: str, kind_of: Callable[[Path], FileKind]) -> tuple[Path, str]:
    """Paths and contexts may both hold ``@``: the first split whose path is there is meant."""
    whole = Path(rest)
    if kind_of(whole) is not FileKind.MISSING:
        return whole, ""
    splits = [match.start() for match in re.finditer("@", rest) if match.start() > 0]
    for at in splits:
        if kind_of(Path(rest[:at])) is not FileKind.MISSING:
            return Path(rest[:at]), rest[at + 1 :]
    return whole, ""


def _address(text: str, address: str) -> str:
    match = _ADDRESS.fullmatch(address)
    if match is None or not 0 < int(match[2]) <= _MOST_PORT:
        raise SourceError(f"source {text!r}: expected grpc://HOST:PORT, such as grpc://localhost:10352")
    return f"{match[1]}:{int(match[2])}"


def _stem(file: Path) -> str:
    stem = file
    while stem.suffix.lower() in _DUMP_SUFFIXES:
        stem = stem.with_suffix("")
    return stem.name
