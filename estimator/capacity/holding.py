"""The room of one cluster less what is promised to workloads on their way there, kept between questions.

Their pods are held on the nodes that the promise names, as far as there is room on them, else first fit, and
as many as there is room for, since they will come either way. For those that wait, what is free is kept of
the nodes that they are to have, after all others; that is found anew whenever pods come and go.

When the promises change, or the nodes do, all is placed anew. When pods come and go, what is held stays where
it is as long as there is room for it there, but for the kinds of which more or fewer pods have nodes now.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace

import numpy as np

from estimator.capacity.assumed import OutOfTime, laid
from estimator.capacity.budget import Expired
from estimator.capacity.devices.dra_demand import draws
from estimator.capacity.local import Localizer
from estimator.capacity.promised_pods import Group, Kinds, Lacking
from estimator.capacity.promises import Promised, key_of
from estimator.capacity.request import AssumedWorkload, WorkloadReference
from estimator.capacity.room import Room, demand
from estimator.capacity.waiting import keep
from estimator.cluster.columns import IntVector
from estimator.cluster.mirror import ClusterMirror
from estimator.fit.eligibility import EligibilityCache
from estimator.reasons import Reason, held_for_promised


@dataclass(frozen=True, slots=True)
class Held:
    """What is held of a cluster for others than whoever asks.

    ``reasons``: what is to be told with an answer. ``room``: the cluster's room as it was, with all of that
    taken; None where whoever answers has to take it.
    """

    groups: tuple[Group, ...]
    lacking: tuple[Lacking, ...]
    reasons: tuple[Reason, ...]
    room: Room | None = None

    @property
    def workloads(self) -> Iterator[AssumedWorkload]:
        """The same as workloads on their way, for those who count no nodes; nothing of those that wait."""
        return (
            AssumedWorkload(one.promise.workload.namespace, one.components)
            for one in self.lacking
            if not one.promise.waits
        )

    def take_from(self, room: Room, expired: Expired) -> None:
        """Take what is held from a room that nothing was taken of, at the moment that this is about.

        Raises OutOfTime when it is up before all is taken.
        """
        known = self.room
        if known is not None and (room.nodes is known.nodes or not known.has_devices):
            room.start_from(known)
            return
        order = room.nodes.first_fit_order()
        for group in self.groups:
            if expired():
                raise OutOfTime(f"{len(self.groups)} kinds of promised pods could not all be placed in time")
            _hold(room, group, order)


class Holding:
    """Holds what is promised in one cluster. To be asked on the event loop, where the mirror is written."""

    def __init__(self, mirror: ClusterMirror, eligible: EligibilityCache, localizer: Localizer) -> None:
        self._mirror = mirror
        self._eligible = eligible
        self._kinds = Kinds(localizer)
        self._known: _Known | None = None

    def held(self, promised: Promised, asking: WorkloadReference | None) -> Held | None:
        """What is held for others than the workload that is ``asking``; None for nothing."""
        if not promised.promises:
            return None
        everything = self._everything(promised)
        key = None if asking is None else key_of(asking)
        if key not in promised.keys:
            return everything if everything.groups else None
        others = tuple(one for one in everything.lacking if one.promise.key != key)
        if len(others) == len(everything.lacking):
            return everything if others else None
        return self._of(others) if others else None

    def _everything(self, promised: Promised) -> Held:
        """All that is held now, from what was worked out before as far as that still holds."""
        mirror = self._mirror
        columns = mirror.columns
        rooms = columns.version, sum(table.version for table in columns.devices)
        pods, dra = mirror.controllers.watched_version, columns.dra
        nodes = columns.eligibility_version, mirror.admission.version, dra.version, int(dra.is_used)
        known = self._known
        if known is not None and known.promised is promised and known.nodes == nodes:
            if known.rooms == rooms and known.pods == pods:
                return known.held
            counts = known.counts if known.pods == pods else self._lacking(promised)
            held, layout = known.held, known.layout
            if counts != known.counts:
                held = self._of(_with_some(promised, counts))
                layout = None if layout is None else layout.without_what_changed(held.groups)
        else:
            if known is None or known.promised is not promised:
                mirror.controllers.watch(
                    (one.workload.namespace, one.workload.name, one.workload.kind)
                    for one in promised.promises
                )
                pods = mirror.controllers.watched_version
            self._kinds.prepare(promised, nodes)
            counts = self._lacking(promised)
            held, layout = self._of(_with_some(promised, counts)), None
        held, layout = self._laid(held, layout)
        self._known = _Known(promised, nodes, rooms, pods, counts, held, layout)
        return held

    def _lacking(self, promised: Promised) -> list[int]:
        """Of each promise, how many of its pods hold no room yet."""
        pods_of = self._mirror.controllers.pods_of
        counts = []
        for promise in promised.promises:
            of = promise.workload
            count = pods_of(of.namespace, of.name, of.kind, of.group or "")
            counts.append(promise.pods if count is None else max(0, promise.pods - count.holding))
        return counts

    def _of(self, lacking: tuple[Lacking, ...]) -> Held:
        reason = held_for_promised(sum(one.pods for one in lacking), len(lacking))
        return Held(self._kinds.groups(lacking), lacking, (reason,) if lacking else ())

    def _laid(self, held: Held, layout: "_Layout | None") -> "tuple[Held, _Layout | None]":
        """What is held with its room: the ``layout`` stays where that is still possible, else all goes anew.

        What is held of devices that pods share or claim has no layout that would be of use later.
        """
        columns = self._mirror.columns
        if not held.groups or any(draws(columns.dra, group.shape) for group in held.groups):
            # Whether claims can be had takes long to find out: that is up to whoever answers.
            return replace(held, room=None), None
        room = Room(columns, self._eligible)
        if layout is None:
            layout = _Layout()
        if not room.take_amounts(layout.amounts):
            layout = _Layout()
        order = columns.first_fit_order()
        for group in held.groups:
            if group.waits:
                _hold(room, group, order)
            elif id(group.shape) not in layout.places:
                layout.put(group, _hold(room, group, order))
        return replace(held, room=room), None if room.has_devices else layout


@dataclass(slots=True)
class _Layout:
    """Where groups are held, by their shapes, and how much of each resource that is by row."""

    places: dict[int, tuple[Group, IntVector]] = field(default_factory=dict)
    amounts: dict[str, IntVector] = field(default_factory=dict)

    def put(self, group: Group, placed: IntVector) -> None:
        """The group is held there. One that lacks room is not noted: there may be more for it next time."""
        if int(placed.sum()) < group.count:
            return
        self.places[id(group.shape)] = group, placed
        for resource, amount in demand(group.shape):
            taken = placed * amount
            self.amounts[resource] = self.amounts[resource] + taken if resource in self.amounts else taken

    def without_what_changed(self, groups: Iterable[Group]) -> "_Layout":
        """As much of it as is about groups that are as they were; a copy."""
        now = {id(group.shape): group for group in groups if not group.waits}
        layout = _Layout(dict(self.places), dict(self.amounts))
        for key, (group, placed) in self.places.items():
            if now.get(key) != group:
                del layout.places[key]
                for resource, amount in demand(group.shape):
                    layout.amounts[resource] = layout.amounts[resource] - placed * amount
        return layout


@dataclass(frozen=True, slots=True)
class _Known:
    """What is held, and of which state: versions of ``nodes``, of the ``rooms`` on them, and of ``pods``."""

    promised: Promised
    nodes: tuple[int, ...]
    rooms: tuple[int, ...]
    pods: int
    counts: list[int]
    held: Held
    layout: _Layout | None


def _with_some(promised: Promised, counts: Iterable[int]) -> tuple[Lacking, ...]:
    """Those of which pods are lacking."""
    return tuple(
        Lacking(promise, count) for promise, count in zip(promised.promises, counts, strict=True) if count
    )


def _hold(room: Room, group: Group, order: IntVector) -> IntVector:
    """Take the room of the group's pods, of as many as there is room for; how many that are by row.

    None are told of a group that waits.
    """
    if group.waits:
        keep(room, group.shape, group.count, group.where)
        return np.zeros_like(order)
    placed = laid(room, group.shape, group.count, group.where, order)
    room.take(group.shape, placed)
    return placed
