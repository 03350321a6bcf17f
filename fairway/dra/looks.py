"""What of a device a selector looks at, so that devices which agree on that are one to it.

Every GPU has an id of its own, and hardly any selector asks for it. An expression in which each mention of
``device`` names a plain field, one attribute or one capacity can depend on nothing else: nothing that CEL
has reaches a variable but by its name. Anything else may look at everything.

How much work an expression can make is bounded from its length for the same reason: whoever may write a claim
must not be able to stop an answer, and Kubernetes' own cost limit is not known to the engine used here.
"""

import re

_LITERAL = r"""(?:"[\w./-]*"|'[\w./-]*')"""
_MAP = rf"\bdevice\s*\.\s*(?:attributes|capacity)\s*\[\s*({_LITERAL})\s*\]"
_FIELD = re.compile(
    rf"{_MAP}\s*(?:\.\s*\??\s*([A-Za-z_]\w*)\b(?!\s*\()|\[\s*\??\s*({_LITERAL})\s*\])",
)
_CONTAINS = re.compile(rf"({_LITERAL})\s+in\s+{_MAP}(?!\s*[.\[])")
_PLAIN = re.compile(r"\bdevice\s*\.\s*(?:driver|allowMultipleAllocations)\b")
_DEVICE = re.compile(r"\bdevice\b")
_MULTIPLIES = re.compile(
    r"\bcel\s*\.\s*bind\b|\.\s*(?:replace|join|split|map|filter|all|exists|exists_one)\b"
)

_MOST_WORK = 10_000_000


def looked_at(expression: str) -> frozenset[str] | None:
    """The full names of the attributes and capacities that the expression can depend on; None: any.

    What it can always depend on is the driver and whether the device is shared.
    """
    found: set[str] = set()

    def by_field(match: re.Match[str]) -> str:
        domain, identifier, literal = match.groups()
        found.add(f"{domain[1:-1]}/{identifier or literal[1:-1]}")
        return " 0 "

    def by_content(match: re.Match[str]) -> str:
        literal, domain = match.groups()
        found.add(f"{domain[1:-1]}/{literal[1:-1]}")
        return " 0 "

    left = _PLAIN.sub(" 0 ", _CONTAINS.sub(by_content, _FIELD.sub(by_field, expression)))
    return None if _DEVICE.search(left) else frozenset(found)


def is_too_much(expression: str) -> bool:
    """Whether evaluating the expression may take more time or memory than a selector is worth.

    With k calls that can multiply what they are given, a text of n characters makes at most about
    ``(n / (k + 1)) ** (k + 1)`` of it.
    """
    parts = 1 + len(_MULTIPLIES.findall(expression))
    return (len(expression) / parts) ** parts > _MOST_WORK
