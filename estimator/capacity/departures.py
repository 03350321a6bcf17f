"""Which pods of a cluster leave it, and in which order as far as anybody knows when.

A pod that is being deleted leaves when its time to end is up, and one of a workload whose end is known then
at the latest; also where that is past. Of all others nobody knows: they come after these, node by node, those
nodes first of which the least is in use. Pods of DaemonSets and of nodes themselves (static ones) stay as
long as their nodes do, as others are made at once in their place.

Where somebody chooses which workloads end, only their pods leave, and what is being deleted. Of one that may
run on with fewer pods they leave one by one, as its controller chooses them (`removal`).
"""

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from estimator.capacity.removal import in_order_of_removal
from estimator.cluster.columns import IntVector
from estimator.cluster.pods import HeldByPod
from estimator.cluster.workloads import ControllerKey, MemberKey
from fairway.resources import CPU, is_extended
from fairway.workloads.workload_name import WorkloadName

PodsByKey = Mapping[str, HeldByPod]
WorkloadKey = ControllerKey | MemberKey
"""By what pods are known as a workload's own, see `Controllers.known_by`."""

_NONE = np.array([], dtype=np.int64)
_STAYING = frozenset((("DaemonSet", "apps"), ("Node", "")))
_OVERDUE_MS = 600_000
"""What should have left so long ago is stuck (a finalizer, a device that hangs): nobody knows until when."""


@dataclass(frozen=True, slots=True)
class Departures:
    """Pods that hold room in the order in which they leave. ``ends_ms``: when, None where nobody knows.

    Those of which it is known come first.
    """

    pods: tuple[HeldByPod, ...]
    ends_ms: tuple[int | None, ...]

    def until(self, count: int) -> int:
        """How many have left once the first ``count`` have: those besides that leave at the same time."""
        last = self.ends_ms[count - 1]
        while last is not None and count < len(self.pods) and self.ends_ms[count] == last:
            count += 1
        return count


@dataclass(frozen=True, slots=True)
class Choice:
    """A workload that may be ended, the earlier ``at_ms`` the rather. ``keys``: its pods have one of them.

    ``surplus``: instead it may run on with so many pods fewer, of the ``kept`` that are to be there; else 0.
    """

    workload: WorkloadName
    at_ms: int
    keys: tuple[WorkloadKey, ...]
    surplus: int = 0
    kept: int = 0


class Loose(NamedTuple):
    """So many of these pods go, by their places, and nobody knows which."""

    places: IntVector
    most: int


@dataclass(frozen=True, slots=True)
class Chosen:
    """Those of the choices that have pods, the most preferred first; what may run on with fewer pods once for
    each of these.

    ``leaving``: what leaves by itself; ``pods``: behind these all that the choices are about. ``of``: by
    choice, which of ``pods`` are its own, by their places; one pod may be of several. ``steps``: with which
    of them so many pods of its workload are to go, 0 of what ends; those that go then beside those of the
    steps before are its own, and ``loose`` of which that is not certain.
    """

    leaving: Departures
    pods: tuple[HeldByPod, ...]
    choices: tuple[Choice, ...]
    of: tuple[IntVector, ...]
    steps: tuple[int, ...] = ()
    loose: tuple[Loose | None, ...] = ()


def departures(
    pods: PodsByKey, ends_ms: Mapping[WorkloadKey, int], now_ms: int, asked: Iterable[str]
) -> Departures:
    """In which order the pods leave that can. ``asked``: resources; devices among them say what is in use.

    Where none is, cpu does. Times are in milliseconds since the epoch. O(pods), some microseconds each.
    """
    known: list[tuple[int, str, bool, str, HeldByPod]] = []
    unknown: list[tuple[str, bool, str, HeldByPod]] = []
    names = tuple(name for name in asked if is_extended(name)) or (CPU,)
    busy: dict[str, int] = {}
    for key, held in pods.items():
        if not held.node or _is_staying(held):
            continue
        end_ms = _end_ms(held, ends_ms, now_ms)
        # What holds a device open for parts of it goes after these.
        is_last = not held.devices
        if end_ms is not None:
            known.append((end_ms, held.node, is_last, key, held))
        else:
            unknown.append((held.node, is_last, key, held))
            amount = sum(held.footprint.get(name, 0) for name in names)
            busy[held.node] = busy.get(held.node, 0) + amount
    known.sort(key=lambda one: one[:4])
    unknown.sort(key=lambda one: (busy[one[0]], *one[:3]))
    return Departures(
        (*(one[-1] for one in known), *(one[-1] for one in unknown)),
        (*(one[0] for one in known), *(None for _ in unknown)),
    )


