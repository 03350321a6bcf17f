"""The rules of schemas (``x-kubernetes-validations``), by a real engine: the optional ``cel-expr-python``."""

from functools import cache
from typing import TYPE_CHECKING

from admin.doctor.refusals import Holds

if TYPE_CHECKING:
    from cel_expr_python.cel import Expression

_REFUSED = (RuntimeError, ValueError, TypeError)
"""What the engine raises: its own errors, and those of the binding about texts that are not UTF-8."""


@cache
def cel_rules() -> Holds | None:
    """Evaluates rules; None where the package is not installed. Loads the engine, tens of megabytes."""
    try:
        from cel_expr_python import cel
    except ImportError:
        return None
    environment = cel.NewEnv(variables={"self": cel.Type.DYN})

    @cache
    def compiled(rule: str) -> "Expression":
        return environment.compile(rule)

    def holds(rule: str, value: object) -> bool:
        try:
            return compiled(rule).eval(data={"self": value}).value() is True
        except _REFUSED:
            return False

    return holds
