"""Devices that are used in groups or in pieces: TPU slices, MIG profiles, fractions."""

from collections.abc import Sequence

from admin.printable import milli_text
from admin.tables import Column, Kind, Listing, Row, Share, numbers
from estimator.capacity.summary import Summary

_SHOWN = 60
_CLUSTER, _PRODUCT = Column("Cluster", drop=5, limit=32), Column("Product", drop=60, limit=32)


def pieces(summaries: Sequence[Summary]) -> tuple[Listing, ...]:
    """A table for each way of using devices that any cluster has."""
    every = (_slices(summaries), _partitions(summaries), _fractions(summaries))
    return tuple(listing for listing in every if listing.rows)


def _slices(summaries: Sequence[Summary]) -> Listing:
    columns = (
        Column("Accelerator", limit=32),
        Column("Topology", limit=16),
        _CLUSTER,
        numbers("Hosts", 30),
        numbers("Slices", 25),
        Column("", Kind.FIGURE),
        numbers("Free", style="bold green"),
        numbers("Partly busy", 10, "yellow"),
        numbers("Incomplete", 20, "red"),
    )
    rows = [
        (
            shape.accelerator,
            shape.topology,
            summary.cluster,
            shape.hosts,
            shape.slices,
            shape,
            shape.free,
            shape.partly_busy,
            shape.incomplete,
        )
        for summary in summaries
        for shape in summary.slices
    ]
    note = "A slice is free only as a whole: one busy host makes it partly busy, and none of it counts."
    return _listing("Slices and other groups", note, columns, rows)


def _partitions(summaries: Sequence[Summary]) -> Listing:
    columns = (
        Column("Profile", limit=24),
        _PRODUCT,
        _CLUSTER,
        numbers("All", 10),
        Column("Free of all", Kind.FIGURE),
        numbers("Free", style="bold green"),
        numbers("Could be cut", 20),
    )
    rows = [
        (
            part.profile,
            product.product,
            summary.cluster,
            part.total,
            Share(part.free, part.total, f"{part.free} of {part.total} free"),
            part.free,
            part.potential,
        )
        for summary in summaries
        for product in summary.products
        for part in product.partitions
    ]
    note = (
        "Could be cut: more of this profile, if devices that nothing runs on were cut into it alone: those "
        "that are cut already, and those of the product without -MIG whose nodes say that they can be."
    )
    return _listing("Partitions", note, columns, rows)


def _fractions(summaries: Sequence[Summary]) -> Listing:
    columns = (
        Column("Scheme", limit=24),
        _PRODUCT,
        _CLUSTER,
        numbers("Devices", 10),
        Column("Free of all", Kind.FIGURE),
        numbers("Free", style="bold green"),
        numbers("Largest piece", 20),
        numbers("Its memory", 40),
        numbers("Untouched", 30),
    )
    rows = [
        (
            parts.scheme,
            product.product,
            summary.cluster,
            parts.devices,
            Share(
                parts.free_milli,
                parts.devices * 1000,
                f"{milli_text(parts.free_milli)} of {parts.devices} devices free",
            ),
            milli_text(parts.free_milli),
            milli_text(parts.largest_free_milli),
            parts.largest_free_memory,
            parts.untouched,
        )
        for summary in summaries
        for product in summary.products
        for parts in product.fractions
    ]
    note = "The largest piece is the most that one pod can get on one device; memory in the scheme's unit."
    return _listing("Fractions", note, columns, rows)


def _listing(title: str, note: str, columns: tuple[Column, ...], rows: Sequence[Row]) -> Listing:
    return Listing(columns, tuple(rows[:_SHOWN]), max(0, len(rows) - _SHOWN), title=title, note=note)
