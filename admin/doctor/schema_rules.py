"""The rules of schemas (``x-kubernetes-validations``), by a real engine: the optional ``cel-expr-python``."""

from functools import cache
from typing import TYPE_CHECKING

from admin.doctor.refusals import Holds
from fairway.dra.cel import ENGINE_ERRORS

if TYPE_CHECKING:
    from cel_expr_python.cel import Expression


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
        except ENGINE_ERRORS:
            return False

    return holds
