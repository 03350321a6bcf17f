"""The room of one cluster less what is promised to workloads on their way there, kept between questions.

Their pods are held on the nodes that the promise names, as far as there is room on them, else first fit, and
as many as there is room for, since they will come either way.

What was worked out holds until the promises change, or the pods of what is promised do. When other pods come
and go, all that is held stays where it is, as long as there is room for it there.
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np

from estimator.capacity.assumed import OutOfTime
from estimator.capacity.budget import Expired
from estimator.capacity.devices.dra_demand import draws
from estimator.capacity.local import Localizer
from estimator.capacity.promised_pods import Group, Kinds, Lacking
from estimator.capacity.promises import NOTHING, Promised, key_of
from estimator.capacity.request import AssumedWorkload, WorkloadReference
from estimator.capacity.room import Room
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
        """The same as workloads on their way, for those who count no nodes."""
        return (AssumedWorkload(one.promise.workload.namespace, one.components) for one in self.lacking)

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
        self._localizer = localizer
        self._kinds = Kinds(localizer)
        self._promised = NOTHING
        self._version: tuple[int, ...] = ()
        self._bound: tuple[int, ...] = ()
        self._everything: Held | None = None
        self._amounts: dict[str, IntVector] | None = None

    def held(self, promised: Promised, asking: WorkloadReference | None) -> Held | None:
        """What is held for others than the workload that is ``asking``; None for nothing."""
        key = None if asking is None else key_of(asking)
        everything = self._held(promised)
        if key not in promised.keys:
            return everything if everything.groups else None
        others = tuple(one for one in everything.lacking if one.promise.key != key)
        if len(others) == len(everything.lacking):
            return everything if others else None
        return self._of(others) if others else None

    def _held(self, promised: Promised) -> Held:
        """All that is held now, from what was worked out before where that still holds."""
        columns = self._mirror.columns
        version = (
            columns.version,
            self._mirror.controllers.version,
            self._mirror.admission.version,
            sum(table.version for table in columns.devices),
        )
        if promised is self._promised and version == self._version and self._everything is not None:
            return self._everything
        is_prepared = self._kinds.prepare(
            promised, (columns.eligibility_version, self._mirror.admission.version)
        )
        bound = self._holding_pods(promised)
        is_same = is_prepared and bound == self._bound
        before = self._everything if is_same else None
        self._promised, self._version, self._bound = promised, version, bound
        self._everything = self._worked_out(promised, bound, before)
        return self._everything

    def _holding_pods(self, promised: Promised) -> tuple[int, ...]:
        pods_of = self._mirror.controllers.pods_of
        counts = (
            pods_of(one.namespace, one.name, one.kind, one.group or "")
            for one in (promise.workload for promise in promised.promises)
        )
        return tuple(0 if count is None else count.holding for count in counts)

    def _of(self, lacking: tuple[Lacking, ...]) -> Held:
        reason = held_for_promised(sum(one.pods for one in lacking), len(lacking))
        return Held(self._kinds.groups(lacking), lacking, (reason,) if lacking else ())

    def _worked_out(self, promised: Promised, bound: tuple[int, ...], before: Held | None) -> Held:
        columns = self._mirror.columns
        if before is not None and self._amounts is not None:
            room = Room(columns, self._eligible)
            if room.take_amounts(self._amounts):
                return replace(before, room=room)
        if before is None:
            lacking = tuple(
                Lacking(promise, promise.pods - count)
                for promise, count in zip(promised.promises, bound, strict=True)
                if promise.pods > count
            )
            before = self._of(lacking)
        self._amounts = None
        if not before.groups or any(draws(columns.dra, group.shape) for group in before.groups):
            # Whether claims can be had takes long to find out: that is up to whoever answers.
            return replace(before, room=None)
        room = Room(columns, self._eligible)
        order = columns.first_fit_order()
        for group in before.groups:
            _hold(room, group, order)
        if not room.has_devices:
            self._amounts = room.taken
        return replace(before, room=room)


def _hold(room: Room, group: Group, order: IntVector) -> None:
    """Take the room of the group's pods, of as many as there is room for."""
    fits = room.fits(group.shape)
    placed = np.zeros_like(fits)
    left = group.count
    for node, pods in group.where:
        row = room.nodes.row_of(node)
        if row is not None:
            here = min(left, pods, int(fits[row]))
            placed[row] += here
            fits[row] -= here
            left -= here
    if left:
        in_order = fits[order]
        before = np.cumsum(in_order) - in_order
        placed[order] += np.clip(left - before, 0, in_order)
    room.take(group.shape, placed)
