"""How many whole sets of several components fit: a placement is found, counted and kept as witness.

Packing sets exactly is NP-hard, so the answer is a bracket: a bound, and a placement. Where both meet the
answer is proven; each rung of this ladder is climbed only where those before left a gap:

1. the bound is each component alone and each resource's total; all of that is placed component by component;
2. first-fit is done exactly as the stock estimator does it: components in their order, nodes in its order;
3. in the time given for it, the optimum is found over patterns of pods (`estimator.capacity.sets.exact`);
4. in what is left of that, the hardest component is placed first, where it harms the others least.

The first two are the first answer; they take some ten milliseconds at 5,000 nodes.
"""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from functools import partial

from estimator.capacity.answer import NO_BOUND, NO_LIMIT, UNBOUNDED, Answer, exactly
from estimator.capacity.budget import NO_BUDGET, Budget, Expired
from estimator.capacity.replicas import max_replicas
from estimator.capacity.request import Component
from estimator.capacity.room import Room
from estimator.capacity.sets.bounds import Needed, pods_per_shape, upper_bound
from estimator.capacity.sets.exact import most_sets
from estimator.capacity.sets.first_fit import Placement, first_fit
from estimator.capacity.sets.packing import Packer, Strategy, by_component
from estimator.fit.pod_shape import PodShape
from estimator.reasons import Reason

# Shapes times nodes up to which placing by strategies is part of the first answer: a few milliseconds.
_FEW_PLACES = 2_500


@dataclass(frozen=True, slots=True)
class Sets:
    """An answer in whole sets, with a placement of that many sets (None where nothing needs a node)."""

    answer: Answer
    placement: Placement | None


def max_sets(
    room: Room,
    components: tuple[Component, ...],
    expired: Expired,
    *,
    search: Budget = NO_BUDGET,
    wanted: int = UNBOUNDED,
) -> Sets:
    """The best of `improving_sets` in the time that there is."""
    *_, best = improving_sets(room, components, expired, lambda: search, wanted=wanted)
    return best


def improving_sets(
    room: Room,
    components: tuple[Component, ...],
    expired: Expired,
    search: Callable[[], Budget],
    *,
    wanted: int = UNBOUNDED,
    with_placement: bool = True,
) -> Iterator[Sets]:
    """The largest number of whole sets found, its bound, and where the pods would go; then better ones.

    The first is never below what first-fit finds, unless ``expired`` cuts it short; it comes alone where it
    is proven. Sets beyond ``wanted`` are not looked for, while the bound is about all there are. ``search``
    is asked after the first how much time there is for a better one, which ends before ``expired`` says so;
    the room must not change meanwhile. Components without replicas need nothing; a set of nothing fits
    without limit. Without ``with_placement`` there is none beside the answer, which is sooner there.
    """
    needed = [(index, c) for index, c in enumerate(components) if c.replicas > 0]
    if not needed:
        yield Sets(NO_LIMIT, None)
        return
    per_shape = pods_per_shape(needed)
    alone: dict[PodShape, Answer] = {}
    for shape in per_shape:
        if expired():
            yield Sets(Answer(0, NO_BOUND, False, ()), {})
            return
        alone[shape] = max_replicas(room, shape)
    bound, reasons = upper_bound(room, needed, per_shape, alone)
    if bound == 0:
        yield Sets(exactly(0, *reasons), {})
        return
    found = _Search(room, needed, per_shape, alone, expired, search, wanted, with_placement, bound)
    yield from found.sets(reasons)


@dataclass(slots=True)
class _Search:
    """One search for sets: the best placement so far, and the bound that is known."""

    _room: Room
    _needed: Needed
    _per_shape: dict[PodShape, int]
    _alone: dict[PodShape, Answer]
    _expired: Expired
    _search: Callable[[], Budget]
    _wanted: int
    _with_placement: bool
    _bound: int
    _value: int = 0
    _placement: Placement = field(default_factory=dict)
    _budget: Budget = NO_BUDGET
    _late: Expired = field(init=False)
    _packer: Packer = field(init=False)
    _separable: bool = field(init=False)

    def __post_init__(self) -> None:
        self._late = self._expired
        self._packer = Packer(self._room, self._per_shape, self._alone)
        # Where shapes draw on the same devices, amounts and numbers of pods do not say what fits together.
        self._separable = self._room.separable(self._per_shape)

    def sets(self, reasons: tuple[Reason, ...]) -> Iterator[Sets]:
        """As many sets as are found up to the bound, which this may lower."""
        first, later = [self._all_at_once, self._first_fit], [self._over_patterns]
        places = len(self._per_shape) * self._room.nodes.node_count
        is_first = places <= _FEW_PLACES or not self._separable
        (first if is_first else later).append(self._by_strategies)
        self._climb(first)
        yield self._found(reasons)
        if self._ended:
            return
        budget = self._budget = self._search()
        if not budget.spent:
            self._late = lambda: self._expired() or budget.spent
            self._climb(later)
            yield self._found(reasons)

    def _climb(self, rungs: Iterable[Callable[[], None]]) -> None:
        for rung in rungs:
            rung()
            if self._ended:
                return

    @property
    def _ended(self) -> bool:
        return self._value >= self._most or self._late()

    def _found(self, reasons: tuple[Reason, ...]) -> Sets:
        return Sets(Answer(self._value, self._bound, self._value == self._bound, reasons), self._placement)

    @property
    def _most(self) -> int:
        """The sets that there is any point in looking for."""
        return min(self._bound, self._wanted)

    def _keep(self, sets: int, placement: Callable[[], Placement]) -> None:
        if sets > self._value:
            self._value = sets
            if self._with_placement:
                self._placement = placement()

    def _all_at_once(self) -> None:
        for strategy in self._packer.strategies()[:2]:
            packed = self._packer.pack(self._most, strategy, self._expired)
            if packed is not None:
                self._keep(self._most, partial(by_component, packed, self._needed, self._most))
                return

    def _over_patterns(self) -> None:
        if self._budget.spent or not self._is_linear:
            return
        found = most_sets(self._room, self._per_shape, self._alone, self._most, self._budget)
        if found.bound < self._most:
            self._bound = found.bound
        self._keep(found.sets, partial(by_component, found.packed, self._needed, found.sets))

    def _first_fit(self) -> None:
        if self._separable:
            order = self._room.nodes.first_fit_order()
            found = first_fit(self._room, self._needed, order, self._expired, self._most)
            self._keep(found.sets, found.placement)

    def _by_strategies(self) -> None:
        for strategy in self._packer.strategies():
            self._raise(strategy)
            if self._value >= self._most:
                return

    @property
    def _is_linear(self) -> bool:
        """Whether a node holds whatever its amounts, and its number of pods of each shape, allow together."""
        return self._separable and all(answer.proven for answer in self._alone.values())

    def _raise(self, strategy: Strategy) -> None:
        """Look for more sets with the strategy: one at first, for where that fails it has none to offer."""
        low, high, sets = self._value, self._most, self._value + 1
        while low < high and not self._late():
            packed = self._packer.pack(sets, strategy, self._late)
            if packed is not None:
                self._keep(sets, partial(by_component, packed, self._needed, sets))
                low = sets
            elif sets == low + 1:
                return
            else:
                high = sets - 1
            sets = (low + high + 1) // 2
