"""Our estimator and another one, asked the same in turn, round by round.

So whatever else the machine does disturbs both alike. Each figure is the median over the rounds, and a ratio
the median of the rounds' ratios.
"""

from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from statistics import median

from benchmarks.caller import CallFailed
from benchmarks.load import Clients, Questions, Round
from benchmarks.report import Figure, Target
from benchmarks.shapes import answer_of
from benchmarks.sides import Sides

_ROUNDS = 5
_WARM_UP_SHARE = 0.1
_PATIENCE_S = 3.0
"""How long karmada-scheduler waits for an answer."""

_SHOWN_DIFFERENCES = 3


@dataclass(frozen=True, slots=True)
class Contest:
    """The rounds of both sides, each against the one beside it.

    ``other`` is empty where there is no other side, and a single round where that took too long for more;
    ``failure`` is why it did not answer.
    """

    ours: Sequence[Round]
    other: Sequence[Round] = ()
    failure: str = ""

    def latency(self, p50: Target | None = None, p99: Target | None = None) -> list[Figure]:
        """The median and the 99th percentile of the time a call took."""
        return [
            self._figure("p50", "ms", lambda played: 1e3 * played.percentile_s(50), p50),
            self._figure("p99", "ms", lambda played: 1e3 * played.percentile_s(99), p99),
        ]

    def throughput(self, target: Target | None = None) -> Figure:
        """Calls a second of all clients together."""
        return self._figure("calls/s", "", lambda played: played.calls_per_s, target)

    def faults(self) -> list[str]:
        """Our answers that were not always the same, although the cluster was."""
        return [
            f"question {asked} got {len(replies)} different answers from one and the same cluster"
            for asked, replies in sorted(_merged(self.ours).items())
            if len(replies) > 1
        ]

    def notes(self) -> list[str]:
        """How the answers of the two sides compare."""
        if self.failure:
            return [f"the other estimator: {self.failure}"]
        if not self.other:
            return []
        ours, other = _merged(self.ours), _merged(self.other)
        asked = sorted(ours.keys() & other.keys())
        unlike = [number for number in asked if ours[number] != other[number]]
        notes = [f"same answer to {len(asked) - len(unlike)} of {len(asked)} questions"]
        notes += [
            f"question {number}: we say {_said(ours[number])}, the other says {_said(other[number])}"
            for number in unlike[:_SHOWN_DIFFERENCES]
        ]
        if len(self.other) < len(self.ours):
            notes.append(f"the other estimator was asked once: it took longer than {_PATIENCE_S:.0f} s")
        return notes

    def _figure(
        self, name: str, unit: str, of: Callable[[Round], float], target: Target | None = None
    ) -> Figure:
        value = median(of(played) for played in self.ours)
        if not self.other:
            return Figure(name, value, unit, target)
        other = median(of(played) for played in self.other)
        if len(self.other) < len(self.ours):
            return Figure(name, value, unit, target, other, value / other)
        ratio = median(of(ours) / of(theirs) for ours, theirs in zip(self.ours, self.other, strict=True))
        return Figure(name, value, unit, target, other, ratio)


def contest(sides: Sides, questions: Questions, clients: int, seconds: float) -> Contest:
    """Ask both sides in turn, for ``seconds`` each. Raises CallFailed where ours does not answer."""
    with ExitStack() as stack:
        other: Clients | None = None
        only: list[Round] = []
        failure = ""
        if sides.other is not None:
            try:
                other = stack.enter_context(Clients(sides.other, clients))
                first = other.ask(questions, seconds * _WARM_UP_SHARE)
            except CallFailed as error:
                other, failure = None, str(error)
            else:
                if max(first.waited_s) > _PATIENCE_S:
                    other, only = None, [first]
        # Connected only now, since a server gives up connections that were silent for so long.
        ours = stack.enter_context(Clients(sides.ours, clients))
        ours.ask(questions, seconds * _WARM_UP_SHARE)
        if other is None:
            return Contest([ours.ask(questions, seconds / _ROUNDS) for _ in range(_ROUNDS)], only, failure)
        return _in_turn(ours, other, questions, seconds / _ROUNDS)


def _in_turn(ours: Clients, other: Clients, questions: Questions, seconds: float) -> Contest:
    played: tuple[list[Round], list[Round]] = ([], [])
    for number in range(_ROUNDS):
        # Who is asked first changes, too.
        turns = [(ours, played[0]), (other, played[1])]
        for asked, rounds in turns if number % 2 == 0 else reversed(turns):
            try:
                rounds.append(asked.ask(questions, seconds))
            except CallFailed as error:
                if asked is ours:
                    raise
                return Contest(played[0] or [ours.ask(questions, seconds)], (), str(error))
    return Contest(*played)


def _said(replies: set[bytes]) -> str:
    return " and ".join(str(answer_of(reply)) for reply in sorted(replies))


def _merged(rounds: Sequence[Round]) -> dict[int, set[bytes]]:
    merged: dict[int, set[bytes]] = {}
    for played in rounds:
        for asked, replies in played.replies.items():
            merged.setdefault(asked, set()).update(replies)
    return merged
