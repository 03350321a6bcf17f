"""A Prometheus that scrapes DCGM's exporter on so many nodes of eight GPUs, as a process of its own.

It answers what an estimator asks. On one node of a hundred a GPU does not work. Prints its URL once it
serves; ends when it is terminated.
"""

import json
import signal
import sys
from collections.abc import Callable, Iterator

from benchmarks import cluster
from estimator.prometheus_source import WANTED
from fairway.prometheus.exporters import Exporter, Value
from fairway.prometheus.queries import DEVICES, SERIES
from tests.prometheus.fake import Reply, prometheus

GPUS, ONE_BROKEN_IN = 8, 100
_GIB = 2**30
_Labels = dict[str, str]


def _answers(nodes: int) -> dict[str, bytes]:
    return {
        f"count({SERIES[Exporter.DCGM]})": _vector([({}, float(nodes * GPUS))]),
        DEVICES[Exporter.DCGM]: _vector((labels, 1.0) for labels in _devices(nodes)),
        WANTED.query(Value.MEMORY_TOTAL, Exporter.DCGM): _vector(
            ({"UUID": labels["UUID"]}, 80.0 * _GIB) for labels in _devices(nodes)
        ),
        WANTED.query(Value.REMAP_FAILED, Exporter.DCGM): _vector(
            ({"UUID": _uuid(number, 0)}, 1.0) for number in range(0, nodes, ONE_BROKEN_IN)
        ),
    }


def _devices(nodes: int) -> Iterator[_Labels]:
    for number in range(nodes):
        for index in range(GPUS):
            yield {
                "UUID": _uuid(number, index),
                "gpu": str(index),
                "modelName": "NVIDIA H100 80GB HBM3",
                "pci_bus_id": f"00000000:{0x10 + index:02X}:00.0",
                "Hostname": cluster.node_name(number),
                "node": cluster.node_name(number),
                "instance": f"10.{number >> 8}.{number & 255}.7:9400",
                "exported_namespace": "default",
                "exported_pod": f"train-{number}-{index}",
                "exported_container": "main",
                "namespace": "gpu-operator",
                "pod": f"nvidia-dcgm-exporter-{number:05x}",
                "container": "nvidia-dcgm-exporter",
            }


def _uuid(number: int, index: int) -> str:
    return f"GPU-{number:08x}-0000-0000-0000-{index:012x}"


def _vector(series: "list[tuple[_Labels, float]] | Iterator[tuple[_Labels, float]]") -> bytes:
    """As Prometheus writes it, without a space."""
    result = [{"metric": labels, "value": [1764000000.781, f"{value:g}"]} for labels, value in series]
    data = {"resultType": "vector", "result": result}
    return json.dumps({"status": "success", "data": data}, separators=(",", ":")).encode()


def _answer(answers: dict[str, bytes]) -> Callable[[str], Reply]:
    nothing = _vector([])
    return lambda query: Reply(answers.get(query, nothing))


if __name__ == "__main__":
    with prometheus(_answer(_answers(int(sys.argv[1])))) as fake:
        print(fake.url, flush=True)
        signal.pause()
