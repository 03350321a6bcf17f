"""Patterns of resource names: literal text with named parts that vary, such as ``nvidia.com/mig-{profile}``.

Not regular expressions, because administrators write them: a part matches one or more characters of a name
but never ``/``, there are at most two of them and never side by side, so matching a name is bounded by the
square of its length and no pattern can hang. ``{part:digits}`` and ``{part:upper}`` narrow what a part may
be. A pattern always stands for the whole name, and its domain is literal, so that no rule can swallow the
names of another vendor.
"""

import re
from collections.abc import Iterable
from dataclasses import dataclass, field

_PART = re.compile(r"\{([a-z][a-z0-9_]*)(?::([a-z]+))?\}")
_KINDS = {"": "[A-Za-z0-9._-]+", "digits": "[0-9]+", "upper": "[A-Z0-9][A-Z0-9._-]*"}
_DOMAIN = re.compile(r"[a-z0-9](?:[a-z0-9.-]*[a-z0-9])?")
_LITERAL = re.compile(r"[A-Za-z0-9._-]*")
_MAX_PARTS = 2
MAX_NAME_LENGTH = 253 + 1 + 63
"""A resource name is no longer than that: a DNS subdomain, a slash and a label name."""


class PatternError(ValueError):
    """A pattern cannot be used; the message says what was expected."""


@dataclass(frozen=True, slots=True)
class NamePattern:
    """One pattern; two of the same ``shape`` match the same names."""

    text: str
    parts: tuple[str, ...]
    shape: str
    _compiled: re.Pattern[str] = field(repr=False)

    def match(self, name: str) -> dict[str, str] | None:
        """The parts of the name, empty for a literal pattern; None where the name does not match."""
        if len(name) > MAX_NAME_LENGTH:
            return None
        found = self._compiled.fullmatch(name)
        return None if found is None else found.groupdict()


def parse_pattern(text: str) -> NamePattern:
    """The pattern that the text stands for. Raises PatternError."""
    domain, slash, name = text.partition("/")
    if not slash or not name:
        raise PatternError("expected a resource name with its domain, such as example.com/npu")
    if len(text) > MAX_NAME_LENGTH:
        raise PatternError(f"longer than the {MAX_NAME_LENGTH} characters that a resource name may have")
    if not _DOMAIN.fullmatch(domain):
        raise PatternError("expected a literal domain in lower case before the slash, such as example.com")
    parts: list[str] = []
    expression, shape, end = [re.escape(domain), "/"], f"{domain}/", 0
    for found in _PART.finditer(name):
        literal = _literal(name[end : found.start()])
        part, kind = found[1], found[2] or ""
        if kind not in _KINDS:
            raise PatternError(
                f"{{{part}:{kind}}}: expected {{{part}}}, {{{part}:digits}} or {{{part}:upper}}"
            )
        if part in parts:
            raise PatternError(f"{{{part}}} is there twice: expected a name of its own for each part")
        if parts and not literal:
            raise PatternError("two parts side by side: expected literal text between them")
        parts.append(part)
        expression += [re.escape(literal), f"(?P<{part}>{_KINDS[kind]})"]
        shape += f"{literal}{{:{kind}}}"
        end = found.end()
    if len(parts) > _MAX_PARTS:
        raise PatternError(f"expected at most {_MAX_PARTS} parts that vary, found {len(parts)}")
    tail = _literal(name[end:])
    return NamePattern(text, tuple(parts), shape + tail, re.compile("".join(expression) + re.escape(tail)))


def check_template(text: str, parts: Iterable[str]) -> None:
    """Whether every ``{part}`` of the text is one of the parts. Raises PatternError."""
    known = tuple(parts)
    for found in _PART.finditer(text):
        if found[1] not in known or found[2]:
            has = " or ".join(f"{{{part}}}" for part in known) or "no parts, as the pattern has none"
            raise PatternError(f"{found[0]}: expected {has}")
    if "{" in _PART.sub("", text) or "}" in _PART.sub("", text):
        raise PatternError("a lone brace: expected {part} with the name of a part of the pattern")


def fill(text: str, parts: dict[str, str]) -> str:
    """The text with each ``{part}`` replaced by what the name has there; the text was checked before."""
    return _PART.sub(lambda found: parts[found[1]], text) if parts else text


def _literal(text: str) -> str:
    if _LITERAL.fullmatch(text):
        return text
    wrong = next(character for character in text if not _LITERAL.fullmatch(character))
    raise PatternError(f"{wrong!r} cannot be in a resource name; what varies is written as {{part}}")
