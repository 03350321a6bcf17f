"""Series of the shapes that exporters and Prometheus give them: builders for tables of behaviour."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace

from fairway.accelerators.neuron import NEURON, NEURON_CORE
from fairway.prometheus.answer import Sample
from fairway.prometheus.cluster import Cluster, placed_pods
from fairway.prometheus.exporters import Exporter, Value
from fairway.prometheus.neuron_nodes import neuron_nodes
from fairway.prometheus.told import Told
from tests.builders import PodBuilder, node
from tests.usage.agents import NOW

AT_S = NOW.timestamp()
GIB = float(2**30)
BUSY: Mapping[Value, float] = {
    Value.P50: 62.5,
    Value.P95: 97.0,
    Value.MAX: 99.0,
    Value.SAMPLES: 20.0,
    Value.MEMORY_USED: 30 * GIB,
    Value.MEMORY_PEAK: 40 * GIB,
    Value.MEMORY_TOTAL: 80 * GIB,
    Value.POWER_MAX: 350.25,
    Value.TEMPERATURE_MAX: 61.0,
    Value.THROTTLED: 0.0,
}


@dataclass(frozen=True)
class Series:
    """A device as DCGM's exporter tells of it: on node g1, and held by nobody."""

    uuid: str
    labels: Mapping[str, str] = field(
        default_factory=lambda: {
            "gpu": "0",
            "modelName": "NVIDIA H100 80GB HBM3",
            "pci_bus_id": "00000000:0F:00.0",
            "Hostname": "g1",
            "instance": "10.244.1.9:9400",
        }
    )
    values: Mapping[Value, float] = field(default_factory=lambda: BUSY)

    def with_(self, **labels: str) -> "Series":
        return replace(self, labels={**self.labels, **labels})

    def without(self, *labels: str) -> "Series":
        return replace(self, labels={name: self.labels[name] for name in self.labels if name not in labels})

    def held_by(self, pod: str, prefix: str = "exported_") -> "Series":
        namespace, _, name = pod.partition("/")
        names = {"namespace": namespace, "pod": name, "container": "main"}
        return self.with_(**{prefix + label: text for label, text in names.items()})

    def doing(self, values: Mapping[Value, float]) -> "Series":
        return replace(self, values={**self.values, **values})

    def sample(self) -> Sample:
        return Sample({"UUID": self.uuid, **self.labels} if self.uuid else dict(self.labels), 1.0)

    def value(self, value: float) -> Sample:
        key = {"UUID": self.uuid, "GPU_I_ID": self.labels.get("GPU_I_ID", "")}
        return Sample({name: text for name, text in key.items() if text}, value)


def values(series: Iterable[Series]) -> dict[Value, tuple[Sample, ...]]:
    found: dict[Value, list[Sample]] = {}
    for one in series:
        for value, number in one.values.items():
            found.setdefault(value, []).append(one.value(number))
    return {value: tuple(samples) for value, samples in found.items()}


def told(*series: Series) -> Told:
    """All of that, by DCGM's exporter at `NOW`."""
    return Told(Exporter.DCGM, AT_S, tuple(one.sample() for one in series), values=values(series))


def cluster(
    *pods: PodBuilder, nodes: Iterable[str] = ("g1", "g2"), cores: Mapping[str, int] | None = None
) -> Cluster:
    """``cores``: of a Neuron chip, by the nodes that have any."""
    names, built = tuple(nodes), [pod.build() for pod in pods]
    has = [node(name).has({NEURON: 1, NEURON_CORE: number}).build() for name, number in (cores or {}).items()]
    return Cluster(names, placed_pods(built).get, neuron_nodes(has, built))
