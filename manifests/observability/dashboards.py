"""What the dashboards of devices show: of the fleet, of a node, of a workload.

They show what the rules record (`manifests.observability.rules`), so that a number here is the number there,
and what single devices do as their agents tell it.
"""

from collections.abc import Mapping
from typing import Final

from fairway.prometheus.queries import WINDOW_S
from fairway.usage.definitions import THRESHOLDS, Finding, sentences
from manifests.observability.grafana import (
    Bars,
    Column,
    Dashboard,
    Lines,
    Panel,
    Row,
    Stacked,
    Stat,
    Table,
    Variable,
)
from manifests.observability.rules import (
    ALLOCATED,
    BROKEN,
    DEVICES,
    FINDING,
    HOLDER,
    KEY,
    MEASURED,
    MEMORY_PEAK,
    P50,
    P95,
    POD,
    SHARE,
    USED,
    one,
)

_CLUSTER: Final = Variable("cluster", "Cluster", "fairway_node_agent_devices")
_SUMS: Final = "Devices that pods share count in equal parts; a MIG instance counts as a device."
_WASTED: Final = f"Allocated devices times what their median utilisation lacks to 100 %. {_SUMS}"


def _some(series: str, *variables: str, more: str = "") -> str:
    """The series that the reader chose."""
    matchers = ",".join((*(f'{name}=~"${name}"' for name in variables), *([more] if more else [])))
    return f"{series}{{{matchers}}}"


def _count(expression: str) -> str:
    return f"count({expression}) or vector(0)"


# The fleet.

_FLEET: Final = ("cluster", "product")
_TEAMS: Final = ("cluster", "product", "namespace")


def _sum(series: str, by: str = "") -> str:
    chosen = _some(series, *(_FLEET if series == DEVICES else _TEAMS))
    return f"sum by ({by}) ({chosen})" if by else f"sum({chosen})"


def _wasted(by: str = "") -> str:
    return f"{_sum(MEASURED, by)} - {_sum(USED, by)}"


def _found(finding: Finding, by: str = "") -> str:
    chosen = _some(FINDING, *_TEAMS, more=f'finding="{finding}"')
    of_devices = f"max by ({', '.join(filter(None, (KEY, by)))}) ({chosen})"
    return f"count by ({by}) ({of_devices})" if by else f"count({of_devices}) or vector(0)"


def _by(label: str, *, with_all: bool) -> Table:
    """Everything about devices, by a label; ``with_all``: with devices that nobody holds."""
    broken = Column("broken", f"count by ({label}) ({_some(BROKEN, *_FLEET)})", red_from=1)
    return Table(
        f"By {label}",
        (label,),
        (
            *([Column("devices", _sum(DEVICES, label))] if with_all else []),
            Column("allocated", _sum(ALLOCATED, label)),
            Column("used", f"{_sum(USED, label)} / {_sum(MEASURED, label)}", "percentunit"),
            Column("wasted", _wasted(label)),
            Column("idle", _found(Finding.IDLE, label)),
            *([broken] if with_all else []),
        ),
        text=f"Used: of what is measured. {_WASTED}",
        by="wasted",
    )


_WASTE_OF_PODS: Final = (
    f"topk(20, sum by (cluster, namespace, pod) ({_some(SHARE, *_TEAMS)}"
    f" * on ({KEY}) group_left () (1 - {one(P50)})))"
)

