"""An answer: the number, how sure it is, and why it is not larger.

The value is never above what the nodes can hold; ``upper_bound`` is never below it; ``proven`` says that
the value is the true maximum.
"""

from dataclasses import dataclass, replace

from estimator.reasons import EITHER_WAY, NOT_KNOWN, Reason

UNBOUNDED = 2**31 - 1
"""No limit is known. Karmada's sentinel MaxInt32, so it stays inside: the wire never carries it."""
NO_BOUND = UNBOUNDED - 1
"""The largest number that leaves this process: as a bound, that none is known."""


@dataclass(frozen=True, slots=True)
class Answer:
    """A number of replicas or sets with its bound and its reasons, most decisive first."""

    value: int
    upper_bound: int
    proven: bool
    reasons: tuple[Reason, ...] = ()


def exactly(value: int, *reasons: Reason) -> Answer:
    """An answer known to be the true maximum."""
    value = min(value, UNBOUNDED)
    return Answer(value, value, True, reasons)


NO_LIMIT = exactly(UNBOUNDED)


def unsure(answer: Answer, *left_out: Reason) -> Answer:
    """The answer with what it leaves out, if anything, as its last reasons: then it is not proven.

    What is left out can only make the truth smaller, so that 0 stays proven; unless it works either way.
    """
    if not left_out:
        return answer
    if any(reason.kind == EITHER_WAY for reason in left_out):
        answer = replace(answer, upper_bound=NO_BOUND, proven=False)
    proven = answer.proven and answer.value == 0
    if proven:
        left_out = tuple(reason for reason in left_out if reason.kind != NOT_KNOWN)
    return replace(answer, proven=proven, reasons=(*answer.reasons, *left_out))


def lowest(first: Answer, *others: Answer) -> Answer:
    """The answer when several limits hold at once: the lowest value, the lowest bound, all reasons.

    Mirrors how Karmada's estimator merges its plugins (framework/runtime, v1.19), where a limit that
    does not apply counts as MaxInt32. Proven when the lowest value meets the lowest bound.
    """
    answers = (first, *others)
    value = min(answer.value for answer in answers)
    bound = min(answer.upper_bound for answer in answers)
    ordered = sorted(answers, key=lambda answer: answer.value)
    return Answer(value, bound, value == bound, tuple(r for answer in ordered for r in answer.reasons))


def best(first: Answer, second: Answer) -> Answer:
    """The better of two answers to one question: the larger value, and of equal ones the lower bound."""
    larger = second if second.value > first.value else first
    bound = max(larger.value, min(first.upper_bound, second.upper_bound))
    return replace(larger, upper_bound=bound, proven=larger.value == bound)
