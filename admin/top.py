"""The answer of ``fairway top`` as a value: what was chosen of who uses what, summed up, and as JSON."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from admin.document import Failure
from fairway.accelerators.product_names import holds
from fairway.usage.definitions import Finding, sentences
from fairway.usage.groups import By, Group, groups, total
from fairway.usage.percent import percent
from fairway.usage.use import ClusterUsage, Use

FORMAT = "fairway-top/1"


@dataclass(frozen=True, slots=True)
class Chosen:
    """Which uses count: all that the texts allow; an empty one allows every use.

    ``product``: a part of its name, case ignored. ``idle``: only devices that are idle.
    """

    namespace: str = ""
    queue: str = ""
    product: str = ""
    node: str = ""
    idle: bool = False

    def allows(self, use: Use) -> bool:
        """Whether the use counts. A queue may be told with its namespace, as ``research/default``."""
        return (
            self.namespace in ("", use.pod.namespace)
            and self.queue in ("", use.pod.queue, f"{use.pod.namespace}/{use.pod.queue}")
            and holds(use.product, self.product)
            and self.node in ("", use.pod.node)
            and (not self.idle or Finding.IDLE in use.findings)
        )


@dataclass(frozen=True, slots=True)
class Line:
    """One group; percentages are None where nothing was measured. ``wasted_percent``: of all waste."""

    name: tuple[str, ...]
    used_percent: int | None
    used_p95_percent: int | None
    memory_percent: int | None
    wasted_percent: int
    sums: Group


@dataclass(frozen=True, slots=True)
class Note:
    """Something about a cluster that could not be known, or not be true."""

    cluster: str
    text: str


@dataclass(frozen=True, slots=True)
class Top:
    """Who uses what, by one thing, those who waste most first; ``total`` is the sum of all lines."""

    format: str
    made_at: str
    release: str
    by: str
    total: Line
    lines: tuple[Line, ...]
    notes: tuple[Note, ...]
    failures: tuple[Failure, ...]
    definitions: dict[str, str]


def top(
    clusters: Sequence[ClusterUsage],
    failures: Iterable[Failure],
    by: By,
    chosen: Chosen,
    *,
    made_at: str,
    release: str,
) -> Top:
    """The chosen uses of all clusters, summed up."""
    kept = [replace(one, uses=tuple(use for use in one.uses if chosen.allows(use))) for one in clusters]
    found = groups(kept, by)
    every = total(kept, found)
    return Top(
        FORMAT,
        made_at,
        release,
        by.value,
        _line(every, every.wasted_milli),
        tuple(_line(group, every.wasted_milli) for group in found),
        tuple(Note(one.cluster, text) for one in clusters for text in one.notes),
        tuple(failures),
        {finding.value: text for finding, text in sentences().items()},
    )


def missing(clusters: Sequence[ClusterUsage], chosen: Chosen) -> str:
    """What was asked for and is nowhere, with what there is; empty where every text is met by some use."""
    uses = [use for one in clusters for use in one.uses]
    wanted = (
        ("--namespace", "namespace", Chosen(namespace=chosen.namespace), {use.pod.namespace for use in uses}),
        ("--queue", "queue", Chosen(queue=chosen.queue), {use.pod.queue for use in uses} - {""}),
        ("--product", "product", Chosen(product=chosen.product), {use.product for use in uses}),
        ("--node", "node", Chosen(node=chosen.node), {use.pod.node for use in uses}),
    )
    for flag, noun, alone, there in wanted:
        if alone != Chosen() and not any(alone.allows(use) for use in uses):
            value = alone.namespace or alone.queue or alone.product or alone.node
            names = sorted(there)
            known = ", ".join(names[:_SHOWN]) + (" ..." if len(names) > _SHOWN else "")
            return (
                f"{flag} {value}: no pod that holds devices is of such a {noun}; there is {known or 'none'}"
            )
    return ""


_SHOWN = 20


def _line(group: Group, all_wasted_milli: int) -> Line:
    share = percent(group.wasted_milli, all_wasted_milli) or 0
    percents = (group.used_percent, group.used_p95_percent, group.memory_percent)
    return Line(group.name, *percents, share, group)