FLEET: Final = Dashboard(
    "fairway-devices",
    "Fairway / Devices",
    "Devices of the fleet: how many there are, who holds them, how much of them is used, and what is broken.",
    (
        _CLUSTER,
        Variable("product", "Product", _some(DEVICES, "cluster")),
        Variable("namespace", "Namespace", _some(ALLOCATED, "cluster")),
    ),
    (
        Row(
            "Now",
            (
                Stat("Devices", [(_sum(DEVICES), "devices")], 4, 5, text=_SUMS),
                Stat("Allocated", [(_sum(ALLOCATED), "allocated")], 4, 5, text="Devices that pods hold."),
                Stat(
                    "Used",
                    [(f"{_sum(USED)} / {_sum(MEASURED)}", "used")],
                    *(4, 5, "percentunit"),
                    text="Mean of the median utilisation of allocated devices that are measured.",
                ),
                Stat("Wasted", [(_wasted(), "wasted")], 4, 5, text=_WASTED),
                Stat(
                    "Idle", [(_found(Finding.IDLE), "idle")], 4, 5, text=sentences()[Finding.IDLE], red_from=1
                ),
                Stat(
                    "Broken",
                    [(_count(_some(BROKEN, *_FLEET)), "broken")],
                    *(4, 5),
                    text="Unhealthy or lost; nothing new is promised them.",
                    red_from=1,
                ),
            ),
        ),
        Row(
            "Over time",
            (
                Lines(
                    "Devices, allocated, used",
                    [(_sum(DEVICES), "devices"), (_sum(ALLOCATED), "allocated"), (_sum(USED), "used")],
                    *(12, 8),
                    text=_SUMS,
                ),
                Stacked("Wasted, by namespace", [(_wasted("namespace"), "{{namespace}}")], 12, text=_WASTED),
            ),
        ),
        Row(
            "Where",
            (
                _by("cluster", with_all=True),
                _by("product", with_all=True),
                _by("namespace", with_all=False),
                Table(
                    "Who wastes most",
                    ("cluster", "namespace", "pod"),
                    (Column("wasted", _WASTE_OF_PODS),),
                    text=_WASTED,
                    by="wasted",
                ),
            ),
        ),
        Row(
            "What is found",
            (
                Bars(
                    "Devices, by finding",
                    [
                        (
                            f"count by (finding) (max by ({KEY}, finding) ({_some(FINDING, *_TEAMS)}))",
                            "{{finding}}",
                        )
                    ],
                    text=" ".join(f"{finding}: {said}" for finding, said in sentences().items()),
                ),
                Table(
                    "Broken devices",
                    ("cluster", "node", "uuid", "code"),
                    (
                        Column(
                            "is so",
                            "max by (cluster, node, uuid, code)"
                            f" ({_some('fairway_node_device_problem', *_FLEET)}) and on ({KEY}) {BROKEN}",
                        ),
                    ),
                    16,
                    8,
                ),
            ),
        ),
        Row(
            "Agents",
            (
                Stat("Agents", [(_count(_some("fairway_node_agent_devices", "cluster")), "agents")], 6, 5),
                *(
                    Stat(title, [(_count(f"{_some(series, 'cluster')} {is_bad}"), "nodes")], 6, 5, red_from=1)
                    for title, series, is_bad in (
                        ("Agents that lack something", "fairway_node_agent_problem", "== 1"),
                        ("Drivers that hang", "fairway_node_agent_driver_hung", "== 1"),
                    )
                ),
                Stat(
                    "Devices held, and not measured",
                    [(_count(f"{_some(HOLDER, *_TEAMS)} unless on ({KEY}) {P50}"), "unmeasured")],
                    *(6, 5),
                ),
            ),
        ),
    ),
)

# One node.

_NODE: Final = ("cluster", "node")
_LEGEND: Final = "{{node}} {{index}} {{mig_profile}}"
_WHICH: Final = "node, index, mig_profile"
_LINES: Final = "node, index, uuid, product, mig_profile"


def _here(name: str, by: str = _WHICH) -> str:
    return f"max by ({by}) ({_some(f'fairway_node_{name}', *_NODE)})"


def _of_device(name: str) -> str:
    """By the labels of the table's lines."""
    return _here(name, _LINES)


_MEMORY: Final = " / ".join(
    _some(f"fairway_node_device_{name}", *_NODE)
    for name in ("window_memory_peak_bytes", "memory_total_bytes")
)


def _drawn(title: str, name: str, unit: str, text: str = "", *, most: float | None = None) -> Lines:
    return Lines(title, [(_here(name), _LEGEND)], 12, 8, unit, text, most)


