"""How long things took, told at the end of a run; nothing here is asserted."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field


@dataclass(slots=True)
class Times:
    """Durations in seconds by what they are of."""

    seconds: dict[str, list[float]] = field(default_factory=dict)

    def add(self, what: str, durations_s: Iterable[float]) -> None:
        """More of them."""
        self.seconds.setdefault(what, []).extend(durations_s)

    def lines(self) -> Iterator[str]:
        """One for each: how many, the median, the 90th percentile and the largest, in milliseconds."""
        for what, durations_s in self.seconds.items():
            ordered = sorted(durations_s)
            yield (
                f"{what:58} n={len(ordered):3}  p50={_ms(ordered, 0.5):5}  p90={_ms(ordered, 0.9):5}  "
                f"max={_ms(ordered, 1.0):5} ms"
            )


def _ms(ordered: list[float], quantile: float) -> int:
    return round(1_000 * ordered[min(len(ordered) - 1, int(quantile * len(ordered)))])
