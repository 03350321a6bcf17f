"""The numbers of each device, those that can be; what cannot be is told, a sentence for each measure."""

import math
from collections.abc import Iterable

from fairway.prometheus.answer import Sample
from fairway.prometheus.exporters import Metrics, Value
from fairway.prometheus.queries import MEASURES, Measure
from fairway.prometheus.told import Key, Told, devices, key_of


class Numbers:
    """What was told, by device and measure, of several the highest. ``problems``: numbers that cannot be."""

    def __init__(self, told: Told) -> None:
        self.problems: list[str] = []
        self._found: dict[Value, dict[Key, float]] = {}
        for measure in MEASURES:
            samples = told.values.get(measure.value, ())
            bad = [sample for sample in samples if not measure.allows(sample.value)]
            if bad:
                self.problems.append(_unbelievable(told, measure, bad))
            self._found[measure.value] = _highest(told.metrics, samples, measure)

    def of(self, key: Key, value: Value, times: int = 1) -> int | None:
        """Rounded; ``times`` turns the unit of the measure into another."""
        exact = self.exact(key, value)
        return None if exact is None else int(exact * times + 0.5)

    def told(self, key: Key) -> frozenset[Value]:
        """What is told of the device, as a number that can be."""
        return frozenset(value for value, found in self._found.items() if key in found)

    def exact(self, key: Key, value: Value) -> float | None:
        """In the unit of the measure; None where it is not told."""
        return self._found[value].get(key)


def _unbelievable(told: Told, measure: Measure, bad: list[Sample]) -> str:
    count = len({key_of(told.metrics, sample) for sample in bad})
    # NaN is not in any order.
    worst = max((sample.value for sample in bad), key=lambda value: (math.isnan(value), value))
    example = "NaN" if math.isnan(worst) else f"{worst:g}"
    kind = "a whole number, " if measure.is_whole else ""
    return (
        f"{measure.value}, by {told.exporter}: expected {kind}0 to {measure.most:g} {measure.unit}, "
        f"found {example}: not used, of {devices(count)}"
    )


def _highest(metrics: Metrics, samples: Iterable[Sample], measure: Measure) -> dict[Key, float]:
    found: dict[Key, float] = {}
    for sample in samples:
        key = key_of(metrics, sample)
        if key is not None and measure.allows(sample.value):
            found[key] = max(sample.value, found.get(key, 0.0))
    return found
