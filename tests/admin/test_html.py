"""The HTML report: well formed, self-contained, harmless whatever names hold, and complete."""

import base64
import hashlib
import re
from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from html.parser import HTMLParser

import pytest
from hypothesis import given
from hypothesis import strategies as st

from admin.comparison import compare
from admin.document import NodeLine, Report
from admin.html.figures import bins, strip
from admin.html.markup import element
from admin.html.page import page
from admin.html.topology_section import leaf_level
from estimator.capacity.summary import Chunk, Domain, Level, StrandedNode, Summary
from tests.admin.examples import H100, alpha, bravo, charlie, everything, large, report, whole

VOID = frozenset({"meta", "link", "br"})
HOSTILE = '"><script>alert(1)</script><img src=x onerror=alert(1)>\x1b[31m\u202e\x00&amp;'


class Page(HTMLParser):
    """A page taken apart; fails on tags that do not match."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.open: list[str] = []
        self.tags: Counter[str] = Counter()
        self.attributes: list[tuple[str, str, str]] = []
        self.elements: list[tuple[str, dict[str, str | None]]] = []
        self.texts: list[str] = []
        self.feed(text)
        self.close()
        assert self.open == []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.note(tag, attrs)
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.note(tag, attrs)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        if self.open[-1:] != ["style"]:
            self.texts.append(data)

    def note(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        names = [name for name, _ in attrs]
        assert len(set(names)) == len(names)
        self.tags[tag] += 1
        self.elements.append((tag, dict(attrs)))
        self.attributes += [(tag, name, value or "") for name, value in attrs]

    @property
    def text(self) -> str:
        return " ".join(" ".join(self.texts).split())

    def values(self, name: str) -> list[str]:
        return [value for _, found, value in self.attributes if found == name]


def full() -> Report:
    made = everything()
    line = NodeLine("h100-000", "nvidia.com/gpu", H100, 8, 3, 5, "cordoned")
    made = replace(made, clusters=(replace(made.clusters[0], nodes=(line,)), *made.clusters[1:]))
    return replace(made, changes=compare(report(alpha(), bravo(), made_at="2026-03-13T09:00:00Z"), made))


REPORTS = {
    "full": full,
    "empty": report,
    "no accelerators": lambda: report(Summary("cpu", 3, 9)),
    "nothing read": lambda: replace(everything(), clusters=()),
    "large": large,
}


@pytest.mark.parametrize("make", REPORTS.values(), ids=REPORTS)
def test_the_page_is_well_formed_and_asks_nobody_for_anything(make: Callable[[], Report]) -> None:
    text = page(make())
    found = Page(text)
    assert text.startswith("<!doctype html>\n<html lang=")
    # No requests: no scripts, no frames, no images, no addresses but those inside the page.
    forbidden = {
        "script",
        "img",
        "image",
        "iframe",
        "object",
        "embed",
        "video",
        "audio",
        "form",
        "base",
        "use",
    }
    assert not forbidden & found.tags.keys()
    assert all(href.startswith("#") or href == "data:," for href in found.values("href"))
    assert not {"src", "srcset", "style", "action", "xlink:href"} & {name for _, name, _ in found.attributes}
    assert not any(name.startswith("on") for _, name, _ in found.attributes)
    assert not re.search(r"https?://", text.replace("https://delta:6443", ""))
    assert not re.search(r"url\((?!#)|@import|@font-face", text)


def test_the_policy_allows_this_style_sheet_alone() -> None:
    text = page(full())
    style = text.partition("<style>")[2].partition("</style>")[0]
    digest = base64.b64encode(hashlib.sha256(style.encode()).digest()).decode()
    (policy,) = (
        attributes["content"] or ""
        for tag, attributes in Page(text).elements
        if tag == "meta" and attributes.get("http-equiv") == "Content-Security-Policy"
    )
    assert policy.split("; ") == [
        "default-src 'none'",
        f"style-src 'sha256-{digest}'",
        "img-src data:",
        "base-uri 'none'",
        "form-action 'none'",
    ]


def test_every_picture_has_a_text_alternative_and_every_place_one_name() -> None:
    found = Page(page(full()))
    for tag, attributes in found.elements:
        if tag == "svg":
            assert attributes.get("aria-hidden") == "true" or (
                attributes.get("role") == "img" and attributes.get("aria-label")
            )
    ids = Counter(found.values("id"))
    assert set(ids.values()) == {1}
    assert {href.removeprefix("#") for href in found.values("href") if href != "data:,"} <= ids.keys()
    assert set(re.findall(r"url\(#([^)]*)\)", page(full()))) <= ids.keys()


def test_the_numbers_are_there() -> None:
    text = Page(page(full())).text
    for expected in (
        "3 clusters, 132 nodes, read 2026-03-14 09:26 UTC, oldest state 1 d old",
        "each with half of its devices' fair share of the node's CPU and memory",
        "97 free of 512",
        "37 free of 128",
        "and 2.4 in pieces",
        "largest gang: 9 \N{MULTIPLICATION SIGN} 8 in bravo",
        "delta could not be read: https://delta:6443: connection refused; is it running?",
        "charlie may not be true: out of contact for 24 h; its state is 1 d old",
        "Lift the taint example.com/maintenance:NoSchedule.",
        "3g.40gb",
        "tpu-v5-lite-podslice 4x4",
        "example.com/fpga",
        "Changed since 2026-03-13 09:00 UTC",
        "1 cluster not in the earlier report: charlie",
        "6 nodes without this label not shown",
        "Definitions",
    ):
        assert expected in text, expected
    labels = " ".join(Page(page(full())).values("aria-label"))
    assert "512 devices: 88 free and usable, 9 stranded, 396 allocated, 16 cordoned, 3 unhealthy" in labels
    assert "48 nodes with 0 free; 1 node with 1 free" in labels
    assert "b1 / r1: 16 of 32 free on 4 nodes, 2 of them wholly free" in labels
    assert "6 slices: 2 free, 1 partly busy, 2 in use, 1 incomplete" in labels


def hostile(text: str) -> Report:
    """A report in which everything that comes from a cluster is this text."""
    bad = replace(
        alpha(),
        cluster=text,
        products=tuple(
            replace(
                product,
                product=text,
                resource=text,
                gangs=tuple(replace(gang, level=text, domain=text) for gang in product.gangs),
                partitions=tuple(replace(p, profile=text, resource=text) for p in product.partitions),
                fractions=tuple(replace(f, scheme=text) for f in product.fractions),
            )
            for product in alpha().products
        ),
        stranded=(StrandedNode(text, text, 1, text, text),),
        slices=tuple(replace(s, accelerator=text, topology=text) for s in charlie().slices),
        levels=(Level(text, text, (Domain((text, text), 2, 8, 3, 1),), 1),),
        uncatalogued=(text,),
        doubt=text,
        problems=(text,),
    )
    made = report(bad, made_at=text)
    line = NodeLine(text, text, text, 8, 3, 5, text)
    made = replace(
        made, clusters=(replace(made.clusters[0], source=text, node_names=(text,), nodes=(line,)),)
    )
    return replace(made, changes=compare(report(), made))


def test_hostile_names_stay_text() -> None:
    text = page(hostile(HOSTILE))
    found = Page(text)
    assert not {"script", "img"} & found.tags.keys()
    assert "<script>alert(1)</script>" in found.text
    assert not any(bad in text for bad in ("\x1b", "\u202e", "\x00"))
    assert r"\x1b[31m\u202e\x00&amp;" in found.text


@given(st.text(max_size=40))
def test_no_name_breaks_the_page(text: str) -> None:
    found = Page(page(hostile(text)))
    assert found.tags["svg"] > 10
    assert not {"script", "img"} & found.tags.keys()


def test_a_hundred_clusters_stay_readable() -> None:
    text = page(large(clusters=100, nodes=50))
    assert len(text) < 1_000_000
    found = Page(text)
    assert "100 clusters, 5,000 nodes" in found.text
    assert found.text.count("and 75 more clusters with") == 3
    assert "more nodes" in found.text


def test_chunks_of_large_nodes_share_cells() -> None:
    cells = bins([whole(H100, [16, 3, 12, 0, 9], per_node=16)])
    assert [str(cell) for cell in cells] == ["0", "1", "2", "3", "4", "5", "6", "7", "8", "9-15", "16"]
    drawn = strip((Chunk(16, 1), Chunk(12, 1), Chunk(9, 1)), cells)
    assert "2 nodes with 9-15 free; 1 node with 16 free" in drawn
    assert [str(cell) for cell in bins([whole(H100, [64], per_node=64)])][-2:] == ["16", "17+"]
    assert [str(cell) for cell in bins([])] == ["0", "1"]


def test_the_map_shows_the_finest_level_above_nodes() -> None:
    zone = Level("zone", "p", (Domain(("z",), 8, 64, 1, 0),), 0)
    rack = Level("rack", "p", (Domain(("z", "r"), 4, 32, 1, 0), Domain(("z", "s"), 4, 32, 0, 0)), 0)
    host = Level("host", "p", tuple(Domain(("z", "r", f"h{n}"), 1, 8, 0, 0) for n in range(8)), 0)
    assert leaf_level([host, zone, rack]) is rack
    assert leaf_level([host]) is host
    assert leaf_level([]) is None


def test_elements_escape_what_they_are_given() -> None:
    assert (
        element("p", "<b>", class_="a&b", hidden=True, title=None)
        == '<p class="a&amp;b" hidden>&lt;b&gt;</p>'
    )
    assert element("p", element("b", "x"), None, "\x07") == "<p><b>x</b>\\x07</p>"
