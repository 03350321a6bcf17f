"""What one queue does with workloads of several flavors, worked out by looking at every combination.

Shares no code with what it judges. The queue stands alone, or has a neighbour that lends it all it owns.
"""

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from random import Random

import pytest

from queue_dispatcher.cycle.actions import Admit, Decision
from queue_dispatcher.cycle.decide import decide
from queue_dispatcher.cycle.items import Alternative, Item, Shape, probe_of
from queue_dispatcher.cycle.snapshot import Snapshot, Verdict
from queue_dispatcher.ledger.cells import Cell
from tests.dispatcher.cycle.builders import BEST_EFFORT, STRICT, Fleet, bound, preplaced, wherever
from tests.dispatcher.ledger.builders import cell, charge, queue, root

CELLS = ("one_gpu", "two_gpu", "three_gpu", "one_cpu", "all_cpu")
CLUSTERS = {"one": "ab", "two": "c", "three": "b"}
LOTS = 1_000

Combination = tuple[Alternative, ...]


def clusters_of(combination: Combination) -> frozenset[str] | None:
    found = None
    for one in combination:
        if one.clusters is not None:
            found = one.clusters if found is None else found & one.clusters
    return found


def charge_of(combination: Combination) -> Counter[Cell]:
    total: Counter[Cell] = Counter()
    for one in combination:
        total.update(dict(one.charge))
    return total


