"""Which of several processes serves a cluster, by its name alone, so that all of them agree without asking.

Rendezvous hashing: each shard draws a number for the cluster, and the highest has it. Of N+1 shards the new
one takes its share from all others, and nothing else moves.
"""

import re
from dataclasses import dataclass
from hashlib import blake2b

MOST_SHARDS = 1000
_PATTERN = re.compile(r"([0-9]{1,4})/([0-9]{1,4})")


@dataclass(frozen=True, slots=True)
class Shard:
    """The shard ``index``, counted from 0 as the pods of a StatefulSet are, of ``count``."""

    index: int
    count: int

    def serves(self, cluster: str) -> bool:
        """Whether it is this shard that serves the cluster."""
        return shard_of(cluster, self.count) == self.index


def shard_of(cluster: str, count: int) -> int:
    """The index of the shard that serves the cluster, of ``count`` (at least 1)."""
    return max(range(count), key=lambda index: (_drawn(cluster, index), index))


def parse_shard(text: str) -> Shard | None:
    """Read ``K/N``; empty is no shard. Raises ValueError."""
    if not text:
        return None
    match = _PATTERN.fullmatch(text)
    if match is None or not int(match[1]) < int(match[2]) <= MOST_SHARDS:
        raise ValueError(
            f"expected K/N, the shard K, from 0 to N-1, of N, at most {MOST_SHARDS}: such as 0/3, 1/3, 2/3"
        )
    return Shard(int(match[1]), int(match[2]))


def shards_text(arguments: list[str]) -> str:
    """For ``N NAME...``: a line for each cluster with its shard. Raises ValueError."""
    count, *names = arguments or [""]
    if not (count.isdecimal() and 1 <= int(count[:5]) <= MOST_SHARDS and names):
        raise ValueError("expected how many shards there are and names of clusters: shards 3 member1 member2")
    return "\n".join(f"{shard_of(name, int(count))} {name}" for name in names)


def _drawn(cluster: str, index: int) -> bytes:
    return blake2b(f"{index}/{cluster}".encode(), digest_size=8).digest()
