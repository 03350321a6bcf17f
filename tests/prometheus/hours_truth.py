"""The last days of the drawn month as series, and Prometheus's own answers about their device-hours.

``python -m tests.prometheus.hours_truth`` asks anew, after a change of a query, and writes the answers down:
prometheus and promtool have to be in the PATH.
"""

import asyncio
import json
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, date, datetime
from pathlib import Path
from urllib.parse import urlencode
from urllib.request import urlopen

from fairway.prometheus.exporters import Exporter
from fairway.prometheus.hours import EXPORTERS
from fairway.prometheus.hours_client import ask_hours
from fairway.prometheus.server import Server
from fairway.usage.hours import ClusterHours, Period
from tests.prometheus.fake import Asked, Reply, prometheus_by_request
from tests.prometheus.truth import Level, real
from tests.usage.drawn_month import END_S, Device, Month, drawn

RECORDED = Path(__file__).parent / "recorded_hours.json"
DAYS = Period(date(2026, 11, 20), date(2026, 11, 22))
BEGIN_S = int(datetime(2026, 11, 20, tzinfo=UTC).timestamp())
SCRAPED_EVERY_S = 60
GONE = (BEGIN_S + 100_000, BEGIN_S + 110_800)
"""When Prometheus was down."""

MONTH = drawn(3)


def _lines(name: str, labels: dict[str, str], of: Level) -> Iterator[str]:
    text = ",".join(f'{label}="{value}"' for label, value in labels.items())
    for at_s in range(BEGIN_S, END_S, SCRAPED_EVERY_S):
        value = None if GONE[0] <= at_s < GONE[1] else of(at_s)
        if value is not None:
            yield f"{name}{{{text}}} {value} {at_s}\n"


def agents(month: Month) -> str:
    """What Prometheus keeps of node agents that it scrapes without honouring their labels."""
    names = ("info", "utilization_ratio", "holder")
    families: dict[str, list[str]] = {f"fairway_node_device_{name}": [] for name in names}
    info, used, holder = families.values()
    target = {"namespace": "fairway-node-agent", "container": "node-agent", "job": "agents"}
    for device in month.devices:
        own = {
            "uuid": device.id,
            "index": str(device.index),
            "product": "NVIDIA H100 80GB HBM3",
            "mig_profile": "1g.10gb" if device.is_instance else "",
            "instance": device.node,
            "pod": f"agent-{device.node}",
            **target,
        }
        info += _lines("fairway_node_device_info", own, lambda _: 1)
        used += _lines("fairway_node_device_utilization_ratio", own, _ratio(device))
        for number, (namespace, queue) in _holders(device):
            held = {
                **own,
                "exported_namespace": namespace,
                "exported_pod": f"p-{number}",
                "exported_container": "main",
                "queue": queue,
                "source": "PodResources",
            }
            holder += _lines("fairway_node_device_holder", held, _held(device, number, (namespace, queue)))
        intruder = {**own, "exported_namespace": "intruder", "exported_pod": "p", "source": "Cgroup"}
        holder += _lines("fairway_node_device_holder", intruder, lambda _: 1)
    return _text(families)


def dcgm(month: Month) -> str:
    """What Prometheus keeps of DCGM's exporter: a device that nobody holds bears the exporter's own pod.

    Its labels name one pod a device, so that of several the first counts.
    """
    util, active, up = "DCGM_FI_DEV_GPU_UTIL", "DCGM_FI_PROF_GR_ENGINE_ACTIVE", "up"
    families: dict[str, list[str]] = {util: [], active: [], up: []}
    for node in month.outages:
        target = _exporter(node)
        families[up] += _lines(up, target, lambda _: 1)
    for device in month.devices:
        name = active if device.is_instance else util
        cut = {"GPU_I_ID": "3", "GPU_I_PROFILE": "1g.10gb"} if device.is_instance else {}
        own = {"UUID": device.id, "gpu": str(device.index), "modelName": "NVIDIA H100 80GB HBM3", **cut}
        own |= _exporter(device.node)
        factor = 1 if device.is_instance else 100
        families[name] += _lines(name, own, _dcgm_value(device, None, factor))
        for namespace in sorted({team[0] for _, team in _holders(device)}):
            held = {**own, "exported_namespace": namespace, "exported_pod": "p", "exported_container": "main"}
            families[name] += _lines(name, held, _dcgm_value(device, namespace, factor))
    return _text(families)


