"""Who uses what as tables: the same columns in ``fairway top`` and in the report."""

import re
from collections.abc import Iterable, Sequence
from dataclasses import replace

from admin.document import Report
from admin.printable import milli_text
from admin.tables import Cell, Column, Kind, Listing, Share, numbers
from fairway.usage.groups import By, Group, added, merged
from fairway.usage.percent import percent as rounded
from fairway.usage.summary import BANDS

NO_QUEUE, UNKNOWN_DEVICE = "(no queue)", "(not known which)"

_KEYS: dict[By, tuple[Column, ...]] = {
    By.NAMESPACE: (Column("Namespace", limit=40),),
    By.QUEUE: (Column("Queue", limit=60),),
    By.OWNER: (Column("Namespace", drop=8, limit=32), Column("Owner", limit=40)),
    By.POD: (
        Column("Cluster", drop=36, limit=24),
        Column("Namespace", drop=8, limit=32),
        Column("Pod", limit=40),
    ),
    By.NODE: (Column("Cluster", drop=36, limit=24), Column("Node", limit=40)),
    By.DEVICE: (
        Column("Cluster", drop=8, limit=24),
        Column("Node", limit=40),
        numbers("No"),
        Column("Device", drop=7, limit=44),
    ),
    By.PRODUCT: (Column("Product", limit=40),),
    By.CLUSTER: (Column("Cluster", limit=40),),
}


def usage_listing(
    found: Sequence[Group], by: By, total: Group | None = None, *, most: int = 1_000_000, wide: bool = False
) -> Listing:
    """The first ``most`` groups as rows, and their ``total`` as the last where it is given."""
    keys = _KEYS[by]
    rows = [(*_names(group, by, wide), *_cells(group, total, wide)) for group in found[:most]]
    if total is not None and rows:
        rows.append((*_padded("all", len(keys), by), *_cells(total, total, wide)))
    hidden = max(0, len(found) - most)
    return Listing((*keys, *(_WIDE if wide else _COLUMNS)), tuple(rows), hidden, by.value)


_COLUMNS = (
    Column("Used of what is held", Kind.FIGURE),
    numbers("Devices"),
    numbers("Used"),
    numbers("p95", 40),
    numbers("Memory", 30),
    numbers("Wasted"),
    numbers("Of all", 60),
    numbers("Unmeasured", 25),
    numbers("Pods", 50),
    numbers("Age", 45),
    numbers("Idle for", 20),
    Column("Findings", Kind.TEXT, drop=10, limit=160),
)

_WIDE = (
    *_COLUMNS,
    numbers("Idle device-hours"),
    numbers("Memory peak"),
    numbers("Memory held"),
)


def _cells(group: Group, total: Group | None, wide: bool) -> Iterable[Cell]:
    used, held = tenths(group.used_milli), milli_text(group.allocated_milli)
    yield Share(group.used_milli, group.allocated_milli, f"{used} of {held} devices used")
    yield held
    yield percent(group.used_percent)
    yield percent(group.used_p95_percent)
    yield percent(group.memory_percent)
    yield tenths(group.wasted_milli) if group.measured_milli else None
    yield percent(rounded(group.wasted_milli, total.wasted_milli) if total else None)
    yield milli_text(group.allocated_milli - group.measured_milli)
    yield group.pods
    yield duration(group.age_s)
    yield duration(group.idle_s or None)
    yield findings(group)
    if wide:
        yield f"{group.idle_device_seconds / 3600:,.1f}"
        yield gib(group.memory_peak_bytes)
        yield gib(group.memory_held_bytes)


def users(report: Report, by: By, most: int = 10) -> Listing:
    """Those who waste most over all clusters by namespace or queue, and the rest in a line.

    Nothing by queue where no pod came through one.
    """
    known = [cluster.usage for cluster in report.clusters if cluster.usage]
    found = merged(
        group for usage in known for group in (usage.queues if by is By.QUEUE else usage.namespaces)
    )
    if by is By.QUEUE and all(not group.name[-1] for group in found):
        return Listing((), ())
    total = added((), (usage.total for usage in known))
    listing = usage_listing(found[:most], by, total)
    if len(found) > most:
        others = added((), found[most:])
        line = (f"{len(found) - most} others", *_cells(others, total, wide=False))
        listing = replace(listing, rows=(*listing.rows[:-1], line, listing.rows[-1]))
    return replace(listing, title=f"By {by.value}")


