"""What an answer has taken of the devices of a row, in order, as one number that rows with the same share."""

from fairway.dra.kinds import Asked

Taken = tuple[tuple[Asked, int], ...]
"""Claims, and how many pods with these have been placed."""


class Histories:
    """Numbers for what may have been taken of a row, in order; 0 for nothing."""

    def __init__(self) -> None:
        self.list: list[Taken] = [()]
        self._numbers: dict[Taken, int] = {(): 0}

    def number(self, taken: Taken) -> int:
        """The number of this history."""
        found = self._numbers.get(taken)
        if found is None:
            found = self._numbers[taken] = len(self.list)
            self.list.append(taken)
        return found


def and_also(taken: Taken, asked: Asked, pods: int) -> Taken:
    """What has been taken once so many more pods with these claims are placed."""
    if taken and taken[-1][0] is asked:
        return (*taken[:-1], (asked, taken[-1][1] + pods))
    return (*taken, (asked, pods))
