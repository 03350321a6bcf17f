"""Label selectors as people type them on a command line, in the grammar of ``kubectl -l``.

``app=train``, ``tier!=web``, ``rack in (r1,r2)``, ``rack notin (r1)``, ``gpu``, ``!gpu``, ``count>4``; commas
mean and. Mirrors k8s.io/apimachinery/pkg/labels of Kubernetes 1.36: ``!=`` and ``notin`` also match objects
without the label.
"""

import re
from collections.abc import Mapping

from fairway.selectors import Operator, Requirement, SelectorError, label_requirement

_PART = re.compile(
    r"""\s*(?:
        !\s*(?P<absent>[^\s,()=!<>]+)
      | (?P<key>[^\s,()=!<>]+)\s*(?:
            (?P<equals>==|=|!=|<|>)\s*(?P<value>[^\s,()=!<>]*)
          | (?P<in>in|notin)\s*\((?P<values>[^()]*)\)
        )?
    )\s*""",
    re.VERBOSE,
)
_OPERATORS = {
    "=": Operator.IN,
    "==": Operator.IN,
    "!=": Operator.NOT_IN,
    "in": Operator.IN,
    "notin": Operator.NOT_IN,
    "<": Operator.LT,
    ">": Operator.GT,
}


def parse_selector(text: str) -> tuple[Requirement, ...]:
    """The requirements of a selector, all of which must hold. Raises SelectorError."""
    requirements: list[Requirement] = []
    at = 0
    while True:
        match = _PART.match(text, at)
        if match is None or (match.end() < len(text) and text[match.end()] != ","):
            raise SelectorError(
                f"selector {text!r}: cannot be read from character {at + 1} on; expected such as "
                "app=train,tier!=web or 'rack in (r1,r2)'"
            )
        requirements.append(_requirement(match))
        if match.end() == len(text):
            return tuple(requirements)
        at = match.end() + 1


def matches(requirements: tuple[Requirement, ...], labels: Mapping[str, str] | None) -> bool:
    """Whether an object with these labels is selected."""
    found = labels or {}
    return all(requirement.allows(found.get(requirement.key)) for requirement in requirements)


def _requirement(match: re.Match[str]) -> Requirement:
    if match["absent"]:
        return label_requirement(match["absent"], Operator.DOES_NOT_EXIST, ())
    if match["in"]:
        values = tuple(value.strip() for value in match["values"].split(","))
        return label_requirement(match["key"], _OPERATORS[match["in"]], values)
    if match["equals"]:
        return label_requirement(match["key"], _OPERATORS[match["equals"]], (match["value"],))
    return label_requirement(match["key"], Operator.EXISTS, ())
