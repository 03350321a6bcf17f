"""How many pods the shared devices of each node take, while an answer is worked out.

A pod's share must fit on single devices, so each device says how many shares it takes and a node's number
follows: with one device to a pod their sum, and with k different devices to a pod the largest r for which
``sum(min(shares, r)) >= k * r``; that many pods can always be dealt out, turn by turn. Pods whose containers
ask separately are placed one by one instead, which is a number that surely fits, if not always the largest.
"""

from collections import Counter
from collections.abc import Callable
from copy import copy
from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from estimator.capacity.devices.claim_by_claim import claim_by_claim
from estimator.capacity.devices.dealing import (
    Openable,
    dealt,
    dealt_opening,
    dealt_side_by_side,
    fullest_first,
    summed,
    units_to_open,
)
from estimator.capacity.devices.state import UNLIMITED, DeviceState, new_shares
from estimator.cluster.columns import BoolVector, IntVector
from estimator.cluster.devices import DeviceColumns
from fairway.accelerators.devices import ANY_DEVICE, DeviceClaim, DeviceFilter, PodAsk, Read, Scheme

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
        self._state = DeviceState.of(table)
        self._is_own = False
        self._is_taken_from = False

    @property
    def scheme(self) -> Scheme:
        """The scheme that the devices are shared by."""
        return self._table.scheme

    def fork(self) -> "DeviceRoom":
        """A copy to try something on."""
        self._is_own = False
        return copy(self)

    def limit(self, claims: Claims, rows: int, openable: Openable | None) -> IntVector:
        """How many pods with these claims each node row takes; `UNLIMITED` on rows outside the scheme.

        ``openable``: what may become devices; None where the scheme opens none, and then a node outside the
        scheme is not limited by it. Exact where a pod's claims are all the same; else see `bound`. Not to be
        written.
        """
        return self._worked_out(DeviceRoom._limit, claims, rows, openable)

    def bound(self, claims: Claims, rows: int, openable: Openable | None) -> IntVector:
        """A number per node row that `limit` never exceeds, nor the truth. Not to be written.

        Each claim has the devices to itself; and all together cannot have more than the devices' sums.
        """
        return self._worked_out(DeviceRoom._bound, claims, rows, openable)

    def _worked_out(self, work: "_Work", claims: Claims, rows: int, openable: Openable | None) -> IntVector:
        """What ``work`` finds, remembered as long as the devices are as the table has them.

        Nodes with like devices, used alike, get one answer, which then outlives what changes on single nodes.
        """
        if self._is_taken_from or openable is not None:
            return work(self, claims, rows, openable)
        return self._table.remembered((work, claims, rows), lambda: self._by_kind(work, claims, rows))

    def _by_kind(self, work: "_Work", claims: Claims, rows: int) -> IntVector:
        names_devices = any(claim.filter.ids or claim.filter.not_ids for claim in claims)
        few = None if names_devices else self._table.one_of_each()
        if few is None:
            return work(self, claims, rows, None)
        kinds = self._table.kinds
        found = few.remembered((work, claims), lambda: work(DeviceRoom(few), claims, kinds, None))
        spread: IntVector = np.append(found, UNLIMITED)[self._table.kind_of(rows)]
        return spread

    def _limit(self, claims: Claims, rows: int, openable: Openable | None) -> IntVector:
        each = dict.fromkeys(claims)
        if len(claims) == 1:
            pods = self._limit_of_one(claims[0], rows, openable)
        elif len(each) == 1 and openable is None:
            pods = self._limit_of_one(claims[0], rows, None) // len(claims)
        else:
            pods = self._limit_of_many(claims, rows, openable)
        outside = UNLIMITED if openable is None else 0
        return np.where(self._table.participates(rows), np.minimum(pods, UNLIMITED), outside)

    def _bound(self, claims: Claims, rows: int, openable: Openable | None) -> IntVector:
        bound = np.full(rows, UNLIMITED, dtype=np.int64)
        if openable is None and len(claims) > 1:
            here = self._node >= 0
            for free, needed in (
                (self._state.slots_free, sum(claim.count for claim in claims)),
                (self._state.memory_free, sum(claim.count * claim.memory for claim in claims)),
            ):
                if needed:
                    in_all = summed(self._node[here], free[here], rows) // needed
                    np.minimum(bound, in_all, out=bound, where=self._table.participates(rows))
        for claim, times in Counter(claims).items():
            alike = (claim,) * times if openable is None else (claim,)
            np.minimum(bound, self.limit(alike, rows, openable), out=bound)
        return bound

    def take(self, claims: Claims, placed: IntVector, openable: Openable | None) -> Opened | None:
        """Take the devices of ``placed[row]`` pods, the fullest that still take one first.

        Answers which whole units were opened for it. ``placed`` must not exceed `limit`.
        """
        if not self._is_own:
            self._state, self._is_own, self._is_taken_from = self._state.copy(), True, True
        placed = placed * self._table.participates(len(placed))
        opened = np.zeros_like(placed)
        if len(set(claims)) == 1 and (len(claims) == 1 or openable is None):
            opened = self._take_alike(claims[0], placed * len(claims), openable)
        else:
            self._one_by_one(claims, placed, keep=True)
        return Opened(self.scheme.opens, opened) if openable is not None else None

    def _shares(self, claim: DeviceClaim) -> IntVector:
        shares = self._state.shares(claim)
        if claim.filter != ANY_DEVICE:
            shares *= self._allowed(claim.filter)
        return shares

    def _allowed(self, filter: DeviceFilter) -> BoolVector:
        # Devices opened by this answer carry no id or product of their own.
        known = self._table.arrangement().allowed(filter)
        return np.concatenate([known, np.ones(len(self._node) - len(known), dtype=np.bool_)])

    def _one_by_one(self, claims: Claims, most: IntVector, *, keep: bool = False) -> IntVector:
        """How many pods each row takes one after the other, ``most[row]`` at most; what they take is kept."""
        pods = np.zeros_like(most)
        for block in self._table.arrangement().layout():
            devices = block.devices.T
            part = self._state.at(devices)
            allowed = [self._allowed(claim.filter)[devices] for claim in claims]
            pods[block.nodes] = claim_by_claim(part, claims, allowed, most[block.nodes])
            if keep:
                self._state.put(devices, part)
        return pods

    def _limit_of_one(self, claim: DeviceClaim, rows: int, openable: Openable | None) -> IntVector:
        if openable is not None:
            total = self._worked_out(DeviceRoom._in_all, (claim,), rows, None)
            new = self._table.remembered(
                (claim, rows), lambda: new_shares(self._table.new_memory(rows), claim)
            )
            return dealt_opening(claim.count, total, lambda pods: self._held(claim, pods), openable, new)
        shares = self._shares(claim)
        pods = np.zeros(rows, dtype=np.int64)
        for block in self._table.arrangement().layout(by_numa=claim.same_numa):
            dealt_here = dealt_side_by_side(shares[block.devices], claim.count)
            pods += summed(block.nodes, dealt_here, rows)
        return pods

    def _in_all(self, claims: Claims, rows: int, openable: Openable | None) -> IntVector:
        """How many shares all devices of a row have."""
        here = self._node >= 0
        return summed(self._node[here], self._shares(claims[0])[here], rows)

    def _held(self, claim: DeviceClaim, pods: IntVector) -> IntVector:
        """How many shares of a row's devices so many pods can use."""
        here = self._node >= 0
        node = self._node[here]
        return summed(node, np.minimum(self._shares(claim)[here], pods[node]), len(pods))

    def _limit_of_many(self, claims: Claims, rows: int, openable: Openable | None) -> IntVector:
        # Where devices can be opened, only those that are there are counted for such pods.
        pods = self._one_by_one(claims, self.bound(claims, rows, openable) * self._table.participates(rows))
        return pods if openable is None else np.minimum(pods, openable.slots)

    def _take_alike(self, claim: DeviceClaim, pods: IntVector, openable: Openable | None) -> IntVector:
        """Take one claim for each of so many pods on each row; how many devices were opened for that."""
        opened = np.zeros_like(pods) if openable is None else self._open(claim, pods)
        here = np.flatnonzero((self._node >= 0) & (pods > 0)[self._node])
        node = self._node[here]
        shares = np.minimum(self._shares(claim)[here], pods[node])
        group, now = node, pods
        if claim.same_numa:
            owner, group = np.unique(node * 64 + self._state.numa[here] % 64, return_inverse=True)
            owner //= 64
            fits = dealt(claim.count, shares, group, len(owner))
            now = fullest_first(fits, owner, pods)
            shares = np.minimum(shares, now[group])
        taken = np.zeros(len(self._node), dtype=np.int64)
        taken[here] = fullest_first(shares, group, claim.count * now)
        self._state.take(claim, taken)
        return opened

    def _open(self, claim: DeviceClaim, pods: IntVector) -> IntVector:
        """Open the devices that so many pods need beside those that are there."""
        held = self._held(claim, pods)
        memory = self._table.new_memory(len(pods))
        each = np.minimum(new_shares(memory, claim), pods)
        opened = units_to_open(claim.count * pods - held, each)
        if opened.any():
            rows = np.repeat(np.arange(len(pods)), opened)
            self._node = np.concatenate([self._node, rows])
            self._state = self._state.with_new(memory[rows])
        return opened


_Work = Callable[[DeviceRoom, Claims, int, Openable | None], IntVector]