NODE: Final = Dashboard(
    "fairway-node",
    "Fairway / Node",
    "Each device of a node: what it does, how it is, and who holds it.",
    (_CLUSTER, Variable("node", "Node", _some("fairway_node_agent_devices", "cluster"), has_all=False)),
    (
        Row(
            "Devices",
            (
                Table(
                    "Devices",
                    ("node", "index", "product", "mig_profile", "uuid"),
                    (
                        Column(
                            "used, median", _of_device("device_window_utilization_p50_ratio"), "percentunit"
                        ),
                        Column(
                            "95th percentile",
                            _of_device("device_window_utilization_p95_ratio"),
                            "percentunit",
                        ),
                        Column(
                            "memory, peak",
                            f"max by ({_LINES}) ({_MEMORY})",
                            "percentunit",
                        ),
                        Column("power", _of_device("device_power_watts"), "watt"),
                        Column("temperature", _of_device("device_temperature_celsius"), "celsius"),
                        Column("idle for", _of_device("device_idle_seconds"), "s", THRESHOLDS.idle_s),
                        Column("processes", _of_device("device_processes")),
                    ),
                    24,
                    text=f"Of the last {WINDOW_S // 60} minutes.",
                ),
                Table(
                    "Who holds them",
                    ("node", "index", "namespace", "pod", "container", "source"),
                    (
                        Column(
                            "holds",
                            _here("device_holder", "node, index, namespace, pod, container, source"),
                        ),
                    ),
                    text="Source Cgroup: a process runs there, and nobody gave it the device.",
                ),
                Table(
                    "What is wrong",
                    ("node", "index", "uuid", "code"),
                    (Column("is so", _here("device_problem", "node, index, uuid, code"), red_from=1),),
                    text="XIDs that are not over, memory, links, clocks: NodeDevices has the sentences.",
                ),
            ),
        ),
        Row(
            "What they do",
            (
                _drawn("Utilisation", "device_utilization_ratio", "percentunit", most=1),
                _drawn("Memory used", "device_memory_used_bytes", "bytes"),
                _drawn("Power", "device_power_watts", "watt"),
                _drawn("Temperature", "device_temperature_celsius", "celsius"),
                Lines(
                    "Clocks held down",
                    [(f"{_here('device_window_throttled_seconds')} / {WINDOW_S}", _LEGEND)],
                    *(12, 8, "percentunit"),
                    text=f"Part of {WINDOW_S // 60} minutes in which heat or power held the clocks down.",
                    most=1,
                ),
                _drawn("Idle for", "device_idle_seconds", "s", "Absent while it works."),
            ),
        ),
        Row(
            "The agent",
            (
                Lines(
                    "Time of a look",
                    [
                        (
                            "histogram_quantile(0.99, sum by (le, node)"
                            f" (rate({_some('fairway_node_agent_look_seconds_bucket', *_NODE)}[5m])))",
                            "{{node}} p99",
                        )
                    ],
                    unit="s",
                ),
                Lines(
                    "Writes that failed",
                    [
                        (
                            "sum by (node, reason) (increase("
                            f"{_some('fairway_node_agent_write_failures_total', *_NODE)}[5m]))",
                            "{{node}} {{reason}}",
                        )
                    ],
                ),
                Lines(
                    "Age of NodeDevices",
                    [
                        (
                            "time() - max by (node)"
                            f" ({_some('fairway_node_agent_last_write_timestamp_seconds', *_NODE)} > 0)",
                            "{{node}}",
                        )
                    ],
                    unit="s",
                    text=f"Written every five minutes; not heeded after {THRESHOLDS.stale_s // 60}.",
                ),
            ),
        ),
    ),
)

# One workload.

_POD: Final = ("cluster", "namespace", "pod")
_LINE: Final = "namespace, pod, node, uuid"


def _held(series: str, by: str = _LINE) -> str:
    """What is told of each device, for the pods that hold it."""
    return f"max by ({by}) ({_some(HOLDER, *_POD)} * on ({KEY}) group_left () {one(series)})"


