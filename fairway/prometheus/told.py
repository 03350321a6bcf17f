"""What one exporter's metrics gave, and which device a series is of."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from fairway.prometheus.answer import Sample
from fairway.prometheus.exporters import METRICS, Exporter, Metrics, Value

Key = tuple[str, ...]
"""The labels that together name a device, and the number of the MIG instance on it, empty for the whole."""


@dataclass(frozen=True, slots=True)
class Told:
    """The vectors that one exporter's metrics gave, by what was asked. ``at_s``: the moment asked about.

    ``holders``: those of all but the node agents are ``devices``.
    """

    exporter: Exporter
    at_s: float
    devices: tuple[Sample, ...]
    holders: tuple[Sample, ...] = ()
    states: tuple[Sample, ...] = ()
    values: Mapping[Value, tuple[Sample, ...]] = field(default_factory=dict)

    @property
    def metrics(self) -> Metrics:
        """What this exporter's metrics and labels are called."""
        return METRICS[self.exporter]


def key_of(metrics: Metrics, sample: Sample) -> Key | None:
    """The device that the series is of; None where a label that names it is not there."""
    named = tuple(sample.labels.get(name, "") for name in metrics.identity)
    return (*named, sample.labels.get(metrics.instance, "")) if all(named) else None


def id_of(key: Key) -> str:
    """What the device is called where its place among others does not matter."""
    *named, instance = key
    return "/".join((*named, f"gi{instance}") if instance else named)


def by_key(metrics: Metrics, samples: Iterable[Sample]) -> dict[Key, list[Sample]]:
    """The series of each device; those that name none are left out."""
    found: dict[Key, list[Sample]] = {}
    for sample in samples:
        if (key := key_of(metrics, sample)) is not None:
            found.setdefault(key, []).append(sample)
    return found


def whole(text: str) -> int | None:
    """A small number that counts something, or None."""
    return int(text) if text.isascii() and text.isdigit() and len(text) < 6 else None


def order(sample: Sample) -> tuple[tuple[str, str], ...]:
    """Something to sort series by."""
    return tuple(sorted(sample.labels.items()))


def devices(count: int) -> str:
    """So many devices, in words."""
    return f"{count:,} device{'' if count == 1 else 's'}"
