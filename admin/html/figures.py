"""The pictures of the report, as inline SVG: bars, chunk strips, rack maps, slices.

Every picture has a text alternative that says the same numbers. What colour tells is told a second time, by a
hatch or by a number, so that it survives print and colour blindness. Colours are classes of the stylesheet.
"""

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from admin.fleet import Split
from admin.html.markup import EMPTY, Content, Markup, element
from admin.printable import counted, printable
from estimator.capacity.summary import Chunk, Domain, Product, SliceShape

_CELL_WIDTH, _CELL_HEIGHT = 30, 22
_HEAT_STEPS = 5
_EXACT_CHUNKS = 8
_RACK_WIDTH, _RACK_HEIGHT, _RACK_GAP = 82, 52, 6
_RACKS_PER_ROW = 6
_SQUARE, _SQUARES_PER_ROW, _SHOWN_SQUARES = 14, 24, 96


@dataclass(frozen=True, slots=True)
class Bin:
    """Nodes with at least ``low`` and at most ``high`` free devices share a cell; ``high`` None: no end."""

    low: int
    high: int | None

    def __str__(self) -> str:
        if self.high == self.low:
            return str(self.low)
        return f"{self.low}+" if self.high is None else f"{self.low}-{self.high}"

    def holds(self, free: int) -> bool:
        """Whether a node with so many free devices belongs here."""
        return self.low <= free and (self.high is None or free <= self.high)


def hatches() -> Markup:
    """The hatch patterns that the other pictures refer to; once in a page."""
    stranded = element(
        "pattern",
        element("rect", width=6, height=6, class_="stranded-ground"),
        element("line", x1=0, y1=0, x2=0, y2=6, class_="stranded-line"),
        id="hatch-stranded", width=6, height=6, patternUnits="userSpaceOnUse", patternTransform="rotate(45)",
    )  # fmt: skip
    held = element(
        "pattern",
        element("rect", width=5, height=5, class_="held-ground"),
        element("line", x1=0, y1=0, x2=0, y2=5, class_="held-line"),
        id="hatch-held", width=5, height=5, patternUnits="userSpaceOnUse", patternTransform="rotate(-45)",
    )  # fmt: skip
    return element(
        "svg", element("defs", stranded, held), width=0, height=0, class_="defs", aria_hidden="true"
    )


def swatch(kind: str) -> Markup:
    """A small square in the look of one kind of devices, for legends."""
    return element(
        "svg", _piece(kind, "0", "100%", 10), class_="swatch", width=10, height=10, aria_hidden="true"
    )


def bar(split: Split, label: str, *, height: int = 14) -> Markup:
    """All devices of a product in one bar; what is of use starts at the left, so that bars compare."""
    parts = (
        ("usable", split.usable),
        ("stranded", split.stranded),
        ("allocated", split.allocated),
        ("held", split.held),
        ("unhealthy", split.unhealthy),
    )
    return _proportions(parts, label, height)


def share(part: int, whole: int, label: str, *, kind: str = "usable", height: int = 8) -> Markup:
    """How much of a whole one part is."""
    return _proportions(((kind, max(0, part)), ("allocated", max(0, whole - part))), label, height)