@dataclass
class Oracle:
    """A decision, worked out. ``quotas``: of the queue; ``lent``: what a neighbour owns and does not use."""

    snapshot: Snapshot
    quotas: dict[Cell, int]
    lent: dict[Cell, int]
    used: Counter[Cell]
    is_strict: bool
    admitted: list[tuple[str, Counter[Cell], frozenset[str] | None]] = field(default_factory=list)
    set_aside: dict[int, str] = field(default_factory=dict)
    blocked: Item | None = None
    is_sure: bool = True

    def __post_init__(self) -> None:
        self.tokens = {False: self.snapshot.tokens, True: self.snapshot.preplaced_tokens}
        self.capacity = {c: free + self.used[c] for c, free in self.snapshot.envelope.items()}
        self.kept: Counter[Cell] = Counter()
        self.taken: list[tuple[str, Verdict]] = []

    # What there is.

    def most(self, of: Cell) -> int:
        quota = self.quotas.get(of, 0) + self.lent.get(of, 0)
        return min(quota, self.capacity.get(of, LOTS))

    def left(self, of: Cell) -> int:
        return self.most(of) - self.used[of] - self.kept[of]

    def borrows(self, amounts: Counter[Cell]) -> bool:
        return any(self.used[c] + n > self.quotas.get(c, 0) for c, n in amounts.items())

    # What a workload may be charged.

    def narrowed(self, one: Alternative) -> Alternative:
        able = [p for p in one.places if all(n <= self.most(c) for c, n in p.charge)]
        if not able or len(able) == len(one.places):
            return one
        clusters = [p.clusters for p in able if p.clusters is not None]
        joint = wherever(*able)
        return replace(joint, clusters=frozenset().union(*clusters) if clusters else None)

    def combinations(self, shape: Shape) -> Iterator[Combination]:
        """In the order in which they are preferred, one place each."""
        return self._combinations(shape, [[self.narrowed(one) for one in part] for part in shape.parts], ())

    def _combinations(
        self, shape: Shape, parts: list[list[Alternative]], chosen: Combination
    ) -> Iterator[Combination]:
        if len(chosen) == len(parts):
            yield chosen
            return
        options = parts[len(chosen)]
        if shape.avoids_borrowing:

            def is_far(one: Alternative) -> bool:
                before = charge_of(chosen)
                return self.borrows(Counter({c: n + before[c] for c, n in one.charge}))

            options = sorted(options, key=is_far)
        for one in options:
            beside = (*chosen, one)
            if clusters_of(beside) != frozenset():
                yield from self._combinations(shape, parts, beside)

    def question(self, shape: Shape, combination: Combination) -> str:
        return probe_of(shape, Alternative((), (), clusters=clusters_of(combination)))

    def verdict(self, shape: Shape, combination: Combination) -> Verdict | None:
        return self.snapshot.verdicts.get(self.question(shape, combination)) if shape.probe else None

    def is_refused(self, shape: Shape, combination: Combination) -> bool:
        verdict = self.verdict(shape, combination)
        if verdict is None:
            return False
        is_bound = any(one.clusters is not None and not one.places for one in combination)
        return verdict.fits <= 0 or (is_bound and verdict.rooms is None)

    def lacks(self, combination: Combination) -> list[Cell]:
        return [c for c, n in charge_of(combination).items() if n > self.left(c)]

    def could_ever(self, shape: Shape, combination: Combination) -> bool:
        verdict = self.verdict(shape, combination)
        is_never = verdict is not None and verdict.never
        return not is_never and all(n <= self.most(c) for c, n in charge_of(combination).items())

    def is_used_up(self, question: str, verdict: Verdict) -> bool:
        left = verdict.fits
        for other, taken in self.taken:
            if other == question:
                left -= 1
            elif taken.clusters & verdict.clusters:
                return True
        return left <= 0

    def first(self, shape: Shape) -> Combination | None:
        for combination in self.combinations(shape):
            if not self.lacks(combination) and not self.is_refused(shape, combination):
                return combination
        return None

    def kind(self, shape: Shape, combination: Combination) -> bool:
        verdict = self.verdict(shape, combination)
        return shape.may_preplace and bool(shape.probe) and (verdict is None or verdict.rooms is not None)

    # The cycle.

    def run(self, items: list[Item]) -> None:
        blind = any(v.fits > 0 and v.rooms is None for v in self.snapshot.verdicts.values())
        kinds = {item.shape.may_preplace and bool(item.shape.probe) for item in items}
        kinds |= {False} if blind and True in kinds else set()
        refused: set[int] = set()
        for item in items:
            if self.blocked is not None:
                break
            shape, is_over = item.shape, all(self.tokens[kind] <= 0 for kind in kinds)
            if id(shape) in refused or id(shape) in self.set_aside:
                continue
            found = self.first(shape)
            if found is None:
                refused.add(id(shape))
                if self.is_strict and any(self.could_ever(shape, one) for one in self.combinations(shape)):
                    self.blocked = item
                continue
            if is_over:
                break
            why = self.play(item, found)
            if why:
                self.set_aside[id(shape)] = why
                self.kept += charge_of(found)
                self.is_sure = self.is_sure and not self.lent
                self.blocked = item if self.is_strict else None

    def play(self, item: Item, found: Combination) -> str:
        """Why it is set aside; empty if it is admitted."""
        verdict, question = self.verdict(item.shape, found), self.question(item.shape, found)
        if item.shape.probe and (verdict is None or self.is_used_up(question, verdict)):
            return "WaitingForEstimate"
        kind = self.kind(item.shape, found)
        if self.tokens[kind] <= 0:
            return "ReleaseWindowFull"
        self.tokens[kind] -= len(item.members)
        if verdict is not None:
            self.taken.append((question, verdict))
        self.used += charge_of(found)
        self.admitted.append((item.id, charge_of(found), clusters_of(found)))
        return ""

    def reasons(self, shape: Shape) -> set[str]:
        """The kinds of reasons that are true, once the cycle has ended."""
        if id(shape) in self.set_aside:
            return {self.set_aside[id(shape)]}
        ever = [one for one in self.combinations(shape) if self.could_ever(shape, one)]
        if self.blocked is not None and self.blocked.shape is not shape and ever:
            return {"BehindHead"}
        found = self.first(shape)
        if found is not None:
            return {"ReleaseWindowFull"} if self.tokens[self.kind(shape, found)] <= 0 else set()
        if not ever:
            return {"NeverFits"}
        true = set()
        for one in ever:
            verdict = self.verdict(shape, one)
            if verdict is not None and verdict.fits <= 0:
                true.add("WaitingForEstimate" if verdict.unanswered else "WaitingForCapacity")
            elif self.is_refused(shape, one):
                true.add("WaitingForEstimate")
            for c in self.lacks(one):
                # What the queue itself keeps for those ahead is short of quota as well.
                quota = self.quotas.get(c, 0) + self.lent.get(c, 0) - self.used[c] - self.kept[c]
                if charge_of(one)[c] > quota:
                    true |= {"WaitingForQuota", "WaitingForBorrowing"}
                else:
                    true.add("WaitingForCapacity")
        return true


ANSWERS = (
    None,
    None,
    Verdict(0, reasons=("full",)),
    Verdict(0, reasons=("full",)),
    Verdict(0, reasons=("no such node",), never=True),
    Verdict(0, reasons=("down",), unanswered="it answers"),
    Verdict(1),
    Verdict(1, rooms=(("x", 1),)),
    Verdict(4, rooms=(("x", 9),), per=2),
)


