"""HTML that is escaped by construction: text becomes `Markup` only through here.

The one idea: every element is made by `element`, which escapes each plain string it is given, so that no
name from a cluster can become a tag, an attribute or a script. There is no way to mark other text as safe.
"""

from collections.abc import Iterable
from html import escape

from admin.printable import printable

_VOID = frozenset({"meta", "link", "br", "rect", "line", "col"})


class Markup(str):
    """Text that is HTML already. Made by `element` and `joined` only."""

    __slots__ = ()


Content = str | Markup | None
"""What may stand inside an element: markup as it is, plain text escaped, None for nothing."""

Attribute = str | int | float | bool | None
"""True: the bare attribute; False and None: left out."""

EMPTY = Markup()
TIMES, NONE = "\N{MULTIPLICATION SIGN}", "\N{EN DASH}"


def element(tag: str, *content: Content, **attributes: Attribute) -> Markup:
    """One element. In attribute names ``_`` stands for ``-``, and one at the end is dropped (``class_``)."""
    written = "".join(_attribute(name, value) for name, value in attributes.items())
    if tag in _VOID and not content:
        return Markup(f"<{tag}{written}/>")
    return Markup(f"<{tag}{written}>{joined(content)}</{tag}>")


def joined(content: Iterable[Content]) -> Markup:
    """All of it, one after the other."""
    return Markup("".join(_written(part) for part in content))


def name(text: str, limit: int = 60) -> Markup:
    """A name from a cluster: unprintable characters shown as escapes, isolated from the text around it."""
    shown = printable(text, limit)
    whole = printable(text, 400)
    return element("bdi", shown, title=None if shown == whole else whole)


def _attribute(name: str, value: Attribute) -> str:
    if value is None or value is False:
        return ""
    written = name.rstrip("_").replace("_", "-")
    return f" {written}" if value is True else f' {written}="{escape(printable(str(value), 400))}"'


def _written(part: Content) -> str:
    if part is None:
        return ""
    return part if isinstance(part, Markup) else escape(_visible(part))


def _visible(text: str) -> str:
    return text if text.isprintable() else "".join(c if c == "\n" else printable(c) for c in text)
