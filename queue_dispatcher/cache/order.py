"""An order by rank, kept as its members change: who is next, without a walk over all of them."""

from bisect import bisect_left, insort


class Order:
    """Uids by rank, the lowest first. Whoever was looked at in vain is put off, and stands in the order again
    after a while, or once its rank is said anew.

    Times are monotonic milliseconds. Each change costs O(log n) and a move; one writer.
    """

    def __init__(self) -> None:
        self._ranks: dict[str, int] = {}
        self._ordered: list[tuple[int, str]] = []
        # By uid, until when it is put off, and who is put off, the first first.
        self._until: dict[str, int] = {}
        self._off: list[tuple[int, str]] = []

    def __len__(self) -> int:
        return len(self._ranks)

    def __contains__(self, uid: str) -> bool:
        return uid in self._ranks

    def put(self, uid: str, rank: int | None) -> None:
        """It stands there by this rank; None for not at all."""
        if rank is not None and self._ranks.get(uid) == rank and uid not in self._until:
            return
        before, until_ms = self._ranks.pop(uid, None), self._until.pop(uid, None)
        if until_ms is not None:
            _remove(self._off, (until_ms, uid))
        elif before is not None:
            _remove(self._ordered, (before, uid))
        if rank is not None:
            self._ranks[uid] = rank
            insort(self._ordered, (rank, uid))

    def first(self, now_ms: int, most: int | None = None) -> str | None:
        """Who is next, of those whose rank is ``most`` at most; None for nobody."""
        while self._off and self._off[0][0] <= now_ms:
            _, uid = self._off.pop(0)
            del self._until[uid]
            insort(self._ordered, (self._ranks[uid], uid))
        if not self._ordered or (most is not None and self._ordered[0][0] > most):
            return None
        return self._ordered[0][1]

    def put_off(self, uid: str, until_ms: int) -> None:
        """It is not to be looked at before, unless its rank is said anew."""
        rank = self._ranks.get(uid)
        if rank is None or uid in self._until:
            return
        _remove(self._ordered, (rank, uid))
        self._until[uid] = until_ms
        insort(self._off, (until_ms, uid))

    def next_rank(self) -> int | None:
        """The lowest rank of those that are not put off."""
        return self._ordered[0][0] if self._ordered else None

    def next_look_ms(self) -> int | None:
        """When the next one that is put off stands in the order again."""
        return self._off[0][0] if self._off else None


def _remove(ordered: list[tuple[int, str]], one: tuple[int, str]) -> None:
    del ordered[bisect_left(ordered, one)]
