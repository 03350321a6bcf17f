"""The whole page: what an administrator looks for first stands first, definitions stand last and once.

A Content-Security-Policy that allows one style sheet, by its hash, and nothing else makes the promise to ask
nobody for anything one that the browser keeps.
"""

import base64
import hashlib
from importlib.resources import files

from admin.definitions import DEFINITIONS
from admin.document import Report
from admin.fleet import fleet
from admin.html.changes_section import changes_section
from admin.html.clusters_section import clusters_section, nodes_section, notices
from admin.html.figures import hatches
from admin.html.fleet_section import fleet_section
from admin.html.markup import EMPTY, Markup, element, joined
from admin.html.pieces_section import pieces_section
from admin.html.places_section import places_section
from admin.html.stranded_section import stranded_section
from admin.html.topology_section import topology_section
from admin.html.usage_section import finding_words, health_section, usage_section
from admin.printable import age, counted, moment

_WORTH_A_WORD_S = 60.0
_LINKS = (
    ("free", "What is free"),
    ("changes", "Changes"),
    ("where", "Where it is free"),
    ("users", "Who uses what"),
    ("health", "Health"),
    ("stranded", "Stranded"),
    ("pieces", "Groups and pieces"),
    ("topology", "Topology"),
    ("nodes", "Nodes"),
    ("clusters", "Clusters"),
    ("words", "Definitions"),
)


def page(report: Report) -> str:
    """The report as a self-contained HTML document."""
    products = fleet(report.summaries)
    stranded = any(summary.stranded for summary in report.summaries)
    sections = joined(
        (
            fleet_section(products, report.changes) if products else _nothing(),
            EMPTY if report.changes is None else changes_section(report.changes),
            places_section(products) if products else EMPTY,
            usage_section(report),
            health_section(report),
            stranded_section(report.clusters) if stranded else EMPTY,
            pieces_section(report.summaries),
            topology_section(report.summaries),
            nodes_section(report),
            clusters_section(report),
            _words(),
        )
    )
    body = element(
        "div",
        _top(report),
        _links(sections),
        notices(report),
        element("main", sections),
        element("footer", f"Made by fairway {report.release}. This page asks nobody for anything."),
        class_="page",
    )
    style = Markup((files("admin.html") / "report.css").read_text(encoding="utf-8"))
    document = element("html", _head(style, report), element("body", hatches(), body), lang="en")
    return f"<!doctype html>\n{document}\n"


def _head(style: Markup, report: Report) -> Markup:
    digest = base64.b64encode(hashlib.sha256(style.encode()).digest()).decode()
    policy = (
        f"default-src 'none'; style-src 'sha256-{digest}'; img-src data:; base-uri 'none'; form-action 'none'"
    )
    return element(
        "head",
        element("meta", charset="utf-8"),
        element("meta", http_equiv="Content-Security-Policy", content=policy),
        element("meta", name="viewport", content="width=device-width, initial-scale=1"),
        element("meta", name="color-scheme", content="light dark"),
        element("meta", name="referrer", content="no-referrer"),
        # Without it, browsers ask the server for an icon.
        element("link", rel="icon", href="data:,"),
        element("title", f"Accelerator capacity, {moment(report.made_at)}"),
        element("style", style),
    )


def _top(report: Report) -> Markup:
    nodes = sum(summary.nodes for summary in report.summaries)
    found = [
        counted(len(report.clusters), "cluster"),
        counted(nodes, "node"),
        f"read {moment(report.made_at)}",
    ]
    oldest_s = max((summary.age_s for summary in report.summaries), default=0.0)
    if oldest_s >= _WORTH_A_WORD_S:
        found.append(f"oldest state {age(oldest_s)} old")
    return element(
        "header",
        element("h1", "Accelerator capacity"),
        element("p", ", ".join(found)),
        element("p", report.headline, class_="sentence") if report.headline else None,
        class_="top",
    )


def _links(sections: Markup) -> Markup:
    links = (element("a", title, href=f"#{id_}") for id_, title in _LINKS if f'id="{id_}"' in sections)
    return element("nav", *links, aria_label="Sections")


def _nothing() -> Markup:
    return element("section", element("p", "No accelerators were found.", class_="panel more"), id="free")


def _words() -> Markup:
    entries = (part for term, text in DEFINITIONS for part in (element("dt", term), element("dd", text)))
    words = element("dl", *entries, finding_words(), class_="panel")
    return element("section", element("h2", "Definitions"), words, id="words")
