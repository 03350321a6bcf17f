"""How many pods the claimed devices of each node serve, while an answer is worked out.

Each node has a stock, which says how many pods with given claims it serves one after the other. What an
answer takes is noted by node, and worked out only where pods with other claims ask for the same devices
later: pods that are all alike never need it, since of so many that the node serves, fewer are left.

A claim that pods share by name is allocated once, on one node, and then serves all that fit there. Where it
is not allocated yet, one node is chosen for it, the first time it is asked for, and no other is promised.
"""

from collections.abc import Callable, Iterable, Iterator
from copy import copy
from dataclasses import dataclass, field, replace

import numpy as np

from estimator.capacity.devices.dra_demand import Demand, SharedClaim, demand_of, draws
from estimator.capacity.devices.dra_tally import ClaimLimit, Tally
from estimator.cluster.columns import BoolVector, IntVector, NodeColumns
from estimator.cluster.dra_state import NamedClaim
from estimator.fit.eligibility import eligibility
from estimator.fit.pod_shape import NodeClaim, PodShape
from fairway.dra.allocation import Budget
from fairway.dra.counting import Copies
from fairway.dra.kinds import Asked, Kinds
from fairway.dra.requests import Claim
from fairway.dra.stock import MOST_PODS, NodeStock
from fairway.taints import Toleration

MOST_USERS = 256
"""The most pods that can use one claim."""

Taken = tuple[tuple[Asked, int], ...]
"""What has been taken of a row, in order: claims, and how many pods with these have been placed."""

_STEPS = 2_000_000
_ANY_TAINT = Toleration(operator="Exists")


@dataclass(frozen=True, slots=True)
class _Base:
    """The kind of stock on each row, and one stock of each kind."""

    told_apart_by: Kinds
    kinds: IntVector
    stocks: dict[int, NodeStock]


@dataclass(slots=True)
class _Common:
    """What all copies of one room have in common; ``homes``: the row that each shared claim is counted on.

    ``histories``: all that has been taken of some row, and ``numbers`` their places in it; 0 is nothing.
    """

    base: _Base | None = None
    demands: dict[PodShape, Demand] = field(default_factory=dict)
    homes: dict[str, int] = field(default_factory=dict)
    histories: list[Taken] = field(default_factory=lambda: [()])
    numbers: dict[Taken, int] = field(default_factory=lambda: {(): 0})
    budget: Budget = field(default_factory=lambda: Budget(_STEPS))


