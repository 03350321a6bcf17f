"""What a group was admitted as: who is part of one decision, and how much was decided on, in a fixed size.

It stands in each member's record, so that whoever finds a group half released can tell whom that decision
left out from who has joined since. A list of the members would grow with the square of the group.
"""

import hashlib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from queue_dispatcher.workloads.demand import Requests, requests

DIGEST_LENGTH = 32
"""Hexadecimal digits: 128 bits, so that nobody finds other uids of the same digest by trying."""


@dataclass(frozen=True, slots=True)
class Decision:
    """``members``: how many. ``digest``: of their uids, by `digest`. ``requests``: of all of them."""

    members: int
    digest: str
    requests: Requests


def digest(uids: Iterable[str]) -> str:
    """The first 128 bits of the SHA-256 of the uids, sorted, one a line; in lower hexadecimal digits."""
    return hashlib.sha256("\n".join(sorted(uids)).encode()).hexdigest()[:DIGEST_LENGTH]


def decision(members: Mapping[str, Requests]) -> Decision:
    """The decision to admit those of these uids, with what each of them asks for."""
    asked = requests(pair for of in members.values() for pair in of)
    return Decision(len(members), digest(members), asked)
