"""Neuron chips of what is told of their cores.

Pods hold chips, or cores of chips; what is used is told by core, and only of cores that a runtime has opened:
another does nothing. So a chip is used as much as the mean of all its cores is.
"""

from collections.abc import Iterable, Iterator

from fairway.accelerators.devices import Read
from fairway.prometheus.answer import Sample
from fairway.prometheus.cluster import Cluster
from fairway.prometheus.exporters import Value
from fairway.prometheus.queries import MEASURES, Measure
from fairway.prometheus.told import Told, whole

_MEANS = (Value.P50, Value.P95, Value.MAX)
_SUMS = (Value.MEMORY_USED, Value.MEMORY_PEAK)


def by_chip(told: Told, cluster: Cluster) -> Read[Told]:
    """What is told of cores, as told of their chips; other exporters' as it is.

    Instances on nodes of which nobody knows how many cores a chip has are left out.
    """
    core = told.metrics.core
    if not core:
        return Read(told)
    host, chip = told.metrics.identity
    places: dict[str, list[Sample]] = {}
    for sample in told.devices:
        places.setdefault(sample.labels.get(host, ""), []).append(sample)
    nodes = {name: cluster.node(found) for name, found in places.items()}
    cores = {name: cluster.neuron.cores.get(node, 0) for name, node in nodes.items() if node}
    unknown = [name for name, number in cores.items() if not number]

    def of_chip(sample: Sample) -> dict[str, str] | None:
        """Its labels, the chip's number among them."""
        number = whole(sample.labels.get(core, ""))
        per_chip = cores.get(sample.labels.get(host, ""), 1)
        if not per_chip:
            return None
        return sample.labels if number is None else {**sample.labels, chip: str(number // per_chip)}

    def folded(measure: Measure, samples: Iterable[Sample]) -> Iterator[Sample]:
        found: dict[tuple[str, str], dict[str, float]] = {}
        for sample in samples:
            labels = of_chip(sample)
            if labels is None:
                continue
            name = (labels.get(host, ""), labels.get(chip, ""))
            if not measure.allows(sample.value):
                # What no core can do is told, and not hidden in a mean.
                yield Sample({host: name[0], chip: name[1]}, sample.value)
                continue
            parts, part = found.setdefault(name, {}), labels.get(core, "")
            parts[part] = max(sample.value, parts.get(part, 0.0))
        for name, parts in found.items():
            yield Sample(
                {host: name[0], chip: name[1]},
                _of_all(measure.value, parts.values(), cores.get(name[0], 1)),
            )

    chips = tuple(
        Sample(labels, sample.value) for sample in told.devices if (labels := of_chip(sample)) is not None
    )
    values = {one.value: tuple(folded(one, told.values.get(one.value, ()))) for one in MEASURES}
    problems: tuple[str, ...] = ()
    if unknown:
        problems = (
            f"{told.exporter}, {len(unknown):,} instance{'' if len(unknown) == 1 else 's'}, such as "
            f"{min(unknown)}: expected to know how many cores a chip has, by its node's allocatable or type; "
            "not used",
        )
    return Read(Told(told.exporter, told.at_s, chips, values=values), problems)


def _of_all(value: Value, parts: Iterable[float], cores: int) -> float:
    known = tuple(parts)
    if value in _MEANS:
        return sum(known) / max(cores, len(known))
    return sum(known) if value in _SUMS else max(known)
