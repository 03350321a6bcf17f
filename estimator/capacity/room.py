"""The room on the nodes while an answer is worked out: what is free, less what the answer has taken.

Columns and devices are copied when first taken from, so asking costs nothing and the mirror's own never
change. A node's number of pods is the least of what its amounts and its shared devices allow.
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from types import MappingProxyType

import numpy as np

from estimator.capacity.devices.dealing import Openable
from estimator.capacity.devices.device_room import Claims, DeviceRoom, claims_of
from estimator.capacity.devices.dra_room import DraRoom
from estimator.cluster.columns import BoolVector, IntVector, NodeColumns
from estimator.cluster.devices import DeviceColumns
from estimator.fit.eligibility import Eligibility, EligibilityCache
from estimator.fit.pod_shape import PodShape
from estimator.fit.surroundings import Surroundings
from estimator.reasons import Reason, claims_unknown, claims_unmet, devices_full, filtered
from fairway.resources import PODS

# More than any pod asks for, and little enough that sums over all nodes stay far from overflowing.
_ENDLESS = 2**48

DRA = "Dynamic Resource Allocation"

Demand = tuple[tuple[str, int], ...]
Around = Mapping[PodShape, Surroundings]
"""What running pods leave to each shape that a question is about; no entry where they leave everything."""


def demand(shape: PodShape) -> Demand:
    """What one pod of the shape takes of a node: its requests and its own slot."""
    return (*shape.requests, (PODS, 1))


NOBODY: Around = MappingProxyType({})


@dataclass(frozen=True, slots=True)
class RowFits:
    """Pods of one shape per row: ``sure`` many fit, never more than ``most``.

    The two differ only where placing pods one by one finds what fits: a pod's containers ask for shared
    devices separately, or its claims need a search.
    """

    sure: IntVector
    most: IntVector


@dataclass(frozen=True, slots=True)
class DeviceLimit:
    """How many pods of a shape each row takes for its devices of one scheme; what could not be read of it.

    ``at_most`` is never below ``pods``, and the same vector where that is exact. ``classes``: the device
    classes that it claims instead of a scheme, and then ``details`` say what is in the way. ``why``: it is no
    device but a filter that caps the pods of a node.
    """

    scheme: str
    pods: IntVector
    at_most: IntVector
    problems: tuple[str, ...]
    classes: tuple[str, ...] | None = None
    details: tuple[str, ...] = ()
    why: str = ""

    def reason(self, nodes: int) -> Reason:
        """Why so many nodes take none."""
        if self.why:
            return filtered(self.scheme, self.why, nodes)
        if self.classes is None:
            return devices_full(self.scheme, nodes, self.problems)
        if self.problems:
            return claims_unknown(self.problems)
        return claims_unmet(self.classes, nodes, self.details)


class Room:
    """Free amounts per resource and row, private to one answer."""

    def __init__(self, nodes: NodeColumns, eligible: EligibilityCache, around: Around = NOBODY) -> None:
        self.nodes = nodes
        self.eligible_nodes = eligible
        self._around = around
        self._taken: dict[str, IntVector] = {}
        # Of those the ones that another room has as well, and that are copied before they are written.
        self._shared_with: frozenset[str] = frozenset()
        self._devices: dict[str, DeviceRoom] = {}
        self._dra = DraRoom(nodes)
        self._shared = tuple(table for table in nodes.devices if table.is_used)
        self._within: BoolVector | None = None
        # The only rows that pods of a shape may use, and why.
        self._restrictions: dict[PodShape, tuple[BoolVector, tuple[Reason, ...]]] = {}
        self._known: dict[PodShape, Eligibility] = {}
        self._placed: dict[PodShape, IntVector] = {}

    def eligible(self, shape: PodShape) -> Eligibility:
        """The rows that pods of this shape may use."""
        eligible = self.eligible_nodes.of(self.nodes, shape.claim)
        around = self._around.get(shape) if self._around else None
        restriction = self._restrictions.get(shape) if self._restrictions else None
        if self._within is None and restriction is None and around is None:
            return eligible
        known = self._known.get(shape)
        if known is not None:
            return known
        mask, blocked = eligible.mask, eligible.blocked
        for limit in around.limits if around is not None else ():
            if limit.rows is not None:
                left = mask & limit.rows
                turned_down = int(np.count_nonzero(mask)) - int(np.count_nonzero(left))
                if turned_down:
                    blocked = (filtered(limit.filter, limit.reason, turned_down), *blocked)
                mask = left
        if self._within is not None:
            mask = mask & self._within
        if restriction is not None:
            rows, reasons = restriction
            mask, blocked = mask & rows, (*reasons, *blocked)
        found = self._known[shape] = Eligibility(mask, int(np.count_nonzero(mask)), blocked)
        return found

    def around(self, shape: PodShape) -> Surroundings | None:
        """What pods that run already leave to the shape; None where they leave all."""
        return self._around.get(shape)

    def restrict(self, shape: PodShape, rows: BoolVector, reasons: tuple[Reason, ...]) -> None:
        """From now on pods of the shape may use no other than these rows, besides what was said before."""
        if not rows.all() or reasons:
            if shape in self._restrictions:
                before, why = self._restrictions[shape]
                rows, reasons = rows & before, (*reasons, *why)
            self._restrictions[shape] = rows, reasons
            self._known.pop(shape, None)

    def free(self, resource: str) -> IntVector:
        """Free amount per row, never negative; as good as endless where devices alone decide it.

        Not to be written.
        """
        taken = self._taken.get(resource)
        return self._untouched(resource) if taken is None else taken

    def device_limits(self, shape: PodShape) -> Iterator[DeviceLimit]:
        """What devices allow: a limit for each scheme that the shape asks anything of, and for its claims."""
        rows = len(self.nodes.rows)
        around = self._around.get(shape) if self._around else None
        for one in around.limits if around is not None else ():
            if one.caps is not None:
                capped = np.maximum(one.caps - self._placed.get(shape, 0), 0)
                yield DeviceLimit(one.filter, capped, capped, (), why=one.reason)
        for devices, claims, problems in self._claims(shape):
            if problems:
                # What cannot be read cannot be promised.
                pods = at_most = np.zeros(rows, dtype=np.int64)
            else:
                openable = self._openable(devices)
                pods = at_most = devices.limit(claims, rows, openable)
                if len(claims) > 1:
                    at_most = devices.bound(claims, rows, openable)
            yield DeviceLimit(devices.scheme.name, pods, at_most, problems)
        if self._dra.draws(shape):
            usable = self.eligible_nodes.of(self.nodes, shape.claim).mask
            limit = self._dra.limit(shape, usable, lambda: self._of_amounts(shape))
            if limit is not None:
                yield DeviceLimit(
                    DRA, limit.pods, limit.at_most, limit.problems, limit.classes, limit.details
                )

    def fits(self, shape: PodShape) -> IntVector:
        """How many pods of the shape fit on each row, zero on rows they may not use. A fresh vector."""
        return self.row_fits(shape).sure

    def row_fits(self, shape: PodShape) -> RowFits:
        """As `fits`, for sure and at most; not to be written."""
        sure = most = self._of_amounts(shape)
        for limit in self.device_limits(shape):
            sure, most = np.minimum(sure, limit.pods), np.minimum(most, limit.at_most)
        return RowFits(sure, most)

    def _of_amounts(self, shape: PodShape) -> IntVector:
        fits = self.free(PODS) * self.eligible(shape).mask
        for resource, amount in shape.requests:
            np.minimum(fits, self.free(resource) // amount, out=fits)
        return fits

    def separable(self, shapes: Iterable[PodShape]) -> bool:
        """Whether no two of the shapes draw on the same devices: then `fits` and the amounts say it all."""
        distinct = tuple(dict.fromkeys(shapes))
        if sum(self._dra.draws(shape) for shape in distinct) > 1:
            return False
        for table in self._tables(distinct):
            drawing = [shape for shape in distinct if claims_of(table.scheme, shape.ask) is not None]
            # Opening a device takes a whole unit and a pod's slot from everybody.
            if len(drawing) > 1 or (drawing and table.scheme.opens and len(distinct) > 1):
                return False
        return True

    def place(self, shape: PodShape, fits: IntVector, count: int, order: IntVector) -> IntVector | None:
        """Pods per row when ``count`` go to the first rows of ``order`` with room; None if too few fit."""
        placed = placed_first_fit(fits, count, order)
        return placed if int(placed.sum()) == count else None

    def take(self, shape: PodShape, placed: IntVector) -> None:
        """Take the room of ``placed[row]`` pods of the shape, no more than fit, from every row."""
        for devices, claims, _ in self._claims(shape):
            if not claims:
                # They cannot be read: no pod of the shape fits.
                continue
            opened = devices.take(claims, placed, self._openable(devices))
            if opened is not None:
                for resource in (opened.resource, PODS):
                    column = self._own(resource)
                    column -= opened.units
        if self._dra.draws(shape):
            self._dra.take(shape, placed)
        if self._around and shape in self._around:
            self._placed[shape] = self._placed.get(shape, 0) + placed
        for resource, amount in demand(shape):
            column = self._own(resource)
            column -= placed * amount
            np.maximum(column, 0, out=column)

    def take_what_is_free(self, shape: PodShape, pods: IntVector) -> None:
        """Take of every row as much of each amount as is free, up to what ``pods[row]`` pods ask for."""
        for resource, amount in demand(shape):
            column = self._own(resource)
            column -= np.where(pods > column // amount, column, pods * amount)

    def fork(self) -> "Room":
        """A copy to try something on."""
        twin = Room(self.nodes, self.eligible_nodes, self._around)
        twin._taken = {resource: column.copy() for resource, column in self._taken.items()}
        twin._devices = {name: devices.fork() for name, devices in self._devices.items()}
        twin._dra = self._dra.fork()
        twin._within = self._within
        twin._restrictions = dict(self._restrictions)
        twin._placed = dict(self._placed)
        return twin

    def at(self, nodes: NodeColumns) -> "Room":
        """An untouched room of the same nodes at another time."""
        return Room(nodes, self.eligible_nodes, self._around)

    def restore(self, earlier: "Room") -> None:
        """Give back all that was taken since ``earlier`` was forked off; that one must not be used again."""
        self._taken, self._devices, self._dra = earlier._taken, earlier._devices, earlier._dra
        self._shared_with = earlier._shared_with
        self._placed = earlier._placed

    def start_from(self, other: "Room") -> None:
        """Have taken, to begin with, what has been taken of another room; of the same nodes, at one moment.

        Nothing is copied before it is written, and the other must not be written any more. Claims that are
        drawn from devices are not carried over.
        """
        self._taken, self._shared_with = dict(other._taken), frozenset(other._taken)
        self._devices = {name: devices.fork() for name, devices in other._devices.items()}

    @property
    def is_bound_to_others(self) -> bool:
        """Whether what running pods are to some shape, besides the room they take, limits that."""
        return bool(self._around)

    @property
    def has_devices(self) -> bool:
        """Whether devices that pods share have been looked at."""
        return bool(self._devices)

    def take_amounts(self, amounts: Mapping[str, IntVector]) -> bool:
        """Take so much of each row of a room that is untouched; False, and nothing, where there is less."""
        left = {resource: self._untouched(resource) - taken for resource, taken in amounts.items()}
        if any(len(column) and column.min() < 0 for column in left.values()):
            return False
        self._taken = left
        return True

    def within(self, rows: BoolVector) -> "Room":
        """A copy in which no pod may use any other than these rows."""
        twin = self.fork()
        twin._within = rows if self._within is None else rows & self._within
        return twin

    def _own(self, resource: str) -> IntVector:
        column = self._taken.get(resource)
        if column is None:
            column = self._taken[resource] = self._untouched(resource).copy()
        elif resource in self._shared_with:
            column = self._taken[resource] = column.copy()
            self._shared_with -= {resource}
        return column

    def _untouched(self, resource: str) -> IntVector:
        column = self.nodes.free(resource)
        for table in self._shared:
            if resource in table.scheme.managed:
                column = np.where(table.participates(len(column)), _ENDLESS, column)
        served = self._dra.serves(resource)
        return column if served is None else np.where(served, _ENDLESS, column)

    def _openable(self, devices: DeviceRoom) -> Openable | None:
        opens = devices.scheme.opens
        return Openable(self.free(opens), self.free(PODS)) if opens else None

    def _tables(self, shapes: Iterable[PodShape]) -> Iterable[DeviceColumns]:
        if not any(shape.annotations for shape in shapes):
            return self._shared
        return [table for table in self.nodes.devices if table.is_used or table.scheme.opens]

    def _claims(self, shape: PodShape) -> Iterator[tuple[DeviceRoom, Claims, tuple[str, ...]]]:
        for table in self._tables((shape,)):
            read = claims_of(table.scheme, shape.ask)
            if read is None:
                continue
            devices = self._devices.get(table.scheme.name)
            if devices is None:
                devices = self._devices[table.scheme.name] = DeviceRoom(table)
            yield devices, read.found, read.problems


def placed_first_fit(fits: IntVector, count: int, order: IntVector) -> IntVector:
    """Pods per row when ``count``, or as many as fit, go to the first rows of ``order`` with room."""
    in_order = fits[order]
    before = np.cumsum(in_order) - in_order
    placed = np.zeros_like(fits)
    placed[order] = np.clip(count - before, 0, in_order)
    return placed
