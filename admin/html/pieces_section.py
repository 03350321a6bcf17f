"""Devices that are used in groups or in pieces: TPU slices, MIG profiles, fractions."""

from collections.abc import Sequence

from admin.html.figures import share, slices
from admin.html.markup import EMPTY, Markup, element, joined, name
from admin.html.tables import Column, more, table
from admin.printable import milli_text
from estimator.capacity.summary import Summary

_SHOWN = 60


def pieces_section(summaries: Sequence[Summary]) -> Markup:
    """Nothing where no cluster has any of these."""
    parts = joined((_slices(summaries), _partitions(summaries), _fractions(summaries)))
    if not parts:
        return EMPTY
    return element("section", element("h2", "Groups and pieces of devices"), parts, id="pieces")


def _slices(summaries: Sequence[Summary]) -> Markup:
    found = [(summary.cluster, shape) for summary in summaries for shape in summary.slices]
    if not found:
        return EMPTY
    columns = (
        Column("Cluster"),
        Column("Accelerator"),
        Column("Topology", "key"),
        Column("Hosts", "n"),
        Column("Slices"),
        Column("Free", "n"),
        Column("Partly busy", "n"),
        Column("Incomplete", "n"),
        Column("All", "n"),
    )
    rows = (
        (
            name(cluster, 32),
            name(shape.accelerator, 32),
            name(shape.topology, 16),
            shape.hosts,
            slices(shape),
            shape.free,
            shape.partly_busy,
            shape.incomplete,
            shape.slices,
        )
        for cluster, shape in found[:_SHOWN]
    )
    note = "A slice is free only as a whole: one busy host makes it partly busy, and none of it counts."
    return _panel("Slices", note, table(columns, (rows,)), len(found))


def _partitions(summaries: Sequence[Summary]) -> Markup:
    found = [
        (summary.cluster, product.product, partition)
        for summary in summaries
        for product in summary.products
        for partition in product.partitions
    ]
    if not found:
        return EMPTY
    columns = (
        Column("Cluster"),
        Column("Product"),
        Column("Profile", "key"),
        Column("Free of all", "barcell"),
        Column("Free", "n"),
        Column("All", "n"),
        Column("Could be cut", "n"),
    )
    rows = (
        (
            name(cluster, 32),
            name(product, 32),
            name(partition.profile, 24),
            share(partition.free, partition.total, f"{partition.free} of {partition.total} free"),
            partition.free,
            partition.total,
            partition.potential,
        )
        for cluster, product, partition in found[:_SHOWN]
    )
    note = "Could be cut: more of this profile, if devices that nothing runs on were cut into it alone."
    return _panel("MIG and other partitions", note, table(columns, (rows,)), len(found))


def _fractions(summaries: Sequence[Summary]) -> Markup:
    found = [
        (summary.cluster, product.product, fractions)
        for summary in summaries
        for product in summary.products
        for fractions in product.fractions
    ]
    if not found:
        return EMPTY
    columns = (
        Column("Cluster"),
        Column("Product"),
        Column("Scheme", "key"),
        Column("Free of all", "barcell"),
        Column("Free", "n"),
        Column("Devices", "n"),
        Column("Largest piece", "n"),
        Column("its memory", "n"),
        Column("Untouched", "n"),
    )
    rows = (
        (
            name(cluster, 32),
            name(product, 32),
            name(fractions.scheme, 24),
            share(
                fractions.free_milli,
                fractions.devices * 1000,
                f"{milli_text(fractions.free_milli)} of {fractions.devices} devices free",
            ),
            milli_text(fractions.free_milli),
            fractions.devices,
            milli_text(fractions.largest_free_milli),
            fractions.largest_free_memory,
            fractions.untouched,
        )
        for cluster, product, fractions in found[:_SHOWN]
    )
    note = "The largest piece is the most that one pod can get on one device; memory in the scheme's unit."
    return _panel("Fractions", note, table(columns, (rows,)), len(found))


def _panel(title: str, note: str, content: Markup, found: int) -> Markup:
    return joined(
        (
            element("div", element("h3", title), element("span", note, class_="soft small"), class_="group"),
            element("div", content, more(found - _SHOWN, "lines"), class_="panel"),
        )
    )
