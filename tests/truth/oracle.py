"""How many pods of a template kube-scheduler binds, one by one, until no node passes its filters.

Where that hangs on which node comes first, the truth is a range. Works on plain objects; shares no code and
no assumption with what it judges.
"""

import random
from collections import Counter
from dataclasses import dataclass

from tests.truth.admission import admitted
from tests.truth.fields import Json
from tests.truth.filters import Filters
from tests.truth.volumes import Binding
from tests.truth.world import World

_STATES = 3000
_RUNS = 60

State = tuple[tuple[int, ...], Binding | None]


@dataclass(frozen=True)
class Truth:
    """``lowest`` to ``highest`` pods are bound.

    ``is_exhaustive``: every order was followed, not a sample. ``filters``: how many nodes each filter keeps
    off the pod that is left over, by one order. ``refusal``: why the API server takes no such pod, or empty.
    """

    lowest: int
    highest: int
    is_exhaustive: bool = True
    filters: tuple[tuple[str, int], ...] = ()
    refusal: str = ""

    def __contains__(self, value: int) -> bool:
        return self.lowest <= value <= self.highest

    def __str__(self) -> str:
        return str(self.lowest) if self.lowest == self.highest else f"{self.lowest}..{self.highest}"


class _Spent(Exception):
    """More states than are worth following."""


def truth(template: Json, namespace: str, world: World, *, tolerates_extended: bool = False) -> Truth:
    """The truth about pods of the template; see `admitted` for ``tolerates_extended``."""
    stored = admitted(template, namespace, world, tolerates_extended=tolerates_extended)
    if stored.refusal:
        return Truth(0, 0, refusal=stored.refusal)
    return _Search(Filters(world, stored.pod)).truth()


class _Search:
    def __init__(self, filters: Filters) -> None:
        self._filters = filters
        groups: dict[tuple[object, ...], list[int]] = {}
        for row in range(len(filters.nodes)):
            groups.setdefault(filters.influences(row), []).append(row)
        self._groups = list(groups.values())
        self._start: State = ((0,) * len(filters.nodes), None)
        self._found: dict[State, tuple[int, int]] = {}

    def truth(self) -> Truth:
        end = self._run(random.Random(0))
        reasons = Counter(name for name in self._filters.rejections(*end) if name)
        filters = tuple(sorted(reasons.items()))
        try:
            lowest, highest = self._range(self._start)
            return Truth(lowest, highest, True, filters)
        except _Spent:
            ends = [sum(self._run(random.Random(number))[0]) for number in range(_RUNS)]
            ends += [sum(self._run(None, order)[0]) for order in range(len(self._groups))]
            return Truth(min(ends), max(ends), False, filters)

    def _next(self, state: State) -> list[State]:
        """One more pod, on the first free node of each group: nodes of a group are alike to all others."""
        counts, settled = state
        rejected = self._filters.rejections(counts, settled)
        found = []
        for group in self._groups:
            row = next((row for row in group if not rejected[row]), None)
            if row is None:
                continue
            after = (*counts[:row], counts[row] + 1, *counts[row + 1 :])
            volumes = self._filters.volumes
            if settled is None and volumes.is_settled_by_first:
                found.append((after, volumes.bindings(self._filters.nodes[row])))
            else:
                found.append((after, settled))
        return found

    def _range(self, state: State) -> tuple[int, int]:
        """Fewest and most pods at the end of all orders from here."""
        known = self._found.get(state)
        if known is not None:
            return known
        if len(self._found) > _STATES:
            raise _Spent
        ends = [self._range(after) for after in self._next(state)]
        total = sum(state[0])
        result = (min(low for low, _ in ends), max(high for _, high in ends)) if ends else (total, total)
        self._found[state] = result
        return result

    def _run(self, chance: random.Random | None, order: int = 0) -> State:
        """One order to its end: by chance, each run with tastes of its own, or by turns of the groups."""
        state = self._start
        tastes = [chance.random() for _ in self._groups] if chance else []
        while after := self._next(state):
            if chance is None:
                state = after[order % len(after)]
            else:
                state = chance.choices(after, tastes[: len(after)])[0]
        return state
