"""Which workloads wait in queues: one rule, of which Python and CEL are two readings.

A namespace says how far queues reach into it (`Queueing`, the values of its label), and the terms of a
`Scope` say which workloads are meant there. Both are values: `Scope.gates` and `Scope.includes` apply them
here, for the webhook's decision and for the dispatcher, and `webhook.match_conditions` writes the same values
as expressions and selectors, for API servers. A further term is a class here and a case in each reading,
which the type checker asks for.

What can be seen at the door is the binding and the label of its namespace. A queue that is named elsewhere
(on the workload, on its policy) is seen by the dispatcher alone. So where such a name is to count, everything
is held at the door, and what turns out to be none of a queue's business is let go at once.
"""

import re
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from enum import StrEnum
from functools import lru_cache
from typing import Final, Literal, assert_never

from fairway.accelerators.catalogue import Catalogue
from fairway.kube.objects import RawQuantity, RawResources
from fairway.quantity import QuantityError, parse_nano

_KIND: Final = re.compile(r"[A-Z][A-Za-z0-9]{0,62}")
_GROUP: Final = re.compile(r"(?=.{1,253}$)[a-z0-9]([a-z0-9-]*[a-z0-9])?(\.[a-z0-9]([a-z0-9-]*[a-z0-9])?)*")


class Queueing(StrEnum):
    """What a namespace says by its label `fairway.names.QUEUEING`; any other value says nothing."""

    ENABLED = "enabled"
    NAMED = "named"
    ALL = "all"
    DISABLED = "disabled"


class Reach(StrEnum):
    """How far queues reach into a namespace: which of its workloads are meant."""

    NOTHING = "nothing"
    TERMS = "terms"
    """Those of which a term of the scope is true."""
    NAMED = "named"
    """Those, and whatever names a queue anywhere."""
    EVERYTHING = "everything"

    @property
    def is_whole(self) -> bool:
        """Whether every workload is held at the door."""
        return self in (Reach.NAMED, Reach.EVERYTHING)


_REACH: Final[Mapping[str, Reach]] = {
    Queueing.ENABLED.value: Reach.TERMS,
    Queueing.NAMED.value: Reach.NAMED,
    Queueing.ALL.value: Reach.EVERYTHING,
    Queueing.DISABLED.value: Reach.NOTHING,
}


@dataclass(frozen=True, slots=True, order=True)
class WorkloadKind:
    """A kind of workloads; ``group`` is empty for the core group."""

    kind: str
    group: str

    def __str__(self) -> str:
        return f"{self.kind}.{self.group}" if self.group else self.kind


def parse_workload_kind(text: str) -> WorkloadKind:
    """Read ``Job.batch`` or, of the core group, ``Pod``. Raises ValueError that says what was expected."""
    kind, dot, group = text.partition(".")
    if not _KIND.fullmatch(kind) or (dot and not _GROUP.fullmatch(group)):
        raise ValueError(
            "expected KIND.GROUP such as Job.batch or PyTorchJob.kubeflow.org, without a version"
        )
    return WorkloadKind(kind, group)


@dataclass(frozen=True, slots=True)
class Subject:
    """What the terms look at: of a binding, nothing else.

    ``names_queue``: by a label or an annotation of the binding itself. ``resources``: by `asked_for`.
    """

    names_queue: bool
    kind: str
    group: str
    resources: Collection[str]


@dataclass(frozen=True, slots=True)
class NamesQueue:
    """Its binding names a queue."""


@dataclass(frozen=True, slots=True)
class IsOfKind:
    """It is of this kind, whatever it asks for."""

    kind: WorkloadKind


@dataclass(frozen=True, slots=True)
class AsksAccelerator:
    """It asks for what this catalogue knows as an accelerator."""

    catalogue: Catalogue


Term = NamesQueue | IsOfKind | AsksAccelerator


@dataclass(frozen=True, slots=True)
class Selection:
    """Namespaces, by one requirement on their label; without a label, ``NotIn`` selects them."""

    operator: Literal["In", "NotIn"]
    values: tuple[str, ...]

    def selects(self, stated: str) -> bool:
        """Whether a namespace with this value of the label, empty for none, is selected."""
        return (stated in self.values) == (self.operator == "In")


@dataclass(frozen=True, slots=True)
class Scope:
    """The rule. ``only_enabled``: namespaces that say nothing are left alone, and so is what has none."""

    catalogue: Catalogue
    kinds: frozenset[WorkloadKind] = frozenset()
    only_enabled: bool = False

    @property
    def terms(self) -> tuple[Term, ...]:
        """A workload is meant where any of these is true of it."""
        return (NamesQueue(), *map(IsOfKind, sorted(self.kinds)), AsksAccelerator(self.catalogue))

    def reach(self, stated: str) -> Reach:
        """How far queues reach into a namespace with this value of the label; empty for none."""
        return _REACH.get(stated, self.unstated)

    @property
    def unstated(self) -> Reach:
        """How far they reach where nothing is said, and among what is in no namespace."""
        return Reach.NOTHING if self.only_enabled else Reach.TERMS

    def namespaces(self, *, whole: bool) -> Selection:
        """Those whose workloads are held as a whole, or else those whose workloads the terms pick out."""
        meant = {reach for reach in Reach if reach is not Reach.NOTHING and reach.is_whole == whole}
        if self.unstated in meant:
            return Selection("NotIn", tuple(each for each, reach in _REACH.items() if reach not in meant))
        return Selection("In", tuple(each for each, reach in _REACH.items() if reach in meant))

    def gates(self, subject: Subject, reach: Reach) -> bool:
        """Whether it is held at the door."""
        return reach.is_whole or self.includes(subject, reach)

    def includes(self, subject: Subject, reach: Reach, *, named_elsewhere: bool = False) -> bool:
        """Whether it is to wait in a queue. ``named_elsewhere``: something beside its binding names one."""
        match reach:
            case Reach.NOTHING:
                return False
            case Reach.EVERYTHING:
                return True
            case Reach.NAMED if named_elsewhere:
                return True
            case _:
                return any(_is_true(term, subject) for term in self.terms)

    def is_accelerator(self, resource: str) -> bool:
        """Whether the catalogue says so."""
        return _knows(self.catalogue, resource)


def asked_for(requests: Iterable[RawResources | None]) -> frozenset[str]:
    """Of what any of these requests asks for more than none."""
    return frozenset(
        name for each in requests for name, quantity in (each or {}).items() if is_positive(quantity)
    )


@lru_cache(maxsize=4096)
def is_positive(quantity: RawQuantity) -> bool:
    """Whether it asks for anything; one that does not parse might, and the dispatcher says what is wrong."""
    try:
        return quantity is not None and parse_nano(quantity) > 0
    except QuantityError:
        return True


def _is_true(term: Term, subject: Subject) -> bool:
    match term:
        case NamesQueue():
            return subject.names_queue
        case IsOfKind(kind=kind):
            return (subject.kind, subject.group) == (kind.kind, kind.group)
        case AsksAccelerator(catalogue=catalogue):
            return any(_knows(catalogue, resource) for resource in subject.resources)
    assert_never(term)


def _knows(catalogue: Catalogue, resource: str) -> bool:
    entry = catalogue.lookup(resource)
    return entry is not None and entry.is_accelerator
