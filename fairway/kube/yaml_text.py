"""YAML that may hold credentials: read as values, or refused without a word of what is written there.

The parser's messages quote the lines where it stopped, and those of values that are no date, number or truth
quote the value. Such a value ends the parser with whatever error Python happened to raise, so all are caught
here (PyYAML 6, constructor.py).
"""

from typing import Final

import yaml
from yaml.composer import ComposerError

try:
    # Ten times as fast, where libyaml is.
    from yaml import CSafeLoader as _Loader
except ImportError:
    from yaml import SafeLoader as _Loader  # type: ignore[assignment]  # either reads the same

Loader = _Loader
"""Of what is plain data."""

_BROKEN: Final = (
    yaml.YAMLError,
    ValueError,
    ArithmeticError,
    LookupError,
    AttributeError,
    TypeError,
    RecursionError,
)


_OF_SEVERAL: Final = "expected a single document in the stream"
"""What PyYAML 6 calls a text of several documents, which is YAML all the same (composer.py)."""


class NoYaml(ValueError):
    """A text that is no YAML, or is more documents than one; the message says from where on."""


def yaml_value(text: str | bytes) -> object:
    """The one document in the text, of whomever; None where there is none. Raises NoYaml."""
    try:
        # Not with libyaml, whose nesting is bounded by the stack of the process alone.
        value: object = yaml.safe_load(text)
    except _BROKEN as error:
        raise NoYaml(_place(error)) from None
    return value


def yaml_values(text: str | bytes) -> list[object]:
    """All documents in a text of our own. Raises NoYaml."""
    try:
        return list(yaml.load_all(text, Loader=Loader))
    except _BROKEN as error:
        raise NoYaml(_place(error)) from None


def _place(error: Exception) -> str:
    mark = error.problem_mark if isinstance(error, yaml.MarkedYAMLError) else None
    if mark is None:
        return "it is no YAML"
    if isinstance(error, ComposerError) and error.context == _OF_SEVERAL:
        return f"it is several documents, the second from line {mark.line + 1} on"
    return f"it is no YAML from line {mark.line + 1}, column {mark.column + 1} on"