def _of_pods(title: str, name: str, unit: str, *, most: float | None = None) -> Panel:
    query = _held(f"fairway_node_device_{name}", "pod, node, uuid")
    return Lines(title, [(query, "{{pod}} {{node}} {{uuid}}")], 12, 8, unit, most=most)


_SHARES: Final = _some(SHARE, *_POD)
_USED_BY_PODS: Final = f"sum({_SHARES} * on ({KEY}) group_left () {one(P50)})"
_MEASURED_OF_PODS: Final = f"sum({_SHARES} and on ({KEY}) {P50})"
_HERE: Final[Mapping[str, str]] = {
    finding: _count(f"max by ({KEY}) ({_some(FINDING, *_POD, more=matcher)})")
    for finding, matcher in (
        ("idle", f'finding="{Finding.IDLE}"'),
        ("failing", f'finding="{Finding.FAILING}"'),
    )
}

WORKLOAD: Final = Dashboard(
    "fairway-workload",
    "Fairway / Workload",
    "The devices that pods hold, what they do with them, and what is found about that.",
    (
        _CLUSTER,
        Variable("namespace", "Namespace", _some(HOLDER, "cluster"), has_all=False),
        Variable("pod", "Pod", _some(HOLDER, "cluster", "namespace")),
    ),
    (
        Row(
            "Now",
            (
                Stat("Devices", [(f"sum({_SHARES})", "devices")], 4, 5, text=_SUMS),
                Stat("Pods", [(_count(f"count by ({POD}) ({_some(HOLDER, *_POD)})"), "pods")], 4, 5),
                Stat("Used", [(f"{_USED_BY_PODS} / {_MEASURED_OF_PODS}", "used")], 4, 5, "percentunit"),
                Stat("Wasted", [(f"{_MEASURED_OF_PODS} - {_USED_BY_PODS}", "wasted")], 4, 5, text=_WASTED),
                Stat("Idle", [(_HERE["idle"], "idle")], 4, 5, red_from=1),
                Stat("Failing", [(_HERE["failing"], "failing")], 4, 5, red_from=1),
            ),
        ),
        Row(
            "Devices",
            (
                Table(
                    "Devices",
                    ("namespace", "pod", "node", "uuid"),
                    (
                        Column("used, median", _held(P50), "percentunit"),
                        Column("95th percentile", _held(P95), "percentunit"),
                        Column("memory, peak", _held(MEMORY_PEAK), "percentunit"),
                        Column("idle for", _held("fairway_node_device_idle_seconds"), "s", THRESHOLDS.idle_s),
                    ),
                    24,
                    text="Idle for: the device, even if the pod came later.",
                    by="idle for",
                ),
                Table(
                    "Findings",
                    ("namespace", "pod", "node", "uuid", "finding"),
                    (Column("is so", f"max by ({_LINE}, finding) ({_some(FINDING, *_POD)})", red_from=1),),
                    16,
                    text=" ".join(f"{finding}: {said}" for finding, said in sentences().items()),
                ),
                Table(
                    "Pods",
                    ("namespace", "pod"),
                    (
                        Column("devices", f"sum by (namespace, pod) ({_SHARES})"),
                        Column(
                            "age",
                            "time() - min by (namespace, pod)"
                            f" ({_some('fairway_node_pod_scheduled_timestamp_seconds', *_POD)})",
                            "s",
                        ),
                    ),
                    8,
                    by="devices",
                ),
            ),
        ),
        Row(
            "What they do",
            (
                _of_pods("Utilisation", "utilization_ratio", "percentunit", most=1),
                _of_pods("Memory used", "memory_used_bytes", "bytes"),
                _of_pods("Power", "power_watts", "watt"),
                _of_pods("Idle for", "idle_seconds", "s"),
            ),
        ),
    ),
)

DASHBOARDS: Final = (FLEET, NODE, WORKLOAD)
