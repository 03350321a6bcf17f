"""Device-hours from Prometheus: what is asked, in bounded pieces of time, and what the answers are.

The one idea: who holds a device, times what the device does, is summed up in Prometheus at every step of a
piece, so that one small vector by team comes back. A step in which a series is not there counts for nothing:
it is not observed. Pieces end where days end, and hold no more samples than Prometheus allows a query.
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, date, datetime
from enum import StrEnum
from typing import Final

from fairway.accelerators.mig_geometry import most_instances
from fairway.accelerators.product_names import spelled
from fairway.prometheus.answer import Sample
from fairway.prometheus.exporters import Exporter
from fairway.prometheus.queries import SERIES, UTILIZATION
from fairway.usage.definitions import THRESHOLDS
from fairway.usage.hours import Period, TeamDay

STEP_S: Final = 60
COARSE_STEP_S: Final = 300
"""For so much time of so many devices that a step of a minute would take too long."""
MOST_PIECE_SAMPLES: Final = 4_000_000
"""Series times steps of a piece: several times so many are in memory at once, of 50 million allowed."""
MOST_FINE_SAMPLES: Final = 60_000_000
_DAY_S: Final = 86_400


class Sum(StrEnum):
    """One query of a piece; the value is its name for people."""

    ALLOCATED = "device-hours allocated"
    MEASURED = "device-hours measured"
    USED = "device-hours used"
    QUIET = "device-hours quiet"
    SEEN = "devices observed"


@dataclass(frozen=True, slots=True)
class Piece:
    """The steps from ``begin_s`` on, ``end_s`` not among them; both are multiples of the step."""

    begin_s: int
    end_s: int
    step_s: int

    @property
    def day(self) -> date:
        """The day that it is of."""
        return datetime.fromtimestamp(self.begin_s, UTC).date()

    @property
    def at_s(self) -> int:
        """The moment to ask about: a second early, so that Prometheus 2 and 3 take the same steps."""
        return self.end_s - 1


def pieces(period: Period, now_s: float, series: float) -> Iterator[Piece]:
    """The period, as far as it is over, in pieces that so many series can be asked about."""
    first = datetime(period.first.year, period.first.month, period.first.day, tzinfo=UTC)
    begin_s = int(first.timestamp())
    end_s = min(begin_s + len(period.days) * _DAY_S, int(now_s))
    fine = (end_s - begin_s) // STEP_S * series <= MOST_FINE_SAMPLES
    step_s = STEP_S if fine else COARSE_STEP_S
    end_s = end_s // step_s * step_s
    length_s = max(1, int(MOST_PIECE_SAMPLES / max(1.0, series))) * step_s
    while begin_s < end_s:
        day_ends_s = (begin_s // _DAY_S + 1) * _DAY_S
        stop_s = min(begin_s + length_s, day_ends_s, end_s)
        yield Piece(begin_s, stop_s, step_s)
        begin_s = stop_s


_OWN: Final = ("namespace", "pod", "container")
_EXPORTED: Final = tuple(f"exported_{name}" for name in _OWN)


def _teams(series: str) -> str:
    """With the label ``team``: what the exporter said, under whichever name Prometheus keeps it."""
    own = f'label_replace({series}, "team", "$1", "namespace", "(.+)")'
    return f'label_replace({own}, "team", "$1", "exported_namespace", "(.+)")'


@dataclass(frozen=True, slots=True)
class _Labels:
    device: str
    product: str
    profile: str
    holders: str


_DCGM_SERIES: Final = SERIES[Exporter.DCGM]
# Where Prometheus keeps its own labels, `pod` of a device that nobody holds is the exporter: its target.
_DCGM_HELD: Final = (
    f'({_DCGM_SERIES[:-1]}, exported_pod!=""}} or ({_DCGM_SERIES[:-1]}, pod!="", exported_pod=""}}'
    " unless on (job, instance, namespace, pod) up))"
)
_AGENT_HELD: Final = 'fairway_node_device_holder{source!="Cgroup"}'

_LABELS: Final = {
    Exporter.AGENT: _Labels("uuid", "product", "mig_profile", _AGENT_HELD),
    Exporter.DCGM: _Labels("UUID, GPU_I_ID", "modelName", "GPU_I_PROFILE", _DCGM_HELD),
}

EXPORTERS: Final = tuple(_LABELS)
"""Whose metrics tell device-hours, in the order in which they are believed."""


def queries(exporter: Exporter, piece: Piece) -> Mapping[Sum, str]:
    """What is asked at ``piece.at_s``: steps by team, product and profile, and by device that is there."""
    labels = _LABELS[exporter]
    key = f"{labels.product}, {labels.profile}"
    held = f"group by ({labels.device}, team, queue, {', '.join((*_OWN[1:], *_EXPORTED[1:]))}, {key}) "
    held += f"({_teams(labels.holders)})"
    share = f"({held}) / on ({labels.device}) group_left () count by ({labels.device}) ({held})"
    used = f"(({UTILIZATION[exporter]}) >= 0 <= 100)"
    join = f"* on ({labels.device}) group_left ()"
    by = f"sum by (team, queue, {key})"
    found = {
        Sum.ALLOCATED: f"{by} ({share})",
        Sum.MEASURED: f"{by} (({share}) {join} ({used} >= bool 0))",
        Sum.USED: f"{by} (({share}) {join} {used}) / 100",
        Sum.QUIET: f"{by} (({share}) {join} ({used} < bool {THRESHOLDS.quiet_percent}))",
        Sum.SEEN: f"group by ({labels.device}) ({SERIES[exporter]})",
    }
    span = f"[{piece.end_s - piece.begin_s}s:{piece.step_s}s]"
    return {one: f"sum_over_time(({query}){span})" for one, query in found.items()}


@dataclass(frozen=True, slots=True)
class PieceSums:
    """The answers about one piece."""

    exporter: Exporter
    piece: Piece
    vectors: Mapping[Sum, tuple[Sample, ...]]


def rows(cluster: str, sums: Iterable[PieceSums]) -> tuple[TeamDay, ...]:
    """All pieces in device-seconds, by day and team. Numbers that cannot be are left out."""
    found: dict[tuple[date, str, str, str], dict[Sum, float]] = {}
    for one in sums:
        labels = _LABELS[one.exporter]
        for what, samples in one.vectors.items():
            if what is Sum.SEEN:
                continue
            for sample in samples:
                # NaN is neither.
                if not 0 <= sample.value < float("inf"):
                    continue
                product, profile = (sample.labels.get(name, "") for name in (labels.product, labels.profile))
                seconds = sample.value * one.piece.step_s
                if profile:
                    seconds /= most_instances(product, profile)
                team, queue = (sample.labels.get(name, "") for name in ("team", "queue"))
                key = (one.piece.day, team, queue, spelled(product))
                of_key = found.setdefault(key, {})
                of_key[what] = of_key.get(what, 0.0) + seconds
    return tuple(_row(cluster, *key, found[key]) for key in sorted(found))


def _row(
    cluster: str, day: date, namespace: str, queue: str, product: str, sums: Mapping[Sum, float]
) -> TeamDay:
    """Rounded, each a part of the one that it is a part of."""
    allocated = round(sums.get(Sum.ALLOCATED, 0.0))
    measured = min(allocated, round(sums.get(Sum.MEASURED, 0.0)))
    used, quiet = (min(measured, round(sums.get(one, 0.0))) for one in (Sum.USED, Sum.QUIET))
    return TeamDay(cluster, day, namespace, queue, product, allocated, measured, used, quiet)


def seen_seconds(sums: Iterable[PieceSums]) -> dict[tuple[tuple[str, str], ...], int]:
    """For how many seconds each device was told of, by its labels."""
    found: dict[tuple[tuple[str, str], ...], int] = {}
    for one in sums:
        for sample in one.vectors.get(Sum.SEEN, ()):
            key = tuple(sorted(sample.labels.items()))
            if sample.value >= 0:
                found[key] = found.get(key, 0) + int(sample.value) * one.piece.step_s
    return found
