"""Allocating the claims of one pod after the other, in the order in which kube-scheduler does it.

The search is depth-first over claims, requests, alternatives and devices, and the first full solution wins.
It visits what kube-scheduler visits, less what cannot lead anywhere: a device is not tried where an equal one
has just failed, nor where too few are left. So it finds the same devices in fewer steps.

The search keeps its own stack of generators: each yields where to go next with its move made, and takes the
move back when it is resumed. What a solution is made of is therefore simply what was not taken back.

Mirrors allocateOne and allocateDevice in structured/internal/incubating/allocator_incubating.go of
k8s.io/dynamic-resource-allocation, Kubernetes 1.36.
"""

from collections.abc import Iterator
from dataclasses import dataclass

from fairway.dra.candidates import Bundle, Candidate, Option, comparable
from fairway.dra.devices import AttributeValue
from fairway.dra.ledger import Ledger
from fairway.dra.requests import MAX_RESULTS


@dataclass(slots=True)
class Budget:
    """How many devices may still be tried; shared by all that has to be answered within one deadline."""

    steps: int

    def spend(self, steps: int = 1) -> bool:
        """Takes that many steps; False where they are not left."""
        self.steps -= steps
        return self.steps >= 0


@dataclass(frozen=True, slots=True)
class _At:
    bundle: int = 0
    choice: int = 0
    option: int | None = None
    picked: int = 0
    start: int = 0


@dataclass(frozen=True, slots=True)
class _Move:
    bundle: int
    option: Option
    candidate: Candidate
    counted: bool


_DONE = _At(bundle=-1)


class Allocation:
    """One pod's claims being allocated on a node."""

    def __init__(self, bundles: tuple[Bundle, ...], ledger: Ledger, budget: Budget) -> None:
        self._bundles = bundles
        self._ledger = ledger
        self._budget = budget
        self._moves: list[_Move] = []
        self._values: list[list[list[AttributeValue]]] = [[[] for _ in b.constraints] for b in bundles]
        self._sizes = [0] * len(bundles)
        self._live: dict[tuple[int, int, int], tuple[Candidate, ...]] = {}
        self._kinds = _kinds(bundles, ledger)
        self._stopped = False
        self.took_something = False

    def place_one(self) -> bool:
        """Allocates the claims for one more pod, and keeps what it took; False: no solution, or no steps."""
        self._live = {
            (b, c, o): self._still_free(option)
            for b, bundle in enumerate(self._bundles)
            for c, choice in enumerate(bundle.choices)
            for o, option in enumerate(choice)
        }
        if not self._search():
            return False
        self.took_something = any(not move.option.admin for move in self._moves)
        for move in self._moves:
            if move.option.admin:
                self._ledger.give_back(move.candidate, admin=True, counted=move.counted)
        self._moves.clear()
        self._values = [[[] for _ in bundle.constraints] for bundle in self._bundles]
        self._sizes = [0] * len(self._bundles)
        return True

    def _still_free(self, option: Option) -> tuple[Candidate, ...]:
        self._budget.spend(len(option.candidates))
        if option.count is not None:
            return tuple(c for c in option.candidates if self._ledger.fits(c, admin=option.admin))
        # All devices means those with enough capacity left, whoever holds them or their counters.
        return tuple(c for c in option.candidates if self._ledger.has_room(c))

    def _search(self) -> bool:
        stack = [self._next(_At())]
        while stack:
            at = next(stack[-1], None)
            if at is _DONE:
                return True
            if self._stopped or self._budget.steps < 0:
                # Whoever is on the stack takes its move back before it finds out that it must stop.
                while stack:
                    for _ in stack.pop():
                        pass
                return False
            if at is None:
                stack.pop()
            else:
                stack.append(self._next(at))
        return False

    def _next(self, at: _At) -> Iterator[_At]:
        if at.bundle == len(self._bundles):
            yield _DONE
            return
        bundle = self._bundles[at.bundle]
        if at.choice == len(bundle.choices):
            yield _At(at.bundle + 1)
            return
        choice = bundle.choices[at.choice]
        if at.option is None:
            for place in range(len(choice)):
                if self._stopped or self._budget.steps < 0:
                    break
                yield _At(at.bundle, at.choice, place)
            return
        option = choice[at.option]
        candidates = self._live[at.bundle, at.choice, at.option]
        needed = len(candidates) if option.count is None else option.count
        if option.blocked or needed == 0 or self._sizes[at.bundle] + needed - at.picked > MAX_RESULTS:
            return
        if at.picked == needed:
            yield _At(at.bundle, at.choice + 1)
            return
        failed: set[int] = set()
        for place in range(at.start, len(candidates) - (needed - at.picked) + 1):
            candidate = candidates[place]
            kind = self._kinds[candidate.place]
            if kind in failed or not self._budget.spend():
                continue
            move = self._pick(at.bundle, option, candidate)
            if move is not None:
                yield _At(at.bundle, at.choice, at.option, at.picked + 1, place + 1)
                self._unpick(move)
                failed.add(kind)
            if self._stopped or self._budget.steps < 0 or option.count is None:
                return

    def _pick(self, bundle: int, option: Option, candidate: Candidate) -> _Move | None:
        device = self._ledger.devices[candidate.place]
        if candidate.repelled or not self._ledger.fits(candidate, admin=option.admin):
            return None
        if not device.shared and any(
            move.candidate.place == candidate.place and (not option.admin or move.bundle == bundle)
            for move in self._moves
        ):
            return None
        values: list[tuple[int, AttributeValue]] = []
        for place in option.constraints:
            constraint = self._bundles[bundle].constraints[place]
            value = comparable(device, constraint.attribute)
            known = self._values[bundle][place]
            if value is None or (value in known if constraint.distinct else known[:1] not in ([], [value])):
                # For a request for all devices this is an error, which ends the search.
                self._stopped = option.count is None
                return None
            values.append((place, value))
        for place, value in values:
            self._values[bundle][place].append(value)
        move = _Move(bundle, option, candidate, self._ledger.take(candidate, admin=option.admin))
        self._moves.append(move)
        self._sizes[bundle] += 1
        return move

    def _unpick(self, move: _Move) -> None:
        self._moves.pop()
        self._sizes[move.bundle] -= 1
        for place in move.option.constraints:
            self._values[move.bundle][place].pop()
        self._ledger.give_back(move.candidate, admin=move.option.admin, counted=move.counted)


def _kinds(bundles: tuple[Bundle, ...], ledger: Ledger) -> list[int]:
    """A number for each device; devices with the same number are equal to all requests and constraints."""
    wanted: list[list[int]] = [[] for _ in ledger.devices]
    options = [option for bundle in bundles for option in bundle.options]
    # What administrators look at may be taken or free, which makes a difference to everybody else.
    watched = any(option.admin for option in options)
    for index, option in enumerate(options):
        for candidate in option.candidates:
            wanted[candidate.place].append(2 * index + candidate.repelled)
    attributes = [constraint.attribute for bundle in bundles for constraint in bundle.constraints]
    known: dict[object, int] = {}
    kinds: list[int] = []
    for place, device in enumerate(ledger.devices):
        alone = watched or device.shared or bool(device.counters) or place in ledger.shares
        values = tuple(comparable(device, name) for name in attributes)
        key = place if alone else (tuple(wanted[place]), values)
        kinds.append(known.setdefault(key, len(known)))
    return kinds