def chosen(pods: PodsByKey, choices: Sequence[Choice], now_ms: int) -> Chosen:
    """Who leaves by itself, and which pods end with each of the workloads. O(pods), about a microsecond each.

    Of choices with the same time those come first that are first among ``choices``. All pods of theirs go
    with them, on whichever node.
    """
    ranked = sorted(choices, key=lambda one: one.at_ms)
    now_s = now_ms / 1000
    by_key: dict[WorkloadKey, list[int]] = {}
    for rank, choice in enumerate(ranked):
        for workload in choice.keys:
            by_key.setdefault(workload, []).append(rank)
    leaving: list[tuple[int, str, bool, str, HeldByPod]] = []
    ending: list[HeldByPod] = []
    place_of: dict[str, int] = {}
    of: list[list[str]] = [[] for _ in ranked]
    for key, held in pods.items():
        if not held.node:
            for rank in _ranks(held, by_key):
                of[rank] += [key] if ranked[rank].surplus else []
            continue
        end_ms = None if _is_staying(held) else _deleted_ms(held, now_ms)
        if end_ms is not None:
            leaving.append((end_ms, held.node, not held.devices, key, held))
            continue
        its = _ranks(held, by_key)
        if its:
            for rank in its:
                # Whose controller has given up on a pod has others to choose from.
                if held.deletion_s is None or not ranked[rank].surplus:
                    of[rank].append(key)
            place_of[key] = len(ending)
            ending.append(held)
    leaving.sort(key=lambda one: one[:4])
    first = Departures(tuple(one[-1] for one in leaving), tuple(one[0] for one in leaving))
    place_of = {key: place + len(leaving) for key, place in place_of.items()}
    found: list[tuple[Choice, int, IntVector, Loose | None]] = []
    for choice, keys in zip(ranked, of, strict=True):
        if choice.surplus:
            order = in_order_of_removal({key: pods[key] for key in keys}, now_s)
            found += _one_by_one(choice, order, place_of)
        elif keys:
            found.append((choice, 0, _places(keys, place_of), None))
    choices_of, steps, places, loose = zip(*found, strict=True) if found else ((), (), (), ())
    return Chosen(first, (*first.pods, *ending), choices_of, places, steps, loose)


def _one_by_one(
    choice: Choice, order: Sequence[Sequence[str]], place_of: Mapping[str, int]
) -> Iterator[tuple[Choice, int, IntVector, Loose | None]]:
    """The choice once for each pod that goes: those first that are to be there and are not. What is there and
    is not to be goes before, with the first.
    """
    step, before = choice.kept - sum(map(len, order)), _NONE
    for keys in order:
        places = _places(keys, place_of)
        nowhere = len(keys) - len(places)
        for count in range(1, len(keys) + 1):
            step += 1
            if step > choice.surplus:
                return
            is_all = count == len(keys)
            left = Loose(places, count - nowhere) if count > nowhere and not is_all else None
            certain = np.concatenate([before, places]) if is_all else before
            before = certain
            if step > 0:
                yield choice, step, certain, left
                before = _NONE


def _places(keys: Iterable[str], place_of: Mapping[str, int]) -> IntVector:
    return np.array([place_of[key] for key in keys if key in place_of], dtype=np.int64)


def _ranks(held: HeldByPod, by_key: Mapping[WorkloadKey, Sequence[int]]) -> set[int]:
    return {rank for name in (held.controller, held.member) if name for rank in by_key.get(name, ())}


def split(pods: PodsByKey, workloads: Collection[WorkloadKey]) -> tuple[list[HeldByPod], PodsByKey]:
    """The pods of these workloads that hold room, and all others."""
    own: list[HeldByPod] = []
    others: dict[str, HeldByPod] = {}
    for key, held in pods.items():
        if held.controller in workloads or held.member in workloads:
            if held.node:
                own.append(held)
        else:
            others[key] = held
    return own, others


def _is_staying(held: HeldByPod) -> bool:
    return held.controller is not None and held.controller[2:] in _STAYING


def _end_ms(held: HeldByPod, ends_ms: Mapping[WorkloadKey, int], now_ms: int) -> int | None:
    found = [ends_ms[key] for key in (held.controller, held.member) if key is not None and key in ends_ms]
    deleted_ms = _deleted_ms(held, now_ms)
    if deleted_ms is not None:
        found.append(deleted_ms)
    return min(found) if found else None


def _deleted_ms(held: HeldByPod, now_ms: int) -> int | None:
    """When a pod leaves that is being deleted; None where it is not, or is stuck.

    A time that cannot be read is now.
    """
    if held.deletion_s is None:
        return None
    deletion_ms = int(held.deletion_s * 1000) or now_ms
    return None if deletion_ms + _OVERDUE_MS < now_ms else max(now_ms, deletion_ms)
