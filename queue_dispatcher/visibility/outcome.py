"""What became of a question, as operators count it: one word for each thing that somebody would look into."""

from enum import StrEnum
from typing import Final


class Outcome(StrEnum):
    """A label of the metric."""

    ANSWERED = "answered"
    MALFORMED = "malformed"
    """Nothing that can be asked: 400, 405, 413."""
    UNAUTHENTICATED = "unauthenticated"
    """No token that karmada-apiserver knows: 401."""
    FORBIDDEN = "forbidden"
    """Known, and without any right to it: 403."""
    NOT_FOUND = "not_found"
    """Not there, or nothing that concerns whoever asked: 404."""
    LIMITED = "limited"
    """Beyond the bounds of one client: 429."""
    UNAVAILABLE = "unavailable"
    """Rights cannot be looked up, nothing has been read yet, or all places are taken: 503."""
    FAILED = "failed"
    """A defect of ours, or the dispatcher ended meanwhile."""
    CUT_OFF = "cut_off"
    """A connection beyond those that are kept; no request was read."""


_OF_STATUS: Final = {
    200: Outcome.ANSWERED,
    400: Outcome.MALFORMED,
    401: Outcome.UNAUTHENTICATED,
    403: Outcome.FORBIDDEN,
    404: Outcome.NOT_FOUND,
    405: Outcome.MALFORMED,
    413: Outcome.MALFORMED,
    429: Outcome.LIMITED,
    503: Outcome.UNAVAILABLE,
}


def outcome_of(status: int) -> Outcome:
    """What an answer of this HTTP status means."""
    return _OF_STATUS.get(status, Outcome.FAILED)
