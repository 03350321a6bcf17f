"""Devices that are used in groups or in pieces: TPU slices, MIG profiles, fractions."""

from collections.abc import Sequence

from admin.html.markup import EMPTY, Markup, element, joined
from admin.html.tables import listed
from admin.listings.pieces import pieces
from admin.tables import Listing
from estimator.capacity.summary import Summary


def pieces_section(summaries: Sequence[Summary]) -> Markup:
    """Nothing where no cluster has any of these."""
    parts = joined(_panel(listing) for listing in pieces(summaries))
    if not parts:
        return EMPTY
    return element("section", element("h2", "Groups and pieces of devices"), parts, id="pieces")


def _panel(listing: Listing) -> Markup:
    title, note = element("h3", listing.title), element("span", listing.note, class_="soft small")
    return joined(
        (element("div", title, note, class_="group"), element("div", listed(listing), class_="panel"))
    )
