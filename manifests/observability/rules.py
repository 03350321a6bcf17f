"""Recording rules: idle, wrong-sized, throttled and failing in PromQL, with the definitions' thresholds.

The series are those of node agents, so a rule sees what `fairway.usage.judged` sees: a device as a pod holds
it, and the sums of the window that the agent wrote. A series for each of these that holds is all that is
recorded: ``fairway:device_finding`` with the label ``finding``. Everything is grouped by ``cluster``, too, so
that the rules hold where one Prometheus has many clusters, and where none of its series has that label.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Final

from fairway.kube.node_devices import Health, HolderSource
from fairway.prometheus.queries import WINDOW_S
from fairway.usage.definitions import THRESHOLDS, Finding, Thresholds

HOLDER: Final = "fairway:device_holder"
"""1 for each pod that holds a device, or a share of it, because somebody gave it to the pod."""
SHARE: Final = "fairway:device_holder:share"
"""The part of the device that is the pod's: the same for all that share it."""
FINDING: Final = "fairway:device_finding"
DEVICE: Final = "fairway:device"
"""1 for each device that a pod can be given: instances, and not the device that was cut into them."""
BROKEN: Final = "fairway:device_broken"
"""1 for each device that no pod may be promised."""
DEVICES: Final = "fairway:devices:count"
ALLOCATED: Final = "fairway:devices_allocated:sum"
MEASURED: Final = "fairway:devices_measured:sum"
USED: Final = "fairway:devices_used:sum"
"""Allocated devices times their median utilisation; what it lacks to `MEASURED` is wasted."""

KEY: Final = "cluster, node, uuid"
POD: Final = "cluster, node, namespace, pod"
_TEAM: Final = "cluster, namespace, product"
P95: Final = "fairway_node_device_window_utilization_p95_ratio"
P50: Final = "fairway_node_device_window_utilization_p50_ratio"
MEMORY_PEAK: Final = (
    "fairway_node_device_window_memory_peak_bytes / fairway_node_device_memory_total_bytes <= 1"
)
"""Of the agents' window of five minutes, 0 to 1; absent where it is not measured, or cannot be."""

_WHAT: Final = f"{KEY}, index, product, mig_profile"


@dataclass(frozen=True, slots=True)
class Rule:
    """One recording rule: the series ``record`` gets what ``expression`` gives, with ``labels`` set."""

    record: str
    expression: str
    labels: Mapping[str, str] = field(default_factory=dict)


def recording_rules(limits: Thresholds = THRESHOLDS) -> tuple[Rule, ...]:
    """All of them, each after those that it uses."""
    return (
        *_facts(),
        *(Rule(FINDING, expression, {"finding": finding.value}) for finding, expression in _findings(limits)),
        *_sums(),
    )


def one(series: str) -> str:
    """The only value of each device, whoever scrapes it twice."""
    return f"max by ({KEY}) ({series})"


def _of(name: str, matchers: str = "", by: str = KEY) -> str:
    """A series of the agents', once for each device or what else it is by."""
    return f"max by ({by}) (fairway_node_{name}{matchers})"


def _facts() -> Iterator[Rule]:
    given = "|".join(one for one in HolderSource if one is not HolderSource.CGROUP)
    broken = f'{{health=~"{Health.UNHEALTHY}|{Health.LOST}"}}'
    cut = 'label_replace(fairway_node_device_info{parent!=""}, "uuid", "$1", "parent", "(.+)")'
    yield Rule(HOLDER, _of("device_holder", f'{{source=~"{given}"}}', f"{KEY}, product, namespace, pod"))
    yield Rule(SHARE, f"{HOLDER} / on ({KEY}) group_left () count by ({KEY}) ({HOLDER})")
    yield Rule(DEVICE, f"{_of('device_info', by=_WHAT)}\nunless on ({KEY}) {cut}")
    yield Rule(BROKEN, f"{_of('device_health', broken, f'{KEY}, product')} == 1")


def _findings(limits: Thresholds) -> Iterator[tuple[Finding, str]]:
    """What each finding is, in the words of `fairway.usage.judged`."""
    quiet = _part(limits.quiet_percent)
    yield (
        Finding.IDLE,
        _device_where(
            f"and on ({KEY}) {P95} < {quiet}",
            f"and on ({KEY}) fairway_node_device_idle_seconds >= {limits.idle_s}",
            # What it idled before the pod came is not the pod's.
            f"unless on ({POD}) time() - fairway_node_pod_scheduled_timestamp_seconds < {limits.idle_s}",
        ),
    )
    yield (
        Finding.HOLDS_MEMORY,
        f'{FINDING}{{finding="{Finding.IDLE}"}}\n'
        f"and on ({KEY}) {MEMORY_PEAK} > {_part(limits.held_memory_percent)}",
    )
    busy = f"count by ({POD}) ({HOLDER} and on ({KEY}) {P95} >= {quiet})"
    yield (
        Finding.UNDER_USED,
        _device_where(
            f"and on ({POD}) {busy}",
            f"  <= {_part(limits.under_used_percent)} * (count by ({POD}) ({HOLDER}) > 1)",
            # A pod of which not all is known may use the rest.
            f"unless on ({POD}) ({HOLDER} unless on ({KEY}) {P95})",
            f"unless on ({POD}) fairway_node_pod_unknown_devices > 0",
        ),
    )
    yield (
        Finding.OVERSIZED,
        _device_where(
            f"and on ({KEY}) {P95} >= {quiet} < {_part(limits.oversized_busy_percent)}",
            f"and on ({KEY}) {MEMORY_PEAK} < {_part(limits.oversized_memory_percent)}",
        ),
    )
    throttled = f"fairway_node_device_window_throttled_seconds / {WINDOW_S}"
    yield (
        Finding.THROTTLED,
        _device_where(f"and on ({KEY}) {throttled} >= {_part(limits.throttled_percent)}"),
    )
    yield Finding.FAILING, _device_where(f"and on ({KEY}) {BROKEN}")


def _sums() -> Iterator[Rule]:
    """What dashboards add up over weeks."""
    yield Rule(DEVICES, f"count by (cluster, product) ({DEVICE})")
    yield Rule(ALLOCATED, f"sum by ({_TEAM}) ({SHARE})")
    yield Rule(MEASURED, f"sum by ({_TEAM}) ({SHARE} and on ({KEY}) {P50})")
    yield Rule(USED, f"sum by ({_TEAM}) ({SHARE} * on ({KEY}) group_left () {one(P50)})")


def _device_where(*conditions: str) -> str:
    """The devices that pods hold, as far as all of that is so."""
    return "\n".join((HOLDER, *conditions))


def _part(percent: int) -> str:
    """Percent as PromQL's ratio, exactly: the number nearest to it, as agents divide."""
    return repr(percent / 100)