def nodes_by_use(report: Report) -> Listing:
    """How many nodes of each cluster are used how much, of those on which pods hold devices."""
    ends = (*(begin - 1 for begin in BANDS[1:]), 100)
    bands = (f"{a}%" if a == b else f"{a}-{b}%" for a, b in zip(BANDS, ends, strict=True))
    columns = (
        Column("Cluster", limit=40),
        numbers("Nodes", 20),
        numbers("Unmeasured", 10),
        *(numbers(band) for band in bands),
    )
    known = [(cluster.name, cluster.usage.nodes) for cluster in report.clusters if cluster.usage]
    rows: tuple[tuple[Cell, ...], ...] = tuple(
        (name, nodes.unmeasured + sum(nodes.used), nodes.unmeasured, *nodes.used)
        for name, nodes in known
        if sum(nodes.used)
    )
    return Listing(columns, rows, title="Nodes by use of what is held there")


def sick_devices(report: Report, most: int = 40) -> Listing:
    """Devices that are not healthy, why, and who holds them; those that nobody can use first."""
    found = [sick for cluster in report.clusters if cluster.usage for sick in cluster.usage.sick]
    found.sort(key=lambda sick: (_SEVERITY.get(sick.health, 0), sick.cluster, sick.node, sick.index))
    columns = (
        Column("Node", limit=40),
        numbers("No"),
        Column("Cluster", drop=30, limit=32),
        Column("Product", drop=40, limit=32),
        Column("Health"),
        Column("Why", Kind.TEXT, limit=200),
        Column("Held by", Kind.TEXT, drop=10, limit=120),
    )
    rows = tuple(
        (
            sick.node,
            str(sick.index),
            sick.cluster,
            sick.product,
            sick.health,
            sick.problems or None,
            sick.pods or "nobody",
        )
        for sick in found[:most]
    )
    return Listing(columns, rows, max(0, len(found) - most), "device")


def unknown(report: Report) -> tuple[str, ...]:
    """What could not be known of who uses what, by cluster."""
    said = []
    for cluster in report.clusters:
        if cluster.usage is None:
            said.append(f"{cluster.name}: its estimator does not tell who uses what, as older ones do not")
        else:
            said += [f"{cluster.name}: {note}" for note in cluster.usage.notes]
    return tuple(said)


_SEVERITY = {"Lost": -2, "Unhealthy": -1}


def findings(group: Group) -> str:
    """``8 idle with memory, 4 under-used``: devices by what is to be said of them."""
    free = group.idle_milli - group.idle_holding_memory_milli
    said = (
        (free, "idle"),
        (group.idle_holding_memory_milli, "idle with memory"),
        (group.under_used_milli, "under-used"),
        (group.oversized_milli, "oversized"),
        (group.throttled_milli, "throttled"),
        (group.failing_milli, "failing"),
    )
    return ", ".join(f"{milli_text(milli)} {word}" for milli, word in said if milli)


def tenths(milli: int) -> str:
    """Thousandths of devices as devices, to a tenth."""
    return milli_text((milli + 50) // 100 * 100)


def percent(value: int | None) -> str | None:
    """``45%``; None where it is not known."""
    return None if value is None else f"{value}%"


def duration(seconds: int | None) -> str | None:
    """``45s``, ``3m``, ``5h``, ``9d``; None for none."""
    if seconds is None:
        return None
    for unit, length_s in (("d", 86_400), ("h", 3_600), ("m", 60)):
        if seconds >= 2 * length_s:
            return f"{seconds // length_s}{unit}"
    return f"{seconds}s"


def gib(amount: int) -> str:
    """Bytes in Gi."""
    return f"{amount / 1024**3:,.0f}Gi"


_UUID = re.compile(r"([A-Z]+-[0-9a-f]{8})-[0-9a-f-]{27}")


def _names(group: Group, by: By, wide: bool) -> tuple[Cell, ...]:
    """Of a UUID its beginning, unless ``wide``: that tells apart what is on one node."""
    match by:
        case By.QUEUE:
            return ("/".join(group.name) if group.name[-1] else NO_QUEUE,)
        case By.DEVICE:
            cluster, node, device = group.name
            number, _, id_ = device.partition(" ")
            short = _UUID.fullmatch(id_)
            return cluster, node, number or None, short[1] if short and not wide else id_ or UNKNOWN_DEVICE
        case _:
            return tuple(name or "-" for name in group.name)


def _padded(text: str, columns: int, by: By) -> tuple[Cell, ...]:
    """The text in the column that is always shown."""
    shown = next(n for n, column in enumerate(_KEYS[by]) if not column.drop)
    return tuple(text if n == shown else "" for n in range(columns))
