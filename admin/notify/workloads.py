"""Whose workloads are told of: namespaces that ask for it, and in them what has findings.

Pods have to be on their node for as long as a device has to be idle: of what begins nobody is told.
Devices that fail are told of at once.
"""

from collections.abc import Iterable
from dataclasses import dataclass, replace

import msgspec

from admin.notify.notices import TOLD
from admin.printable import printable
from fairway.kube.event_series import Regarding
from fairway.kube.member_kinds import Namespace
from fairway.names import NOTIFY
from fairway.usage.definitions import THRESHOLDS, Finding, Thresholds
from fairway.usage.groups import By, Group, groups
from fairway.usage.use import ClusterUsage, Use

_YES, _NO = "true", ("", "false")
_KINDS = frozenset(told.finding for told in TOLD)


@dataclass(frozen=True, slots=True)
class Asking:
    """Namespaces that want to be told, and what was not understood of others."""

    namespaces: frozenset[str]
    notes: tuple[str, ...]


def asking(namespaces: Iterable[Namespace], only: str = "") -> Asking:
    """Those whose label says so; with ``only`` this one at most."""
    found: set[str] = set()
    notes: list[str] = []
    for namespace in namespaces:
        name, value = namespace.metadata.name, (namespace.metadata.labels or {}).get(NOTIFY, "")
        if only not in ("", name):
            continue
        if value == _YES:
            found.add(name)
        elif value not in _NO:
            notes.append(
                f"namespace {printable(name, 63)}: label {NOTIFY}: expected true or false, "
                f"found {printable(value, 63)!r}; it is not told"
            )
    return Asking(frozenset(found), tuple(notes))


@dataclass(frozen=True, slots=True)
class Workload:
    """A workload with findings in one cluster; ``regarding``: what controls its pods, as far as these tell.

    ``products``: of its devices, those of which it holds most first.
    """

    cluster: str
    regarding: Regarding
    sums: Group
    products: tuple[str, ...]


def workloads(
    usage: ClusterUsage, namespaces: frozenset[str], limits: Thresholds = THRESHOLDS
) -> tuple[Workload, ...]:
    """Those of the namespaces that have findings, in the order of `fairway.usage.groups.groups`."""
    uses = tuple(_told(use, limits) for use in usage.uses if use.pod.namespace in namespaces)
    of: dict[Regarding, list[Use]] = {}
    for use in uses:
        of.setdefault(_regarding(use), []).append(use)
    found = [
        _workload(usage, regarding, some)
        for regarding, some in of.items()
        if any(use.findings & _KINDS for use in some)
    ]
    return tuple(sorted(found, key=_order))


def _regarding(use: Use) -> Regarding:
    """What the pod says: one that calls itself another's by name alone is no part of that one."""
    owner = use.pod.owner
    return Regarding(owner.api_version, owner.kind, use.pod.namespace, owner.name, owner.uid)


def _told(use: Use, limits: Thresholds) -> Use:
    """The use with what is told of it."""
    is_young = use.pod.age_s is None or use.pod.age_s < limits.idle_s
    if not (is_young and use.findings):
        return use
    return msgspec.structs.replace(use, findings=use.findings & {Finding.FAILING})


def _workload(usage: ClusterUsage, regarding: Regarding, uses: list[Use]) -> Workload:
    held: dict[str, int] = {}
    for use in uses:
        held[use.product] = held.get(use.product, 0) + use.allocated_milli
    products = sorted(held.keys() - {""}, key=lambda product: (-held[product], product))
    (sums,) = groups([replace(usage, uses=tuple(uses))], By.OWNER)
    return Workload(usage.cluster, regarding, sums, tuple(products))


def _order(one: Workload) -> tuple[int, int, tuple[str, ...], str, str]:
    """Of `fairway.usage.groups.groups`, and by what tells those of one name apart."""
    sums, of = one.sums, one.regarding
    return -sums.wasted_milli, -sums.allocated_milli, sums.name, of.api_version, of.uid
