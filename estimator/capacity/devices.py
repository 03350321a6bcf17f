"""How many pods the shared devices of each node take, while an answer is worked out.

A pod's share must fit on single devices, so each device says how many shares it takes and a node's number
follows: with one device to a pod their sum, and with k different devices to a pod the largest r for which
``sum(min(shares, r)) >= k * r``; that many pods can always be dealt out, turn by turn. Pods whose containers
ask separately are placed one by one instead, which is a number that surely fits, if not always the largest.
"""

from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from estimator.capacity.dealing import (
    Openable,
    dealt,
    dealt_by_numa,
    dealt_opening,
    dealt_side_by_side,
    fits_one_numa,
    summed,
)
from estimator.cluster.devices import BoolVector, DeviceColumns, IntVector
from fairway.accelerators.devices import ANY_DEVICE, PPM, DeviceClaim, PodAsk, Read, Scheme

UNLIMITED = 2**31 - 1
_STATE = ("memory_free", "cores_free", "slots_free", "touched")

Claims = tuple[DeviceClaim, ...]


@lru_cache(maxsize=4096)
def claims_of(scheme: Scheme, ask: PodAsk) -> Read[Claims] | None:
    """What a pod asks for of the scheme; None where that is nothing."""
    return scheme.claims(ask)


@dataclass(frozen=True, slots=True)
class Opened:
    """So many new devices per node row, opened out of whole units of a resource."""

    resource: str
    units: IntVector


