"""The clusters themselves: where each was read from, how old its state is, what could not be understood."""

from admin.document import Report
from admin.html.markup import EMPTY, Markup, element
from admin.html.tables import listed
from admin.listings.clusters import clusters, nodes
from admin.printable import age, counted, printable

_SHOWN_NOTICES = 12


def notices(report: Report) -> Markup:
    """What to know before one trusts the numbers; nothing where all is well."""
    said = [
        *(failure.told for failure in report.failures),
        *(
            f"{summary.cluster} may not be true: {summary.doubt}; its state is {age(summary.age_s)} old"
            for summary in report.summaries
            if summary.doubt
        ),
        *(
            f"{summary.cluster}: {counted(len(summary.problems), 'note')} on its objects, see Clusters"
            for summary in report.summaries
            if summary.problems
        ),
    ]
    if not said:
        return EMPTY
    lines = (element("li", printable(text, 400)) for text in said[:_SHOWN_NOTICES])
    rest = len(said) - _SHOWN_NOTICES
    return element(
        "div",
        element("b", "Before you trust these numbers"),
        element("ul", *lines, element("li", f"and {rest} more, below under Clusters") if rest > 0 else None),
        class_="notice",
        role="note",
    )


def clusters_section(report: Report) -> Markup:
    """All clusters, those that could not be read among them."""
    return element(
        "section",
        element("h2", "Clusters"),
        element("p", "Where the numbers come from, and how old they are.", class_="lead"),
        element("div", listed(clusters(report)), class_="panel"),
        id="clusters",
    )


def nodes_section(report: Report) -> Markup:
    """Each node with its devices, where that was asked for."""
    found = nodes(report)
    if not found.rows:
        return EMPTY
    return element(
        "section", element("h2", "Nodes"), element("div", listed(found), class_="panel"), id="nodes"
    )
