"""The match conditions evaluated as an API server does: by a CEL engine with Kubernetes' quantities."""

import importlib
from collections.abc import Iterable

from sandbox.fakeapi.cel_quantities import quantity_functions
from webhook.match_conditions import MatchCondition

# The engine has no annotations of its own.
_CEL = importlib.import_module("cel_expr_python.cel")
_OPTIONAL = importlib.import_module("cel_expr_python.ext.ext_optional")
_STRINGS = importlib.import_module("cel_expr_python.ext.ext_strings")
_ENV = _CEL.NewEnv(
    variables={"object": _CEL.Type.DYN, "oldObject": _CEL.Type.DYN, "k": _CEL.Type.STRING},
    extensions=[_OPTIONAL.ExtOptional(), _STRINGS.ExtStrings()],
    functions=quantity_functions(_CEL),
)


class Evaluator:
    """Conditions compiled once."""

    def __init__(self, conditions: Iterable[MatchCondition]) -> None:
        self._compiled = [_ENV.compile(condition.expression) for condition in conditions]

    def matches(self, **variables: object) -> bool:
        """Whether every condition is true; RuntimeError where one fails and none is false.

        What an API server answers to a failure is up to the failurePolicy.
        """
        values = [compiled.eval(data=variables).value() for compiled in self._compiled]
        if any(value is False for value in values):
            return False
        failed = [value for value in values if value is not True]
        if failed:
            raise RuntimeError(failed[0])
        return True
