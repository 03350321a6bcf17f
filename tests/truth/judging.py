"""Answers held against the truth, and the tally of them by constraint."""

from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

from tests.truth.answers import Answer, Answers
from tests.truth.cases import Case
from tests.truth.oracle import Truth

ALL = "all"
NONE_OWN, SOME_OWN = "no own pods", "own pods"


@dataclass(frozen=True)
class Judged:
    """A case, its truth and what Fairway says; ``bound`` is what a real scheduler did, if it was asked."""

    case: Case
    truth: Truth
    answers: Answers
    bound: tuple[int, ...] = ()

    def faults(self) -> list[str]:
        """What is wrong with the answers, a sentence each.

        An answer may miss the truth only where something bears on it that no list of objects tells, where it
        gives a reason and does not count as proven; and be below it where it says that more may fit. Each way
        in gives the same number.
        """
        names = ", ".join(sorted(self.case.constraints))
        told = [
            f"case {self.case.seed} ({names}): {way} says {_shown(answer)}, the scheduler binds "
            f"{self.truth}{_kept_off(self.truth)}"
            for way, answer in self.answers.by_way().items()
            if answer.value not in self.truth and not self._is_excused(answer)
        ]
        values = {way: answer.value for way, answer in self.answers.by_way().items()}
        if len(set(values.values())) > 1:
            told.append(f"case {self.case.seed}: the answers differ: {values}")
        return told

    def _is_excused(self, answer: Answer) -> bool:
        is_proven = self.answers.place.proven if answer.proven is None else answer.proven
        if is_proven:
            return False
        if self.case.unknowable:
            return bool(answer.reasons)
        return answer.value < self.truth.lowest and any("more may fit" in why for why in answer.reasons)

    def disagrees(self) -> str:
        """Where the oracle and the real scheduler differ, empty where they do not."""
        if all(count in self.truth for count in self.bound):
            return ""
        names = ", ".join(sorted(self.case.constraints))
        return (
            f"case {self.case.seed} ({names}): the oracle says {self.truth}, the scheduler bound {self.bound}"
        )


@dataclass
class Tally:
    """Of one way in, under one constraint."""

    exact: int = 0
    high: int = 0
    low: int = 0
    proven_wrong: int = 0

    def count(self, answer: Answer, truth: Truth) -> None:
        self.exact += answer.value in truth
        self.high += answer.value > truth.highest
        self.low += answer.value < truth.lowest
        self.proven_wrong += answer.proven is True and answer.value not in truth


@dataclass
class Figures:
    """By constraint: cases, cases where the oracle is not what the scheduler did, and a tally by way in."""

    cases: Counter[str] = field(default_factory=Counter)
    disagreements: Counter[str] = field(default_factory=Counter)
    by_way: dict[str, dict[str, Tally]] = field(default_factory=dict)
    differing: int = 0

    def add(self, judged: Judged) -> None:
        own = set() if SOME_OWN in judged.case.constraints else {NONE_OWN}
        answers = judged.answers.by_way()
        self.differing += len({answer.value for answer in answers.values()}) > 1
        for name in (ALL, *judged.case.constraints, *own):
            self.cases[name] += 1
            self.disagreements[name] += bool(judged.disagrees())
            for way, answer in answers.items():
                tally = self.by_way.setdefault(way, {}).setdefault(name, Tally())
                tally.count(answer, judged.truth)

    def lines(self) -> Iterator[str]:
        """A table: the share of exact answers, and how many are too high, too low, proven and wrong."""
        ways = list(self.by_way)
        yield f"{'':26}{'cases':>6}{'oracle':>8}  " + "".join(f"{way:<34}" for way in ways)
        heads = "exact %  high   low  proven wrong"
        yield f"{'':26}{'':>6}{'wrong':>8}  " + "".join(f"{heads:<34}" for _ in ways)
        for name in sorted(self.cases, key=lambda name: (name != ALL, name)):
            line = f"{name:26}{self.cases[name]:>6}{self.disagreements[name]:>8}  "
            for way in ways:
                tally = self.by_way[way][name]
                share = 100 * tally.exact / self.cases[name]
                line += f"{share:>7.1f}{tally.high:>6}{tally.low:>6}{tally.proven_wrong:>14} "
            yield line
        yield f"the three ways differ in {self.differing} of {self.cases[ALL]}"


def figures(judged: Iterable[Judged]) -> Figures:
    """The tally of all of them."""
    found = Figures()
    for each in judged:
        found.add(each)
    return found


def _shown(answer: Answer) -> str:
    sure = {True: " (proven)", False: " (not proven)", None: ""}[answer.proven]
    return f"{answer.value}{sure}"


def _kept_off(truth: Truth) -> str:
    if truth.refusal:
        return f" ({truth.refusal})"
    return f" ({', '.join(f'{name} {count}' for name, count in truth.filters)})"