def bins(products: Iterable[Product]) -> tuple[Bin, ...]:
    """The cells of the chunk strips of these products: one for each number of free devices up to 8."""
    most = 1
    for product in products:
        per_node = -(-product.total // product.nodes) if product.nodes > 0 else 0
        most = max(most, per_node, *(chunk.free for chunk in product.chunks))
    exact = tuple(Bin(n, n) for n in range(min(most, _EXACT_CHUNKS) + 1))
    if most <= _EXACT_CHUNKS:
        return exact
    if most <= 16:
        return (*exact, Bin(9, 15), Bin(16, 16))
    return (*exact, Bin(9, 15), Bin(16, 16), Bin(17, None))


def strip_head(cells: Sequence[Bin]) -> Markup:
    """The heading over chunk strips: the number of free devices of each cell."""
    texts = (
        element("text", str(cell), x=n * _CELL_WIDTH + _CELL_WIDTH / 2, y=11, class_="axis")
        for n, cell in enumerate(cells)
    )
    return _drawing(len(cells) * _CELL_WIDTH, 14, "", *texts, class_="strip")


def strip(chunks: Iterable[Chunk], cells: Sequence[Bin]) -> Markup:
    """How many nodes have how many free devices: a cell for each number, darker where more nodes are."""
    listed = tuple(chunks)
    nodes = [sum(chunk.nodes for chunk in listed if cell.holds(chunk.free)) for cell in cells]
    total = max(1, sum(nodes))
    drawn: list[Content] = []
    said = []
    for n, (cell, count) in enumerate(zip(cells, nodes, strict=True)):
        x = n * _CELL_WIDTH
        if count:
            # By the square root, because small parts differ more to the eye.
            heat = _heat(math.sqrt(count / total))
            # Nodes without a free device are no capacity, so they stay out of the colour of free ones.
            kind = f"busy{heat}" if cell.high == 0 else f"heat{heat}"
            drawn += [
                _box(x + 1, 1, _CELL_WIDTH - 2, _CELL_HEIGHT - 2, f"cell {kind}"),
                _label(x + _CELL_WIDTH / 2, 15.5, _compact(count), f"count on-{kind}"),
            ]
            said.append(f"{counted(count, 'node')} with {cell} free")
        else:
            drawn.append(_box(x + 1, 1, _CELL_WIDTH - 2, _CELL_HEIGHT - 2, "cell none"))
    label = "; ".join(said) or "no nodes"
    return _drawing(len(cells) * _CELL_WIDTH, _CELL_HEIGHT, label, *drawn, class_="strip")


def racks(domains: Sequence[Domain]) -> Markup:
    """The domains of one level side by side, each with its free devices; darker where more of it is free."""
    rows = -(-len(domains) // _RACKS_PER_ROW)
    columns = -(-len(domains) // max(1, rows))
    across, down = _RACK_WIDTH + _RACK_GAP, _RACK_HEIGHT + _RACK_GAP
    drawn = [_rack(domain, n % columns * across, n // columns * down) for n, domain in enumerate(domains)]
    width, height = columns * across - _RACK_GAP, rows * down - _RACK_GAP
    said = "; ".join(_said(domain) for domain in domains)
    return _drawing(max(width, 1), max(height, 1), said, *drawn, class_="racks")


def slices(shape: SliceShape) -> Markup:
    """One square for each slice: free, in use, partly busy or incomplete."""
    busy = max(0, shape.slices - shape.free - shape.partly_busy - shape.incomplete)
    kinds = [
        *["usable"] * shape.free,
        *["stranded"] * shape.partly_busy,
        *["allocated"] * busy,
        *["unhealthy"] * shape.incomplete,
    ][:_SHOWN_SQUARES]
    rows = -(-len(kinds) // _SQUARES_PER_ROW)
    step = _SQUARE + 3
    drawn = [
        element(
            "rect",
            x=n % _SQUARES_PER_ROW * step, y=n // _SQUARES_PER_ROW * step, width=_SQUARE, height=_SQUARE,
            rx=2, class_=kind, fill=_HATCHED.get(kind),
        )
        for n, kind in enumerate(kinds)
    ]  # fmt: skip
    label = (
        f"{counted(shape.slices, 'slice')}: {shape.free} free, {shape.partly_busy} partly busy, {busy} in "
        f"use, {shape.incomplete} incomplete"
    )
    width = max(1, min(len(kinds), _SQUARES_PER_ROW) * step - 3)
    return _drawing(width, max(1, rows * step - 3), label, *drawn, class_="slices")


_HATCHED = {"stranded": "url(#hatch-stranded)", "held": "url(#hatch-held)"}


def _proportions(parts: Sequence[tuple[str, int]], label: str, height: int) -> Markup:
    total = max(1, sum(amount for _, amount in parts))
    drawn, at = [], 0
    for kind, amount in parts:
        if amount > 0:
            drawn.append(_piece(kind, _percent(at, total), _percent(amount, total), height))
            at += amount
    return element(
        "svg", *drawn, class_="bar", width="100%", height=height, role="img", aria_label=label
    )  # fmt: skip


def _piece(kind: str, x: str, width: str, height: int) -> Markup:
    return element("rect", x=x, y=0, width=width, height=height, class_=kind, fill=_HATCHED.get(kind))


def _percent(part: int, total: int) -> str:
    return f"{100 * part / total:.3f}%"


def _rack(domain: Domain, x: int, y: int) -> Markup:
    share = domain.free / domain.total if domain.total > 0 else 0.0
    kind = f"heat{_heat(share)}" if domain.free > 0 else "none"
    label = domain.path[-1] if domain.path else ""
    middle, whole = x + _RACK_WIDTH / 2, domain.whole_nodes_free
    return element(
        "g",
        element("title", _said(domain)),
        _box(x + 0.5, y + 0.5, _RACK_WIDTH - 1, _RACK_HEIGHT - 1, f"rack {kind}"),
        _label(middle, y + 14, printable(label, 14), f"rack-name on-{kind}"),
        _label(middle, y + 31, f"{_compact(domain.free)} / {_compact(domain.total)}", f"rack-free on-{kind}"),
        _label(middle, y + 44, f"{_compact(whole)} whole" if whole > 0 else "", f"rack-whole on-{kind}"),
    )


def _said(domain: Domain) -> str:
    path = " / ".join(printable(part, 40) for part in domain.path)
    return (
        f"{path}: {domain.free} of {domain.total} free on {counted(domain.nodes, 'node')}, "
        f"{domain.whole_nodes_free} of them wholly free"
    )


def _drawing(width: float, height: float, label: str, *content: Content, class_: str) -> Markup:
    named: dict[str, str] = {"role": "img", "aria_label": label} if label else {"aria_hidden": "true"}
    return element(
        "svg", *content, class_=class_, width=width, height=height, viewBox=f"0 0 {width} {height}", **named
    )


def _box(x: float, y: float, width: float, height: float, class_: str) -> Markup:
    return element("rect", x=x, y=y, width=width, height=height, rx=3, class_=class_)


def _label(x: float, y: float, text: str, class_: str) -> Markup:
    return element("text", text, x=x, y=y, class_=class_) if text else EMPTY


def _heat(share: float) -> int:
    """1 to 5: which fifth of everything, rounded up, so that something is never shown as nothing."""
    return min(_HEAT_STEPS, max(1, math.ceil(share * _HEAT_STEPS)))


def _compact(count: int) -> str:
    """At most four characters: 9999, 12k, 3M."""
    if count < 10_000:
        return str(count)
    return f"{count // 1000}k" if count < 1_000_000 else f"{count // 1_000_000}M"
