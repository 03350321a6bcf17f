"""The flags that say what waits in queues, the same for whoever holds and for whoever releases.

Both have to be given the same ones. A file of `CATALOGUE` goes with them.
"""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Final, Literal

from fairway.accelerators.builtin import extended_catalogue
from fairway.accelerators.catalogue import CatalogueError
from fairway.scope import Scope, WorkloadKind, parse_workload_kind
from fairway.service.common_flags import CATALOGUE, catalogue_file
from fairway.service.goflags import CommandLine, Flag, FlagGroup, one_of, switch
from fairway.service.program import StartError

Namespaces = Literal["enabled", "all"]

KIND: Final = Flag(
    "hold-kind",
    parse_workload_kind,
    "",
    "Workloads of this kind are held whatever they ask for, such as Job.batch; may be repeated.",
    "KIND.GROUP",
)
NAMESPACES: Final[Flag[Namespaces]] = Flag(
    "hold-namespaces",
    one_of("enabled", "all"),
    "enabled",
    "Whose workloads: of namespaces labelled fairway.dev/queueing=enabled, or of all that are not labelled "
    "fairway.dev/queueing=disabled.",
    "enabled|all",
)
OBSERVE: Final = switch("observe", "Hold nothing and release nothing; tell and count what would be.")
GROUP: Final = FlagGroup("What is held", (NAMESPACES, KIND, CATALOGUE, OBSERVE))


@dataclass(frozen=True, slots=True)
class ScopeSettings:
    """What is held: beside what the built-in catalogue knows, and in which namespaces."""

    catalogue: Path | None = None
    kinds: tuple[WorkloadKind, ...] = ()
    namespaces: Namespaces = "enabled"


def scope_settings(line: CommandLine, is_file: Callable[[Path], bool]) -> ScopeSettings:
    """What the flags of `GROUP` say. Raises FlagError."""
    return ScopeSettings(catalogue_file(line, is_file), tuple(line.values(KIND)), line.value(NAMESPACES))


def read_scope(settings: ScopeSettings) -> Scope:
    """The scope, with the administrator's rules before the packaged ones. Raises StartError."""
    try:
        catalogue = extended_catalogue(settings.catalogue)
    except CatalogueError as error:
        raise StartError(f"--catalogue: {error}") from None
    return Scope(catalogue, frozenset(settings.kinds), only_enabled=settings.namespaces == "enabled")
