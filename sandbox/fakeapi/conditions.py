"""matchConditions of admission webhooks, evaluated by the optional CEL engine ``cel-expr-python``."""

import importlib
from collections.abc import Mapping
from functools import cache
from typing import Any

from sandbox.fakeapi.cel_quantities import quantity_functions
from sandbox.fakeapi.store import Obj

_EXTENSIONS = (("ext_optional", "ExtOptional"), ("ext_strings", "ExtStrings"))


class ConditionFailed(Exception):
    """An expression that cannot be compiled or evaluated, or that is neither true nor false."""


def holds(expression: str, variables: Mapping[str, Obj | None]) -> bool:
    """Whether it is true of ``object``, ``oldObject`` and ``request``; raises ConditionFailed."""
    try:
        value = _compiled(expression).eval(data=variables).value()
    except (RuntimeError, ValueError, TypeError) as error:
        raise ConditionFailed(f"{expression!r}: {error}") from error
    if not isinstance(value, bool):
        raise ConditionFailed(f"{expression!r}: {value}")
    return value


# The engine has no annotations of its own, hence Any.
@cache
def _compiled(expression: str) -> Any:  # noqa: ANN401 - as said
    return _environment().compile(expression)


@cache
def _environment() -> Any:  # noqa: ANN401 - as said
    try:
        engine = importlib.import_module("cel_expr_python.cel")
        extensions = [
            getattr(importlib.import_module(f"cel_expr_python.ext.{module}"), name)()
            for module, name in _EXTENSIONS
        ]
    except ImportError as error:
        raise ConditionFailed(f"CEL needs the package cel-expr-python: {error}") from error
    variables = dict.fromkeys(("object", "oldObject", "request"), engine.Type.DYN)
    return engine.NewEnv(variables=variables, extensions=extensions, functions=quantity_functions(engine))
