"""The catalogue of accelerators as a CEL expression that says of every name what the catalogue says of it.

An API server spends a bounded effort on an expression and fails the request beyond it. So names of other
domains, of which a binding may have thousands, are dropped at the first look; rules without parts that vary
become a list of names, which is searched at a hundredth of the cost of a pattern; only what is left becomes
regular expressions (RE2), in the order of the rules where that matters.
"""

import re
from collections.abc import Iterable, Sequence
from textwrap import fill, indent
from typing import Final

from fairway.accelerators.catalogue import Catalogue, Rule

_WIDTH: Final = 100
_OR: Final = " ||\n"
_PART: Final = re.compile(r"\{:([a-z]*)\}")
_PART_KINDS: Final = {"": "[A-Za-z0-9._-]+", "digits": "[0-9]+", "upper": "[A-Z0-9][A-Z0-9._-]*"}
"""What the parts of `fairway.accelerators.patterns` stand for."""


def accelerator_expression(catalogue: Catalogue, name: str) -> str:
    """Whether the CEL variable ``name`` holds the name of an accelerator."""
    patterned = [rule for rule in catalogue.rules if rule.pattern.parts]
    named = dict.fromkeys(rule.pattern.text for rule in catalogue.rules if not rule.pattern.parts)
    accelerators = [text for text in named if _is_accelerator(catalogue, text)]
    # Names that are none although a pattern would say so.
    exceptions = [
        text
        for text in named
        if text not in accelerators and any(rule.pattern.match(text) is not None for rule in patterned)
    ]
    expression = _pattern_expression(patterned, name)
    if expression and exceptions:
        expression = f"!({name} in {_list(exceptions)}) && ({expression})"
    listed = f"{name} in {_list(accelerators)}" if accelerators else ""
    known = _OR.join(filter(None, (listed, expression)))
    if not known:
        return "false"
    domains = dict.fromkeys(_domain(rule) for rule in catalogue.rules if rule.entry.is_accelerator)
    return f"""\
{name}.split('/')[0] in [
{_wrapped((f"'{domain}'" for domain in domains), "  ")}] && (
{indent(known, "  ")})"""


def _pattern_expression(rules: Sequence[Rule], name: str) -> str:
    """Whether the first of these rules that matches is one of an accelerator's; empty where none is."""
    expression = ""
    accelerators: list[Rule] = []
    domains: set[str] = set()
    for rule in reversed(rules):
        if rule.entry.is_accelerator:
            accelerators.insert(0, rule)
            domains.add(_domain(rule))
        elif _domain(rule) in domains:
            expression = f"!{_matches([rule], name)} && ({_either(accelerators, expression, name)})"
            accelerators = []
    return _either(accelerators, expression, name)


def _either(accelerators: Sequence[Rule], otherwise: str, name: str) -> str:
    return _OR.join(filter(None, (_matches(accelerators, name) if accelerators else "", otherwise)))


def _matches(rules: Iterable[Rule], name: str) -> str:
    by_domain: dict[str, list[str]] = {}
    for rule in rules:
        by_domain.setdefault(_domain(rule), []).append(_regex(rule.pattern.shape.partition("/")[2]))
    alternatives = "|".join(f"{_escaped(domain)}/({'|'.join(names)})" for domain, names in by_domain.items())
    return f"{name}.matches('^({alternatives})$')"


def _regex(shape: str) -> str:
    """The regular expression of a pattern's shape, in which a part is ``{:kind}``."""
    out, end = "", 0
    for part in _PART.finditer(shape):
        out += _escaped(shape[end : part.start()]) + _PART_KINDS[part[1]]
        end = part.end()
    return out + _escaped(shape[end:])


def _escaped(literal: str) -> str:
    # Of all that a name may hold only the dot means something; a backslash CEL would want twice.
    return literal.replace(".", "[.]")


def _domain(rule: Rule) -> str:
    return rule.pattern.shape.partition("/")[0]


def _is_accelerator(catalogue: Catalogue, name: str) -> bool:
    entry = catalogue.lookup(name)
    return entry is not None and entry.is_accelerator


def _list(names: Iterable[str]) -> str:
    by_domain: dict[str, list[str]] = {}
    for name in names:
        by_domain.setdefault(name.partition("/")[0], []).append(f"'{name}'")
    lines = ",\n".join(_wrapped(group, "    ") for group in by_domain.values())
    return f"[\n{lines}]"


def _wrapped(items: Iterable[str], further: str) -> str:
    """The items in lines, of which ``further`` ones are indented so far."""
    text = ", ".join(items)
    return fill(text, _WIDTH, initial_indent="  ", subsequent_indent=further, break_on_hyphens=False)
