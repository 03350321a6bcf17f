"""Who uses what, and devices that are not healthy, as sections of the page."""

from dataclasses import replace

from admin.document import Report
from admin.html.markup import EMPTY, Markup, element, joined
from admin.html.tables import listed
from admin.listings.usage import nodes_by_use, sick_devices, unknown, users
from admin.printable import counted, printable
from admin.tables import Listing
from fairway.usage.definitions import sentences
from fairway.usage.groups import By

_SHOWN_NOTES, _SHOWN_SICK, _MOST_SICK = 8, 10, 200


def usage_section(report: Report) -> Markup:
    """By namespace, by queue where there are queues, and what is not known; nothing where nobody tells."""
    if not any(cluster.usage for cluster in report.clusters):
        return EMPTY
    tables = [listing for by in (By.NAMESPACE, By.QUEUE) if (listing := users(report, by)).rows]
    if not tables:
        return EMPTY
    by_use = nodes_by_use(report)
    tables += [by_use] if by_use.rows else []
    return element(
        "section",
        element("h2", "Who uses what"),
        element(
            "p",
            "What pods hold of devices, and what these did in the last minutes. Wasted is what is held and "
            "not used: held times what the median utilisation lacks to 100 %. A dash is not measured, not 0.",
            class_="lead",
        ),
        *(
            element(
                "div", element("h3", listing.title, class_="panel-title"), listed(listing), class_="panel gap"
            )
            for listing in tables
        ),
        _notes(unknown(report)),
        id="users",
    )


def health_section(report: Report) -> Markup:
    """Devices that are not healthy; nothing where all are, or nobody tells."""
    listing = sick_devices(report, _MOST_SICK)
    if not listing.rows:
        return EMPTY
    return element(
        "section",
        element("h2", "Health"),
        element("p", "Devices that are not healthy, and the pods that hold them.", class_="lead"),
        element(
            "div",
            listed(replace(listing, rows=listing.rows[:_SHOWN_SICK], hidden=0)),
            _folded(replace(listing, rows=listing.rows[_SHOWN_SICK:])),
            class_="panel",
        ),
        id="health",
    )


def finding_words() -> Markup:
    """Each finding with its sentence, as entries of a list of definitions."""
    return joined(
        part
        for finding, text in sentences().items()
        for part in (element("dt", finding.value.capitalize().replace("-", " ")), element("dd", text))
    )


def _folded(listing: Listing) -> Markup:
    if not listing.rows:
        return EMPTY
    title = element("span", counted(len(listing.rows) + listing.hidden, "more device"), class_="soft")
    return element("details", element("summary", title), listed(listing))


def _notes(notes: tuple[str, ...]) -> Markup:
    if not notes:
        return EMPTY
    lines = [element("li", printable(note, 300)) for note in notes[:_SHOWN_NOTES]]
    more = len(notes) - _SHOWN_NOTES
    if more > 0:
        lines.append(element("li", f"and {counted(more, 'more note')}"))
    return element("ul", *lines, class_="notes")