class DraRoom:
    """The devices of Dynamic Resource Allocation, less what the answer has taken; private to one answer."""

    def __init__(self, nodes: NodeColumns) -> None:
        self._nodes = nodes
        self._state = nodes.dra
        self._common = _Common()
        self._history: IntVector = np.zeros(len(nodes.rows), dtype=np.int64)
        self._allocated: dict[str, int] = {}
        self._users: dict[str, int] = {}

    def fork(self) -> "DraRoom":
        """A copy to try something on."""
        twin = copy(self)
        twin._allocated, twin._users = dict(self._allocated), dict(self._users)
        return twin

    def draws(self, shape: PodShape) -> bool:
        """Whether pods of the shape can have anything to do with such devices here."""
        return draws(self._state, shape)

    def serves(self, resource: str) -> BoolVector | None:
        """On which rows claims serve this extended resource, as its device plugin does not; None: on none."""
        if not self._state.is_used or resource not in self._state.served:
            return None
        here: BoolVector = self._nodes.present & (self._nodes.allocatable(resource) == 0)
        if self._state.elsewhere().is_empty:
            base = self._base()
            empty = [kind for kind, stock in base.stocks.items() if stock.is_empty]
            here &= ~np.isin(base.kinds, empty)
        return here

    def limit(self, shape: PodShape, usable: BoolVector, most: Callable[[], IntVector]) -> ClaimLimit | None:
        """How many pods of the shape each row serves; None where claims limit them nowhere.

        ``usable``: the rows that kube-scheduler would look at. ``most``: how many pods each row takes for all
        else.
        """
        demand = self._demand(shape)
        tally = Tally(len(self._nodes.rows), usable)
        if demand.problems:
            tally.refuse(self._nodes.present)
            return ClaimLimit(demand.classes, tally.pods, tally.at_most, (), demand.problems)
        for where, claims in self._groups(demand):
            if isinstance(claims, str):
                tally.refuse(where, claims)
            elif claims:
                self._count(tally, where, self._asked(claims))
        pending: list[SharedClaim] = []
        for shared in demand.shared:
            if shared.allocated is not None:
                self._confine(tally, shared.key, shared.allocated)
            else:
                pending.append(shared)
        if pending:
            self._settle(tally, demand, pending, most)
        if tally.gives_up:
            tally.refuse(self._nodes.present)
        if not tally.limits:
            return None
        return ClaimLimit(demand.classes, tally.pods, tally.at_most, tuple(tally.details), ())

    def take(self, shape: PodShape, placed: IntVector) -> None:
        """Take the devices of ``placed[row]`` pods of the shape from every row, no more than `limit` says."""
        demand = self._demand(shape)
        for shared in demand.shared:
            self._users[shared.key] = self._users.get(shared.key, 0) + int(placed.sum())
        for shared in self._unallocated(demand.shared):
            home = self._common.homes.get(shared.key)
            if home is not None and placed[home]:
                self._allocated[shared.key] = home
                here = np.arange(len(placed)) == home
                self._note(here, self._asked((_claim(shared),)), here.astype(np.int64))
        for where, claims in self._groups(demand):
            if claims and not isinstance(claims, str):
                self._note((placed > 0) & where, self._asked(claims), placed)

    def _note(self, rows: BoolVector, asked: Asked, pods: IntVector) -> None:
        """So many pods with these claims have been placed on each of the rows."""
        history, known = self._history.copy(), self._common.histories
        pairs, pair = np.unique(np.stack([history[rows], pods[rows]]), axis=1, return_inverse=True)
        after: list[int] = []
        for before, placed in pairs.T.tolist():
            taken = known[before]
            if taken and taken[-1][0] is asked:
                placed, taken = placed + taken[-1][1], taken[:-1]
            taken = (*taken, (asked, placed))
            after.append(self._common.numbers.setdefault(taken, len(known)))
            if after[-1] == len(known):
                known.append(taken)
        history[rows] = np.array(after, dtype=np.int64)[pair.reshape(-1)]
        self._history = history

    def _asked(self, claims: tuple[Claim, ...]) -> Asked:
        return self._state.judgement.asked(claims)

    def _demand(self, shape: PodShape) -> Demand:
        known = self._common.demands.get(shape)
        if known is None:
            known = self._common.demands[shape] = demand_of(self._state, shape)
        return known

    def _base(self) -> _Base:
        """The kind of stock that each row has when nothing is taken of it."""
        judgement, base = self._state.judgement, self._common.base
        if base is None or base.told_apart_by is not judgement.kinds:
            told_apart_by = judgement.kinds
            elsewhere = self._state.elsewhere()
            number = judgement.kind(elsewhere)
            kinds = np.full(len(self._nodes.rows), number, dtype=np.int64)
            stocks = {number: elsewhere}
            for node, stock in self._state.stocks().items():
                row = self._nodes.row_of(node)
                if row is not None:
                    number = int(judgement.kind(stock))
                    kinds[row] = number
                    stocks.setdefault(number, stock)
            base = self._common.base = _Base(told_apart_by, kinds, stocks)
        return base

    def _groups(self, demand: Demand) -> Iterator[tuple[BoolVector, tuple[Claim, ...] | str]]:
        """Rows by which of the demanded resources the device classes serve, and the claims of a pod there."""
        present = self._nodes.present
        if not demand.resources:
            yield present, demand.claims(())
            return
        served = np.stack([self._nodes.allocatable(name) == 0 for name, _ in demand.resources])
        kinds, kind = np.unique(served, axis=1, return_inverse=True)
        for index in range(kinds.shape[1]):
            yield present & (kind.reshape(-1) == index), demand.claims(kinds[:, index].tolist())

    def _count(self, tally: Tally, where: BoolVector, asked: Asked) -> None:
        base, rows = self._base(), np.flatnonzero(where)
        both = np.stack([base.kinds[rows], self._history[rows]])
        states, state = np.unique(both, axis=1, return_inverse=True)
        state = state.reshape(-1)
        found = [self._copies(base.stocks[kind], taken, asked) for kind, taken in states.T.tolist()]
        looked_at = np.unique(state[tally.usable[rows]]).tolist()
        tally.note(rows, found, state, looked_at)

    def _copies(self, stock: NodeStock, history: int, asked: Asked) -> Copies:
        """How many pods with these claims the stock serves after what has been taken of it."""
        judgement, budget = self._state.judgement, self._common.budget
        taken = self._common.histories[history]
        if len(taken) == 1 and taken[0][0] is asked:
            found, pods = judgement.copies(stock, asked, budget), taken[0][1]
            bound = found.upper_bound
            left = bound if bound >= MOST_PODS else max(0, bound - pods)
            return replace(found, value=max(0, found.value - pods), upper_bound=left)
        found = judgement.copies(self._left(stock, taken), asked, budget)
        return replace(found, reasons=()) if stock.is_empty else found

    def _left(self, stock: NodeStock, taken: Taken) -> NodeStock:
        """The stock after what has been taken of it."""
        for asked, pods in taken:
            stock = self._state.judgement.after(stock, asked, pods, self._common.budget)
        return stock

    def _now(self, row: int) -> NodeStock:
        """The stock of the row after what has been taken."""
        base = self._base()
        return self._left(base.stocks[int(base.kinds[row])], self._common.histories[self._history[row]])

    def _confine(self, tally: Tally, key: str, named: NamedClaim) -> None:
        """Keep the pods to where their allocated claim can be used."""
        here = self._nodes.present
        if named.terms is not None:
            here = eligibility(self._nodes, NodeClaim(affinity=named.terms, tolerations=(_ANY_TAINT,))).mask
        tally.confine(here, max(0, MOST_USERS - named.users - self._users.get(key, 0)))
        if int(np.count_nonzero(here)) > 1:
            # Its users would have to be counted on all of these nodes together.
            tally.refuse(here, f"claim {key} is allocated for several nodes, of which none is counted on")

    def _unallocated(self, claims: Iterable[SharedClaim]) -> list[SharedClaim]:
        return [one for one in claims if one.key not in self._allocated and one.allocated is None]

    def _settle(
        self, tally: Tally, demand: Demand, pending: list[SharedClaim], most: Callable[[], IntVector]
    ) -> None:
        """Keep the pods to the one node on which the claims that they share will be allocated."""
        first = self._unallocated(pending)
        together = self._asked(tuple(_claim(one) for one in first))
        tally.cap(max(0, MOST_USERS - max(self._users.get(one.key, 0) for one in pending)))
        if first:
            possible = Tally(len(tally.pods), tally.usable)
            self._count(possible, self._nodes.present, together)
            tally.keep(possible)
        homes = self._common.homes
        known = {homes[one.key] for one in pending if one.key in homes}
        if not known and tally.pods.any():
            best = np.minimum(tally.pods, most())
            if best.any():
                known = {int(best.argmax())}
                homes.update((one.key, row) for one in pending for row in known)
        home = known.pop() if len(known) == 1 else None
        if home is not None and first and tally.pods[home]:
            tally.pods[home] = min(int(tally.pods[home]), self._beside(home, demand, together))
        names = ", ".join(one.key for one in pending)
        tally.only(home, f"claim {names} is not allocated yet: all pods are counted on one node")

    def _beside(self, row: int, demand: Demand, together: Asked) -> int:
        """How many pods get claims of their own on the row once those that all share are allocated there."""
        judgement, budget = self._state.judgement, self._common.budget
        for where, claims in self._groups(demand):
            if where[row] and claims and not isinstance(claims, str):
                stock = judgement.after(self._now(row), together, 1, budget)
                return judgement.copies(stock, self._asked(claims), budget).value
        return MOST_PODS


def _claim(shared: SharedClaim) -> Claim:
    """What the claim asks for, which is known wherever the demand has no problem."""
    assert shared.claim is not None
    return shared.claim