class DeviceRoom:
    """The devices of one scheme, less what the answer has taken; private to one answer."""

    def __init__(self, table: DeviceColumns) -> None:
        self._table = table
        self._node = table.node
        self._fixed = {name: table.number(name) for name in ("memory", "cores", "slots", "numa")}
        self._state = {name: table.number(name) for name in _STATE}
        self._is_own = False

    @property
    def scheme(self) -> Scheme:
        """The scheme that the devices are shared by."""
        return self._table.scheme

    def fork(self) -> "DeviceRoom":
        """A copy to try something on."""
        twin = DeviceRoom.__new__(DeviceRoom)
        twin._table, twin._node, twin._fixed = self._table, self._node, self._fixed
        twin._state, twin._is_own = dict(self._state), False
        self._is_own = False
        return twin

    def limit(self, claims: Claims, rows: int, openable: Openable | None) -> IntVector:
        """How many pods with these claims each node row takes; `UNLIMITED` on rows outside the scheme.

        ``openable``: what may become devices; None where the scheme opens none, and then a node outside the
        scheme is not limited by it.
        """
        participates = self._table.participates(rows)
        if len(claims) == 1:
            pods = self._limit_of_one(claims[0], rows, openable)
        else:
            pods = self._limit_of_many(claims, rows, openable)
        outside = UNLIMITED if openable is None else 0
        return np.where(participates, np.minimum(pods, UNLIMITED), outside)

    def bound(self, claims: Claims, rows: int, openable: Openable | None) -> IntVector:
        """A number per node row that `limit` never exceeds: each claim with the devices to itself."""
        bound = np.full(rows, UNLIMITED, dtype=np.int64)
        for claim in claims:
            np.minimum(bound, self.limit((claim,), rows, openable), out=bound)
        return bound

    def take(self, claims: Claims, placed: IntVector, openable: Openable | None) -> Opened | None:
        """Take the devices of ``placed[row]`` pods, the fullest that still take one first.

        Answers which whole units were opened for it. ``placed`` must not exceed `limit`.
        """
        if not self._is_own:
            self._state = {name: column.copy() for name, column in self._state.items()}
            self._is_own = True
        opened = np.zeros(len(placed), dtype=np.int64)
        participates = self._table.participates(len(placed))
        by_node = _Grouped(self._node)
        for row in np.flatnonzero(placed * participates).tolist():
            pods = int(placed[row])
            indexes = by_node.of(row)
            free = 0 if openable is None else int(openable.units[row])
            for claim, times in _rounds(claims, pods):
                indexes, more = self._deal(claim, times, row, indexes, free - int(opened[row]))
                opened[row] += more
        return Opened(self.scheme.opens, opened) if openable is not None else None

    def _shares(self, claim: DeviceClaim) -> IntVector:
        """How many of the claim's shares each device takes, at most one to a pod."""
        return self._shares_of(claim, slice(None))

    def _shares_of(self, claim: DeviceClaim, which: slice | IntVector) -> IntVector:
        fixed = {name: column[which] for name, column in self._fixed.items()}
        state = {name: column[which] for name, column in self._state.items()}
        need = claim.memory or _memory_of(fixed["memory"], claim)
        need_cores = claim.cores or _cores_of(fixed["cores"], claim)
        has_cores = fixed["cores"] > 0
        if claim.exclusive:
            free = (state["touched"] == 0) & (state["slots_free"] > 0) & (state["memory_free"] >= need)
            shares: IntVector = (free & ((state["cores_free"] >= need_cores) | ~has_cores)).astype(np.int64)
        else:
            shares = np.minimum(state["slots_free"], UNLIMITED)
            if claim.memory:
                np.minimum(shares, state["memory_free"] // claim.memory, out=shares)
            elif claim.memory_ppm:
                by_memory = state["memory_free"] // np.maximum(need, 1)
                np.minimum(shares, by_memory, out=shares, where=need > 0)
            # Nothing of a device's cores may be asked for, but not where all are used.
            asks_cores = claim.cores or claim.cores_ppm
            of_cores = state["cores_free"] // need_cores if asks_cores else shares * (state["cores_free"] > 0)
            np.minimum(shares, of_cores, out=shares, where=has_cores)
        if claim.filter != ANY_DEVICE:
            shares *= self._allowed(claim)[which]
        return shares

    def _allowed(self, claim: DeviceClaim) -> BoolVector:
        allows = claim.filter.allows
        known = [device is not None and allows(device) for device in self._table.devices]
        # Devices opened by this answer carry no id or product of their own.
        return np.array([*known, *[True] * (len(self._node) - len(known))], dtype=np.bool_)

    def _new_shares(self, claim: DeviceClaim, rows: int) -> IntVector:
        """How many shares a newly opened device takes on each row."""
        memory = self._table.new_memory(rows)
        need = np.maximum(claim.memory or _memory_of(memory, claim), 1)
        shares = memory // need
        return np.minimum(shares, 1) if claim.exclusive else shares

    def _limit_of_one(self, claim: DeviceClaim, rows: int, openable: Openable | None) -> IntVector:
        shares = self._shares(claim)
        if claim.count > 1 and openable is None and not claim.same_numa and len(shares):
            layout = self._table.layout()
            pods = np.zeros(rows, dtype=np.int64)
            # A place without a device has index -1: the zero put last.
            pods[layout.nodes] = dealt_side_by_side(np.append(shares, 0)[layout.devices], claim.count)
            return pods
        has_node = self._node >= 0
        shares, node = shares[has_node], self._node[has_node]
        if claim.same_numa:
            _, group = np.unique(node * 64 + self._fixed["numa"][has_node] % 64, return_inverse=True)
            owner = np.zeros(int(group.max()) + 1 if len(group) else 0, dtype=np.int64)
            owner[group] = node
            pods = dealt(claim.count, shares, group, len(owner))
            return summed(owner, pods, rows)
        if openable is None:
            return dealt(claim.count, shares, node, rows)
        return dealt_opening(claim.count, shares, node, openable, self._new_shares(claim, rows))

    def _limit_of_many(self, claims: Claims, rows: int, openable: Openable | None) -> IntVector:
        most = self.bound(claims, rows, openable)
        by_node = _Grouped(self._node)
        alike: dict[bytes, int] = {}
        for row in np.flatnonzero(most * self._table.participates(rows)).tolist():
            indexes = by_node.of(row)
            free, slots = (0, UNLIMITED) if openable is None else openable.of(row)
            state = [self._state[name][indexes] for name in _STATE] + [
                self._fixed[name][indexes] for name in ("memory", "cores", "slots", "numa")
            ]
            key = b"".join(column.tobytes() for column in state) + bytes(
                str((free, slots, int(most[row]))), "ascii"
            )
            if any(claim.filter != ANY_DEVICE for claim in claims):
                key += bytes(str(row), "ascii")
            if key not in alike:
                alike[key] = self._one_by_one(claims, int(most[row]), row, indexes, free, slots)
            most[row] = alike[key]
        return most

    def _one_by_one(
        self, claims: Claims, most: int, row: int, indexes: IntVector, free: int, slots: int
    ) -> int:
        trial = self.fork()
        trial._state = {name: column.copy() for name, column in trial._state.items()}
        trial._is_own = True
        for pod in range(most):
            slots -= 1
            for claim in claims:
                shares = trial._shares_of(claim, indexes)
                found = int(np.count_nonzero(shares))
                could_open = min(free, slots) if trial._new_shares(claim, row + 1)[row] else 0
                if found + could_open < claim.count or (
                    claim.same_numa and not fits_one_numa(claim.count, shares, trial._fixed["numa"][indexes])
                ):
                    return pod
                indexes, more = trial._deal(claim, 1, row, indexes, free)
                free, slots = free - more, slots - more
            if slots < 0:
                return pod
        return most

    def _deal(
        self, claim: DeviceClaim, pods: int, row: int, indexes: IntVector, free: int
    ) -> tuple[IntVector, int]:
        """Give so many pods their devices on one node; the node's devices then, and how many were opened."""
        shares = np.minimum(self._shares_of(claim, indexes), pods)
        wanted = claim.count * pods
        opened = 0
        if claim.same_numa:
            taken = dealt_by_numa(claim.count, pods, shares, self._fixed["numa"][indexes])
        else:
            if free and int(shares.sum()) < wanted:
                new_shares = min(int(self._new_shares(claim, row + 1)[row]), pods)
                opened = min(free, -(-(wanted - int(shares.sum())) // max(1, new_shares)))
                indexes = self._open(row, indexes, opened)
                shares = np.concatenate([shares, np.full(opened, new_shares, dtype=np.int64)])
            order = np.lexsort((np.arange(len(shares)), shares))
            before = np.cumsum(shares[order]) - shares[order]
            taken = np.zeros_like(shares)
            taken[order] = np.clip(wanted - before, 0, shares[order])
        memory = claim.memory or _memory_of(self._fixed["memory"][indexes], claim)
        self._state["memory_free"][indexes] -= taken * memory
        cores = self._fixed["cores"][indexes]
        self._state["cores_free"][indexes] -= taken * (claim.cores or _cores_of(cores, claim)) * (cores > 0)
        slots = self._fixed["slots"][indexes] if claim.exclusive else 1
        self._state["slots_free"][indexes] -= np.minimum(taken * slots, self._state["slots_free"][indexes])
        self._state["touched"][indexes] |= taken > 0
        return indexes, opened

    def _open(self, row: int, indexes: IntVector, units: int) -> IntVector:
        first = len(self._node)
        memory = int(self._table.new_memory(row + 1)[row])
        self._node = np.concatenate([self._node, np.full(units, row, dtype=np.int64)])
        values = {"memory": memory, "cores": 0, "slots": UNLIMITED, "numa": 0}
        self._fixed = {
            name: np.concatenate([column, np.full(units, values[name], dtype=np.int64)])
            for name, column in self._fixed.items()
        }
        free = {"memory_free": memory, "cores_free": 0, "slots_free": UNLIMITED, "touched": 0}
        self._state = {
            name: np.concatenate([column, np.full(units, free[name], dtype=np.int64)])
            for name, column in self._state.items()
        }
        return np.concatenate([indexes, np.arange(first, first + units)])


class _Grouped:
    """The devices of each node, found by one sort."""

    def __init__(self, node: IntVector) -> None:
        self._order = np.argsort(node, kind="stable")
        self._sorted = node[self._order]

    def of(self, row: int) -> IntVector:
        """The devices of the node on this row."""
        start, end = np.searchsorted(self._sorted, (row, row + 1))
        return self._order[start:end]


def _rounds(claims: Claims, pods: int) -> list[tuple[DeviceClaim, int]]:
    # Several claims go pod by pod, exactly as they were counted.
    return [(claims[0], pods)] if len(claims) == 1 else [(claim, 1) for _ in range(pods) for claim in claims]


def _memory_of(memory: IntVector, claim: DeviceClaim) -> IntVector:
    return memory if claim.memory_ppm == PPM else memory * claim.memory_ppm // PPM


def _cores_of(cores: IntVector, claim: DeviceClaim) -> IntVector:
    if not claim.cores_ppm:
        return np.zeros_like(cores)
    return np.maximum(cores * claim.cores_ppm // PPM, 1)
