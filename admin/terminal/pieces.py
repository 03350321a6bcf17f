"""Devices that are used in groups or in pieces, as tables: TPU slices, MIG profiles, fractions."""

from collections.abc import Sequence

from rich.console import RenderableType
from rich.text import Text

from admin.printable import milli_text
from admin.terminal.console import grid, number, rest, shown
from estimator.capacity.summary import Summary

_SHOWN = 30


def slices_tables(summaries: Sequence[Summary]) -> list[RenderableType]:
    """TPU slices and other groups; nothing where no cluster has any."""
    found = [(summary.cluster, shape) for summary in summaries for shape in summary.slices]
    if not found:
        return []
    table = grid(
        "ACCELERATOR", "TOPOLOGY", "CLUSTER", "HOSTS>", "SLICES>", "FREE>", "PARTLY BUSY>", "INCOMPLETE>"
    )
    for cluster, shape in found[:_SHOWN]:
        table.add_row(
            shown(shape.accelerator),
            shown(shape.topology),
            shown(cluster, 32),
            number(shape.hosts),
            number(shape.slices),
            number(shape.free, "bold green"),
            number(shape.partly_busy, "yellow"),
            number(shape.incomplete, "red"),
        )
    return [table, *rest(len(found) - _SHOWN, "line")]


def partitions_tables(summaries: Sequence[Summary]) -> list[RenderableType]:
    """MIG profiles and other fixed pieces; nothing where no cluster has any."""
    found = [
        (summary.cluster, product.product, partition)
        for summary in summaries
        for product in summary.products
        for partition in product.partitions
    ]
    if not found:
        return []
    table = grid("PROFILE", "PRODUCT", "CLUSTER", "ALL>", "FREE>", "COULD BE CUT>")
    for cluster, product, partition in found[:_SHOWN]:
        table.add_row(
            shown(partition.profile),
            shown(product),
            shown(cluster, 32),
            number(partition.total),
            number(partition.free, "bold green"),
            number(partition.potential),
        )
    return [table, *rest(len(found) - _SHOWN, "line")]


def fractions_tables(summaries: Sequence[Summary]) -> list[RenderableType]:
    """Devices that sharing schemes divide; nothing where no cluster has any."""
    found = [
        (summary.cluster, product.product, fractions)
        for summary in summaries
        for product in summary.products
        for fractions in product.fractions
    ]
    if not found:
        return []
    table = grid(
        "SCHEME", "PRODUCT", "CLUSTER", "DEVICES>", "FREE>", "LARGEST PIECE>", "ITS MEMORY>", "UNTOUCHED>"
    )
    for cluster, product, fractions in found[:_SHOWN]:
        table.add_row(
            shown(fractions.scheme),
            shown(product),
            shown(cluster, 32),
            number(fractions.devices),
            Text(milli_text(fractions.free_milli), style="bold green"),
            Text(milli_text(fractions.largest_free_milli)),
            number(fractions.largest_free_memory),
            number(fractions.untouched),
        )
    return [table, *rest(len(found) - _SHOWN, "line")]
