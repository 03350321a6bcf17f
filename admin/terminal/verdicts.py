"""Verdicts as tables: one line for each cluster, then why."""

from collections.abc import Iterable

from rich.console import Group, RenderableType
from rich.padding import Padding
from rich.text import Text

from admin.printable import age, counted, short_key
from admin.tables import Column, numbers
from admin.terminal.console import Grid, grid, number, shown
from admin.verdicts import Verdicts, Word, copies, is_sure, risk, sentence, word
from estimator.capacity.answer import NO_BOUND
from estimator.capacity.gangs.placements import ClusterExplanation, Explanation

_STYLES = {Word.FITS: "bold green", Word.SHORT: "yellow", Word.UNKNOWN: "yellow"}
_SHOWN_REASONS, _SHOWN_BLOCKED, _SHOWN_MISSES, _SHOWN_DETAILS = 6, 8, 3, 12


def verdict_tables(verdicts: Verdicts) -> Group:
    """All verdicts, ready to print; why is said of every cluster where more would have been welcome."""
    wanted = verdicts.wanted
    parts: list[RenderableType] = [shown(f"{verdicts.workload}; wanted: {copies(wanted)}", 400, "bold")]
    parts += [shown(note, 400, "yellow") for note in verdicts.notes]
    parts.append("")
    parts += [shown(failure.told, 400, "red") for failure in verdicts.failures]
    if verdicts.clusters:
        parts.append(_lines(verdicts))
    details = [
        cluster
        for cluster in verdicts.clusters
        if word(cluster.placement, wanted) is not Word.FITS
        or risk(cluster.placement)
        or not is_sure(cluster.placement, wanted)
    ]
    for cluster in details[:_SHOWN_DETAILS]:
        parts += ["", *_why(cluster, wanted)]
    if len(details) > _SHOWN_DETAILS:
        rest = counted(len(details) - _SHOWN_DETAILS, "more cluster")
        parts += ["", Text(f"and {rest}: their reasons are in the JSON", style="dim")]
    return Group(*parts)


def _lines(verdicts: Verdicts) -> Grid:
    table = grid(
        Column("Cluster"),
        Column("Verdict"),
        numbers("Fit"),
        numbers("At most", 20),
        Column("Proven", drop=10),
        numbers("Spreading", 50),
        Column("Within", drop=40),
        numbers("Age", 60),
    )
    wanted = verdicts.wanted
    for cluster in verdicts.clusters:
        placement = cluster.placement
        unknown = word(placement, wanted) is Word.UNKNOWN
        table.add_row(
            shown(placement.cluster, 40),
            Text(sentence(placement, wanted), style=_STYLES.get(word(placement, wanted), "")),
            "-" if unknown else number(placement.fits),
            "-" if unknown or placement.upper_bound >= NO_BOUND else number(placement.upper_bound),
            "yes" if is_sure(placement, wanted) else "no",
            "-" if placement.spread_fits is None else number(placement.spread_fits),
            shown(f"one {short_key(placement.level)}" if placement.level else "", 32),
            age(placement.age_s),
        )
    return table


def _why(cluster: ClusterExplanation, wanted: int) -> Iterable[RenderableType]:
    placement = cluster.placement
    yield shown(f"{placement.cluster}: {sentence(placement, wanted)}", 120, "bold")
    for reason in placement.reasons[:_SHOWN_REASONS]:
        yield Padding(shown(reason.text, 400), (0, 0, 0, 2))
    at_risk = risk(placement)
    if at_risk:
        yield Padding(Text(f"at risk: {at_risk}", style="yellow"), (0, 0, 0, 2))
    for pod_set in cluster.pod_sets:
        yield Padding(_pod_set(pod_set), (0, 0, 0, 2))


def _pod_set(explained: Explanation) -> Group:
    said = f"{explained.pod_set or 'pods'}: by themselves, {counted(explained.fits_alone, 'pod')} would fit"
    parts: list[RenderableType] = [shown(said, 160)]
    if explained.blocked:
        table = grid("NODES>", "WHAT KEEPS ONE MORE AWAY")
        for blocked in explained.blocked[:_SHOWN_BLOCKED]:
            table.add_row(number(blocked.nodes), shown(blocked.cause.text, 240))
        parts.append(Padding(table, (0, 0, 0, 2)))
    if explained.near_misses:
        table = grid("NEAREST NODES", "MISSING", "WHAT WOULD FREE IT")
        for miss in explained.near_misses[:_SHOWN_MISSES]:
            table.add_row(shown(miss.node), shown(miss.missing, 120), shown(miss.remedy, 240))
        parts.append(Padding(table, (0, 0, 0, 2)))
    return Group(*parts)