def drawn(rng: Random) -> tuple[Snapshot, Oracle, list[Item]]:
    some, choice = rng.randrange, rng.choice
    quotas = {name: some(9) for name in CELLS}
    lent = {name: choice((0, some(6))) for name in CELLS} if rng.random() < 0.4 else {}
    if lent:
        fleet = Fleet(root("org"), queue("q", "org", **quotas), queue("beside", "org", **lent))
    else:
        fleet = Fleet(root("q", **quotas))
    used = charge(**{name: some(1 + quotas[name]) // 2 for name in CELLS})
    fleet.ledger.charge("q", used)
    is_strict = rng.random() < 0.3
    fleet.configure("q", strategy=STRICT if is_strict else BEST_EFFORT)
    shapes = [shape_of(rng) for _ in range(some(1, 6))]
    items = [
        fleet.submit("q", f"w{number}", choice(shapes), at=some(9), members=choice((1, 1, 3)))
        for number in range(some(1, 9))
    ]
    items.sort(key=lambda item: (item.enqueued_ms, item.id))
    verdicts = {}
    for way in shapes:
        if way.probe:
            said: dict[frozenset[str], Verdict] = {}
            everywhere = frozenset("abcd")
            for places in sorted({*combined(way), everywhere}, key=lambda one: (-len(one), sorted(one))):
                # Where there is no room, or nobody can tell, there is none that is known of in a part of it.
                above = [v for of, v in said.items() if places < of and (v.fits <= 0 or v.rooms is None)]
                answer = above[-1] if above else choice(ANSWERS)
                if answer is not None:
                    said[places] = answer
                    clusters = places if answer.fits else frozenset[str]()
                    for of in (places, None) if places == everywhere else (places,):
                        asked = probe_of(way, Alternative((), (), clusters=of))
                        verdicts[asked] = replace(answer, clusters=clusters)
    snapshot = fleet.snapshot(
        tokens=choice((0, 1, 2, LOTS)), preplaced_tokens=choice((0, 1, 2, LOTS)), verdicts=verdicts
    )
    names = [name for name in CELLS if rng.random() < 0.2]
    snapshot = replace(snapshot, envelope={cell(name): some(6) for name in names})
    oracle = Oracle(snapshot, named(quotas), named(lent), Counter(dict(used)), is_strict)
    return snapshot, oracle, items


def named(amounts: dict[str, int]) -> dict[Cell, int]:
    return {cell(name): amount for name, amount in amounts.items()}


def combined(way: Shape) -> set[frozenset[str]]:
    """Everywhere that a combination of alternatives, narrowed or not, may be bound to."""
    sets = {frozenset("abcd")}
    for options in way.parts:
        own = {frozenset("abcd")}
        for one in options:
            for place in (one, *one.places):
                if place.clusters is not None:
                    own |= {place.clusters} | {place.clusters | other for other in own if one.places}
        sets = {before & clusters for before in sets for clusters in own}
    return sets - {frozenset()}


def shape_of(rng: Random) -> Shape:
    amount, choice = rng.choice((1, 2, 3, 4)), rng.choice
    probe = f"p{rng.randrange(LOTS)}"
    names = rng.sample(("one", "two", "three"), rng.randint(1, 3))
    flavors = [bound(CLUSTERS[name], **{f"{name}_gpu": amount}) for name in names]
    together = "".join(sorted({letter for name in names for letter in CLUSTERS[name]}))
    gpus = (*flavors, wherever(*flavors, clusters=choice(("", together))))
    cpus = (bound("ab", one_cpu=amount), replace(bound("", all_cpu=amount), clusters=None))
    near = bound("ab", one_cpu=1)
    forms: tuple[list[tuple[Alternative, ...]], ...] = (
        [gpus],
        [gpus],
        [(flavors[0], cpus[1])],
        [gpus, cpus],
        [gpus, cpus[::-1]],
        [gpus, gpus],
        [gpus, (near, wherever(near, clusters="ab")), gpus],
    )
    made = preplaced(*choice(forms), avoids_borrowing=rng.random() < 0.3, probe=probe)
    match rng.randrange(8):
        case 0:
            return replace(made, may_preplace=False)
        case 1:
            free = [tuple(replace(one, clusters=None) for one in part if one.places) for part in (gpus, gpus)]
            return replace(made, alternatives=free[0], further=(free[1],), probe="", may_preplace=False)
    return made


def told(decision: Decision) -> list[tuple[str, Counter[Cell], frozenset[str] | None]]:
    return [
        (one.item.id, Counter(dict(one.alternative.charge)), one.alternative.clusters)
        for one in decision.actions
        if isinstance(one, Admit)
    ]


@pytest.mark.parametrize("first", range(0, 4_000, 500))
def test_a_queue_decides_as_whoever_looks_at_every_combination(first: int) -> None:
    for seed in range(first, first + 500):
        judge(seed)


def judge(seed: int) -> None:
    snapshot, oracle, items = drawn(Random(seed))
    oracle.run(items)
    if not oracle.is_sure:
        return
    decision = decide(snapshot, 0)
    assert told(decision) == oracle.admitted, seed
    waiting = {item.shape for item in items if item.id not in {one for one, _, _ in oracle.admitted}}
    for key, reason in decision.waits.items():
        assert key.shape in waiting, seed
        assert reason.kind in oracle.reasons(key.shape), (seed, reason)
    assert {key.shape for key in decision.waits} == waiting, seed