def _exporter(node: str) -> dict[str, str]:
    return {
        "job": "dcgm",
        "instance": f"{node}:9400",
        "namespace": "gpu-operator",
        "pod": f"dcgm-{node}",
        "container": "dcgm",
    }


def _text(families: dict[str, list[str]]) -> str:
    return "".join(f"# TYPE {name} gauge\n{''.join(text)}" for name, text in families.items()) + "# EOF\n"


def _ratio(device: Device) -> Level:
    def of(at_s: int) -> float | None:
        percent = device.at(at_s + 1).percent
        return None if percent is None else percent / 100

    return of


def _holders(device: Device) -> list[tuple[int, tuple[str, str]]]:
    """Every place among a device's holders, and every team that ever has it."""
    late = [one for one in device.stretches if one.end_s > BEGIN_S]
    return sorted({(number, team) for one in late for number, team in enumerate(one.teams)})


def _held(device: Device, number: int, team: tuple[str, str]) -> Level:
    def of(at_s: int) -> float | None:
        teams = device.at(at_s + 1).teams
        return 1 if number < len(teams) and teams[number] == team else None

    return of


def _dcgm_value(device: Device, namespace: str | None, factor: int) -> Level:
    """A device that does not tell is told as 0 %: a series without a value names no pod."""

    def of(at_s: int) -> float | None:
        now = device.at(at_s + 1)
        first = now.teams[0][0] if now.teams else None
        return (now.percent or 0) * factor / 100 if first == namespace else None

    return of


def asked(url: str) -> ClusterHours:
    return asyncio.run(ask_hours(Server(url), "east", DAYS, END_S, lambda _: None))


@contextmanager
def really(exporter: Exporter) -> Iterator[str]:
    """The URL of a Prometheus with the series of one exporter.

    Series that were loaded end without a mark, as scraped ones do not.
    """
    text = agents(MONTH) if exporter is Exporter.AGENT else dcgm(MONTH)
    with real(text, f"--query.lookback-delta={SCRAPED_EVERY_S}s") as url:
        yield url


@contextmanager
def recorded(exporter: Exporter) -> Iterator[str]:
    """The URL of what answers as it did."""
    answers: dict[str, object] = json.loads(RECORDED.read_text())[exporter.name]

    def answer(request: Asked) -> Reply:
        key = f"{request.params['time']} {request.params['query']}"
        return Reply(json.dumps(answers[key]).encode()) if key in answers else Reply(_STALE, 500)

    with prometheus_by_request(answer) as fake:
        yield fake.url


_STALE = b"not recorded: run python -m tests.prometheus.hours_truth"


def _record() -> None:
    everything: dict[str, dict[str, object]] = {}
    for exporter in EXPORTERS:
        answers = everything.setdefault(exporter.name, {})
        with really(exporter) as url:

            def answer(request: Asked, url: str = url, answers: dict[str, object] = answers) -> Reply:
                asked_for = {name: request.params[name] for name in ("query", "time")}
                with urlopen(f"{url}/api/v1/query?{urlencode(asked_for)}", timeout=60) as reply:
                    body: bytes = reply.read()
                answers[f"{request.params['time']} {request.params['query']}"] = json.loads(body)
                return Reply(body)

            with prometheus_by_request(answer) as between:
                asked(between.url)
    RECORDED.write_text(json.dumps(everything, indent=1, sort_keys=True) + "\n")


if __name__ == "__main__":
    _record()
